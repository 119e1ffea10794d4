"""The page: one HTML file with its data, style and script inside, which makes no requests.

Names given by users reach it in three ways, none of which makes markup of them: by templates that escape everything, as
JSON without a character that could end it, and from there as text nodes. Should one slip through all the same, the
page's own policy runs no script but those whose hash it names, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from likewise import __version__
from likewise._base.files import write_whole
from likewise._base.folders import check_replaceable
from likewise._base.names import short_names, visible, visible_all
from likewise.errors import InputError
from likewise.report.families import ReportNetworks, report_networks
from likewise.report.grids import score_grids, view_ranks
from likewise.report.panels import (
    attacks,
    benchmark,
    classes,
    disagreement,
    inputs,
    layers,
    matrix,
    network_map,
    provenance,
    unseen,
)
from likewise.report.panels.panel import Finding, Material, Panel, rounded
from likewise.report.runs import Runs, read_runs
from likewise.report.summary import Summary, summary

PANELS = (matrix, network_map, disagreement, layers, inputs, classes, attacks, unseen, benchmark)
COLOURS = (  # of families
    *("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee"),
    *("#aa3377", "#e08e45", "#7a7adb", "#5fb3a1", "#b07c5b"),
)
SIGNS = "●■◆▲✚★⬟⬢▼✖"
SCRIPTS = ("base", "heat", "matrix", "summary", "disagreement", "inputs", "classes", "attacks", "unseen", "start")


def report(
    *runs: str | os.PathLike[str] | Runs, out: str | os.PathLike[str] = "report.html", title: str | None = None
) -> Path:
    """Write one HTML file of any mix of results.

    Args:
        *runs: Folders that commands wrote, saved matrices, or one `Runs`.
        out: The file to write.
        title: The heading; by default it names or counts the networks.

    Returns:
        The path of the file.

    Raises:
        InputError: A path holds no results, or there is nothing to compare.
        StoreError: A file is damaged, or `out` is there and no report.

    Example:
        >>> import tempfile, likewise
        >>> from likewise.report import report
        >>> alike = likewise.SimilarityMatrix(["a", "b", "c"], [[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = report(alike.save(f"{folder}/alike"), out=f"{folder}/report.html")
        ...     text = path.read_text(encoding="utf-8")
        >>> "Which networks are alike?" in text
        True
    """
    path = Path(out)
    check_replaceable(path, b'<script type="application/json" id="data">', "report")
    results = next((run for run in runs if isinstance(run, Runs)), None)
    if results is None:
        results = read_runs(*(run for run in runs if not isinstance(run, Runs)))
    elif len(runs) > 1:
        raise InputError(f"a Runs is reported alone, and {len(runs)} arguments were given. Give read_runs all paths.")
    write_whole(path, render(contents(results), title).encode())
    return path


@dataclass(frozen=True)
class Contents:
    """Everything a page shows.

    Attributes:
        title: The headline.
        networks: What is known of every network, with its colour.
        findings: Sentences at the top.
        panels: One per question that the runs answer.
        summary: The first screen.
    """

    title: str
    networks: ReportNetworks
    findings: list[Finding]
    panels: list[Panel]
    summary: Summary

    def data(self) -> dict[str, Any]:
        """What the script of the page reads."""
        return {
            "networks": _networks(self.networks),
            "families": _families(self.networks),
            "colours": COLOURS,
            "signs": SIGNS,
            "panels": {panel.id: panel.data for panel in self.panels if panel.blocks},
            "summary": self.pictures(),
        }

    def pictures(self) -> dict[str, int | None]:
        """Which matrix and which map the first screen shows."""
        shown = {panel.id: panel.data for panel in self.panels if panel.id in ("matrix", "map")}
        return {
            name: next((k for k, entry in enumerate(entries) if entry["label"] == self.summary.measure), None)
            for name, entries in (
                ("matrix", shown.get("matrix", {}).get("measures", [])),
                ("map", shown.get("map", {}).get("maps", [])),
            )
        }


def contents(runs: Runs, *, seed: int = 0) -> Contents:
    """The findings and panels of results: significant findings first, one panel per question that has results."""
    networks = report_networks(runs, seed=seed)
    scores = score_grids(runs, networks)
    material = Material(runs, networks, scores, view_ranks(scores))
    panels = [panel for module in PANELS if (panel := module.panel(material)) is not None]
    if not panels:
        raise InputError("these results have nothing to show: one network alone, or none. Give a comparison of two.")
    findings = [finding for panel in panels for finding in panel.findings]
    findings.sort(key=lambda finding: (not finding.significant, finding.panel != "map"))  # families lead
    first = summary(material, panels)
    return Contents(_title(networks.names), networks, findings, [*panels, provenance.panel(material)], first)


def _title(names: Sequence[str]) -> str:
    if len(names) == 2:
        return f"How alike are {names[0]} and {names[1]}?"
    return f"How alike are these {len(names)} networks?" if names else "What was found"


def _networks(networks: ReportNetworks) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "short": short,
            "family": networks.family(name),
            "accuracy": rounded(networks.accuracies.get(name, float("nan"))),
            "components": networks.components.get(name, {}),
        }
        for name, short in zip(networks.names, tick_names(networks.names), strict=True)
    ]


def _families(networks: ReportNetworks) -> list[dict[str, Any]]:
    if networks.families is None or networks.families.clusters.k == 1:
        return []
    groups = networks.families.clusters.groups()
    words = networks.families.keywords or [[]] * len(groups)
    return [{"members": len(group), "keywords": list(entry)} for group, entry in zip(groups, words, strict=True)]


def tick_names(names: Sequence[str], most: int = 22) -> list[str]:
    """Names for an axis: without the ending that all share, cut in the middle, numbered where two would be the same.

    >>> tick_names(["vit_small_patch16_224", "vit_tiny_patch16_224"])
    ['vit_small', 'vit_tiny']
    >>> tick_names(["a" * 30 + "1" + "b" * 30, "a" * 30 + "2" + "b" * 30])
    ['1 aaaaaaaaaaa…bbbbbbb', '2 aaaaaaaaaaa…bbbbbbb']
    """
    address = re.compile(r"[\w./@:,=#+-]+")
    short = short_names(names) if all(address.fullmatch(name) for name in names) else list(names)
    if len(short) > 1 and max(len(name) for name in short) > most // 2:
        endings = [short[0][i:] for i, letter in enumerate(short[0]) if letter in "_-./"]
        shared = (end for end in endings if all(name.endswith(end) and name != end for name in short))
        ending = next(shared, "")  # the longest
        short = [name.removesuffix(ending) for name in short]
    cut = [name if len(name) <= most else f"{name[: most // 2 + 1]}…{name[-(most // 3) :]}" for name in short]
    if len(set(cut)) == len(cut):
        return cut
    return [
        f"{number} {name if len(name) < 20 else name[: most // 2] + '…' + name[-(most // 3) :]}"
        for number, name in enumerate(short, 1)
    ]


def render(page: Contents, title: str | None = None) -> str:
    """The page as text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    plotly = _read("plotly-cartesian.min.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_shown)
    return environment.from_string(_read("report.html")).render(
        title=title or page.title,
        version=__version__,
        summary=page.summary,
        pictures=page.pictures(),
        families=page.networks.families is not None and page.networks.families.clusters.k > 1,
        known=any(row.accuracy == row.accuracy for row in page.summary.rows),
        colours=COLOURS,
        signs=SIGNS,
        findings=page.findings,
        panels=page.panels,
        hashes=Markup(" ".join(f"'{_hash(text)}'" for text in (plotly, script))),
        style=Markup(_read("report.css")),
        plotly=Markup(plotly),
        script=Markup(script),
        data=Markup(as_json(visible_all(page.data()))),
    )


def _shown(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # a Markup is of this package


def as_json(content: Any) -> str:
    """JSON that can stand inside an element: no character in it opens or closes one, or a comment.

    >>> print(as_json({"name": "</script>"}))
    {"name":"\\u003c/script\\u003e"}
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _read(name: str) -> str:
    return files("likewise.report").joinpath("page_files", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
