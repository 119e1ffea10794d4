"""What commands print: one form of it, and no character of a name that a terminal would obey."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import typer

from likewise._base.names import visible
from likewise.errors import OptionError


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text to stdout, or to stderr."""
    typer.echo(visible(text, lines=True), err=err, nl=nl)


def one_format(command: Callable[..., None]) -> Callable[..., None]:
    """A command that refuses to print in two forms at once; those are its options `as_...`."""

    @wraps(command)
    def run(**arguments: Any) -> None:
        flags = [f"--{name[3:]}" for name, value in arguments.items() if name.startswith("as_") and value]
        if len(flags) > 1:
            raise OptionError(f"{' and '.join(flags)} are two forms of one output. Give one of them.")
        command(**arguments)

    return run


def refuse_unused(options: Mapping[str, Any], where: str) -> None:
    """Refuse options that were typed where they have no effect.

    Args:
        options: The values by flag; None, False and an empty list are those of an option that was left out.
        where: What makes them useless, to follow "has no effect".
    """
    for flag, value in options.items():
        if value not in (None, False, []):
            raise OptionError(f"{flag} has no effect {where}. Leave it out.")
