"""A `Diff`: what changed between two networks, as a verdict, sentences, numbers, Markdown and a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._base.files import make_folder, write_whole
from likewise.difference import text as diff_text
from likewise.difference.answers import Answers
from likewise.difference.inputs import Shown
from likewise.difference.layers import DIVERGED, LayerChange
from likewise.difference.weights import WeightChange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOSE, CHANGED = (0.02, DIVERGED), (0.2, 0.5)  # flips up to which, and debiased CKA from which, networks are so
VERDICTS = {
    "identical": "every layer gives the same numbers",
    "equal but for rounding": "numbers differ by less than rounding, and no answer does",
    "close": "at most 2 % of the answers flip, and debiased CKA of the last hidden layer is at least 0.95",
    "changed": "at most 20 % of the answers flip, and debiased CKA of the last hidden layer is at least 0.5",
    "different": "anything else",
}


@dataclass(frozen=True)
class Check:
    """A threshold: the measure may not be `side` ("under" or "over") the limit. What is undefined misses it."""

    measure: str
    side: str
    limit: float
    value: float
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the threshold is kept."""
        return self.value >= self.limit if self.side == "under" else self.value <= self.limit

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"{self.measure} is undefined, so it cannot be held against {self.limit:g}: {self.reason}"
        word = "not " if self.ok else ""
        return f"{self.measure} = {self.value:.4g} is {word}{self.side} {self.limit:g}"


@dataclass(frozen=True)
class Transfer:
    """Of the inputs both classify correctly, the shares that examples made from the first fool it and the second on."""

    attack: str
    iterations: int
    itself: float
    other: float
    count: int


@dataclass(frozen=True, eq=False)
class Diff:
    """What changed from the first network to the second on n inputs.

    looked_at  the layer that `scores` are of: `penultimate`, or `embedding` of networks without a classifier
    scores     measures of that layer and of the answers, NaN where undefined, and then in `reasons`
    layers     one entry per layer, in the order in which they answer
    answers    flips, accuracies and classes, or why there are none
    transfer   how far attacks on the first fool the second, or why that was not looked at
    inputs     what the first flips look like: texts, images (height, width, 3), or None
    checks     the thresholds that were given
    """

    names: tuple[str, str]
    data: str
    n: int
    looked_at: str
    scores: Mapping[str, float]
    reasons: Mapping[str, str]
    layers: tuple[LayerChange, ...]
    weights: WeightChange
    answers: Answers | str
    transfer: Transfer | str
    inputs: tuple[Shown, ...] = field(repr=False)
    checks: tuple[Check, ...] = ()

    def __repr__(self) -> str:
        return f"Diff({self.names[0]!r}, {self.names[1]!r}, n={self.n}: {self.verdict})"

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
        """Whether layers of one name were held against each other, as in networks of one architecture."""
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

        identical and equal are said of layers of the same names alone; the others go by the share of answers that
        flip and by debiased CKA of the last hidden layer, whichever is worse.
        """
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

    def findings(self) -> dict[str, str]:
        """What was found, a sentence or two for each thing that was looked at."""
        return diff_text.findings(self)

    def __str__(self) -> str:
        return diff_text.as_text(self)

    def to_markdown(self, picture: str | None = None) -> str:
        """A summary in GitHub's Markdown, for a pull request; `picture` is the path of one to show in it."""
        return diff_text.as_markdown(self, picture)

    def _repr_html_(self) -> str:
        return diff_text.as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs, as JSON can hold it: what is undefined is None."""
        parts = {name: _plain(getattr(self, name)) for name in ("names", "data", "n", "looked_at", "scores", "reasons")}
        parts |= {"verdict": self.verdict, "ok": self.ok, "failures": self.failures}
        for name in ("layers", "weights", "answers", "transfer", "checks"):
            value = getattr(self, name)
            parts[name] = value if isinstance(value, str) else _plain(_dicts(value))
        for name in ("first_moved", "first_diverged"):
            found = getattr(self, name)
            parts[name] = None if found is None else found.layer
        return parts

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """How alike each layer is, and images that flip below it; saved if a path is given."""
        from likewise.difference.picture import draw

        return draw(self, path)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The summary, the numbers and the picture: diff.md, diff.json, diff.png in a folder."""
        import json

        target = Path(folder)
        make_folder(target)
        paths = [target / f"diff.{kind}" for kind in ("md", "json", "png")]
        write_whole(paths[0], self.to_markdown(picture="diff.png").encode())
        write_whole(paths[1], json.dumps(self.to_dict(), indent=1).encode())
        self.plot(paths[2])
        return paths


def _dicts(value: Any) -> Any:
    return [asdict(each) for each in value] if isinstance(value, tuple) else asdict(value)


def _plain(value: Any) -> Any:
    """Mappings, lists and numbers; a number that is not finite is None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
