"""Neighbour measures: two networks are alike if each input keeps the same neighbours.

All read the same neighbour lists, so the search runs once per network however many of them are asked for.
Neighbours are by cosine. Ties are broken by input order; duplicates of a point are its neighbours, the
point itself never is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.facts import ROTATION, SCALE, SHIFT
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation

TIE = 1e-12  # similarities nearer than this differ by rounding only


def nearest(rep: Representation, k: int, metric: str = "cosine") -> Tensor:
    """The k nearest other inputs of each, nearest first, (n, k)."""

    def compute() -> Tensor:
        rep.size  # noqa: B018  refuses a constant representation
        return torch.cat([_nearest(rep, k, metric, start, stop) for start, stop in rep.blocks(4)])

    return rep.kept(("nearest", k, metric), compute)


def _nearest(rep: Representation, k: int, metric: str, start: int, stop: int) -> Tensor:
    if metric == "reference":
        return _nearest_of_reference(rep.cosine_rows(start, stop), k)
    if metric == "cosine":
        near = rep.cosine_rows(start, stop)
    else:
        near = rep.squared_distance_rows(start, stop).neg_()
        near /= float(rep.squares.max())
    near.diagonal(start).fill_(-torch.inf)
    found = near.topk(min(k + 1, rep.n - 1), dim=1)
    tied = (found.values[:, :-1] - found.values[:, 1:] < TIE).any(dim=1)
    lists = found.indices[:, :k]
    if bool(tied.any()):
        rounded = (near[tied] / TIE).round()
        lists[tied] = rounded.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return lists


def _nearest_of_reference(cosines: Tensor, k: int) -> Tensor:
    """The first of k + 1 dropped in the belief that it is the point itself."""
    rounded = (cosines / TIE).round_().mul_(TIE)  # what ties in exact arithmetic ties here
    distances = (1 - rounded).clamp_(0, 2).cpu().numpy()
    lists = np.argpartition(distances, k, axis=1)[:, : k + 1]
    order = np.argsort(np.take_along_axis(distances, lists, axis=1), axis=1)
    return torch.from_numpy(np.take_along_axis(lists, order, axis=1)[:, 1:]).to(cosines.device)


def _common(pair: Pair, k: int, metric: str = "cosine") -> Tensor:
    """Which place in one list holds the same input as which in the other, (n, k, k)."""
    return pair.kept(
        ("common", k, metric),
        lambda: nearest(pair.a, k, metric)[:, :, None] == nearest(pair.b, k, metric)[:, None, :],
    )


def _enough(options: Mapping[str, Any]) -> int:
    return int(options["k"]) + 1


FACTS: dict[str, Any] = {
    "family": "neighbors",
    "larger_is": "more alike",
    "bounds": (0, 1),
    "identity": 1,
    "invariant_to": {ROTATION, SCALE},
    "cost": "n²·d",
    "rows": _enough,
    "limits": {"k": (1, None)},
}


@measure(name="jaccard", aliases=("Jaccard",), source="Wang et al. 2022, arXiv:2012.11311", **FACTS)
def jaccard(pair: Pair, *, k: int = 10) -> float:
    """How many of each input's nearest neighbours are the same in both networks.

    Mean over inputs of |N ∩ N'| / |N ∪ N'|, N and N' the k nearest by cosine. 1: the same neighbours
    everywhere; unrelated networks score about k / 2n.
    """
    return _jaccard(_common(pair, k))


def _jaccard(common: Tensor) -> float:
    shared = common.sum(dim=(1, 2)).double()
    return float((shared / (2 * common.shape[1] - shared)).mean())


RESI_DIFFERS = (
    "The nearest of k + 1 is dropped as the point itself, wrongly for zero or equal rows."
)


@jaccard.variant("resi", differs=RESI_DIFFERS)
def jaccard_resi(pair: Pair, *, k: int = 10) -> float:
    """How many of each input's nearest neighbours are the same, with the reference's lists."""
    return _jaccard(_common(pair, k, "reference"))


@measure(name="mutual-knn", aliases=("mknn",), source="Huh et al. 2024, arXiv:2405.07987", **FACTS)
def mutual_knn(pair: Pair, *, k: int = 10) -> float:
    """What share of each input's nearest neighbours is the same in both networks.

    Mean over inputs of |N ∩ N'| / k, N and N' the k nearest by cosine. 1: the same neighbours everywhere;
    unrelated networks score about k / n.
    """
    return float(_common(pair, k).sum(dim=(1, 2)).double().mean() / k)


@measure(
    name="rank-similarity",
    aliases=("RankSim",),
    source="Wang et al. 2022, arXiv:2012.11311",
    **FACTS,
)
def rank_similarity(pair: Pair, *, k: int = 10) -> float:
    """Whether shared neighbours also stand in the same order.

    For each input, over its common neighbours with places r and r' (from 1): the sum of
    2 / ((1 + |r - r'|) (r + r')), divided by 1 + 1/2 + ... + 1/(number in common); 0 if none; then the mean. 1:
    the same neighbours in the same order.
    """
    return _rank_similarity(_common(pair, k))


def _rank_similarity(common: Tensor) -> float:
    k = common.shape[1]
    place = torch.arange(1, k + 1, dtype=torch.float64, device=common.device)
    weight = 2 / ((1 + (place[:, None] - place).abs()) * (place[:, None] + place))
    shared = common.sum(dim=(1, 2))
    harmonic = torch.cat([place.new_ones(1), place.reciprocal().cumsum(0)])
    return float(((common * weight).sum(dim=(1, 2)) / harmonic[shared]).mean())


@rank_similarity.variant("resi", differs=RESI_DIFFERS)
def rank_similarity_resi(pair: Pair, *, k: int = 10) -> float:
    """Whether shared neighbours also stand in the same order, with the reference's lists."""
    return _rank_similarity(_common(pair, k, "reference"))


@measure(
    name="second-order-cosine", aliases=("2nd-Cos",), source="Hamilton et al. 2016, arXiv:1606.02821",
    **{**FACTS, "bounds": (-1, 1)},
)  # fmt: skip
def second_order_cosine(pair: Pair, *, k: int = 10) -> float:
    """Whether each input stands equally near to its neighbours in both networks.

    For each input, the vectors of its cosine similarities to the union of both neighbour lists, in either
    network; the cosine between them; then the mean. 1: the same similarities; 0: unrelated.
    """
    return _second_order(pair, k)


@second_order_cosine.variant(
    "resi", bounds=(0, 1),
    differs="Cosine distances for similarities: 0.8 to 0.99 for unrelated data. " + RESI_DIFFERS,
)  # fmt: skip
def second_order_cosine_resi(pair: Pair, *, k: int = 10) -> float:
    """The same with cosine distances 1 - cos."""
    return _second_order(pair, k, "reference")


def _second_order(pair: Pair, k: int, metric: str = "cosine") -> float:
    columns = torch.cat([nearest(pair.a, k, metric), nearest(pair.b, k, metric)], dim=1)
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


@measure(
    name="cknna", source="Huh et al. 2024, arXiv:2405.07987",
    **{**FACTS, "bounds": (-1, 1), "invariant_to": {ROTATION, SCALE, SHIFT}},
)  # fmt: skip
def cknna(pair: Pair, *, k: int = 10) -> float:
    """CKA that looks only at inputs which are neighbours in both networks.

    a(K, L) / sqrt(a(K, K) a(L, L)), with a(K, L) the sum over pairs i, j where j is among the k nearest of i in
    both networks (by inner product of the centred rows) of K_ij L_ij, K and L the centred Gram matrices. 1: the
    same neighbours at the same similarities; 0: no neighbours in common.
    """
    lists = [_largest(rep, k) for rep in (pair.a, pair.b)]
    shared = lists[0][:, :, None] == lists[1][:, None, :]
    inputs, place, other = shared.nonzero(as_tuple=True)
    found = [_gram_at(rep, near) for rep, near in zip((pair.a, pair.b), lists, strict=True)]
    both = float((found[0][inputs, place] * found[1][inputs, other]).sum())
    return both / math.sqrt(float(found[0].square().sum()) * float(found[1].square().sum()))


def _largest(rep: Representation, k: int) -> Tensor:
    """The k other inputs with the largest inner product of centred rows."""

    def compute() -> Tensor:
        rep.size  # noqa: B018  refuses a constant representation
        lists = []
        for start, stop in rep.blocks(4):
            near = rep.gram_rows(start, stop).clone()
            near.diagonal(start).fill_(-torch.inf)
            lists.append(near.topk(k, dim=1).indices)
        return torch.cat(lists)

    return rep.kept(("largest", k), compute)


def _gram_at(rep: Representation, columns: Tensor) -> Tensor:
    def compute() -> Tensor:
        parts = [rep.gram_rows(i, j).gather(1, columns[i:j]) for i, j in rep.blocks(4)]
        return torch.cat(parts)

    return rep.kept(("gram at", columns.shape[1]), compute)
