"""Pictures of class similarity: matrices with kin side by side, curves, the mistakes themselves, and films.

Drawn without a display; figures are returned, and saved if a path is given. Matrices of a film travel as one byte per
entry; more than 200 classes are averaged down to 200 x 200, which is what a screen shows anyway.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import check_labels
from likewise._base.files import write_whole
from likewise._base.names import visible, visible_all
from likewise.classes.confusion import Templates, ranks
from likewise.classes.epoch_report import panels
from likewise.classes.similarity import ClassSimilarity, named, numbered
from likewise.errors import InputError
from likewise.matrices.heatmap import finish, heatmaps
from likewise.wordnet import ClassNames

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from likewise.classes.inspector import Inspector

LARGEST = 200
TITLES = {"weights": "weights (NCSM)", "confusion": "mistakes (CCSM)", "features": "features (TNCSM)"}


def matrices(
    similarities: Mapping[str, ClassSimilarity], path: str | Path | None = None, *, order: Sequence[str] | None = None
) -> Figure:
    """Matrices over the same classes side by side, in one order, borders between groups of kin.

    Args:
        similarities: Class similarities by title.
        path: Where to save the picture.
        order: The order of the classes; by default kin are side by side.
    """
    if not similarities:
        raise InputError("there is no matrix to draw. Give at least one.")
    with_groups = (m for m in similarities.values() if m.groups() is not None)
    first = next(with_groups, next(iter(similarities.values())))
    names = first.order() if order is None else list(order)
    groups = first.borders(names)
    return heatmaps([replace(m.only(names).heatmap(title), groups=groups) for title, m in similarities.items()], path)


def curves(
    frames: Mapping[str, pd.DataFrame],
    path: str | Path | None = None,
    *,
    columns: Sequence[str] | None = None,
    chance: Mapping[str, float] | None = None,
) -> Figure:
    """The curves of one or several networks, one panel per index, dotted where chance is.

    Args:
        frames: What `Inspector.curves` gave, by name of the network.
        path: Where to save the picture.
        columns: The indices to draw; by default the main ones.
        chance: The level of chance by index.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    titles = panels()
    reported = {name for frame in frames.values() for name in frame}
    columns = [name for name in (titles if columns is None else columns) if name in reported]
    if not columns:
        raise InputError("none of the curves asked for was reported. See inspector.curves().columns.")
    across = min(4, len(columns))
    down = math.ceil(len(columns) / across)
    figure = Figure(figsize=(3.5 * across, 2.6 * down + 0.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(down, across, squeeze=False)).ravel()
    for axis, name in zip(axes, columns, strict=False):
        for number, (label, frame) in enumerate(frames.items()):
            if name in frame:
                line = frame[name].dropna()
                axis.plot(line.index, line, f"C{number}", label=label, linewidth=1.5)
        if chance and name in chance:
            axis.axhline(chance[name], color="grey", linestyle=":", linewidth=1)
        axis.set_title(titles.get(name, name), fontsize=9)
        axis.tick_params(labelsize=7)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    for axis in axes[len(columns) :]:
        axis.axis("off")
    for axis in axes[len(columns) - across : len(columns)]:
        axis.set_xlabel("epoch", fontsize=8)
    if len(frames) > 1:
        lines = {line.get_label(): line for axis in axes for line in axis.get_lines()}
        handles = [lines[label] for label in frames if label in lines]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(frames), fontsize=9)
    return finish(figure, path)


def mistakes(
    data: Any, predictions: Any, similarity: ClassSimilarity, path: str | Path | None = None, *, count: int = 8
) -> Figure:
    """The images with the most and the least reasonable mistakes: true class, and the answer.

    A mistake is reasonable if the predicted class ranks high in the true one's row. No pair of classes is
    shown twice before every pair has been shown once.

    Args:
        data: Labelled images.
        predictions: The class the network answers for every image.
        similarity: What says which mistakes are reasonable.
        path: Where to save the picture.
        count: How many images of each.

    Raises:
        InputError: There is no mistake, or data, predictions and similarity do not fit.
    """
    from matplotlib.figure import Figure

    if getattr(data, "domain", "image") != "image":
        raise InputError(f"{data.name!r} holds no images but {data.domain} data. Give image data.")
    truth = data.need_labels("show mistakes").cpu().numpy()
    answers = check_labels(predictions, len(truth), len(data.classes), what="predictions").cpu().numpy()
    if len(data.classes) != len(similarity):
        raise InputError(
            f"{data.name!r} has {len(data.classes)} classes and the similarity {len(similarity)}. Both must "
            "hold the same classes."
        )
    if count < 1:
        raise InputError(f"count is {count}. Give at least 1.")
    if not numbered(similarity):
        names = ClassNames(named(data.classes, len(data.classes)), data.wnids)
        similarity = similarity.matched(names, f"the similarity {similarity.short}")
    wrong = np.flatnonzero(answers != truth)
    if not len(wrong):
        raise InputError(f"no image of {data.name!r} is misclassified: there is nothing to show.")
    rank = ranks(similarity)[truth[wrong], answers[wrong]]
    rows = {
        "most reasonable": _varied(wrong, rank, truth, answers, count),
        "least reasonable": _varied(wrong, -rank, truth, answers, count),
    }
    figure = Figure(figsize=(1.35 * count, 4.2), layout="constrained")
    axes = figure.subplots(2, count, squeeze=False)
    for line, (title, images) in zip(axes, rows.items(), strict=True):
        line[0].set_title(title, fontsize=10, loc="left", pad=16)
        for axis in line:
            axis.axis("off")
        for axis, image in zip(line, images, strict=False):
            _image(axis, data, image, int(answers[image]))
    return finish(figure, path)


def _varied(wrong: np.ndarray, key: np.ndarray, truth: np.ndarray, answers: np.ndarray, count: int) -> list[int]:
    """The first by key, each pair of classes once before any comes again."""
    seen: dict[tuple[int, int], int] = {}
    ordered = []
    for index in np.argsort(key, kind="stable"):
        pair = (int(truth[wrong[index]]), int(answers[wrong[index]]))
        seen[pair] = seen.get(pair, 0) + 1
        ordered.append((seen[pair], float(key[index]), int(wrong[index])))
    return [index for _, _, index in sorted(ordered)[:count]]


def _image(axis: Any, data: Any, index: int, answer: int) -> None:
    pixels, labels = next(data[[index]].batches(1))
    picture = pixels[0].permute(1, 2, 0).numpy()
    axis.imshow(picture if picture.shape[2] == 3 else picture[..., 0], cmap="gray")
    label = f"{data.classes[int(labels[0])]}\n→ {data.classes[answer]}"
    axis.text(0.5, -0.06, label, transform=axis.transAxes, ha="center", va="top", fontsize=8)


def histogram(cosines: Mapping[str, Templates], path: str | Path | None = None) -> Figure:
    """How far misclassified samples lie from their class's template, for some epochs or networks.

    Args:
        cosines: What `templates` gave, by name.
        path: Where to save the picture.
    """
    from matplotlib.figure import Figure

    if not cosines:
        raise InputError("there are no templates to draw. Give at least one.")
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    finite = {name: t.cosines[np.isfinite(t.cosines)] for name, t in cosines.items()}
    low = min((float(values.min()) for values in finite.values() if len(values)), default=0.0)
    for name, values in finite.items():
        label = f"{name}: {len(values)} mistakes"
        axis.hist(values, bins=40, range=(low, 1.0), histtype="step", linewidth=1.5, label=label)
    axis.set_xlabel("cosine of a misclassified sample with its class's template", fontsize=9)
    axis.set_ylabel("samples", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.legend(fontsize=8, loc="upper left")
    return finish(figure, path)


def animate(
    inspector: Inspector,
    path: str | Path,
    *,
    epochs: Sequence[int] | None = None,
    title: str = "What the network finds alike",
    seconds: float = 0.4,
) -> Path:
    """Write the matrices of an inspected training as a film: an HTML page with a slider, or a GIF.

    The page needs nothing from outside. More than 200 classes are averaged down to 200 x 200.

    Args:
        inspector: What watched the training.
        path: Where to write it; ends in .html or .gif.
        epochs: The numbers of the epochs; by default all.
        title: The title of the film.
        seconds: How long one epoch is shown.

    Raises:
        InputError: No epoch was reported, the epochs have no matrix in common, or the path ends otherwise.
    """
    target = Path(path)
    numbers = sorted(inspector.records.reports) if epochs is None else list(epochs)
    if not numbers:
        raise InputError("no epoch was reported yet, so there is nothing to animate.")
    writers = {".html": _page, ".gif": _gif}
    if target.suffix not in writers:
        raise InputError(f"{target.name} must end in .html or .gif.")
    write_whole(target, writers[target.suffix](inspector, numbers, title, seconds))
    return target


def _frames(inspector: Inspector, numbers: Sequence[int]) -> tuple[list[dict[str, ClassSimilarity]], ClassSimilarity]:
    """The matrices that all epochs have, and the one whose order of classes all are shown in."""
    epochs = [inspector.matrices(number) for number in numbers]
    kinds = [kind for kind in TITLES if all(kind in epoch for epoch in epochs)]
    if not kinds:
        raise InputError("these epochs have no matrix in common, so there is nothing to animate.")
    frames = [{kind: epoch[kind] for kind in kinds} for epoch in epochs]
    return frames, inspector.reference or frames[-1][kinds[0]]


def _page(inspector: Inspector, numbers: Sequence[int], title: str, seconds: float) -> bytes:
    from matplotlib import colormaps

    frames, ordering = _frames(inspector, numbers)
    names = ordering.order()
    films = [
        {"title": TITLES[kind], "frames": _bytes([frame[kind].only(names) for frame in frames])} for kind in frames[0]
    ]
    if inspector.reference is not None:
        still = _bytes([inspector.reference.only(names)])
        films.append({"title": "meaning (WordNet)", "frames": still})
    table, titles = inspector.curves().loc[list(numbers)], panels()
    lines = {
        title: [None if v != v else round(v, 5) for v in table[name].tolist()]
        for name, title in titles.items()
        if name in table
    }
    colours = (colormaps["viridis"](np.arange(256))[:, :3] * 255).round().astype(int)
    content = {
        "title": title,
        "epochs": list(numbers),
        "classes": names,
        "size": min(len(names), LARGEST),
        "borders": [start / len(names) for start, _, _ in ordering.borders(names)[1:]],
        "films": films,
        "curves": lines,
        "chance": {titles[k]: round(v, 5) for k, v in inspector.chance().items() if k in titles},
        "colours": colours.tolist(),
        "seconds": seconds,
    }
    page = files("likewise.classes").joinpath("film.html").read_text(encoding="utf-8")
    # no sign that could open or close an element or a comment is left inside the script
    data = json.dumps(visible_all(content), ensure_ascii=False).replace("<", "\\u003c")
    return page.replace("/*DATA*/null", data).encode()


def _bytes(frames: Sequence[ClassSimilarity]) -> dict[str, Any]:
    """Frames of one kind on one scale, 255 for the largest entry off the diagonal, 0 for undefined ones."""
    grids = np.stack([_reduced(matrix) for matrix in frames])
    if frames[0].kind == "confusion":  # most entries are near 0
        grids = np.sqrt(np.maximum(grids, 0))
    low, high = _limits(grids)
    scaled = (grids - low) / (high - low if high > low else 1)
    whole = np.nan_to_num(1 + 254 * scaled, nan=0.0).round().astype(np.uint8)
    return {
        "data": base64.b64encode(whole.tobytes()).decode(),
        "count": len(frames),
        "low": round(low**2 if frames[0].kind == "confusion" else low, 4),
        "high": round(high**2 if frames[0].kind == "confusion" else high, 4),
    }


def _limits(grids: np.ndarray | list[np.ndarray]) -> tuple[float, float]:
    """The smallest and the largest entry of all frames, so that they can be compared."""
    finite = np.asarray(grids)[np.isfinite(grids)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _reduced(matrix: ClassSimilarity) -> np.ndarray:
    values = matrix.off_diagonal()
    if len(values) <= LARGEST:
        return values
    cuts = np.linspace(0, len(values), LARGEST + 1).astype(int)[:-1]
    finite = np.isfinite(values)
    sums, counts = (
        np.add.reduceat(np.add.reduceat(grid, cuts, axis=0), cuts, axis=1)
        for grid in (np.where(finite, values, 0.0), finite.astype(float))
    )
    return sums / np.where(counts > 0, counts, np.nan)


def _gif(inspector: Inspector, numbers: Sequence[int], title: str, seconds: float) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    frames, ordering = _frames(inspector, numbers)
    names, pictures = ordering.order(), []
    limits = {kind: _limits([frame[kind].off_diagonal() for frame in frames]) for kind in frames[0]}
    for number, frame in zip(numbers, frames, strict=True):
        titled = {f"{TITLES[kind]}, epoch {number}": matrix for kind, matrix in frame.items()}
        figure = matrices(titled, order=names)
        figure.suptitle(visible(title), fontsize=10, parse_math=False)
        for axis, kind in zip(figure.axes, frame, strict=False):  # the scales come after
            axis.images[0].set_clim(*limits[kind])
        figure.set_dpi(80)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    content = io.BytesIO()
    pause = [int(1000 * seconds)] * (len(pictures) - 1) + [int(4000 * seconds)]
    pictures[0].save(content, format="GIF", save_all=True, append_images=pictures[1:], duration=pause, loop=0)
    return content.getvalue()
