"""A `Diff`: what changed between two networks, as a verdict, sentences, numbers, Markdown and a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import write_whole
from likewise._base.folders import claim
from likewise.difference import text as diff_text
from likewise.difference.answers import AnswerChange, Flip
from likewise.difference.inputs import Preview
from likewise.difference.language_models.tokens import CHANGED as CHANGED_TOKENS
from likewise.difference.language_models.tokens import CLOSE as CLOSE_TOKENS
from likewise.difference.language_models.tokens import TokenChange
from likewise.difference.layers import DIVERGED, LayerChange
from likewise.difference.weights import WeightChange
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOSE, CHANGED = (0.02, DIVERGED), (0.2, 0.5)  # most flips, and least debiased CKA
_ACROSS, _NAMES = 6, 40  # images in a row, and layers up to which all are named


@dataclass(frozen=True)
class Check:
    """A threshold of a measure, which an undefined value misses."""

    measure: str
    side: str  # on which side of the limit it may not be: "under" or "over"
    limit: float
    value: float  # the score
    reason: str = ""  # why the score is undefined, if so

    @property
    def ok(self) -> bool:
        """Whether the threshold is kept."""
        return self.value >= self.limit if self.side == "under" else self.value <= self.limit

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"{self.measure} is undefined, so it cannot be compared with {self.limit:g}: {self.reason}"
        word = "not " if self.ok else ""
        return f"{self.measure} = {self.value:.4g} is {word}{self.side} {self.limit:g}"


@dataclass(frozen=True)
class Transfer:
    """How far adversarial examples made from the first network fool both."""

    attack: str
    iterations: int
    itself: float  # the share of inputs on which the first is fooled
    other: float  # the share on which the second is fooled
    count: int  # how many inputs both classify correctly
    right: int  # how many the first classifies correctly, of which `itself` is the share


@dataclass(frozen=True, eq=False)
class Diff:
    """What changed from the first network to the second.

    Attributes:
        names: What the two are called.
        data: What they were shown.
        n: How many inputs that is.
        looked_at: The layer of `scores`: `penultimate`, or `embedding` of networks without a classifier; where the two
            embeddings are made differently, what each of them is.
        scores: Measures of that layer and of the answers, NaN where undefined.
        reasons: Why measures are undefined.
        layers: One entry per layer, in the order of the forward pass.
        weights: Which weights differ.
        answers: Flips, accuracies and classes, or why there are none.
        transfer: How far attacks on the first fool the second, or why that was not computed.
        inputs: What the first flips look like: texts, images (height, width, 3), or None.
        checks: The thresholds, with their scores.
        tokens: What language models say of every token; None of other networks.
    """

    names: tuple[str, str]
    data: str
    n: int
    looked_at: str
    scores: Mapping[str, float]
    reasons: Mapping[str, str]
    layers: tuple[LayerChange, ...]
    weights: WeightChange
    answers: AnswerChange | str
    transfer: Transfer | str
    inputs: tuple[Preview, ...] = field(repr=False)
    checks: tuple[Check, ...] = ()
    tokens: TokenChange | None = None

    def __repr__(self) -> str:
        return f"Diff({self.names[0]!r}, {self.names[1]!r}, n={self.n}: {self.verdict})"

    @property
    def flips(self) -> tuple[Flip, ...]:
        """Inputs whose most likely class changes; none where answers were not compared."""
        return () if isinstance(self.answers, str) else self.answers.flips

    @property
    def failures(self) -> list[str]:
        """One sentence per threshold that is missed."""
        return [str(check) for check in self.checks if not check.ok]

    @property
    def ok(self) -> bool:
        """Whether every threshold is kept."""
        return not self.failures

    @property
    def same_layers(self) -> bool:
        """Whether layers of the same name were compared, as in networks of one architecture."""
        return all(layer.layer == layer.counterpart for layer in self.layers)

    @property
    def first_moved(self) -> LayerChange | None:
        """The first layer whose numbers differ by more than rounding."""
        return next((layer for layer in self.layers if layer.moved), None)

    @property
    def first_diverged(self) -> LayerChange | None:
        """The first layer whose debiased CKA is below 0.95."""
        return next((layer for layer in self.layers if layer.likeness < DIVERGED), None)

    @property
    def verdict(self) -> str:
        """One of `identical`, `equal but for rounding`, `close`, `changed`, `different`.

        The first two need layers of the same names; the others follow from the share of answers that flip and from
        debiased CKA of the last hidden layer, whichever is worse. Of language models they follow from the KL divergence
        and the share of the same top token; `equal but for rounding` then needs no layer and no answer to move more
        than the precision of the second network alone moves it.
        """
        if self.tokens is not None:
            return self._verdict_of_tokens(self.tokens)
        flips = None if isinstance(self.answers, str) else self.answers.disagreement
        if self.same_layers and self.layers and not flips:
            if all(layer.change == 0 for layer in self.layers):
                return "identical"
            if self.first_moved is None:
                return "equal but for rounding"
        cka = self.scores["cka-debiased"]
        for word, (most, least) in (("close", CLOSE), ("changed", CHANGED)):
            if (flips is None or flips <= most) and cka >= least:
                return word
        return "different"

    def _verdict_of_tokens(self, tokens: TokenChange) -> str:
        if self.same_layers and self.layers and tokens.within_rounding:
            if all(layer.change == 0 for layer in self.layers) and tokens.statistics["kl"].value == 0:
                return "identical"
            if self.first_moved is None:
                return "equal but for rounding"
        for word, limits in (("close", CLOSE_TOKENS), ("changed", CHANGED_TOKENS)):
            if tokens.keeps(limits):
                return word
        return "different"

    def findings(self) -> dict[str, str]:
        """One or two sentences per subject: layers, weights, answers, accuracy, classes, attacks, measures."""
        return diff_text.findings(self)

    def __str__(self) -> str:
        return diff_text.as_text(self)

    def to_markdown(self, picture: str | None = None) -> str:
        """A summary in GitHub's Markdown, for a pull request.

        Args:
            picture: The path of a picture to show in it.
        """
        return diff_text.as_markdown(self, picture)

    def _repr_html_(self) -> str:
        return diff_text.as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs, as JSON can hold it: what is undefined is None."""
        facts = {name: _plain(getattr(self, name)) for name in ("names", "data", "n", "looked_at", "scores", "reasons")}
        facts |= {"verdict": self.verdict, "ok": self.ok, "failures": self.failures}
        for name in ("layers", "weights", "answers", "transfer", "checks", "tokens"):
            value = getattr(self, name)
            facts[name] = _plain(value)
        for name in ("first_moved", "first_diverged"):
            layer = getattr(self, name)
            facts[name] = None if layer is None else layer.layer
        return facts

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """How alike each layer is, and images that flip below it.

        Args:
            path: Where the picture is saved, if anywhere.
        """
        return _draw(self, path)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the summary, the numbers and the picture, diff.md, diff.json and diff.png, and return the paths.

        Args:
            folder: A new or an empty folder, or one that likewise wrote.
        """
        import json

        target = Path(folder)
        claim(target)
        paths = [target / f"diff.{kind}" for kind in ("md", "json", "png")]
        write_whole(paths[0], self.to_markdown(picture="diff.png").encode())
        write_whole(paths[1], json.dumps(self.to_dict(), indent=1).encode())
        self.plot(paths[2])
        return paths


def _plain(value: Any) -> Any:
    """Mappings, lists and numbers; a number that is not finite is None."""
    value = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def _draw(diff: Diff, path: str | os.PathLike[str] | None) -> Figure:
    from matplotlib.figure import Figure

    flips = zip(diff.flips, diff.inputs, strict=False)
    pictures = [(flip, image) for flip, image in flips if isinstance(image, np.ndarray)]
    rows = math.ceil(len(pictures) / _ACROSS)
    figure = Figure(figsize=(9, 3.8 + 1.6 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, _ACROSS, height_ratios=[3.8] + [1.6] * rows)
    _curve(figure.add_subplot(grid[0, :]), diff)
    for index, (flip, image) in enumerate(pictures):
        axis = figure.add_subplot(grid[1 + index // _ACROSS, index % _ACROSS])
        axis.imshow(image, interpolation="nearest")
        axis.set_title(f"{flip.before} → {flip.after}", fontsize=7)
        axis.set_axis_off()
    return finish(figure, path)


def _curve(axis: Any, diff: Diff) -> None:
    names, values = [layer.layer for layer in diff.layers], [layer.likeness for layer in diff.layers]
    axis.plot(range(len(names)), values, marker="o", markersize=3)
    axis.axhline(DIVERGED, color="grey", linewidth=0.8, linestyle=":")
    step = max(1, math.ceil(len(names) / _NAMES))
    axis.set_xticks(range(0, len(names), step), names[::step], rotation=90, fontsize=6)
    axis.set_ylabel("cka-debiased\n(larger is more alike)", fontsize=8)
    low = min((value for value in values if value == value), default=0.0)
    axis.set_ylim(min(low, DIVERGED) - 0.03, 1.03)
    moved = diff.first_moved
    if moved is not None:
        index = diff.layers.index(moved)
        side = "left" if index < len(names) / 2 else "right"
        axis.axvline(index, color="#d62728", linewidth=0.8)
        label = f" first to change: {moved.layer} "
        axis.text(index, axis.get_ylim()[0], label, fontsize=7, va="bottom", ha=side)
    axis.set_title(f"{diff.names[0]} → {diff.names[1]}: {diff.verdict}", fontsize=10)
