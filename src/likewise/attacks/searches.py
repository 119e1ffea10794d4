"""Searches that see nothing but numbers: CMA-ES and differential evolution, one generation at a time.

Each is a generator: it yields candidates, one row each, and is sent one number per candidate, the smaller the better.
So whoever asks the network decides how many images are searched at once, and a search ends by not being asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from likewise._base.arrays import Array
from likewise._base.optional import require
from likewise.errors import InputError, brief

Proposals = Generator[Array, Array, None]
FEWEST = 5  # members of a population that evolves: the best, one to be replaced, two others, and one to spare
ROWS = 64  # candidates computed at a time, so that those of thousands of entries stay in the processor's cache


@dataclass(frozen=True)
class Space:
    """Where a search takes place: vectors within bounds, each of which stands for a changed image."""

    start: Array  # the vector that stands for the image as it is
    spread: float  # the first standard deviation
    lower: Array  # the least value of each entry
    upper: Array  # the largest
    images: Callable[..., Tensor]  # changed images of vectors, one per row; with `out` written there
    separate: bool = False  # whether entries are varied one by one: there are too many for a covariance of all with all


class Box:
    """A smooth map of all numbers into bounds, for all candidates of a generation at once: `cma.BoundTransform`.

    Numbers stay as they are, but within `below` of the lower and `above` of the upper bound, where a parabola comes
    to rest at the bound; beyond these, everything is mirrored. cma's own maps one candidate at a time: for a pixel that
    takes four times as long as all the rest of a generation.
    """

    def __init__(self, lower: Array, upper: Array) -> None:
        half = (upper - lower) / 2
        self.below, self.above = (np.minimum(half, np.maximum(1, np.abs(end)) / 20) for end in (lower, upper))
        self.lower, self.upper = lower, upper
        self.low, self.high = lower - self.below, upper + self.above

    def inside(self, vectors: Array) -> Array:
        """The vectors, one per row, within the bounds."""
        return np.concatenate([self._inside(vectors[i : i + ROWS]) for i in range(0, len(vectors), ROWS)])

    def _inside(self, vectors: Array) -> Array:
        span = self.high - self.low
        away = np.abs(vectors - self.low)
        if bool((away > 2 * span).any()):
            away %= 2 * span
        mapped = self.high - np.abs(span - away)
        near = mapped < self.lower + self.below
        np.copyto(mapped, self.lower + (mapped - self.low) ** 2 / (4 * self.below), where=near)
        near = mapped > self.upper - self.above
        np.copyto(mapped, self.upper - (self.high - mapped) ** 2 / (4 * self.above), where=near)
        return mapped

    def source(self, vector: Array) -> Array:
        """The vector that is mapped to one within the bounds."""
        source = vector.copy()
        near = vector < self.lower + self.below
        np.copyto(source, self.low + 2 * np.sqrt(self.below * (vector - self.lower)), where=near)
        near = vector > self.upper - self.above
        np.copyto(source, self.high - 2 * np.sqrt(self.above * (self.upper - vector)), where=near)
        return source


def cma_es(space: Space, generations: int, population: int, seed: int) -> Proposals:
    """Candidates from a normal distribution that follows the best of them (Hansen and Ostermeier 2001)."""
    cma = require("cma", extra="attacks", to="search by CMA-ES")
    draw = np.random.default_rng(seed)
    options = {
        "maxstd": (space.upper - space.lower) / 3,  # as cma sets it for bounds it is given
        "popsize": population,
        "CMA_diagonal": space.separate,
        "randn": lambda *shape: draw.standard_normal(shape),
        "seed": float("nan"),  # numpy's own generator stays as it is
        "verbose": -9,
    }
    box = Box(space.lower, space.upper)
    with np.errstate(all="ignore"):
        search = cma.CMAEvolutionStrategy(box.source(space.start), space.spread, options)
    for left in reversed(range(generations)):
        with np.errstate(all="ignore"):
            candidates = search.ask()
        values = yield box.inside(np.stack(candidates))
        if not left:  # nothing more is drawn from what it would learn
            return
        with np.errstate(all="ignore"):
            search.tell(candidates, values)
            if search.stop():
                return


def differential_evolution(space: Space, generations: int, population: int, seed: int) -> Proposals:
    """Candidates from differences of others, around the best (Storn and Price 1997): "best1bin" of SciPy.

    As Kotyan and Vargas set it: all entries are crossed over, differences count by a share from 0.5 to 1 drawn per
    generation, and entries that leave their bounds are drawn again. The population is the multiple of the number of
    entries nearest below the one asked for, and one of each at least. It is our own since SciPy's draws partners in a
    loop over candidates, which takes as long as a small network. Single precision does: all numbers are truncated to
    whole ones of up to 256 or to places in an image.
    """
    draw = np.random.default_rng(seed)
    entries = len(space.start)
    lower, width = space.lower.astype(np.float32), (space.upper - space.lower).astype(np.float32)
    members = latin_hypercube(draw, max(FEWEST, max(1, population // entries) * entries), entries)
    members *= width
    members += lower
    values = (yield members).copy()
    trials = np.empty_like(members)
    for _ in range(generations):
        best, share = members[values.argmin()], np.float32(draw.uniform(0.5, 1))
        one, two = partners(draw, len(members))
        for start in range(0, len(members), ROWS):
            rows = slice(start, start + ROWS)
            np.subtract(members[one[rows]], members[two[rows]], out=trials[rows])
            trials[rows] *= share
            trials[rows] += best
            _bring_back(trials[rows], lower, width, draw)
        new_values = yield trials
        better = new_values <= values
        members[better], values[better] = trials[better], new_values[better]


def latin_hypercube(draw: np.random.Generator, members: int, entries: int) -> Array:
    """Points in the unit cube, `(members, entries)`: of each entry, one in every interval of length 1 / members."""
    points = draw.permuted(np.tile(np.arange(members, dtype=np.float32), (entries, 1)), axis=1)
    points += draw.random(points.shape, dtype=np.float32)
    points /= members
    return np.ascontiguousarray(points.T)


def partners(draw: np.random.Generator, members: int) -> tuple[Array, Array]:
    """Two others for every member of a population, drawn evenly from all pairs."""
    numbers = np.arange(members)
    one = draw.integers(members - 1, size=members)
    one += one >= numbers
    two = draw.integers(members - 2, size=members)
    two += two >= np.minimum(numbers, one)
    two += two >= np.maximum(numbers, one)
    return one, two


def _bring_back(vectors: Array, lower: Array, width: Array, draw: np.random.Generator) -> None:
    """Draw entries that left their bounds again, evenly within these."""
    away = (vectors < lower) | (vectors > lower + width)
    np.copyto(vectors, lower + width * draw.random(vectors.shape, dtype=np.float32), where=away)


SEARCHES: dict[str, Callable[[Space, int, int, int], Proposals]] = {
    "cma-es": cma_es,
    "differential-evolution": differential_evolution,
}


@dataclass(frozen=True)
class Search:
    """Which algorithm searches, how long, how many candidates at a time, and by which draws."""

    kind: str
    generations: int
    population: int
    seed: int

    def __post_init__(self) -> None:
        if self.kind not in SEARCHES:
            raise InputError(f"no search named {brief(self.kind)}. Choose {' or '.join(map(repr, SEARCHES))}.")
        for name, count, least in (("generations", self.generations, 1), ("population", self.population, 4)):
            if count < least:
                raise InputError(f"{name} is {count}. Give at least {least}.")

    def start(self, space: Space) -> Proposals:
        """Candidates, generation by generation."""
        return SEARCHES[self.kind](space, self.generations, self.population, self.seed)
