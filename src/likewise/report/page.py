"""The page: one HTML file with its data, style and script inside, which asks nobody for anything.

Names of users reach it in three ways, none of which makes markup of them: by templates that escape everything, as
JSON without a sign that could end it, and from there as text nodes. Should one slip through all the same, the page's
own policy runs no script but those whose hash it names, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from likewise import __version__
from likewise._base.files import write_whole
from likewise.report.contents import Contents, contents
from likewise.report.runs import Runs, read_runs

SCRIPTS = ("base", "heat", "likeness", "views", "inputs", "classes", "attacks", "unseen", "start")


def report(
    *runs: str | os.PathLike[str] | Runs, out: str | os.PathLike[str] = "report.html", title: str | None = None
) -> Path:
    """Write one HTML file of any mix of results: folders that commands wrote, saved matrices, or `Runs`.

    >>> import tempfile, likewise
    >>> from likewise.report import report
    >>> alike = likewise.SimilarityMatrix(["a", "b", "c"], [[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = report(alike.save(f"{folder}/alike"), out=f"{folder}/report.html")
    ...     text = path.read_text(encoding="utf-8")
    >>> "Which networks are alike?" in text
    True
    """
    given = [one for one in runs if isinstance(one, Runs)]
    found = given[0] if given else read_runs(*(one for one in runs if not isinstance(one, Runs)))
    target = Path(out)
    write_whole(target, render(contents(found), title).encode())
    return target


def render(made: Contents, title: str | None = None) -> str:
    """The page as text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    plotly = _read("plotly-cartesian.min.js")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(
        _read("report.html")
    )
    return template.render(
        title=title or made.title,
        version=__version__,
        findings=made.findings,
        panels=made.panels,
        hashes=Markup(" ".join(f"'{_hash(text)}'" for text in (plotly, script))),
        style=Markup(_read("report.css")),
        plotly=Markup(plotly),
        script=Markup(script),
        data=Markup(as_json(made.data())),
    )


def as_json(content: Any) -> str:
    """JSON that can stand inside an element: no sign in it opens or closes one, or a comment.

    >>> print(as_json({"name": "</script>"}))
    {"name":"\\u003c/script\\u003e"}
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _read(name: str) -> str:
    return files("likewise.report").joinpath("page_files", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
