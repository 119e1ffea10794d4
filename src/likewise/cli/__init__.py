"""The command line: one thin file per command, which parses, calls the public function and prints.

A file that has no underscore before its name is a command, its function has the file's name; others add theirs by an
entry point of the group `likewise.commands`. Results go to stdout, progress to stderr; an error of ours is one line on
stderr and exit code 1, a warning is one line too, and `--debug` shows where they arose. `--quiet` and `--progress`
are words of every command. Imports are inside
functions, so that `--help` and lists of names are printed without torch. The room imports
`_base`, `wordnet`, `data`, `networks`, `views`, `matrices`, `measures`, `comparison`, `language`, `classes`,
`transfer`, `zeroshot`, `analysis`, `benchmark`, `difference` and `report`.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import nullcontext
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

GROUP = "likewise.commands"
COMPLETE = "_LIKEWISE_COMPLETE"


def main(arguments: list[str] | None = None) -> None:
    """Run a command, turning our own errors into one line."""
    from likewise._base.progress import progress_as
    from likewise.cli._print import echo
    from likewise.cli._words import UNDER_WAY, check, progress_style, spread
    from likewise.errors import LikewiseError

    typed = list(sys.argv[1:] if arguments is None else arguments)
    debug, quiet = "--debug" in typed, "--quiet" in typed
    before = warnings.formatwarning
    if not debug:
        warnings.formatwarning = _one_line
    words = []
    if COMPLETE in os.environ:  # a shell asks what may follow, by variables of its own
        from typer._completion_classes import completion_init

        completion_init()
    try:
        style, typed = progress_style([word for word in typed if word not in ("--debug", "--quiet")])
        words = spread(typed) or ["--help"]
        check(words)
        UNDER_WAY.set(tuple(words))
        with progress_as("none" if quiet else style), warnings.catch_warnings() if quiet else nullcontext():
            if quiet:
                warnings.simplefilter("ignore")
            _app(words)(words, prog_name="likewise")
    except SystemExit as end:
        if not end.code and "--help" not in words:
            _record(words)
        raise
    except LikewiseError as error:
        if debug:
            raise
        echo(f"likewise: {error}", err=True)
        sys.exit(1)
    finally:
        warnings.formatwarning = before


def _record(words: list[str]) -> None:
    """Write the command beside its results, which are there whether or not that succeeds."""
    from likewise.cli._print import echo
    from likewise.cli._words import record
    from likewise.errors import LikewiseError

    try:
        record(words)
    except (LikewiseError, OSError) as error:
        echo(f"likewise: the results are written, the command beside them is not: {error}", err=True)


def _one_line(message: Warning | str, *_: Any, **__: Any) -> str:
    """A warning as errors are shown: where in the code it arose is for `--debug`."""
    from likewise._base.names import visible

    return f"likewise: {visible(str(message), lines=True)}\n"


def commands() -> dict[str, EntryPoint]:
    """The commands by name, not loaded yet: one per file of this room, then those of others.

    A folder of this room is a group of commands, and each of its files one of them.
    """
    from likewise.errors import InputError

    points = _points(__name__, __path__)
    for point in entry_points(group=GROUP):
        if point.name in points:
            taken = points[point.name].value
            raise InputError(
                f"the command name {point.name!r} of {point.value} is taken by {taken}. Choose another name."
            )
        points[point.name] = point
    return points


def _points(package: str, path: Any) -> dict[str, EntryPoint]:
    """The files of a package as commands, its folders as groups of them."""
    points = {}
    for module in iter_modules(path):
        if not module.name.startswith("_"):
            name, value = module.name.replace("_", "-"), f"{package}.{module.name}"
            points[name] = EntryPoint(name, value if module.ispkg else f"{value}:{module.name}", GROUP)
    return points


def _app(words: list[str]) -> Any:
    """The command that the words name, or all of them for `--help`."""
    import typer

    from likewise import __version__

    app = typer.Typer(
        help="How alike are these neural networks, and what follows from it?",
        epilog="Everywhere: --quiet shows neither progress nor warnings, --progress plain shows progress as lines, "
        "--debug shows the traceback of an error.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its import takes as long as all the rest
    )

    @app.callback(invoke_without_command=True)
    def version(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
        if version:
            typer.echo(f"likewise {__version__}")
            raise typer.Exit

    _add(app, commands(), words)
    return app


def _add(app: Any, points: dict[str, EntryPoint], words: list[str]) -> None:
    """Give a command line the command that the words name, or all of them for `--help`."""
    import typer

    from likewise.cli._print import one_format

    for name in words[:1] if words and words[0] in points else points:
        loaded = points[name].load()
        if not isinstance(loaded, ModuleType):
            app.command(name)(one_format(loaded))
            continue
        group = typer.Typer(help=str(loaded.__doc__).split("\n")[0], no_args_is_help=True, rich_markup_mode=None)
        group.callback()(lambda: None)  # with one command it is a group too
        _add(group, _points(loaded.__name__, loaded.__path__), words[1:])
        app.add_typer(group, name=name)
