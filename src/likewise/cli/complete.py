"""`likewise complete`: what a shell runs to complete commands and options."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from likewise.cli import COMPLETE
from likewise.cli._print import echo

SHELLS = ("bash", "zsh", "fish")


def complete(shell: Annotated[str, Argument(help="bash, zsh or fish.")]) -> None:
    """Print the script that completes commands in a shell.

    For bash: likewise complete bash >> ~/.bashrc
    """
    from typer._completion_shared import get_completion_script

    from likewise.errors import OptionError

    if shell not in SHELLS:
        raise OptionError(f"no completion for {shell!r}. Choose bash, zsh or fish.")
    echo(get_completion_script(prog_name="likewise", complete_var=COMPLETE, shell=shell))
