"""The command line: one thin file per command, which parses, calls the public function and prints.

A file that has no underscore before its name is a command, its function has the file's name; others add theirs by an
entry point of the group `likewise.commands`. Results go to stdout, progress to stderr; an error of ours is one line on
stderr and exit code 1, a warning is one line too, and `--debug` shows where they arose. The room imports `_base` to
`report`, inside functions, so that lists of names are printed without torch.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any

GROUP = "likewise.commands"


def main(arguments: list[str] | None = None) -> None:
    """Run a command, turning our own errors into one line."""
    import typer

    from likewise.cli._words import check, spread
    from likewise.errors import LikewiseError

    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = spread([word for word in given if word != "--debug"])
    before = warnings.formatwarning
    if not debug:
        warnings.formatwarning = _in_a_line
    try:
        check(given)
        _app(given)(given, prog_name="likewise")
    except LikewiseError as error:
        if debug:
            raise
        typer.echo(f"likewise: {error}", err=True)
        sys.exit(1)
    finally:
        warnings.formatwarning = before


def _in_a_line(message: Warning | str, *_: Any, **__: Any) -> str:
    """A warning as errors are shown: where in the code it arose is for `--debug`."""
    return f"likewise: {message}\n"


def commands() -> dict[str, EntryPoint]:
    """The commands by name, not loaded yet: one per file of this room, then those of others."""
    from likewise.errors import InputError

    files = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    ours = [EntryPoint(name.replace("_", "-"), f"{__name__}.{name}:{name}", GROUP) for name in files]
    points = {point.name: point for point in ours}
    for point in entry_points(group=GROUP):
        if point.name in points:
            taken = points[point.name].value
            raise InputError(
                f"the command name {point.name!r} of {point.value} is taken by {taken}. Choose another name."
            )
        points[point.name] = point
    return points


def _app(words: list[str]) -> Any:
    """The command that the words name, or all of them for `--help`."""
    import typer

    from likewise import __version__

    app = typer.Typer(
        help="How alike are these neural networks, and what follows from it?",
        epilog="--debug shows the traceback of an error.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def version(
        version: bool = typer.Option(False, "--version", help="Print the version."),
    ) -> None:
        if version:
            typer.echo(f"likewise {__version__}")
            raise typer.Exit

    points = commands()
    for name in words[:1] if words and words[0] in points else points:
        app.command(name)(points[name].load())
    return app
