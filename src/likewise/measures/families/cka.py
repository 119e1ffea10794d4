"""Centred kernel alignment and its relatives: inner products of centred similarity matrices, at size 1.

They differ in the kernel, and in what is done about the bias that few inputs bring.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import UndefinedError
from likewise.measures.facts import ROTATION, SCALE, SHIFT
from likewise.measures.numerics.kernels import Gaussian, Linear, Margins, roots
from likewise.measures.numerics.minibatch import SMALLEST_BATCH, MinibatchCKA
from likewise.measures.pair import Pair, pair_of
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.views import Activations

COARSE = 1e-3  # share of the terms of an estimate below which they must be exact
LOST = 1e-9  # share below which doubles are not exact enough either
SMALLEST = 1e-280  # below, doubles lose digits
KORNBLITH = "Kornblith et al. 2019, arXiv:1905.00414"


@measure(
    name="cka",
    aliases=("CKA", "linear-cka"),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    kernels=lambda o: (Linear(),),
    matrix=lambda p: p.dot / roots(p.left.dot, p.right.dot),
    source=KORNBLITH,
    shapes="flatten",
)
def cka(pair: Pair) -> float:
    """How far two networks agree on which inputs are alike, by the biased estimator.

    |Xᵀ Y|² / (|Xᵀ X| |Yᵀ Y|) with X (n, d) and Y (n, d') centred by columns and | | the Frobenius norm.
    0: no direction of one correlates with any of the other; 1: equal up to rotation and scale. Biased upwards
    when n is not much larger than d (0.84 for independent noise at n = 100, d = 512): then read
    `cka-debiased`.

    Example:
        >>> f"{likewise.measures.cka(x, x + noise):.3f}"
        '0.540'
    """
    pair.refuse_constant()
    table = pair.table(Linear())
    x, y = table.dot(pair.a, pair.a), table.dot(pair.b, pair.b)
    return table.dot(pair.a, pair.b) / (math.sqrt(x) * math.sqrt(y))


def _debiased(pair: Pair) -> float:
    a, b, table = pair.a, pair.b, pair.table(Linear())
    x, y = table.unbiased(a, a), table.unbiased(b, b)
    if x < COARSE * table.dot(a, a) or y < COARSE * table.dot(b, b):
        a.require_double()
        table = pair.table(Linear(exact=True))  # single precision might not do
        x, y = table.unbiased(a, a), table.unbiased(b, b)
    _refuse_lost(a, x, table.dot(a, a), "Show the networks more inputs.")
    _refuse_lost(b, y, table.dot(b, b), "Show the networks more inputs.")
    return table.unbiased(a, b) / (math.sqrt(x) * math.sqrt(y))


def _plain_hsic(side: Margins) -> Array:
    """The unbiased estimates of networks with themselves; NaN where one has to be looked at closer."""
    return np.where((side.unbiased >= COARSE * side.dot) & (side.dot >= SMALLEST), side.unbiased, np.nan)


def _refuse_lost(rep: Representation, hsic: float, terms: float, remedy: str) -> None:
    """Refuse an unbiased estimate that is below zero, or a small rest of the terms it is made of."""
    if abs(hsic) <= LOST * terms or terms < SMALLEST:
        raise UndefinedError(
            f"the unbiased estimate of the similarity of {rep.name} with itself is lost to rounding: some "
            "inputs are far larger than others. Scale the rows, or leave those out."
        )
    if hsic < 0:
        raise UndefinedError(
            f"the unbiased estimate of the similarity of {rep.name} with itself is not positive. {remedy}"
        )


@measure(
    name="cka-debiased",
    aliases=("debiased-cka", "cka-unbiased"),
    larger_is="more alike",
    bounds=(None, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    rows=4,
    cross=True,
    kernels=lambda o: (Linear(),),
    matrix=lambda p: p.unbiased / roots(_plain_hsic(p.left), _plain_hsic(p.right)),
    source="Song et al. 2012, JMLR 13; Murphy et al. 2024, arXiv:2405.01012",
)
def cka_debiased(pair: Pair) -> float:
    """How far two networks agree on which inputs are alike, about 0 for unrelated ones whatever n and d.

    CKA with the unbiased estimator of HSIC (HSIC1): the diagonals of the Gram matrices are left out and
    their means corrected for. 0: unrelated (a little below is chance); 1: equal up to rotation and scale.

    Example:
        >>> f"{likewise.measures.cka_debiased(x, x + noise):.3f}"
        '0.466'
    """
    pair.refuse_constant()
    return _debiased(pair)


@measure(
    name="cka-minibatch",
    aliases=("minibatch-cka",),
    larger_is="more alike",
    bounds=(None, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    rows=lambda o: 4,
    cost="n·batch·d",
    limits={"batch": (4, None)},
    source="Nguyen et al. 2021, arXiv:2010.15327",
)
def cka_minibatch(pair: Pair, *, batch: int = 256) -> float:
    """Debiased CKA from small batches, for activations that never stand in memory together.

    Sum over batches of HSIC1(X_b, Y_b), each weighted by its rows, divided by the root of the product of
    the sums of HSIC1(X_b, X_b) and HSIC1(Y_b, Y_b): a ratio of sums, never a mean of ratios. Batches are
    taken in the order of the inputs; a last one of fewer than four rows is left out. Approaches
    `cka-debiased` as batches grow, and is the same from one batch of all inputs.

    Options:
        batch: How many inputs a batch holds.

    Example:
        >>> f"{likewise.measures.cka_minibatch(x, x + noise):.3f}"
        '0.466'
    """
    pair.refuse_constant()
    if pair.n <= batch:
        return _debiased(pair)
    sums = MinibatchCKA()
    for start, stop in pair.a.batches(batch):
        if stop - start >= SMALLEST_BATCH:
            sums.add(*([rep.centred_neurons[start:stop]] for rep in (pair.a, pair.b)))
    score = float(sums.cross)
    for rep, [(hsic, terms)] in zip((pair.a, pair.b), sums.self_sums, strict=True):
        _refuse_lost(rep, hsic, terms, "Use larger batches.")
        score /= math.sqrt(hsic)
    return score


@measure(
    name="cka-rbf",
    aliases=("rbf-cka",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="n²·d",
    kernels=lambda o: (Gaussian(o["bandwidth"]),),
    matrix=lambda p: p.centred / roots(p.left.centred, p.right.centred),
    limits={"bandwidth": (1e-3, 1e3)},
    rows=3,
    source=KORNBLITH,
)
def cka_rbf(pair: Pair, *, bandwidth: float = 0.5) -> float:
    """How far two networks agree on which inputs are near each other, with a Gaussian kernel.

    CKA of K_ij = exp(-|x_i - x_j|² / 2 s²), s = bandwidth times the median distance over all pairs of inputs,
    centred, biased. 0: unrelated; 1: the same neighbourhoods. Small bandwidths look at near inputs only.
    Undefined where more than half of the pairs are equal.

    Options:
        bandwidth: Width of the kernel, in median distances between inputs.

    Example:
        >>> f"{likewise.measures.cka_rbf(x, x + noise):.3f}"
        '0.725'
    """
    table = pair.table(Gaussian(bandwidth))
    return table.centred(pair.a, pair.b) / math.sqrt(table.centred(pair.a, pair.a) * table.centred(pair.b, pair.b))


@measure(
    name="cka-deconfounded",
    aliases=("deconfounded-cka", "dcka"),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    source="Cui et al. 2022, arXiv:2202.00095",
)
def cka_deconfounded(pair: Pair, *, confounder: Any) -> float:
    """CKA without what the inputs themselves already have in common.

    `confounder` (n, p) holds the inputs, or their features. With centred Gram matrices K, L and C, what C
    explains of K and L by least squares is taken off, K - C <K, C> / <C, C>, and CKA taken of the rest.
    1: equal beyond the inputs; 0: nothing in common but the inputs.

    Options:
        confounder: The inputs or their features, (inputs, anything).

    Example:
        >>> f"{likewise.measures.cka_deconfounded(x, x + noise, confounder=x + 2 * noise):.3f}"
        '0.717'
    """
    if not isinstance(confounder, Activations):
        confounder = Activations(confounder, name="confounder")
    third = pair_of(confounder.to(pair.a.values.device), pair.a.view).a
    third = third.double if pair.double is pair else third
    pair.refuse_constant()
    kl, kc, lc = (
        Pair(x, y).table(Linear(exact=True)).dot(x, y) for x, y in ((pair.a, pair.b), (pair.a, third), (pair.b, third))
    )
    kk, ll, cc = pair.a.energy**2, pair.b.energy**2, third.energy**2
    left, right = kk - kc**2 / cc, ll - lc**2 / cc
    if min(left / kk, right / ll) < COARSE:
        pair.a.require_double()
    if min(left / kk, right / ll) < LOST:
        raise UndefinedError(f"the confounder explains all of one side of {pair}; nothing is left.")
    return (kl - kc * lc / cc) / math.sqrt(left * right)
