"""Still pictures of class similarity: matrices with kin side by side, the mistakes themselves, and their templates.

Drawn without a display; figures are returned, and saved if a path is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import check_labels
from likewise.classes.confusion import Templates, ranks
from likewise.classes.similarity import ClassSimilarity, named, numbered
from likewise.errors import InputError
from likewise.matrices.heatmap import finish, heatmaps
from likewise.wordnet import ClassNames

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
