"""What the networks of each group are trained on, as a picture: can a person see the change?

The first training inputs of every group stand side by side, as its first network is shown them in its first batch:
images with their discs or noise, texts with their words changed, each with the label it was given.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from likewise.benchmark.domains import Domain, NetworkSpec
from likewise.benchmark.runs import BenchmarkRun
from likewise.data import Data
from likewise.data.changes import texts_of
from likewise.errors import InputError
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("labels", "shortcut", "augmentation")
IMAGES, TEXTS = 8, 3  # shown per group
WIDTH, LINE = 130, 0.19  # characters in a line, and its height in inches


def plot_inputs(
    run: BenchmarkRun | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    data: str | None = None,
) -> Figure:
    """Draw the first training inputs of every group of a run, with their labels, one row per group.

    Args:
        run: A run of images or texts, or its folder.
        path: Where the figure is saved, if given.
        data: The address of its data, where it is not built in and the run is given by its folder.

    Raises:
        InputError: The run has no groups of networks, or its inputs have no picture.
    """
    run = run if isinstance(run, BenchmarkRun) else BenchmarkRun.load(os.fspath(run), data=data)
    plan = run.plan()
    specs = [spec for kind in KINDS for spec in plan.networks.get(kind, ())]
    groups = {spec.group: spec for spec in reversed(specs)}  # the first network of each
    ordered = [groups[name] for name in dict.fromkeys(spec.group for spec in specs)]
    if not ordered:
        raise InputError(f"{run.out} has no groups of networks, so no inputs were changed.")
    show = {"image": _images, "text": _texts}.get(plan.domain.kind)
    if show is None:
        raise InputError(f"{run.out} is of {plan.domain.kind} inputs, which have no picture.")
    return finish(show(plan.domain, ordered), path)


def _images(domain: Domain, specs: Sequence[NetworkSpec]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.1 * IMAGES + 1.6, 1.25 * len(specs)), layout="constrained")
    axes = figure.subplots(len(specs), IMAGES, squeeze=False)
    for row, spec in zip(axes, specs, strict=True):
        data = domain.train_data(spec)[:IMAGES]
        pixels = _augmented(domain, spec, data.inputs[:]).permute(0, 2, 3, 1)
        for axis, image, label in zip(row, pixels.numpy(), _labels(data), strict=False):
            axis.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axis.set_title(label, fontsize=7)
        for axis in row:
            axis.set(xticks=[], yticks=[])
            axis.set_frame_on(False)
        row[0].set_ylabel(spec.group.replace(" ", "\n"), fontsize=8, rotation=0, ha="right", va="center")
    return figure


def _augmented(domain: Domain, spec: NetworkSpec, images: Tensor) -> Tensor:
    """Images after what the training does to each batch."""
    draw = torch.Generator().manual_seed(spec.seed)
    for augment in domain.settings(spec).augment:
        if callable(augment):
            images = augment(images, draw)
    return images.clamp(0, 1)


def _texts(domain: Domain, specs: Sequence[NetworkSpec]) -> Figure:
    from matplotlib.figure import Figure

    lines: list[tuple[str, Any]] = []
    for spec in specs:
        data = domain.train_data(spec)[:TEXTS]
        lines.append((spec.group, {"weight": "bold"}))
        for text, label in zip(texts_of(data), _labels(data), strict=True):
            whole = f"{label}: {text if isinstance(text, str) else ' / '.join(text)}"
            lines += [(line, {}) for line in textwrap.wrap(whole, WIDTH, subsequent_indent="    ")]
    figure = Figure(figsize=(0.075 * WIDTH, LINE * (len(lines) + 1)))
    for number, (line, style) in enumerate(lines, 1):
        # a dollar sign would begin a formula
        figure.text(0.01, 1 - number / (len(lines) + 1), line.replace("$", r"\$"), fontsize=8, **style)
    return figure


def _labels(data: Data) -> list[str]:
    return [data.classes[label] for label in data.need_labels("show them").tolist()]
