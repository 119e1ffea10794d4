"""The pictures of a report for a paper: every panel as PDF and SVG, drawn from the numbers that the page holds."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.files import save_figure
from likewise._base.folders import claim
from likewise.matrices.heatmap import Heatmap, draw_heatmap, draw_tree, finish
from likewise.report.page import COLOURS, Contents, contents
from likewise.report.panels.panel import unpack
from likewise.report.runs import Runs, read_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("pdf", "svg")
MARKERS = "osD^P*pHvX"  # of families, as on the page
NAMED = 40  # networks up to which a map has room for their names
INPUTS = 8
Drawn = Iterator[tuple[str, "Figure"]]


def figures(
    *runs: str | os.PathLike[str] | Runs, out: str | os.PathLike[str] = "figures", page: Contents | None = None
) -> list[Path]:
    """Write the pictures of a report, each as PDF and as SVG.

    Args:
        *runs: What `report` takes.
        out: A new or an empty folder, or one that likewise wrote.
        page: What a report shows, if it is known already.

    Returns:
        The paths of the files.

    Raises:
        InputError: A path holds no results, or there is nothing to draw.
        StoreError: A file is damaged, or the folder holds files of others.

    Example:
        >>> import tempfile, likewise
        >>> from likewise.report import figures
        >>> alike = likewise.SimilarityMatrix(["a", "b", "c"], [[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = figures(alike.save(f"{folder}/alike"), out=f"{folder}/figures")
        >>> [path.name for path in paths]
        ['matrix-matrix.pdf', 'matrix-matrix.svg', 'map-matrix.pdf', 'map-matrix.svg']
    """
    if page is None:
        given = [run for run in runs if isinstance(run, Runs)]
        page = contents(given[0] if given else read_runs(*(run for run in runs if not isinstance(run, Runs))))
    folder, paths = Path(out), []
    claim(folder)
    for panel in page.panels:
        for name, figure in _DRAW.get(panel.id, _nothing)(panel.data, page):
            finish(figure, None)
            for kind in KINDS:
                paths.append(folder / f"{panel.id}-{_file_name(name)}.{kind}")
                save_figure(figure, paths[-1])
    return paths


def _file_name(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in name)
    return kept.strip("_.")[:80] or "figure"


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _names(page: Contents) -> list[str]:
    return list(page.networks.names)


def _nothing(data: Any, page: Contents) -> Drawn:
    return iter(())


def _heat(heatmap: Heatmap, tree: dict[str, Any] | None = None) -> Figure:
    """A matrix, and the tree of its rows beside it if they are in the tree's order."""
    width, height = heatmap.size
    figure = _figure(width + (1.0 if tree else 0.0), height)
    if tree is None:
        draw_heatmap(figure, figure.subplots(), heatmap)
        return figure
    left, right = figure.subplots(1, 2, width_ratios=[width, 1.0], sharey=False)
    draw_heatmap(figure, left, heatmap)
    places = np.argsort(tree["order"])
    draw_tree(right, np.array(tree["merges"]), places.tolist())
    return figure


def _matrix(data: Any, page: Contents) -> Drawn:
    names = _names(page)
    for measure in data["measures"]:
        values, tree = unpack(measure["values"]), measure["tree"]
        rows = tree["order"] if tree else np.flatnonzero(np.isfinite(values).any(axis=1)).tolist()
        heatmap = Heatmap(
            values[np.ix_(rows, rows)],
            [names[i] for i in rows],
            [names[i] for i in rows],
            f"{measure['label']}\n(larger is {measure['larger_is']})",
            larger_is=measure["larger_is"],
            bounds=tuple(measure["scale"]),
        )
        yield measure["label"], _heat(heatmap, tree if heatmap.has_names else None)


def _map(data: Any, page: Contents) -> Drawn:
    for one in data["maps"]:
        figure = _figure(5.2, 4.4)
        axis, xy = figure.subplots(), unpack(one["mds"]["xy"])
        labels = [page.networks.family(name) for name in page.networks.names]
        _scatter(axis, xy, labels)
        for (x, y), name in zip(xy, page.networks.names, strict=True):
            if len(xy) <= NAMED:
                axis.annotate(name, (x, y), fontsize=7, xytext=(4, 4), textcoords="offset points")
        axis.set_title(f"{one['label']}, stress {100 * one['mds']['stress']:.0f} %", fontsize=10)
        axis.set(xticks=[], yticks=[], xlabel="first direction of the map", ylabel="second direction", aspect="equal")
        axis.set_adjustable("datalim")
        yield one["label"], figure


def _scatter(axis: Any, xy: Array, labels: list[int]) -> None:
    """Points in the colours and marks of their families."""
    for label in sorted(set(labels)):
        rows = [i for i, other in enumerate(labels) if other == label]
        colour = "#888888" if label < 0 else COLOURS[label % len(COLOURS)]
        axis.scatter(*xy[rows].T, color=colour, marker=MARKERS[max(0, label) % len(MARKERS)], s=36)


def _disagreement(data: Any, page: Contents) -> Drawn:
    if data["agreement"] is not None:
        rho = unpack(data["agreement"]["rho"])
        yield "ranks", _heat(Heatmap(rho, data["labels"], data["labels"], "rank agreement", bounds=(-1, 1)))
    gaps, names = data["gaps"][:12], _names(page)
    if len(data["views"]) > 1 and gaps:
        figure = _figure(7, 1.2 + 0.28 * len(gaps))
        axis = figure.subplots()
        for number, view in enumerate(data["views"]):
            ranks = unpack(view["ranks"])
            shares = [ranks[gap["a"], gap["b"]] for gap in gaps]
            axis.scatter(shares, range(len(gaps)), label=view["name"], marker=MARKERS[number], color=COLOURS[number])
        axis.set_yticks(range(len(gaps)), [f"{names[gap['a']]} – {names[gap['b']]}" for gap in gaps], fontsize=7)
        axis.set(xlim=(-0.02, 1.02), xlabel="share of pairs that are less alike")
        axis.invert_yaxis()
        figure.legend(loc="outside upper center", ncols=len(data["views"]), fontsize=8)
        yield "pairs", figure


def _layers(data: Any, page: Contents) -> Drawn:
    for number, one in enumerate(data["layers"]):
        heatmap = Heatmap(
            unpack(one["values"]),
            one["rows"],
            one["columns"],
            f"{one['measure']}\n(larger is {one['larger_is']})",
            larger_is=one["larger_is"],
            bounds=tuple(one["scale"]),
            sides=(one["a"], one["b"]),
            upwards=True,
        )
        yield f"{number + 1}-{one['measure']}", _heat(heatmap)


def _inputs(data: Any, page: Contents) -> Drawn:
    """The inputs of the pair that views rank most differently, else of the first."""
    names = _names(page)
    gaps: list[dict[str, Any]] = next((panel.data["gaps"] for panel in page.panels if panel.id == "disagreement"), [])
    for number, entry in enumerate(data["sets"]):
        pairs = [(gap["a"], gap["b"]) for gap in gaps] + [tuple(entry["networks"][:2])]
        a, b = next(pair for pair in pairs if set(pair) <= set(entry["networks"]))
        i, j = entry["networks"].index(a), entry["networks"].index(b)
        at, size = i * len(entry["networks"]) + j, entry["kept"]
        rows = [int(row) for row in unpack(entry["rows"])[at][:INPUTS] if row >= 0]
        if not rows:
            continue
        figure = _figure(1.7 * len(rows), 2.6)
        figure.suptitle(f"{entry['measures'][0]['label']}: {names[a]} and {names[b]}", fontsize=10)
        axes = np.atleast_1d(figure.subplots(1, len(rows)))
        for axis, row, value in zip(axes, rows, unpack(entry["values"])[at][:size], strict=False):
            _show_input(axis, entry, row)
            one, other = (entry["answers"][row][k] for k in (i, j))
            truth = entry["labels"][row]
            axis.set_title(f"{value:.3g}" + (f", is {truth}" if truth else ""), fontsize=8)
            axis.set_xlabel(f"{one or '–'} | {other or '–'}", fontsize=8)
            axis.set(xticks=[], yticks=[])
        yield f"{number + 1}-{names[a]}-{names[b]}", figure


def _show_input(axis: Any, entry: dict[str, Any], row: int) -> None:
    """The picture or the text of an input."""
    import base64
    import io

    if row in entry["pictures"]:
        from matplotlib.image import imread

        content = base64.b64decode(entry["pictures"][row].partition(",")[2])
        axis.imshow(imread(io.BytesIO(content), format="png"), cmap="gray", interpolation="nearest")
        return
    text = textwrap.fill(entry["texts"].get(row, f"input {row}"), 22)
    axis.text(0.5, 0.5, text[:260], fontsize=6, ha="center", va="center", transform=axis.transAxes)


def _classes(data: Any, page: Contents) -> Drawn:
    for film in data["films"]:
        for kind in film["kinds"]:
            frames = unpack(kind["frames"])
            last = frames.reshape(-1, len(film["classes"]), len(film["classes"]))[-1]
            title = kind["title"] + (f", epoch {film['epochs'][-1]}" if film["all"] else "")
            heatmap = Heatmap(last, film["classes"], film["classes"], title, bounds=tuple(kind["scale"]))
            yield f"{film['name']}-{kind['title']}", _heat(heatmap)
        if film["curves"]:
            yield f"{film['name']}-curves", _curves(film)
    if data["confusion"] is not None:
        total = np.sum([unpack(table) for table in data["confusion"]["tables"]], axis=0)
        off = np.where(np.eye(len(total), dtype=bool), np.nan, total)
        classes = data["confusion"]["classes"]
        heatmap = Heatmap(off, classes, classes, "mistakes of all networks", bounds=(0, None))
        heatmap = Heatmap(**{**vars(heatmap), "sides": ("true class", "answer")})
        yield "confusion", _heat(heatmap)


def _curves(film: dict[str, Any]) -> Figure:
    figure = _figure(3.2 * min(3, len(film["curves"])), 2.3 * -(-len(film["curves"]) // 3))
    axes = figure.subplots(-(-len(film["curves"]) // 3), min(3, len(film["curves"])), squeeze=False).ravel()
    for axis, curve in zip(axes, film["curves"], strict=False):
        axis.plot(film["all"], [np.nan if value is None else value for value in curve["values"]], color=COLOURS[0])
        if curve["chance"] is not None:
            axis.axhline(curve["chance"], color="grey", linestyle="--", linewidth=1)
        axis.set_title(curve["title"], fontsize=9)
        axis.set_xlabel("epoch", fontsize=8)
    for axis in axes[len(film["curves"]) :]:
        axis.axis("off")
    return figure


def _attacks(data: Any, page: Contents) -> Drawn:
    names = [page.networks.names[i] for i in data["networks"]]
    heatmap = Heatmap(
        unpack(data["rates"]),
        names,
        names,
        "share of inputs fooled",
        bounds=(0, 1),
        sides=("attacks", "is attacked"),
    )
    yield "rates", _heat(heatmap)
    own = sorted((entry["rate"], i) for i, entry in enumerate(data["own"]) if entry["rate"] is not None)
    if own:
        figure = _figure(6, 1 + 0.25 * len(own))
        axis = figure.subplots()
        for place, (rate, i) in enumerate(own):
            label, entry = page.networks.family(names[i]), data["own"][i]
            ends = [[rate - entry["low"]], [entry["high"] - rate]]
            style: dict[str, Any] = {
                "color": COLOURS[max(0, label) % len(COLOURS)],
                "marker": MARKERS[max(0, label) % len(MARKERS)],
            }
            axis.errorbar([rate], [place], xerr=np.maximum(ends, 0), capsize=3, **style)
        axis.set_yticks(range(len(own)), [names[i] for _, i in own], fontsize=8)
        axis.set(xlim=(-0.02, 1.04), xlabel="share of inputs on which it is fooled by its own examples")
        axis.invert_yaxis()
        yield "robustness", figure


def _unseen(data: Any, page: Contents) -> Drawn:
    first, count = data["networks"][0], len(data["networks"])
    for k, column in enumerate(first["columns"]):
        figure = _figure(max(4.0, 0.5 * len(first["classes"]) * max(1, count / 2)), 3.2)
        axis = figure.subplots()
        for number, net in enumerate(data["networks"]):
            heights = [np.nan if row[k] is None else row[k] for row in net["rows"]]
            places = np.arange(len(heights)) + (number - (count - 1) / 2) * 0.8 / count
            axis.bar(places, heights, 0.8 / count, label=net["name"], color=COLOURS[number % len(COLOURS)])
        axis.set_xticks(range(len(first["classes"])), first["classes"], rotation=45, ha="right", fontsize=8)
        axis.set_ylabel(column)
        axis.legend(fontsize=7)
        yield column, figure
    for net in data["networks"]:
        figure = _figure(6, 4)
        axis, xy, owners = figure.subplots(), unpack(net["points"]), np.array(net["owners"])
        for c, name in enumerate(net["classes"][:20]):
            style: dict[str, Any] = {
                "color": COLOURS[c % len(COLOURS)],
                "marker": MARKERS[c % len(MARKERS)],
                "s": 10,
                "alpha": 0.8,
            }
            axis.scatter(*xy[owners == c].T, label=name, **style)
        axis.set(xticks=[], yticks=[], xlabel="first direction", ylabel="second direction")
        figure.legend(loc="outside right upper", fontsize=7)
        yield f"soft-labels-{net['name']}", figure


def _benchmark(data: Any, page: Contents) -> Drawn:
    heatmap = Heatmap(
        unpack(data["values"]),
        data["measures"],
        data["groundings"],
        "how well measures follow known similarity",
        bounds=(0, 1),
    )
    yield "measures", _heat(heatmap)


_DRAW: dict[str, Callable[[Any, Contents], Drawn]] = {
    "matrix": _matrix,
    "map": _map,
    "disagreement": _disagreement,
    "layers": _layers,
    "inputs": _inputs,
    "classes": _classes,
    "attacks": _attacks,
    "unseen": _unseen,
    "benchmark": _benchmark,
}
