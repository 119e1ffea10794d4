"""What chance gives: networks with the inputs of one side shuffled, and their scores.

Networks that share nothing but the classes of the inputs are alike beyond chance, and rightly so. Whether they
share more is asked by shuffling each input among those of its own class only.

Shuffled inputs are no null for a score that takes a confounder off: they also undo what ties each network to
the confounder, and taking its Gram matrix off leaves a residue of that in both networks. So every network is split
into what functions of the confounder explain and the rest, and only the rest is shuffled: in the
coordinates of the space that the explained part leaves over, with random signs, where noise is exchangeable
(for the linear case: Huh & Jhun 2001, Random permutation testing in multiple linear regression).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise.comparison.pairs import Base, attempt, score_items, score_table
from likewise.comparison.units import Units, units_of
from likewise.errors import UndefinedError
from likewise.measures.function import Measure
from likewise.measures.numerics.algebra import svd
from likewise.measures.numerics.kernels import InnerProducts, Kernel
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.resampling import permuted_networks
from likewise.measures.workspace import Workspace
from likewise.views import Activations

SHARE = 0.8  # of the space of functions on the inputs that the confounder may explain
LEAST = 8  # dimensions that must be left to shuffle in, and a tenth of the inputs


def null_draws(pair: Pair, measure: Measure, permutations: int, seed: int, within: Any = None) -> Iterator[float]:
    """Scores of a pair with the inputs of its second side shuffled, one after another; callers may stop early.

    `within` as in `calibrate`. Nothing for a measure that does not compare input by input.
    """
    if not measure.info.paired:
        return
    units = units_of([pair.a.view, pair.b.view], measure, within=within)
    pair.a.workspace.resampled = pair.b.workspace.resampled = True
    attempt(measure, pair)  # what the pair shares with its shuffles is there from now on
    try:
        shuffles = shuffled_networks(measure, [pair.a], [pair.b], pair.tables, units, range(permutations), seed)
        for (other,), tables in shuffles:
            yield attempt(measure, Pair(pair.a, other, tables))[0]
    except UndefinedError:  # a confounder that explains everything
        yield from [float("nan")] * permutations


def shuffled_networks(
    measure: Measure,
    left: Sequence[Representation],
    right: Sequence[Representation],
    tables: Mapping[Kernel, InnerProducts],
    units: Units,
    numbers: Sequence[int],
    seed: int,
) -> Iterator[tuple[Sequence[Representation], dict[Kernel, InnerProducts]]]:
    """The right networks in the shuffles of some numbers, and the inner products of each with the left ones."""
    confounder = measure.options.get("confounder")
    if confounder is not None:
        if units.clustered or units.memory:
            raise UndefinedError(
                f"{measure.name} has no null for inputs that belong together: what a confounder leaves is shuffled "
                "input by input. Show one input of every cluster."
            )
        null = ConfounderNull(confounder, units.within)
        for number in numbers:
            rng = np.random.default_rng([seed, number])
            yield [null.shuffle(rep, rng) for rep in right], {}
        return
    device = right[0].values.device
    units.check_orders()
    selected = set(numbers)
    for number, order in enumerate(units.orders(max(numbers, default=-1) + 1, seed)):
        if number in selected:
            yield permuted_networks(measure.kernels, tables, left, right, torch.from_numpy(order).to(device))


@dataclass(frozen=True)
class Shuffles:
    """Inputs of the second network of every pair in a random order."""

    units: Units
    permutations: int
    seed: int

    @property
    def count(self) -> int:
        """How many there are: of a series, no more than it has shifts."""
        return min(self.permutations, self.units.count - 1) if self.units.memory else self.permutations

    @property
    def facts(self) -> tuple[Any, ...]:
        """All that a shuffle depends on beside its number."""
        return "shuffles", self.units, self.seed

    def tables(self, base: Base, numbers: Sequence[int]) -> Iterator[Array]:
        """Scores of all pairs in some of the shuffles."""
        networks = shuffled_networks(base.measure, base.reps, base.reps, base.tables, self.units, numbers, self.seed)
        for others, shared in networks:
            yield score_table(base.measure, base.reps, others, shared)


def layer_nulls(
    views: Sequence[Mapping[str, Activations]],
    measure: Measure,
    units: Units,
    permutations: int,
    seed: int,
    limit: int,
) -> Array:
    """Scores of all layers of one network with those of another, whose units are shuffled for all layers alike."""
    workspace = Workspace(limit, networks=sum(map(len, views)), resampled=True)
    left, right = ([Representation(view, workspace) for view in side.values()] for side in views)
    tables: dict[Kernel, InnerProducts] = {}
    items = [(0, i, j) for i in range(len(left)) for j in range(len(right))]
    deque(score_items(items, [measure], left, right, tables), maxlen=0)  # what shuffles take by index
    scores = []
    for others, shared in shuffled_networks(measure, left, right, tables, units, range(permutations), seed):
        row = [result.value for _, result in score_items(items, [measure], left, others, shared)]
        scores.append(np.reshape(row, (len(left), len(right))))
    return np.array(scores)


class ConfounderNull:
    """Networks with what a confounder does not explain of them shuffled."""

    def __init__(self, confounder: Any, groups: np.ndarray | None = None) -> None:
        values = _values(confounder)
        explained = _explained(values, groups)
        frame = torch.linalg.qr(explained, mode="complete").Q
        self._inside, self._outside = frame.tensor_split([explained.shape[1]], dim=1)
        self._splits: dict[int, tuple[Tensor, Tensor]] = {}

    def shuffle(self, rep: Representation, rng: np.random.Generator) -> Representation:
        """The network with the unexplained part in another order."""
        fitted, rest = self._split(rep)
        order = torch.from_numpy(rng.permutation(rest.shape[0]))
        signs = torch.from_numpy(rng.choice([-1.0, 1.0], size=rest.shape[0]))
        values = fitted + self._outside @ (rest[order] * signs[:, None])
        return Representation(Activations(values.to(rep.values), name=rep.view.name))

    def _split(self, rep: Representation) -> tuple[Tensor, Tensor]:
        if rep.key not in self._splits:
            values = rep.values.cpu().double()
            fitted = self._inside @ (self._inside.T @ values)
            self._splits[rep.key] = fitted, self._outside.T @ values
        return self._splits[rep.key]


def _values(confounder: Any) -> Tensor:
    view = confounder if isinstance(confounder, Activations) else Activations(confounder)
    return torch.as_tensor(view.values).cpu().double()


def _explained(values: Tensor, groups: np.ndarray | None) -> Tensor:
    """Orthonormal functions of the confounder, the constant first, (n, share of n).

    All linear ones (and which group an input is in), then the smoothest others: the leading eigenvectors of
    the Gaussian kernel exp(-distance² / median distance²).
    """
    n = values.shape[0]
    basis = _linear(values, groups)
    most = n - max(LEAST, n // 10)
    if basis.shape[1] > most:
        raise UndefinedError(
            f"the confounder has {basis.shape[1] - 1} independent directions on {n} inputs, so hardly "
            "anything of a network is left that it does not explain, and there is no null. Show the networks "
            "more inputs, or reduce the confounder to fewer features."
        )
    more = min(int(SHARE * n), most) - basis.shape[1]
    if more <= 0:
        return basis
    squares = torch.cdist(values, values).square_()
    width = squares[squares > 0].median() if bool((squares > 0).any()) else squares.new_tensor(1.0)
    kernel = squares.div_(-width).exp_()
    kernel -= basis @ (basis.T @ kernel)
    kernel -= (kernel @ basis) @ basis.T
    sizes, smooth = torch.linalg.eigh(kernel)
    leading = smooth[:, -more:][:, sizes[-more:] > 1e-10 * sizes[-1].clamp(min=1e-10)]
    return torch.linalg.qr(torch.cat([basis, leading.flip(1)], dim=1)).Q


def _linear(values: Tensor, groups: np.ndarray | None) -> Tensor:
    blocks = [values - values.mean(dim=0)]
    if groups is not None:
        blocks.append(torch.nn.functional.one_hot(torch.from_numpy(groups)).double())
    columns = torch.cat(blocks, dim=1)
    columns = columns - columns.mean(dim=0)
    columns /= torch.linalg.vector_norm(columns, dim=0).clamp(min=1e-300)
    basis, sizes, _ = svd(columns)
    basis = basis[:, sizes > 1e-10 * sizes[0].clamp(min=1e-10)]
    constant = torch.full((values.shape[0], 1), values.shape[0] ** -0.5, dtype=torch.float64)
    return torch.linalg.qr(torch.cat([constant, basis], dim=1)).Q
