"""The command line: one thin file per command. Results on stdout, progress on stderr.

An error of ours is one line on stderr and exit code 1; `--debug` shows the traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = (
    "measures",
    "compare",
    "networks",
    "data",
    "layers",
    "layerwise",
    "train",
    "inspect",
    "wordnet",
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command, turning our own errors into one line."""
    import typer

    from likewise import __version__
    from likewise.errors import LikewiseError

    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = spread([word for word in given if word != "--debug"])
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

    for name in COMMANDS:
        app.command(name)(getattr(import_module(f"likewise.cli.{name}"), name))
    try:
        check_words(given)
        app(given, prog_name="likewise")
    except LikewiseError as error:
        if debug:
            raise
        typer.echo(f"likewise: {error}", err=True)
        sys.exit(1)


def check_words(words: list[str]) -> None:
    """Refuse an option with an empty value, and names that are no text."""
    from likewise._base.files import check_name
    from likewise.errors import InputError

    for word, following in zip(words, [*words[1:], None], strict=True):
        check_name(word)
        if word.startswith("--") and (word.endswith("=") or following == ""):
            raise InputError(f"{word.rstrip('=')} is empty. Give it a value, or leave it out.")


def spread(words: list[str]) -> list[str]:
    """`--measure cka rsa` as `--measure cka --measure rsa`: names go on until a path or an option.

    >>> spread(["compare", "a.npy", "b.npy", "--measure", "cka", "rsa", "--out", "runs"])
    ['compare', 'a.npy', 'b.npy', '--measure', 'cka', '--measure', 'rsa', '--out', 'runs']
    """
    out: list[str] = []
    listing = False
    for i, word in enumerate(words):
        named = i > 0 and words[i - 1] in ("--measure", "-m")
        name = "[" in word or not set(word) & set("./:")
        if listing and not named and not word.startswith("-") and name:
            out.append("--measure")
        else:
            listing = named or (listing and word in ("--measure", "-m"))
        out.append(word)
    return out
