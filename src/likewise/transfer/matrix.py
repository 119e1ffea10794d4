"""The matrix of attack transfer: scores of all pairs, and everything they were computed from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from likewise import __version__
from likewise._base.arrays import Array
from likewise._base.files import is_folder, write_whole
from likewise._base.folders import claim, file_of
from likewise._base.names import csv_text
from likewise._base.progress import warn
from likewise.errors import InputError, StoreError
from likewise.matrices.heatmap import Heatmap
from likewise.matrices.labelled import accuracy_note, position
from likewise.matrices.shares import difference, mean_of_two, wilson
from likewise.matrices.similarity import SimilarityMatrix
from likewise.matrices.uncertainty import Interval
from likewise.transfer.logits import Answers
from likewise.transfer.scores import LEAST, NONE_RIGHT, directed_rates, percent_of_pair, same_mistakes, score_of

METHOD = "intervals of the two rates (Jeffreys), by their correlation over inputs"
CLOSE = 0.04  # differences of accuracy beyond which scores partly measure them
MATRIX, ANSWERS, FRAME = "sat.safetensors", "answers.safetensors", "sat.csv"


def _grid(name: str, doc: str) -> property:
    return property(lambda self: np.asarray(self.extra[name]), doc=doc)


@dataclass(frozen=True, eq=False, repr=False)
class TransferMatrix(SimilarityMatrix):
    """How far networks are fooled by the same attacks: `values[i, j]` is the SAT score, the diagonal as measured.

    Attributes:
        rates: Of inputs that both classify correctly, the share that the example made from i fools j on.
        counts: How many inputs both classify correctly.
        percent: The argument of the logarithm: 100 times the mean of both rates.
        same_mistakes: Of examples that fool both their source and the other, the share taken for the same wrong class.
        accuracies: The share of clean inputs that each network classifies correctly.
        predictions: What network j answers to the example made from i for every input, (m, m, n).
        right: Which inputs each network classifies correctly, (m, n).
        labels: The classes of the inputs, (n,).
        answers: The clean logits, where they were kept.
    """

    SAVED: ClassVar[tuple[str, ...]] = ("predictions", "right", "labels")
    UNSAVED: ClassVar[tuple[str, ...]] = ("answers",)

    predictions: Any = field(default_factory=lambda: np.empty((0, 0, 0), dtype=np.int32))
    right: Any = field(default_factory=lambda: np.empty((0, 0), dtype=bool))
    labels: Any = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    answers: Answers | None = None

    rates = _grid(
        "rates", "Of inputs that both classify correctly, the share that examples made from i fool j on, (m, m)."
    )
    counts = _grid("counts", "How many inputs both networks classify correctly, (m, m).")
    percent = _grid("percent", "The argument of the logarithm, (m, m).")
    same_mistakes = _grid(
        "same_mistakes", "Of examples that fool both, the share taken for the same wrong class, (m, m)."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        m, n = len(self.names), len(self.labels)
        shapes = (np.shape(self.predictions), np.shape(self.right))
        if shapes != ((m, m, n), (m, n)):
            raise InputError(
                f"{m} networks and {n} labels need predictions ({m}, {m}, {n}) and right ({m}, {n}), got {shapes[0]} "
                f"and {shapes[1]}. Make the matrix with TransferMatrix.of."
            )

    @classmethod
    def of(
        cls,
        answers: Answers,
        predictions: Array,
        about: Mapping[str, Any] | None = None,
        *,
        smoothed: bool = False,
    ) -> TransferMatrix:
        """Compute the matrix from the answers of networks.

        Args:
            answers: What they answer to clean inputs.
            predictions: What network j answers to the example made from i for every input, (m, m, n).
            about: Facts to record, such as the attack.
            smoothed: Count half a hit more for every pair, so that few inputs without a hit do not give ln 0.01.
        """
        right, labels = answers.right, answers.labels
        rates, counts = directed_rates(right, predictions != labels)
        hits = np.rint(rates * counts)
        with np.errstate(invalid="ignore"):
            percent = np.where(counts > 0, percent_of_pair(hits + hits.T, counts, smoothed=smoothed), np.nan)
        names = tuple(answers.names)
        pairs = [(names[i], names[j]) for i, j in np.argwhere(counts == 0).tolist()]
        grids = {"percent": percent, "rates": rates, "counts": counts}
        return cls(
            names=names,
            values=score_of(percent),
            measure="sat",
            larger_is="more alike",
            bounds=(float(score_of(0)), float(score_of(100))),
            aliases=("SAT",),
            reasons={(a, b): f"sat is undefined for {a!r} and {b!r}: {NONE_RIGHT}" for a, b in pairs},
            extra=grids | {"same_mistakes": same_mistakes(right, predictions, labels)},
            about={"likewise": __version__, "n": answers.n, **(about or {})},
            predictions=predictions.astype(np.int32),
            right=right,
            labels=labels,
            answers=answers,
        )

    def check_loaded(self) -> None:
        """Refuse arrays and facts of a file that do not belong together."""
        super().check_loaded()
        m, n = len(self), len(self.labels)
        shapes = {"predictions": (m, m, n), "right": (m, n), "labels": (n,)}
        if any(getattr(self, name).shape != shape for name, shape in shapes.items()) or self.right.dtype != bool:
            raise ValueError("its predictions are of other networks or inputs")
        if missing := {"rates", "counts", "percent", "same_mistakes"} - set(self.extra):
            raise ValueError(f"it has no {min(missing)!r}")

    def __repr__(self) -> str:
        return super().__repr__().replace("SimilarityMatrix", "TransferMatrix", 1)

    @property
    def accuracies(self) -> Array:
        """The share of clean inputs that each network classifies correctly, (m,)."""
        return np.asarray(self.right.mean(axis=1))

    def heatmap(self, title: str | None = None) -> Heatmap:
        """The heatmap; colours reach as far as the scores, since the lower end of the range is a convention.

        Args:
            title: The title, by default that of the measure.
        """
        return replace(super().heatmap(title), bounds=(None, None))

    def notes(self) -> list[str]:
        """What has to be known of the networks to read the numbers, one line each."""
        low, high, gap, (least, _) = accuracy_gap(self.right)
        ends = " to ".join(share_text(self.accuracies[i], len(self.labels)) for i in (low, high))
        lines = [f"{len(self.labels)} inputs, clean accuracies from {ends}"]
        if gap > CLOSE and least <= CLOSE:
            lines.append(
                f"accuracies differ by {100 * gap:.1f} points, too few inputs to tell whether by more than "
                f"{100 * CLOSE:.0f}, where SAT partly measures accuracy"
            )
        return [*lines, *accuracy_note(self._shares()), *self._without_hits(), *super().notes()]

    def _shares(self) -> dict[str, float]:
        return dict(zip(self.names, self.accuracies.tolist(), strict=True))

    def _rows(self) -> Iterator[dict[str, Any]]:
        shares = self._shares()
        for row in super()._rows():
            yield row | {"accuracy_a": shares[row["a"]], "accuracy_b": shares[row["b"]]}

    def _without_hits(self) -> Iterator[str]:
        """A line on pairs that no example fools, whose score is a convention."""
        pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(self.rates + self.rates.T == 0, 1))]
        if pairs and not self.about.get("smoothed"):
            i, j = min(pairs, key=lambda pair: self.counts[pair])
            most = np.exp(self._ends(i, j, 0.95)[1])
            yield (
                f"no hit in {len(pairs)} of {len(self) * (len(self) - 1) // 2} pairs, such as {self.names[i]} and "
                f"{self.names[j]}: then the score is ln {LEAST}, though {self.counts[i, j]} inputs allow up to "
                f"{most:.1f} % hits (show more, or take smoothed scores)"
            )

    def _reordered_fields(self, index: list[int], names: Sequence[str]) -> dict[str, Any]:
        """The fields beside those of a similarity matrix, for networks in another order."""
        return {
            "predictions": self.predictions[np.ix_(index, index)],
            "right": self.right[index],
            "answers": None if self.answers is None else self.answers.subset(names),
        }

    def interval(self, a: str, b: str, *, level: float = 0.95) -> Interval:
        """Compute an interval of the score of a pair over inputs, from intervals of its two rates.

        Args:
            a: A network.
            b: The other.
            level: The share of cases in which an interval holds the score of all such inputs.
        """
        i, j = (position(self.names, name, self.LABEL) for name in (a, b))
        low, high = self._ends(i, j, level)
        return Interval(self.measure, float(self.values[i, j]), low, high, level, method=METHOD)

    def intervals(self, *, level: float = 0.95) -> Interval:
        """Compute intervals of all scores over inputs, from intervals of the two rates of every pair.

        Args:
            level: The share of cases in which an interval holds the score of all such inputs.
        """
        low, high = np.full((2, *self.values.shape), np.nan)
        for i, j in np.argwhere(np.triu(self.counts > 0)).tolist():
            low[i, j], high[i, j] = low[j, i], high[j, i] = self._ends(i, j, level)
        return Interval(self.measure, self.values, low, high, level, tuple(self.names), self.reasons, method=METHOD)

    def _ends(self, i: int, j: int, level: float) -> tuple[float, float]:
        if not 0 < level < 1:
            raise InputError(f"level is {level}. Give a share between 0 and 1, like 0.95.")
        if not self.counts[i, j]:
            return float("nan"), float("nan")
        both = self.right[i] & self.right[j]
        one, other = (both & (self.predictions[pair] != self.labels) for pair in ((i, j), (j, i)))
        ends = mean_of_two(one.sum(), other.sum(), (one & other).sum(), both.sum(), level)
        low, high = score_of(100 * np.array(ends)).tolist()
        return low, high

    def save_run(self, folder: str | os.PathLike[str]) -> Path:
        """Write the matrix, a frame of all pairs and the clean answers into a folder, which `load` reads.

        Args:
            folder: A new or an empty folder, or one that likewise wrote.
        """
        target = Path(folder)
        claim(target, older=[FRAME])
        self.save(target / MATRIX)
        write_whole(target / FRAME, csv_text(self.to_frame(long=True), index=False).encode())
        if self.answers is not None:
            self.answers.save(target / ANSWERS)
        return target


def load(run: str | os.PathLike[str]) -> TransferMatrix:
    """Read the matrix that `likewise transfer --out RUN` wrote, with its clean answers.

    Args:
        run: The folder.

    Raises:
        InputError: There is no such folder.
        StoreError: It holds no matrix, or a file is damaged.
    """
    if not is_folder(run):
        raise InputError(f"there is no folder {run}. Give one that likewise transfer --out wrote.")
    folder = Path(run)
    matrix = TransferMatrix.load(file_of(folder, MATRIX))
    answers = Answers.load(file_of(folder, ANSWERS))
    if answers.names != matrix.names or answers.n != len(matrix.labels):
        raise StoreError(
            f"{folder / ANSWERS} and {folder / MATRIX} are of different networks. Run likewise transfer again."
        )
    return replace(matrix, answers=answers)


def accuracy_gap(right: Array) -> tuple[int, int, float, tuple[float, float]]:
    """The least and the most accurate network, how far they are apart, and an interval of that.

    `right` (m, n) says which inputs each classifies correctly. The two were chosen among all pairs, so the interval is
    as wide as it has to be for all of them.
    """
    (m, n), accuracies = right.shape, right.mean(axis=1)
    low, high = int(accuracies.argmin()), int(accuracies.argmax())
    level = 1 - 0.05 / max(1, m * (m - 1) // 2)
    ends = difference(accuracies[high], accuracies[low], n, level)
    return low, high, float(accuracies[high] - accuracies[low]), ends


def share_text(share: float, count: int) -> str:
    """A share in percent with its 95 % interval.

    >>> share_text(0.875, 64)
    '87.5 % [77, 94]'
    """
    low, high = wilson(share, count)
    return f"{100 * share:.1f} % [{100 * low:.0f}, {100 * high:.0f}]"


def warn_of_accuracies(answers: Answers) -> None:
    """Warn if clean accuracies lie surely so far apart that scores partly measure them."""
    low, high, gap, (least, most) = accuracy_gap(answers.right)
    if least > CLOSE:
        accuracies = answers.accuracies
        warn(
            f"clean accuracies differ by {100 * gap:.1f} points [{100 * least:.0f}, {100 * most:.0f}], from "
            f"{100 * accuracies[low]:.1f} % of {answers.names[low]!r} to {100 * accuracies[high]:.1f} % of "
            f"{answers.names[high]!r}: with more than {100 * CLOSE:.0f}, SAT partly measures accuracy. "
            "Compare networks of like accuracy."
        )
