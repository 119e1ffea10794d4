"""Write docs/commands.md, one section per command, from the commands themselves.

python scripts/commands_page.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
import typer.main

from likewise.cli import _app, commands

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
PAGES = {  # where more is said
    "advise": "which-measure.md",
    "attack": "attacks.md",
    "benchmark": "benchmark.md",
    "classes": "class-similarity.md",
    "compare": "comparing.md",
    "complete": "running.md",
    "data": "data.md",
    "demo": "report.md",
    "diff": "diff.md",
    "ensemble": "families.md",
    "families": "families.md",
    "inspect": "class-similarity.md",
    "layers": "layers.md",
    "layerwise": "layers.md",
    "measures": "measures.md",
    "networks": "networks.md",
    "record": "recordings.md",
    "report": "report.md",
    "samples": "language-models.md",
    "teacher": "families.md",
    "train": "running.md",
    "transfer": "transfer.md",
    "upgrade": "embeddings.md",
    "wordnet": "wordnet.md",
    "zeroshot": "zeroshot.md",
}


def page() -> str:
    """The whole page."""
    parts = [
        "# Commands",
        "Written by `scripts/commands_page.py` from the commands; a test compares the page with them. "
        "`likewise COMMAND --help` says the same. Results go to stdout, progress to stderr; an error is one line and "
        "exit code 1, and `--debug` shows where it arose. Data is looked for in the folder `LIKEWISE_DATA`, then in "
        "the libraries' own caches, then downloaded.",
    ]
    for name in sorted(commands()):
        command = _command(name)
        parts += _section(f"likewise {name}", command, PAGES.get(name), "##")
        for inner in sorted(getattr(command, "commands", {})):
            parts += _section(f"likewise {name} {inner}", _command(name, inner), None, "###")
    return "\n\n".join(parts) + "\n"


def _command(*words: str) -> Any:
    """A command, or one of a group, with its options."""
    command: Any = typer.main.get_command(_app([*words]))
    for word in words:
        command = command.commands[word]
    return command


def _section(words: str, command: Any, more: str | None, level: str) -> list[str]:
    summary = " ".join((command.help or "").split())
    lines = [f"{level} {words}", summary + (f" [More]({more})." if more else "")]
    rows = [row for row in map(_row, command.params) if row]
    if rows and not getattr(command, "commands", None):
        lines.append("\n".join(["| option | |", "|---|---|", *rows]))
    return lines


def _row(option: Any) -> str:
    words = option.opts if option.param_type_name == "option" else [str(option.name).upper()]
    if "--help" in words:
        return ""
    default = option.default
    has_default = isinstance(default, (int, float, str)) and not isinstance(default, bool)
    text = f"{option.help or ''}{f' Default: {default}.' if has_default else ''}".replace("|", "\\|").replace(
        "*", "\\*"
    )
    return f"| `{'`, `'.join(words)}` | {text} |"


if __name__ == "__main__":
    PAGE.write_text(page())
