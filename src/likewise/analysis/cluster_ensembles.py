"""Whether ensembles gain from members of more families: mean error reductions by size and number of families."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.ensembles import DRAWS, Ensembles, drawn_again, ends, random_subsets, subsets_of, with_ends
from likewise.analysis.families import Clusters, family_labels
from likewise.errors import InputError, check_seed

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers

CHOICES = 100_000  # choices of families up to which all are listed
PERMUTATIONS = 999  # of the families among the networks


def errors_by_clusters(
    answers: Answers,
    clusters: Clusters | Mapping[str, Any],
    sizes: Sequence[int] = (2, 3, 4, 5),
    *,
    samples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare ensembles with members of few and of many families.

    For k families, k of them are drawn that have enough networks, one member from each, and the others from any of
    these.

    Args:
        answers: What networks answer to labelled inputs.
        clusters: The family of each network: as found, or a mapping by name.
        sizes: How many members ensembles have.
        samples: How many ensembles are drawn of each kind.
        seed: Draws ensembles and inputs.

    Returns:
        One row per size and number of families, and one for random members; a row without samples has no such
        ensemble. `reduction` is the mean error reduction, `gain` what it is above that of random members; their ends
        hold 95 % over other inputs and draws of members (bootstrap), for these networks. `error` and `all_wrong` are
        the shares of inputs that the ensemble and that all of its members get wrong. `p`, one per size, is the share
        of permutations of the families among the networks in which the reduction of random members depends as strongly
        on how many families they are of.
    """
    import pandas as pd

    labels, most = family_labels(clusters, answers.names), len(answers)
    for size in sizes:
        if not 2 <= size <= most:
            raise InputError(f"{most} networks have no ensemble of {size}. Choose sizes from 2 to {most}.")
    if samples < 1:
        raise InputError(f"samples is {samples}. Give at least 1.")
    check_seed(seed)
    draw = np.random.default_rng(seed)
    drawn = _Resampled(answers, draw)
    rows = []
    for size in sizes:
        anyone = random_subsets(most, size, samples, draw)
        free = drawn.reductions(anyone)
        shared = {"p": _trend(labels, anyone, free[0][:, 0], draw)}
        for k in range(1, size + 1):
            some = _from_clusters(labels, k, size, samples, draw)
            row = drawn.row(some, drawn.reductions(some), free[0])
            rows.append({"size": size, "families": str(k), **row, **shared})
        none = dict.fromkeys(("gain", "gain_low", "gain_high"), 0.0)
        rows.append({"size": size, "families": "random", **drawn.row(anyone, free, free[0]), **none, **shared})
    return pd.DataFrame(rows)


class _Resampled:
    """Errors and error reductions for the inputs as they are and drawn anew."""

    def __init__(self, answers: Answers, draw: np.random.Generator) -> None:
        self.ensembles, self.alone, self.draw, self.n = Ensembles(answers), ~answers.right, draw, answers.n
        self.counts = np.rint(self.n * drawn_again(self.n, draw)).astype(np.float32)  # sums of counts are exact

    def errors(self, wrong: Array) -> Array:
        """The share of wrong inputs: a column for the inputs as they are, then one per draw."""
        return (wrong.astype(np.float32) @ self.counts).astype(np.float64) / self.n

    def reductions(self, subsets: Array) -> tuple[Array, float]:
        """One row per subset, with columns as those of errors, NaN where no member errs; and the mean error."""
        mean = self.errors(self.alone)[subsets].mean(axis=1)
        left = self.errors(self.ensembles.wrong(subsets))
        error = float(left[:, 0].mean()) if len(subsets) else math.nan
        return np.where(mean > 0, 1 - left / np.where(mean > 0, mean, 1), np.nan), error

    def row(self, subsets: Array, reductions: tuple[Array, float], free: Array) -> dict[str, float]:
        """The columns of the ensembles of one kind, beside random ones."""
        means = self._means(reductions[0])
        gain = means - self._means(free)
        row: dict[str, float] = {"samples": len(subsets)}
        for name, (value, *again) in (("reduction", means), ("gain", gain)):
            row |= with_ends(name, value, *ends(again))
        all_wrong = self.alone[subsets].all(axis=1).mean() if len(subsets) else math.nan
        return row | {"error": reductions[1], "all_wrong": float(all_wrong)}

    def _means(self, reductions: Array) -> Array:
        """The mean over subsets: of all of them first, then as they are drawn anew."""
        count = len(reductions)
        if not count:
            return np.full(DRAWS + 1, np.nan)
        weights = drawn_again(count, self.draw) * ~np.isnan(reductions)
        sums = weights.sum(axis=0)
        return np.where(
            sums > 0, (weights * np.nan_to_num(reductions)).sum(axis=0) / np.where(sums > 0, sums, 1), np.nan
        )


def _trend(labels: Array, subsets: Array, reductions: Array, draw: np.random.Generator) -> float:
    """How often permuted families predict the reduction as strongly; NaN where nothing differs."""
    kept = ~np.isnan(reductions)
    subsets, reductions = subsets[kept], reductions[kept] - reductions[kept].mean() if kept.any() else reductions[kept]

    def strength(labels: Array) -> float:
        ordered = np.sort(labels[subsets], axis=1)
        count = (np.diff(ordered, axis=1) > 0).sum(axis=1)
        spread = float(np.sqrt(((count - count.mean()) ** 2).sum()))
        return abs(float(reductions @ count)) / spread if spread else 0.0

    if len(subsets) < 2 or not (observed := strength(labels)):
        return math.nan
    beyond = sum(strength(draw.permutation(labels)) >= observed * (1 - 1e-9) for _ in range(PERMUTATIONS))
    return (1 + beyond) / (1 + PERMUTATIONS)


def _from_clusters(labels: Array, k: int, size: int, samples: int, draw: np.random.Generator) -> Array:
    """Subsets with members of exactly k families, each of them with at least one."""
    counts = np.bincount(labels)
    if k > len(counts):
        return np.empty((0, size), dtype=int)
    choices = subsets_of(len(counts), k, CHOICES, draw)
    choices = choices[counts[choices].sum(axis=1) >= size]
    if not len(choices):
        return np.empty((0, size), dtype=int)
    selected = np.zeros((samples, len(counts)), dtype=bool)
    np.put_along_axis(selected, choices[draw.integers(len(choices), size=samples)], True, axis=1)
    keys = np.where(selected[:, labels], draw.random((samples, len(labels))), np.inf)
    for label in range(len(counts)):  # one member of each family comes first
        group = np.flatnonzero(labels == label)
        keys[np.arange(samples), group[keys[:, group].argmin(axis=1)]] -= 1
    return keys.argsort(axis=1)[:, :size]
