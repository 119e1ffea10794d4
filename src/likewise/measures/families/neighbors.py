"""Neighbour measures: two networks are alike if each input keeps the same neighbours.

All read the same neighbour lists, by cosine but for `cknna`, which takes inner products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.facts import ROTATION, SCALE
from likewise.measures.numerics.algebra import hsic1
from likewise.measures.numerics.neighbor_lists import inner_rows, neighbor_lists
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.saturation import all_neighbors
from likewise.measures.workspace import quantity


@quantity
def _common(pair: Pair, k: int, metric: str = "cosine") -> Tensor:
    """Which place in one list holds the same input as which in the other, (n, k, k)."""
    return neighbor_lists(pair.a, k, metric)[:, :, None] == neighbor_lists(pair.b, k, metric)[:, None, :]


def _rows_needed(options: Mapping[str, Any]) -> int:
    return int(options["k"]) + 1


FACTS: dict[str, Any] = {
    "larger_is": "more alike",
    "bounds": (0, 1),
    "identity": 1,
    "invariant_to": {ROTATION, SCALE},
    "cost": "n²·d",
    "always_double": True,
    "rows": _rows_needed,
    "limits": {"k": (1, None)},
}


@measure(
    name="jaccard",
    aliases=("Jaccard",),
    saturates=lambda o: all_neighbors(o["k"]),
    source="Wang et al. 2022, arXiv:2012.11311",
    **FACTS,
)
def jaccard(pair: Pair, *, k: int = 10) -> float:
    """How many of each input's nearest neighbours are the same in both networks.

    Mean over inputs of |N ∩ N'| / |N ∪ N'|, N and N' the k nearest by cosine. 1: the same neighbours
    everywhere; unrelated networks score about k / 2n.

    Options:
        k: How many neighbours of each input count.

    Example:
        >>> f"{likewise.measures.jaccard(x, x + noise):.3f}"
        '0.171'
    """
    return _jaccard(_common(pair, k))


def _jaccard(common: Tensor) -> float:
    shared = common.sum(dim=(1, 2)).double()
    return float((shared / (2 * common.shape[1] - shared)).mean())


RESI_DIFFERS = "The nearest of k + 1 is dropped as the point itself, wrongly for zero or equal rows."


@jaccard.variant("resi", deviation=RESI_DIFFERS)
def jaccard_resi(pair: Pair, *, k: int = 10) -> float:
    """How many of each input's nearest neighbours are the same, with the reference's lists."""
    return _jaccard(_common(pair, k, "reference"))


@measure(
    name="mutual-knn",
    aliases=("mknn",),
    saturates=lambda o: all_neighbors(o["k"]),
    source="Huh et al. 2024, arXiv:2405.07987",
    **FACTS,
)
def mutual_knn(pair: Pair, *, k: int = 10) -> float:
    """What share of each input's nearest neighbours is the same in both networks.

    Mean over inputs of |N ∩ N'| / k, N and N' the k nearest by cosine. 1: the same neighbours everywhere;
    unrelated networks score about k / n.

    Options:
        k: How many neighbours of each input count.

    Example:
        >>> f"{likewise.measures.mutual_knn(x, x + noise):.3f}"
        '0.281'
    """
    return float(_common(pair, k).sum(dim=(1, 2)).double().mean() / k)


@measure(name="rank-similarity", aliases=("RankSim",), source="Wang et al. 2022, arXiv:2012.11311", **FACTS)
def rank_similarity(pair: Pair, *, k: int = 10) -> float:
    """Whether shared neighbours also stand in the same order.

    For each input, over its common neighbours with places r and r' (from 1): the sum of
    2 / ((1 + |r - r'|) (r + r')), divided by 1 + 1/2 + ... + 1/(number in common); 0 if none; then the mean. 1:
    the same neighbours in the same order.

    Options:
        k: How many neighbours of each input count.

    Example:
        >>> f"{likewise.measures.rank_similarity(x, x + noise):.3f}"
        '0.157'
    """
    return _rank_similarity(_common(pair, k))


def _rank_similarity(common: Tensor) -> float:
    k = common.shape[1]
    rank = torch.arange(1, k + 1, dtype=torch.float64, device=common.device)
    weight = 2 / ((1 + (rank[:, None] - rank).abs()) * (rank[:, None] + rank))
    shared = common.sum(dim=(1, 2))
    harmonic = torch.cat([rank.new_ones(1), rank.reciprocal().cumsum(0)])
    return float(((common * weight).sum(dim=(1, 2)) / harmonic[shared]).mean())


@rank_similarity.variant("resi", deviation=RESI_DIFFERS)
def rank_similarity_resi(pair: Pair, *, k: int = 10) -> float:
    """Whether shared neighbours also stand in the same order, with the reference's lists."""
    return _rank_similarity(_common(pair, k, "reference"))


@measure(
    name="second-order-cosine",
    shared_variance=0.0,
    aliases=("2nd-Cos",),
    source="Hamilton et al. 2016, arXiv:1606.02821",
    **{**FACTS, "bounds": (-1, 1)},
)
def second_order_cosine(pair: Pair, *, k: int = 10) -> float:
    """Whether each input stands equally near to its neighbours in both networks.

    For each input, the vectors of its cosine similarities to the union of both neighbour lists, in either
    network; the cosine between them; then the mean. 1: the same similarities; 0: unrelated.

    Options:
        k: How many neighbours of each input count.

    Example:
        >>> f"{likewise.measures.second_order_cosine(x, x + noise):.3f}"
        '0.494'
    """
    return _second_order(pair, k)


@second_order_cosine.variant(
    "resi",
    bounds=(0, 1),
    deviation="Cosine distances for similarities: 0.8 to 0.99 for unrelated data. " + RESI_DIFFERS,
)
def second_order_cosine_resi(pair: Pair, *, k: int = 10) -> float:
    """The same with cosine distances 1 - cos."""
    return _second_order(pair, k, "reference")


def _second_order(pair: Pair, k: int, metric: str = "cosine") -> float:
    columns = torch.cat([neighbor_lists(pair.a, k, metric), neighbor_lists(pair.b, k, metric)], dim=1)
    counted = torch.ones(columns.shape, dtype=torch.bool, device=columns.device)
    counted[:, k:] = ~_common(pair, k, metric).any(dim=1)
    x, y = (rep.cosines_at(columns) for rep in (pair.a, pair.b))
    if metric == "reference":
        itself = columns == torch.arange(pair.n, device=columns.device)[:, None]
        x, y = (torch.where(itself, 0.0, (1 - v).clamp(0, 2)) for v in (x, y))
    x, y = x * counted, y * counted
    norms = torch.linalg.vector_norm(x, dim=1) * torch.linalg.vector_norm(y, dim=1)
    empty = int((norms <= 1e-14).sum())
    if empty:
        raise UndefinedError(
            f"second-order-cosine is undefined for {pair}: at {empty} inputs all similarities to the "
            "neighbours are zero. Use jaccard, or a wider layer."
        )
    return float(((x * y).sum(dim=1) / norms).mean())


CKNNA: dict[str, Any] = {**FACTS, "bounds": (-1, 1), "shared_variance": 0.0, "version": 3}


@measure(name="cknna", source="Huh et al. 2024, arXiv:2405.07987", **CKNNA)
def cknna(pair: Pair, *, k: int = 10) -> float:
    """CKA that looks only at inputs which are neighbours in both networks.

    a(K, L) / sqrt(a(K, K) a(L, L)), with a(K, L) the sum over pairs i, j, where j is among the k nearest of i in
    both networks, of (K_ij - mean of K_i) (L_ij - mean of L_i), K and L the inner products of the rows as they
    are, by which neighbours are found too. 1: the same neighbours at the same similarities; 0: no
    neighbours in common. The paper scales rows to length 1 beforehand, which this does not: large rows
    are everybody's neighbours. variant="platonic" is the authors' code, which estimates otherwise.

    Options:
        k: How many neighbours of each input count.

    Example:
        >>> f"{likewise.measures.cknna(x, x + noise):.3f}"
        '0.303'
    """
    lists = [neighbor_lists(rep, k, "inner") for rep in (pair.a, pair.b)]
    inputs, here, there = _shared(lists)
    x, y = (_inner_at(rep, k) for rep in (pair.a, pair.b))
    norms = [float(torch.linalg.vector_norm(products)) for products in (x, y)]
    if min(norms) == 0:
        raise UndefinedError(
            f"cknna is undefined for {pair}: the nearest inputs are no more alike than others. Use cka, or a larger k."
        )
    return float((x[inputs, here] * y[inputs, there]).sum()) / norms[0] / norms[1]


def _shared(lists: list[Tensor]) -> tuple[Tensor, ...]:
    """Inputs with a neighbour in both lists, and its places in them."""
    return (lists[0][:, :, None] == lists[1][:, None, :]).nonzero(as_tuple=True)


@quantity(permuted="rows")
def _inner_at(rep: Representation, k: int, raw: bool = False) -> Tensor:
    """Inner products of each row with its k nearest by them, less the row's mean unless `raw`."""
    columns = neighbor_lists(rep, k, "inner")
    rows = torch.cat([inner_rows(rep, i, j).gather(1, columns[i:j]) for i, j in rep.blocks(4)])
    return rows + (rep.values @ rep.mean)[:, None] if raw else rows


@cknna.variant(
    "platonic",
    deviation="The authors' code: the unbiased HSIC of K and L with all but the shared neighbours set to 0, and "
    "1e-6 added to the divisor. The masks are not symmetric, so the score is not either.",
    rows=lambda o: max(int(o["k"]) + 1, 4),
    limits={"k": (2, None)},
    bounds=(None, None),
    symmetric=False,
    identity=None,
    invariant_to=frozenset({ROTATION}),
)
def cknna_platonic(pair: Pair, *, k: int = 10) -> float:
    """CKA of the parts of two Gram matrices that belong to shared neighbours, as the authors compute it.

    HSIC1(M K, M L) / (sqrt(HSIC1(M K, M K) HSIC1(M L, M L)) + 1e-6), M masking all but the k nearest, by inner
    product, in both networks of each product. The paper scales rows to length 1 beforehand.
    """
    lists = [neighbor_lists(rep, k, "inner") for rep in (pair.a, pair.b)]
    values = [_inner_at(rep, k, True) for rep in (pair.a, pair.b)]
    inputs, here, there = _shared(lists)
    both = _masked_hsic(pair.n, inputs, lists[0][inputs, here], values[0][inputs, here], values[1][inputs, there])
    everyone = torch.arange(pair.n, device=inputs.device).repeat_interleave(k)
    hsic = [
        _masked_hsic(pair.n, everyone, near.flatten(), at.flatten(), at.flatten())
        for near, at in zip(lists, values, strict=True)
    ]
    if min(hsic) <= 0:
        raise UndefinedError(
            f"cknna[platonic] is undefined for {pair}: the unbiased estimate of a network's own "
            "similarity is not positive. Use the default variant, or a larger k."
        )
    size = math.sqrt(hsic[0]) * math.sqrt(hsic[1])
    power = max(-500, min(pair.a.exponent + pair.b.exponent, 500))
    return both / (size + 1e-6 * 4.0**-power)


def _masked_hsic(n: int, rows: Tensor, columns: Tensor, k: Tensor, l: Tensor) -> float:
    """The unbiased HSIC of Song et al. 2012 of two matrices that are 0 but at some places off the diagonal."""
    i, j, x, y = (tensor.cpu().numpy() for tensor in (rows, columns, k, l))
    forth, back = i * n + j, j * n + i
    order = np.argsort(forth)
    at = np.minimum(np.searchsorted(forth, back, sorter=order), max(len(order) - 1, 0))
    mirrored = order[at] if len(order) else order
    product = float((x * y[mirrored])[forth[mirrored] == back].sum())
    middle = float(np.bincount(j, x, n) @ np.bincount(i, y, n))
    return hsic1(product, middle, float(x.sum() * y.sum()), n) / (n * (n - 3))
