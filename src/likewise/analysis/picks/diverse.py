"""Networks that are drawn one after another for being unlike those drawn before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.families import symmetric_scores
from likewise.analysis.family_evidence import pairs
from likewise.analysis.picks.ensemble import Pick, check_size, matched, similarity_among
from likewise.analysis.picks.trials import held_out_trial
from likewise.errors import InputError, check_seed
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    from likewise.transfer.logits import Answers

FLOOR = 0.01  # of the mean similarity, below which none counts, so that no network is certain to be drawn
Rule = Literal["inverse", "similar", "random"]
Beside = Literal["current", "all"]
_WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "inverse": lambda alike: 1 / alike,
    "similar": lambda alike: alike,
    "random": np.ones_like,
}
_BESIDE: dict[str, Callable[[Array], Array]] = {
    "current": lambda alike: alike[-1],
    "all": lambda alike: alike.max(axis=0),
}


def pick_diverse(
    matrix: SimilarityMatrix,
    k: int,
    rule: Rule = "inverse",
    *,
    beside: Beside = "current",
    seed: int = 0,
    answers: Answers | None = None,
) -> Pick:
    """Draw diverse networks one after another, each in inverse proportion to how alike it is to the one drawn last.

    That is the rule of SAT's paper (G.4). Of those drawn before only the last one counts, so that the third may be much
    like the first; `beside="all"` weighs each network by the most alike of all that were drawn, as k-means++ does. A
    distance counts as the inverse of a similarity. None is drawn twice.

    Args:
        matrix: How alike the networks are, by any measure.
        k: How many to draw.
        rule: "inverse"; "similar" draws in proportion to the similarity, "random" regardless of it.
        beside: What counts of the networks drawn before: "current", the last one, or "all", the most alike of them.
        seed: Draws the networks.
        answers: What they answer to labelled inputs, to try them as an ensemble on held-out inputs.
    """
    if rule not in _WEIGHTS:
        raise InputError(f"no rule named {rule!r}. Choose {', '.join(map(repr, _WEIGHTS))}.")
    if beside not in _BESIDE:
        raise InputError(f"no networks named {beside!r} to draw beside. Choose {', '.join(map(repr, _BESIDE))}.")
    alike = _positive(matrix)
    check_size(k, len(alike))
    check_seed(seed)
    draw = np.random.default_rng(seed)
    members = [int(draw.integers(len(alike)))]
    while len(members) < k:
        weights = _WEIGHTS[rule](_BESIDE[beside](alike[members]))
        weights[members] = 0
        members.append(int(draw.choice(len(alike), p=weights / weights.sum())))
    numbers, words = similarity_among(matrix, np.array(members))
    trial = None
    if answers is not None:
        trial = held_out_trial(*matched(matrix, answers).split(0.5, seed), np.array(members), seed)
    return Pick(tuple(matrix.names[i] for i in members), rule, numbers, (words,), trial)


def _positive(matrix: SimilarityMatrix) -> Array:
    values = symmetric_scores(matrix)
    above = pairs(values)[pairs(values) > 0]
    values = np.maximum(values, FLOOR * float(above.mean()) if len(above) else 1.0)
    return values if matrix.larger_is == "more alike" else 1 / values
