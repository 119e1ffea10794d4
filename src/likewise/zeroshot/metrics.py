"""The two metrics of Raw Zero-Shot, and a Davies-Bouldin index between several unseen classes.

The paper's code does not hold them, so what its equations leave open was settled by the size of the numbers it prints;
other readings are options. Beside each published form stands one in [0, 1], divided by the largest value it can have
for soft labels that sum to one: only that compares data sets, numbers of samples, and capsules with other networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError, UndefinedError, did_you_mean, quoted_list
from likewise.networks.anatomy.outputs import OutputKind, check_output_kind
from likewise.zeroshot.soft_labels import by_class, check, soft_labels

if TYPE_CHECKING:
    import pandas as pd

Formula = Callable[[Array], Array]  # of samples along the last axis but one (DBI) or two (AM); others are kept
_AT_ONCE = 2**22  # numbers that are resampled at a time
Spread = Literal["rms", "mean", "columns", "ddof1", "l1"]
Scaling = Literal["samples", "histogram", "none"]


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """A metric of every unseen class, over one training or several.

    Attributes:
        name: Its name.
        classes: The classes.
        values: As published, (seeds, classes).
        normalised: In [0, 1]: of soft labels that sum to one, divided by the bound, (seeds, classes).
        samples: The inputs of the formula: per seed and class one array, one row per sample.
        formula: Computes the metric from them.
    """

    name: str
    classes: tuple[str, ...]
    values: Array
    normalised: Array
    samples: Sequence[Sequence[Array]]
    formula: Formula

    def __float__(self) -> float:
        return self.mean

    def __repr__(self) -> str:
        seeds = f", {len(self.values)} seeds" if len(self.values) > 1 else ""
        return f"{self.name} {self.mean:.4f} ± {self.std():.4f} over {len(self.classes)} classes{seeds}"

    @property
    def per_class(self) -> dict[str, float]:
        """The value of every class, the mean over seeds."""
        return dict(zip(self.classes, self.values.mean(axis=0).tolist(), strict=True))

    @property
    def mean(self) -> float:
        """Over classes and seeds."""
        return float(self.values.mean())

    @property
    def normalised_mean(self) -> float:
        """Of the form in [0, 1]."""
        return float(self.normalised.mean())

    def std(self, ddof: int = 0) -> float:
        """Over classes, which is what the paper prints behind ±.

        Args:
            ddof: 1 for the unbiased one.
        """
        return _deviation(self.values.mean(axis=0), ddof)

    def normalised_std(self, ddof: int = 0) -> float:
        """Over classes, of the form in [0, 1].

        Args:
            ddof: 1 for the unbiased one.
        """
        return _deviation(self.normalised.mean(axis=0), ddof)

    def seed_std(self, ddof: int = 1) -> float:
        """Over trainings, of their means over classes; NaN for one.

        Args:
            ddof: 0 for the biased one.
        """
        return _deviation(self.values.mean(axis=1), ddof)

    def interval(self, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
        """Value, low and high of every class and of their mean, by bootstrap over the samples.

        Resamples repeat rows, so that on average their AM is too high and their DBI too low: the draws are shifted by
        that bias. Networks stay as they are: `seed_std` says how far other trainings lie.

        Args:
            level: The coverage of the intervals.
            resamples: How many times samples are drawn.
            seed: The seed of the draws.
        """
        import pandas as pd

        if not 0 < level < 1:
            raise InputError(f"level is {level}. Give a share between 0 and 1.")
        if resamples < 1:
            raise InputError(f"resamples is {resamples}. Give at least 1.")
        draw = np.random.default_rng(seed)
        draws = np.stack([self._draws(i, resamples, draw) for i in range(len(self.classes))])
        values = self.values.mean(axis=0)
        draws -= (draws.mean(axis=1) - values)[:, None]
        rows = [*zip(self.classes, values, draws, strict=True), ("mean", self.mean, draws.mean(axis=0))]
        tail = (1 - level) / 2
        ends = [np.maximum(np.quantile(drawn, [tail, 1 - tail]), 0) for _, _, drawn in rows]
        table = [(name, value, *end) for (name, value, _), end in zip(rows, ends, strict=True)]
        return pd.DataFrame(table, columns=["class", "value", "low", "high"]).set_index("class")

    def _draws(self, i: int, resamples: int, draw: np.random.Generator) -> Array:
        """The metric of one class over resampled rows, the same rows for every seed; the mean over seeds."""
        n = len(self.samples[0][i])
        step = max(1, _AT_ONCE // self.samples[0][i].size)
        chunks = []
        for start in range(0, resamples, step):
            rows = draw.integers(n, size=(min(step, resamples - start), n))
            chunks.append(np.mean([self.formula(of_seed[i][rows]) for of_seed in self.samples], axis=0))
        return np.concatenate(chunks)


def _deviation(values: Array, ddof: int) -> float:
    return float(values.std(ddof=ddof)) if len(values) > ddof else float("nan")


def stacked(metrics: Sequence[Metric]) -> Metric:
    """The metric of several seeds from that of each."""
    first = metrics[0]
    values, normalised = (np.concatenate([getattr(m, name) for m in metrics]) for name in ("values", "normalised"))
    samples = [of_seed for m in metrics for of_seed in m.samples]
    return Metric(first.name, first.classes, values, normalised, samples, first.formula)


def _ddof1(gaps: Array) -> Array:
    n = gaps.shape[-2]
    if n < 2:
        raise UndefinedError("a spread with ddof 1 needs two samples per class. Give more, or another reading.")
    return np.sqrt((gaps**2).sum(axis=(-2, -1)) / (n - 1))


# the spread of gaps to the centroid, and its largest value for n one-hot rows spread evenly over k columns
_SPREADS: dict[str, tuple[Formula, Callable[[int, int], float]]] = {
    "rms": (lambda gaps: np.sqrt((gaps**2).sum(axis=-1).mean(axis=-1)), lambda n, k: (1 - 1 / k) ** 0.5),
    "mean": (lambda gaps: np.linalg.norm(gaps, axis=-1).mean(axis=-1), lambda n, k: (1 - 1 / k) ** 0.5),
    "columns": (lambda gaps: np.sqrt((gaps**2).mean(axis=(-2, -1))), lambda n, k: ((1 - 1 / k) / k) ** 0.5),
    "ddof1": (_ddof1, lambda n, k: ((1 - 1 / k) * n / (n - 1)) ** 0.5),
    "l1": (lambda gaps: np.abs(gaps).sum(axis=-1).mean(axis=-1), lambda n, k: 2 * (1 - 1 / k)),
}


def _spread(soft: Array, spread: Formula) -> Array:
    return spread(soft - soft.mean(axis=-2, keepdims=True))


def dbi(
    held_out: Any,
    *,
    answers: str = "probabilities",
    classes: Sequence[str] | None = None,
    reading: Spread = "rms",
    normalise_both: bool = False,
) -> Metric:
    """How far soft labels of a class that was never seen lie apart: the paper's DBI (its equation 3).

    Per class √(1/n Σ |e_j - c|²), e_j the n soft labels and c their centroid; the mean over classes. 0 if a network
    answers alike to all samples of the class, √(1 - 1/k) if it answers with one of its k classes each, all equally
    often. Despite its name it looks at one cluster at a time (`davies_bouldin` looks at several), and a network whose
    answers do not sum to one, as capsules, gets a smaller one by scale alone: `normalised` is of scaled answers.

    Args:
        held_out: One array per class (samples, k), as a mapping, a list or one array.
        answers: What they are: "probabilities", "logits" or "lengths".
        classes: The names of the classes.
        reading: "rms", or another reading of the equation: "mean" distance, "columns" (the mean also over coordinates),
            "ddof1", "l1".
        normalise_both: Scale lengths to sum to one.

    Raises:
        InputError: There is no such reading, or the arrays are no such answers.

    Example:
        >>> float(dbi([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))  # each √½ from (½, ½, 0)
        0.7071067811865476
    """
    kind = check_output_kind(answers)
    if reading not in _SPREADS:
        raise InputError(f"DBI has no reading {reading!r}.{did_you_mean(reading, _SPREADS)} Give {_list(_SPREADS)}.")
    spread, bound = _SPREADS[reading]
    named = _checked(by_class(held_out, classes, "soft labels"), kind)
    scaled = [soft_labels(rows, kind, what=f"soft labels of class {name!r}") for name, rows in named.items()]
    raw = scaled if normalise_both else [soft_labels(rows, kind, scaled=False) for rows in named.values()]
    formula = partial(_spread, spread=spread)
    shares = [min(1.0, float(formula(rows)) / bound(*rows.shape)) for rows in scaled]
    return Metric("DBI", tuple(named), np.array([[formula(rows) for rows in raw]]), np.array([shares]), [raw], formula)


def _checked(named: Mapping[str, Any], kind: OutputKind) -> dict[str, Array]:
    return {name: check(values, kind, f"the soft labels of class {name!r}") for name, values in named.items()}


_SCALINGS = ("samples", "histogram", "none")


def _gap(both: Array, scaling: Scaling, means: bool, divide: bool) -> Array:
    """Of e' and e stacked, (..., samples, 2, k)."""
    n, _, k = both.shape[-3:]
    histograms = both.sum(axis=-3)
    full, held_out = histograms[..., 0, :], histograms[..., 1, :]
    if scaling == "histogram":
        full = full * n / full.sum(axis=-1, keepdims=True)
    return np.asarray(np.abs(full - held_out).sum(axis=-1) / (n if means else 1) / (k if divide else 1))


def amalgam(
    full: Any,
    held_out: Any,
    *,
    answers: str = "probabilities",
    classes: Sequence[str] | None = None,
    scaling: Scaling = "samples",
    means: bool = False,
    divide: bool = True,
    normalise_both: bool = False,
) -> Metric:
    """How far a network that never saw a class describes it otherwise than one that did: the Amalgam Metric (eq. 4).

    Per class |Σ e'_j - Σ e_j|₁ / (n - 1): e the soft labels of the network that was trained without the class, e' those
    of the one trained on all n, the class taken out and each scaled to sum to one; the mean over classes. 0 if both
    mix the other classes alike, at most 2 / (n - 1) times the number of samples, with which it grows: `normalised` is
    divided by that, and of soft labels that sum to one.

    Args:
        full: What the network of all classes answers: one array per class in the order of the outputs, (samples, n).
        held_out: What the networks without each class answer to the same samples, (samples, n - 1).
        answers: What they are: "probabilities", "logits" or "lengths". Give logits where there are any: nothing is lost
            where the class that is taken out had all of the probability.
        classes: The names of the classes.
        scaling: Of e': by "samples", of the "histogram" to the number of samples, or "none".
        means: Compare means of soft labels instead of sums.
        divide: Whether to divide by n - 1.
        normalise_both: Scale e too, which matters for lengths.

    Raises:
        InputError: There is no such scaling, or the arrays do not fit each other.

    Example:
        >>> full = [[[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]], [[0.25, 0.25, 0.5]]]  # so e' is (½, ½)
        >>> amalgam(full, [[[0.5, 0.5]], [[1.0, 0.0]], [[0.25, 0.75]]]).per_class
        {'0': 0.0, '1': 0.5, '2': 0.25}
    """
    kind = check_output_kind(answers)
    if scaling not in _SCALINGS:
        raise InputError(f"AM has no scaling {scaling!r}.{did_you_mean(scaling, _SCALINGS)} Give {_list(_SCALINGS)}.")
    pairs = _pairs(by_class(full, classes, "full"), by_class(held_out, classes, "held_out"), kind)
    formula = partial(_gap, scaling=scaling, means=means, divide=divide)
    published, scaled = [], []
    for i, (name, (whole, rest)) in enumerate(pairs.items()):
        what = f"soft labels of class {name!r}"
        reference = soft_labels(whole, kind, without=i, scaled=scaling == "samples", what=what)
        both = [soft_labels(rest, kind, scaled=sum_to_one, what=what) for sum_to_one in (normalise_both, True)]
        published.append(np.stack([reference, both[0]], axis=1))
        scaled.append(np.stack([reference, both[1]], axis=1))
    bounds = [2 * (1 if means else len(both)) / (both.shape[2] if divide else 1) for both in scaled]
    shares = [min(1.0, float(formula(both)) / bound) for both, bound in zip(scaled, bounds, strict=True)]
    values = np.array([[formula(both) for both in published]])
    return Metric("AM", tuple(pairs), values, np.array([shares]), [published], formula)


def _pairs(full: Mapping[str, Any], held_out: Mapping[str, Any], kind: str) -> dict[str, tuple[Array, Array]]:
    """Answers of both networks by class, checked to fit each other."""
    if list(full) != list(held_out):
        raise InputError(
            f"full is of the classes {quoted_list(list(full))} and held_out of {quoted_list(list(held_out))}. Give "
            "both of the same classes, in the order of the outputs."
        )
    pairs = {}
    for name in full:
        whole = check(full[name], kind, f"the soft labels of class {name!r} by the full network")
        rest = check(held_out[name], kind, f"the soft labels of class {name!r} by the network without it")
        if len(whole) != len(rest):
            raise InputError(
                f"for class {name!r} there are {len(whole)} soft labels by the full network and {len(rest)} by the one "
                "without it. Show both the same samples in the same order."
            )
        if whole.shape[1] != len(full) or rest.shape[1] != len(full) - 1:
            raise InputError(
                f"for class {name!r} the full network answers with {whole.shape[1]} classes and the one without it "
                f"with {rest.shape[1]}. Of {len(full)} classes these are {len(full)} and {len(full) - 1}."
            )
        pairs[name] = (whole, rest)
    return pairs


def davies_bouldin(held_out: Mapping[str, Any], *, answers: str = "probabilities") -> float:
    """How far clusters of several unseen classes overlap in the soft labels of one network (Davies and Bouldin 1979).

    The mean over classes i of max over j of (s_i + s_j) / d_ij: s the mean distance of the soft labels of a class to
    their centroid, d the distance of two centroids. 0 if all samples of a class have one soft label; above 1 classes
    reach as far as half the way to another. All classes must be unseen by the same network (`unseen`).

    Args:
        held_out: One array per class (samples, k).
        answers: What they are: "probabilities", "logits" or "lengths".

    Raises:
        InputError: There is one class, or columns differ.
        UndefinedError: Two classes have the same centroid.

    Example:
        >>> round(davies_bouldin({"a": [[1.0, 0.0], [0.8, 0.2]], "b": [[0.0, 1.0], [0.2, 0.8]]}), 6)  # 0.2 √2 / 0.8 √2
        0.25
    """
    kind = check_output_kind(answers)
    named = by_class(held_out, None, "soft labels")
    if len(named) < 2:
        raise InputError("clusters are compared with each other, and there is one class. Give two or more.")
    soft = [soft_labels(rows, kind) for rows in _checked(named, kind).values()]
    if len({rows.shape[1] for rows in soft}) > 1:
        raise InputError("soft labels differ in their columns. Give those of one network that saw none of the classes.")
    centroids = np.stack([rows.mean(axis=0) for rows in soft])
    spreads = np.array([np.linalg.norm(rows - rows.mean(axis=0), axis=1).mean() for rows in soft])
    apart = np.linalg.norm(centroids[:, None] - centroids, axis=2)
    np.fill_diagonal(apart, np.inf)
    if (apart == 0).any():
        one, other = (list(named)[i] for i in np.argwhere(apart == 0)[0])
        raise UndefinedError(
            f"the index is undefined: classes {one!r} and {other!r} have the same centroid. Leave one of them out."
        )
    return float(((spreads[:, None] + spreads) / apart).max(axis=1).mean())


def _list(names: Any) -> str:
    *rest, last = [repr(name) for name in names]
    return f"{', '.join(rest)} or {last}" if rest else last
