"""The nearest inputs of every input, with care for ties and rounding.

The search runs once per network however many measures ask for it. Ties are broken by input order;
duplicates of a point are its neighbours, the point itself never is.

Ties are kept beside the lists: with the inputs in another order, they are broken again. What
counts as a tie is a matter of each row's own scale, its distance to the k-th neighbour. Where that is so small
that a matrix product has lost the digits, distances are taken from differences of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from likewise.measures.numerics.distances import ROUNDING, directions, distinct, squares_by_difference
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, quantity
from likewise.views import Activations

TIE = 1e-12  # what differs by less than this share of a row's own scale differs by rounding only
CROWDED = 1e-5  # squared distances this small beside the rows have lost digits in a matrix product
# neighbours (n, k); rows where a tie decides, how many candidates each has; these, and the tie each is in
Lists = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def neighbor_lists(rep: Representation, k: int, metric: str = "cosine") -> Tensor:
    """The k nearest other inputs of each, nearest first, (n, k)."""
    return _lists(rep, k, metric)[0]


@quantity(permuted=lambda rep, lists, index: _reorder(lists, index))
def _lists(rep: Representation, k: int, metric: str) -> Lists:
    """The neighbours with their ties."""
    rep.refuse_constant(closely=True)
    if metric == "cosine" and _narrow(rep):
        return _search(_unit_length(rep), k, "euclidean")
    return _search(rep, k, metric)


def _search(rep: Representation, k: int, metric: str) -> Lists:
    search = _reference_lists if metric == "reference" else _exact_lists
    blocks: list[Lists] = []
    held, room = 0, rep.workspace.limit // 32
    for start, stop in rep.blocks(4):
        lists, tied, widths, members, groups = search(rep, k, metric, start, stop)
        held += 8 * members.numel()
        if held > room:  # drop tie lists that exceed the memory limit: in another order they are searched for again
            blocks = [(*block[:3], members[:0], groups[:0]) for block in blocks]
            members, groups = members[:0], groups[:0]
        blocks.append((lists, tied, widths, members, groups))
    lists, tied, widths, members, groups = map(torch.cat, zip(*blocks, strict=True))
    return lists, tied, widths, members, groups


def _exact_lists(rep: Representation, k: int, metric: str, start: int, stop: int) -> Lists:
    near = _SIMILARITIES[metric](rep, start, stop)
    near.diagonal(start).fill_(-torch.inf)
    values, lists = near.topk(min(k + 1, rep.n - 1), dim=1)
    tolerance, crowded = _scales(rep, metric, start, values[:, k - 1], lists[:, k - 1])
    if bool(crowded.any()):
        rows = crowded.nonzero()[:, 0]
        near[rows] = _by_difference(rep, metric, start + rows).neg_()
        near.diagonal(start).fill_(-torch.inf)
        values[rows], lists[rows] = near[rows].topk(values.shape[1], dim=1)
        size = rep.norms[start + rows] if metric == "euclidean" else 1.0
        tolerance[rows] = _rounding(-values[rows, k - 1], size)
    tied = (values[:, :-1] - values[:, 1:] <= tolerance[:, None]).any(dim=1).nonzero()[:, 0]
    widths, members, groups = _candidates(near[tied], tolerance[tied], values[tied, k - 1], k)
    lists = lists[:, :k]
    everyone = torch.arange(rep.n, device=lists.device)
    lists[tied] = _break_ties(widths, members, groups, everyone, k)
    return lists, start + tied, widths, members, groups


# --- similarities, and what in them is rounding -----------------------------------------------------


_SIMILARITIES: Mapping[str, Callable[[Representation, int, int], Tensor]] = {
    "cosine": lambda rep, start, stop: rep.cosine_rows(start, stop),
    "euclidean": lambda rep, start, stop: rep.squared_distance_rows(start, stop).neg_(),
    "inner": lambda rep, start, stop: inner_rows(rep, start, stop),
}


def _scales(rep: Representation, metric: str, start: int, kth: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """How far similarities differ by rounding in each row, and which rows need more digits.

    `kth` is the similarity to the k-th neighbour, `at` which input that is.
    """
    eps = torch.finfo(kth.dtype).eps
    rows = slice(start, start + kth.numel())
    if metric == "inner":
        shaken = TIE * rep.squares.sqrt() + ROUNDING * eps * (rep.norms + rep.norm / rep.n**0.5)
        return rep.norms[rows] * shaken[at], torch.zeros_like(at) > 0
    if metric == "cosine":
        square = (2 - 2 * kth).clamp_(min=0)
        return _rounding(square, 1.0) / 2 + 4 * ROUNDING * eps, square < 2 * CROWDED
    square, both = -kth, rep.squares[rows] + rep.squares[at]
    tolerance = _rounding(square, rep.norms[rows]) + ROUNDING * eps * both
    return tolerance, square < CROWDED * both


def inner_rows(rep: Representation, start: int, stop: int) -> Tensor:
    """Inner products of some rows with all, less each row's mean over all: <x_i, x_j - mean>."""
    return rep.values[start:stop] @ rep.centred_neurons.T


def _rounding(square: Tensor, norms: Tensor | float) -> Tensor:
    """By how much squared distances up to `square` may differ where rows of such norms are rounded."""
    shaken = ROUNDING * torch.finfo(square.dtype).eps * norms
    return TIE * square + 2 * shaken * square.sqrt() + shaken**2


def _by_difference(rep: Representation, metric: str, rows: Tensor) -> Tensor:
    """Squared distances of some rows to all, between directions unless they are Euclidean."""
    if metric == "euclidean":
        return squares_by_difference(_distinct_rows(rep), rows)
    squares = squares_by_difference(_distinct_directions(rep), rows)
    squares[:, ~rep.directed] = 2  # a zero row has cosine 0 with every other
    squares[~rep.directed[rows]] = 2
    return squares


@quantity
def _distinct_rows(rep: Representation) -> tuple[Tensor, Tensor]:
    return distinct(rep.values)


@quantity
def _distinct_directions(rep: Representation) -> tuple[Tensor, Tensor]:
    return distinct(directions(rep))


@quantity
def _narrow(rep: Representation) -> bool:
    """Whether all inputs point nearly the same way, so that cosines say little in their digits."""
    if not bool(rep.directed.all()):
        return False
    mean = rep.norms.reciprocal() @ rep.values / rep.n
    return 2 - 2 * float(mean @ mean) < 10 * CROWDED


def _unit_length(rep: Representation) -> Representation:
    """The rows at length 1: nearest in distance is there what is nearest by cosine."""
    view = Activations(directions(rep), name=rep.view.name)
    return Representation(view, Workspace(rep.workspace.limit // 4))


# --- ties ---------------------------------------------------------------------------------------------


def _candidates(near: Tensor, tolerance: Tensor, kth: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each row its inputs down to the end of the tie at the k-th place, and which tie each is in.

    Numbers tie with the next smaller one if they differ by rounding only. Returns how many each row
    has, then those of all rows in one, nearest first.
    """
    if not near.numel():
        none = torch.empty(0, dtype=torch.int32, device=near.device)
        return none.long(), none, none
    most = near.shape[1]
    enough = int((near >= (kth - 2 * tolerance)[:, None]).sum(dim=1).max()) + 1
    for width in (min(enough, most), most):
        values, members = near.topk(width, dim=1)
        apart = values[:, :-1] - values[:, 1:] > tolerance[:, None]
        groups = torch.nn.functional.pad(apart.int().cumsum(dim=1, dtype=torch.int32), (1, 0))
        inside = groups <= groups[:, k - 1, None]
        if not bool(inside[:, -1].any()):
            break
    inside &= values > -torch.inf
    return inside.sum(dim=1), members[inside].int(), groups[inside]


def _break_ties(widths: Tensor, members: Tensor, groups: Tensor, position: Tensor, k: int) -> Tensor:
    """The k nearest of each row with ties, input i being at position[i] in the order of inputs."""
    lists = torch.empty(widths.numel(), k, dtype=torch.long, device=position.device)
    ends, n = widths.cumsum(0), position.numel()
    sizes = widths.double().log2().ceil()  # rows of about the same width are padded and sorted together
    for size in set(sizes.cpu().tolist()):
        rows = (sizes == size).nonzero()[:, 0]
        reach = torch.arange(int(widths[rows].max()), device=position.device)
        at = (ends - widths)[rows, None] + reach
        beyond = reach >= widths[rows, None]
        at[beyond] = 0
        order = groups[at].long() * n + position[members[at]]
        order[beyond] = n * n
        lists[rows] = order.topk(k, dim=1, largest=False).values % n
    return lists


def _reorder(whole: Lists, index: Tensor) -> Lists | None:
    """The lists with the inputs in another order, as a new search would find them; None if it has to."""
    lists, tied, widths, members, groups = whole
    position = torch.argsort(index)
    moved = position[lists[index]]
    if tied.numel():
        if not members.numel():
            return None
        moved[position[tied]] = _break_ties(widths, members, groups, position, lists.shape[1])
    return moved, tied[:0], widths[:0], members[:0], groups[:0]


def _reference_lists(rep: Representation, k: int, metric: str, start: int, stop: int) -> Lists:
    """The first of k + 1 dropped in the belief that it is the point itself; ties left to chance."""
    cosines = rep.cosine_rows(start, stop)
    # what ties in exact arithmetic ties here
    distances = cosines.div_(TIE).round_().mul_(-TIE).add_(1).clamp_(0, 2)
    values, lists = distances.topk(min(k + 2, rep.n), dim=1, largest=False)
    crowded = (values[:, k] < CROWDED).nonzero()[:, 0]
    if crowded.numel():
        halves = _by_difference(rep, "cosine", start + crowded) / 2
        grid = _rounding(halves.kthvalue(k + 1, dim=1).values, 1.0)[:, None]
        distances[crowded] = (halves / grid).round_().mul_(grid).clamp_(0, 2)
        values[crowded], lists[crowded] = distances[crowded].topk(values.shape[1], dim=1, largest=False)
    tied = (values[:, :-1] == values[:, 1:]).any(dim=1).nonzero()[:, 0]
    lists = lists[:, : k + 1]
    lists[tied] = _first_of_reference(distances[tied], k)
    none = torch.empty(0, dtype=torch.int32, device=distances.device)
    return lists[:, 1:], start + tied, 0 * tied, none, none


def _first_of_reference(distances: Tensor, k: int) -> Tensor:
    """The k + 1 smallest of each row in the order of numpy's search, which the reference leaves ties to."""
    array = distances.cpu().numpy()
    lists = np.argpartition(array, k, axis=1)[:, : k + 1]
    order = np.argsort(np.take_along_axis(array, lists, axis=1), axis=1)
    return torch.from_numpy(np.take_along_axis(lists, order, axis=1)).to(distances.device)
