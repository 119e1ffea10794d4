"""Pictures of Raw Zero-Shot: maps of soft labels, and histograms of both networks (figures 2 to 6 of the paper).

In a grid, one row is one architecture and one column the class it never saw; colours are classes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise._base.folders import claim
from likewise._base.names import short_names
from likewise._base.optional import require
from likewise.errors import InputError
from likewise.matrices.heatmap import finish
from likewise.zeroshot.result import Results, ZeroShot, as_list

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Target = str | os.PathLike[str] | None
SIDE = 1.15  # inches of a panel
NEIGHBOURS, PERPLEXITY = 10, 30.0


def embed_soft_labels(rows: Array, how: Literal["isomap", "tsne"] = "isomap", *, seed: int = 0) -> Array:
    """Two centred coordinates per soft label, alike ones near each other: by Isomap or by t-SNE.

    Soft labels that are equal share one point. Isomap keeps distances along the points, so its unit is that of DBI;
    t-SNE keeps neighbours, and its unit says nothing.

    Args:
        rows: Soft labels (samples, classes).
        how: "isomap" or "tsne".
        seed: The seed of t-SNE.
    """
    if how not in _MAPS:
        raise InputError(f"no map named {how!r}. Choose 'isomap' or 'tsne'.")
    unique, index = np.unique(np.asarray(rows, dtype=np.float64), axis=0, return_inverse=True)
    if len(unique) < 4:  # no manifold: plain distances
        centred = unique - unique.mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        points = np.zeros((len(unique), 2))
        points[:, : min(2, len(sizes))] = (left * sizes)[:, :2]
    else:
        points = _MAPS[how](unique, seed)
    at = points[index.ravel()]
    return np.asarray(at - at.mean(axis=0))


def _isomap(rows: Array, seed: int) -> Array:
    manifold = _manifold()
    with warnings.catch_warnings():
        # answers of several clusters: the nearest of each are joined, as they should be
        warnings.filterwarnings("ignore", message="The number of connected components", category=UserWarning)
        warnings.filterwarnings("ignore", message="Changing the sparsity structure")
        points = manifold.Isomap(n_neighbors=min(NEIGHBOURS, len(rows) - 1), n_components=2).fit_transform(rows)
    return np.asarray(points, dtype=np.float64)


def _tsne(rows: Array, seed: int) -> Array:
    near = min(PERPLEXITY, (len(rows) - 1) / 3)
    spread = float(rows.var(axis=0).max()) > 0
    start = "pca" if spread and min(rows.shape) > 1 else "random"
    points = _manifold().TSNE(perplexity=near, init=start, random_state=seed).fit_transform(rows)
    return np.asarray(points, dtype=np.float64)


_MAPS: dict[str, Callable[[Array, int], Array]] = {"isomap": _isomap, "tsne": _tsne}


def _manifold() -> Any:
    require("sklearn", extra="analysis", to="draw maps of soft labels")
    from sklearn import manifold

    return manifold


def plot_maps(
    results: Results,
    path: Target = None,
    *,
    how: Literal["isomap", "tsne"] = "isomap",
    normalise_both: bool = False,
    samples: int = 200,
    seed: int = 0,
) -> Figure:
    """Soft labels of every unseen class as a map (figures 2 and 5): one point per sample, coloured by its answer.

    All panels of Isomap have one scale, so that a wider cloud is a larger DBI; those of t-SNE each have their own.

    Args:
        results: One result, or several of one data set in a list or a mapping.
        path: Where to save the picture.
        how: "isomap" or "tsne".
        normalise_both: Scale lengths to sum to one.
        samples: How many of each class are drawn at most, at random.
        seed: The seed of that draw and of t-SNE.
    """
    several = _several(results)
    draw = np.random.default_rng(seed)
    figure, axes = _grid(several)
    clouds = []
    for row, one in enumerate(several):
        for column, name in enumerate(one.classes):
            soft = one.soft_labels(name, normalise_both=normalise_both)
            soft = soft[np.sort(draw.permutation(len(soft))[:samples])]
            at = embed_soft_labels(soft, how, seed=seed)
            others = np.delete(np.arange(len(one.classes)), column)
            colours = [_colour(i) for i in others[soft.argmax(axis=1)]]
            axes[row, column].scatter(*at.T, c=colours, s=5, linewidths=0)
            axes[row, column].set(xticks=[], yticks=[], aspect="equal")
            clouds.append((axes[row, column], at))
    widest = max(float(np.abs(at).max()) for _, at in clouds)
    for axis, at in clouds:
        reach = 1.05 * (widest if how == "isomap" else float(np.abs(at).max())) or 1.0
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach))
    kind = {"isomap": "Isomap, one scale for all", "tsne": "t-SNE, each its own scale"}[how]
    figure.suptitle(f"soft labels of the class never seen (column), coloured by their answer: {kind}", fontsize=9)
    _legend(figure, several[0].classes)
    return finish(figure, path)


def plot_histograms(
    results: Results, path: Target = None, *, difference: bool = False, normalise_both: bool = False
) -> Figure:
    """Sums of soft labels over the samples of each unseen class: h filled, h' outlined (figure 4).

    Sums are divided by the number of samples, so that panels compare.

    Args:
        results: One result, or several of one data set in a list or a mapping.
        path: Where to save the picture.
        difference: Draw |h - h'| instead (figure 6).
        normalise_both: Scale lengths to sum to one.
    """
    several = _several(results)
    figure, axes = _grid(several)
    for row, one in enumerate(several):
        seen, unseen = one.histograms(normalise_both=normalise_both)
        for column, axis in enumerate(axes[row]):
            count, numbers = len(one.held_out[0][column]), list(range(len(one.classes)))
            h, other = (np.nan_to_num(values[column]) / count for values in (unseen, seen))
            axis.bar(numbers, np.abs(h - other) if difference else h, color=[_colour(i) for i in numbers], width=0.9)
            if not difference:
                axis.bar(numbers, other, width=0.9, fill=False, edgecolor="black", linewidth=0.7)
            axis.set(xticks=[], ylim=(0, 1), yticks=[0, 1], yticklabels=[] if column else ["0", "1"])
            axis.tick_params(labelsize=6, length=2)
    what = "|h - h'|" if difference else "h (filled) and h' (outlined)"
    figure.suptitle(f"{what} per sample of the class never seen (column), by class of the answer", fontsize=9)
    _legend(figure, several[0].classes)
    return finish(figure, path)


def plot_differences(results: Results, path: Target = None, *, normalise_both: bool = False) -> Figure:
    """The distance |h' - h|₁ / (n - 1) of every class, one line per architecture (figure 3): its mean is AM.

    Args:
        results: One result, or several of one data set in a list or a mapping.
        path: Where to save the picture.
        normalise_both: Scale lengths to sum to one.
    """
    from matplotlib.figure import Figure

    several = _several(results)
    classes = several[0].classes
    figure = Figure(figsize=(2.6 + 0.6 * len(classes), 3.6), layout="constrained")
    axis = figure.subplots()
    for number, (one, name) in enumerate(zip(several, _names(several), strict=True)):
        gap = one.amalgam(normalise_both=normalise_both)
        values = gap.values.mean(axis=0)
        style = {"color": _colour(number), "marker": "osD^vPX*"[number % 8], "markersize": 4, "linewidth": 1}
        axis.plot(range(len(classes)), values, label=f"{name}: AM {_plain(gap.mean)}", **style)
    axis.set_xticks(range(len(classes)), [_plain(name) for name in classes], rotation=45, ha="right", fontsize=8)
    axis.set(xlabel="class never seen", ylabel="|h' - h|₁ / (n - 1)", ylim=(0, None))
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return finish(figure, path)


def plot_all(results: Results, folder: str | os.PathLike[str], *, normalise_both: bool = False) -> tuple[Path, ...]:
    """Draw figures 2 to 6 of the paper: `isomap.png`, `tsne.png`, `differences.png`, `histograms.png`, `gaps.png`.

    Args:
        results: One result, or several of one data set in a list or a mapping.
        folder: A new or an empty folder, or one that likewise wrote.
        normalise_both: Scale lengths to sum to one.

    Returns:
        The pictures.
    """
    several, target = _several(results), Path(folder)
    claim(target)
    draw: dict[str, Callable[..., Figure]] = {
        "isomap": plot_maps,
        "tsne": partial(plot_maps, how="tsne"),
        "differences": plot_differences,
        "histograms": plot_histograms,
        "gaps": partial(plot_histograms, difference=True),
    }
    paths = tuple(target / f"{name}.png" for name in draw)
    for plot, path in zip(draw.values(), paths, strict=True):
        plot(several, path, normalise_both=normalise_both)
    return paths


def _several(results: Results) -> list[ZeroShot]:
    several = as_list(results, "nothing to draw")
    if len({one.classes for one in several}) > 1:
        raise InputError("the results are of different classes. Draw those of one data set together.")
    return several


def _grid(several: Sequence[ZeroShot]) -> tuple[Figure, Any]:
    """A panel per architecture and class, with their names at the edge."""
    from matplotlib.figure import Figure

    classes = several[0].classes
    high, wide = len(several), len(classes)
    figure = Figure(figsize=(0.6 + SIDE * wide, 1.0 + SIDE * high), layout="constrained")
    axes = figure.subplots(high, wide, squeeze=False)
    for row, name in enumerate(_names(several)):
        axes[row, 0].set_ylabel(_plain(name), fontsize=8)
    for column, name in enumerate(classes):
        axes[0, column].set_title(_plain(name), fontsize=7)
    return figure, axes


def _legend(figure: Figure, classes: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=_colour(i), label=_plain(name)) for i, name in enumerate(classes)]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(classes), 10), fontsize=6)


def _names(several: Sequence[ZeroShot]) -> list[str]:
    return [_plain(name) for name in short_names([one.network for one in several])]


def _plain(value: str | float) -> str:
    """Text as it is: a first underscore would hide a line of the legend."""
    text = value if isinstance(value, str) else f"{value:.4g}"
    return f" {text}" if text.startswith("_") else text


def _colour(i: int) -> Any:
    from matplotlib import colormaps

    return colormaps["tab10" if i < 10 else "tab20"](i % 20 if i >= 10 else i)
