"""Ensembles: how much of their members' error the mean of logits removes, for a few members or thousands of subsets.

Whether an ensemble errs on an input depends only on classes that some network ranks above the true one: a class
that none of them prefers cannot win on average. So only these are kept, a few of a thousand classes, and the error of
each subset is exact and quick.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError, UndefinedError
from likewise.matrices.labelled import position
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    from likewise.transfer.logits import Answers

AT_ONCE = 2_000_000  # margins summed at a time
DRAWS, LEVEL = 400, 0.95  # of inputs, for intervals


class Ensembles:
    """The answers of any subset of networks: each subset is a row of indices, all of one size."""

    def __init__(self, answers: Answers) -> None:
        """Keep the margins of classes that are ranked above the true one."""
        logits, labels = answers.logits, answers.labels
        rows = np.arange(answers.n)
        true = logits[:, rows, labels].astype(np.float64)
        before = np.zeros(logits.shape[1:], dtype=bool)
        for one in logits:
            before |= one >= one[rows, labels][:, None]
        before[rows, labels] = False
        inputs, classes = np.nonzero(before)
        self.networks, self.n = len(answers), answers.n
        self._margins = logits[:, inputs, classes] - true[:, inputs]  # (networks, pairs of an input and a class)
        self._wins_ties = classes < labels[inputs]  # ties: the first class
        self._inputs, self._starts = np.unique(inputs, return_index=True)

    def wrong(self, subsets: Any) -> Array:
        """Which inputs each ensemble gets wrong, (subsets, inputs)."""
        subsets = np.sort(np.atleast_2d(subsets), axis=1)  # sums do not depend on the order of members
        wrong = np.zeros((len(subsets), self.n), dtype=bool)
        if len(self._inputs):
            for chunk in self._chunks(subsets):
                total = self._margins[subsets[chunk]].sum(axis=1)
                wins = (total > 0) | (self._wins_ties & (total == 0))
                wrong[chunk, self._inputs] = np.logical_or.reduceat(wins, self._starts, axis=1)
        return wrong

    def errors(self, subsets: Any) -> Array:
        """The share of inputs each ensemble gets wrong, (subsets,)."""
        subsets = np.atleast_2d(subsets)
        return np.concatenate([self.wrong(subsets[chunk]).mean(axis=1) for chunk in self._chunks(subsets)])

    def _chunks(self, subsets: Array) -> Iterator[slice]:
        step = max(1, AT_ONCE // max(self.n, subsets.shape[1] * self._margins.shape[1]))
        return (slice(start, start + step) for start in range(0, len(subsets), step))


def error_reduction(answers: Answers, members: Sequence[str]) -> float:
    """Compute how much of its members' mean error an ensemble removes: 1 - Err(ensemble) / mean Err(member).

    The ensemble answers with the class of the largest mean logit. 0 is no gain over the members' mean, 1 no error
    left; below 0 the ensemble is worse than its members are on average.

    Args:
        answers: What networks answer to labelled inputs.
        members: The names of the members.

    Raises:
        UndefinedError: No member errs.

    Example:
        >>> from likewise.transfer import Answers
        >>> answers = Answers(["a", "b"], [[[2, 0], [1, 0]], [[0, 1], [0, 3]]], [0, 1])
        >>> error_reduction(answers, ["a", "b"])  # a errs on the second input, b on the first, both together on none
        1.0
    """
    subset = _members(answers, members)
    alone = 1 - float(answers.accuracies[subset].mean())
    if alone == 0:
        raise UndefinedError(
            f"no member of the ensemble errs on these {answers.n} inputs, so there is no error to reduce. Show them "
            "more inputs, or harder ones."
        )
    return 1 - float(Ensembles(answers).errors(subset)[0]) / alone


def all_wrong(answers: Answers, members: Sequence[str]) -> Array:
    """List the inputs that every member gets wrong.

    Args:
        answers: What networks answer to labelled inputs.
        members: The names of the members.

    Example:
        >>> from likewise.transfer import Answers
        >>> all_wrong(Answers(["a", "b"], [[[2, 0], [1, 0]], [[0, 1], [3, 0]]], [0, 1]), ["a", "b"]).tolist()
        [1]
    """
    return np.flatnonzero(~answers.right[_members(answers, members)].any(axis=0))


def pair_reductions(answers: Answers) -> SimilarityMatrix:
    """Compute the error reduction of all pairs.

    `agreement(matrix, pair_reductions(answers))` is above 0 where alike networks gain little from each other: the
    plain correlation with its sign flipped.

    Args:
        answers: What networks answer to labelled inputs.

    Returns:
        A matrix in which larger is less alike; `extra["error"]` is the error of each pair.
    """
    if len(answers) < 2:
        raise InputError(f"{answers!r} is too few for a pair. Give two networks or more.")
    ensembles, alone = Ensembles(answers), 1 - answers.accuracies
    first, second = np.triu_indices(len(answers), 1)
    errors = np.diag(alone)
    errors[first, second] = errors[second, first] = ensembles.errors(np.stack([first, second], axis=1))
    mean = (alone[:, None] + alone) / 2
    values = np.where(mean == 0, np.nan, 1 - errors / np.where(mean == 0, 1, mean))
    names = list(answers.names)
    undefined = [(names[i], names[j]) for i, j in np.argwhere(np.isnan(values))]
    return SimilarityMatrix(
        names,
        values,
        measure="error-reduction",
        larger_is="less alike",
        reasons=dict.fromkeys(undefined, "neither errs, so there is no error to reduce."),
        extra={"error": errors},
        bounds=(None, 1.0),
    )


def subsets_of(networks: int, size: int, most: int, draw: np.random.Generator) -> Array:
    """All subsets of one size where they are no more than `most`, else as many drawn at random."""
    if math.comb(networks, size) <= most:
        return np.array(list(combinations(range(networks), size)))
    return random_subsets(networks, size, most, draw)


def random_subsets(networks: int, size: int, samples: int, draw: np.random.Generator) -> Array:
    """Subsets of one size drawn at random, one per row."""
    return draw.random((samples, networks)).argsort(axis=1)[:, :size]


def drawn_again(count: int, draw: np.random.Generator) -> Array:
    """Weights of inputs that sum to 1, (count, 1 + DRAWS): as they are, then drawn anew with replacement."""
    again = draw.multinomial(count, np.full(count, 1 / count), size=DRAWS).T
    return np.column_stack([np.ones(count), again]) / count


def ends(values: Any) -> tuple[float, float]:
    """What 95 % of the values are between; NaN, where a draw had no value, is left out."""
    kept = np.asarray(values)[~np.isnan(values)]
    if not len(kept):
        return math.nan, math.nan
    low, high = np.quantile(kept, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def with_ends(name: str, value: float, low: float, high: float) -> dict[str, float]:
    """A value and the ends of its interval as columns of a table."""
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _members(answers: Answers, members: Sequence[str]) -> Array:
    if isinstance(members, str) or not len(members):
        raise InputError("an ensemble needs members. Give a list of names.")
    rows = np.array([position(answers.names, name, "network") for name in members])
    if len(set(members)) < len(members):
        raise InputError("a network is given twice. Give each member once.")
    return rows
