"""Attacks that see nothing but answers: a few pixels of any colour (L0), or all values by a few grey levels (Linf).

A search, CMA-ES or differential evolution, makes the label as improbable as it can; all candidates of a generation
are answered in one batch, and the search of an image ends with the first generation whose best candidate fools the
network. Images are taken as files hold them: values between two grey levels are rounded first. An image that is
misclassified already is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from likewise._base.optional import require
from likewise.attacks.encodings import (
    BRIGHTEST,
    PLACE,
    change_all,
    change_pixels,
    pixel_bounds,
    threshold_bounds,
)
from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import Target, target
from likewise.errors import InputError, brief

Array = np.ndarray[Any, Any]
Searching = Literal["cma-es", "differential-evolution"]
KOTYAN = "Kotyan and Vargas 2019, arXiv:1906.06026"
SPREAD = 63 / 4  # the first standard deviation of rows, columns and colours alike
SHARE = 1 / 4  # of the threshold, the first standard deviation of grey levels


@dataclass(frozen=True)
class Space:
    """Where a search goes on: vectors within bounds, each of which stands for a changed image.

    separate  whether entries are varied one by one: there are too many for a covariance of all with all
    """

    start: Array
    spread: float
    lower: Array
    upper: Array
    images: Callable[[Tensor], Tensor]
    separate: bool = False


@dataclass
class Judge:
    """The label's probability for each candidate, and the best candidate so far: the one that makes it least.

    Of a network that answers with probabilities or lengths, it is the answer itself.
    """

    aim: Target
    label: int
    space: Space
    best: Tensor
    probability: float = float("inf")
    fooled: bool = False
    evaluations: int = field(default=0)

    def __call__(self, vectors: Array) -> Array:
        """Probabilities of the label, one per row."""
        candidates = torch.from_numpy(np.ascontiguousarray(vectors))
        with torch.no_grad():
            answers = self.aim.answer(self.space.images(candidates).div_(BRIGHTEST).to(self.aim.clean))
        if not bool(answers.isfinite().all()):
            raise InputError(
                f"the answers of {self.aim.name} to changed images are not finite. Attack another network."
            )
        soft = answers.double().softmax(dim=1) if self.aim.answers == "logits" else answers.double()
        probabilities = soft[:, self.label]
        first = int(probabilities.argmin())
        least = float(probabilities[first])
        if least < self.probability:
            self.best, self.probability = self.space.images(candidates[first : first + 1])[0].clone(), least
            self.fooled = int(answers[first].argmax()) != self.label
        self.evaluations += len(vectors)
        return probabilities.cpu().numpy()


def cma_es(space: Space, judge: Judge, generations: int, population: int, seed: int) -> None:
    """Candidates from a normal distribution that follows the best of them (Hansen and Ostermeier 2001)."""
    cma = require("cma", extra="attacks", to="search by CMA-ES")
    draw = np.random.default_rng(seed)
    options = {
        "bounds": [space.lower, space.upper],
        "popsize": population,
        "CMA_diagonal": space.separate,
        "randn": lambda *shape: draw.standard_normal(shape),
        "seed": float("nan"),  # numpy's own generator stays as it is
        "verbose": -9,
    }
    with np.errstate(all="ignore"):
        search = cma.CMAEvolutionStrategy(space.start, space.spread, options)
        for left in reversed(range(generations)):
            candidates = search.ask()
            found = judge(np.stack(candidates))
            if judge.fooled or not left:  # nothing more is drawn from what it would learn
                return
            search.tell(candidates, found)
            if search.stop():
                return


def differential_evolution(space: Space, judge: Judge, generations: int, population: int, seed: int) -> None:
    """Candidates from differences of others, around the best (Storn and Price 1997), by SciPy.

    The population is the multiple of the number of entries nearest below the one asked for, and one of each at least.
    """
    from scipy.optimize import differential_evolution as minimise

    minimise(
        lambda columns: judge(columns.T),
        list(zip(space.lower, space.upper, strict=True)),
        strategy="best1bin",
        maxiter=generations,
        popsize=max(1, population // len(space.start)),
        mutation=(0.5, 1),
        recombination=1,
        tol=0,
        atol=-1,  # only success and the number of generations end it
        polish=False,
        init="latinhypercube",
        rng=seed,
        vectorized=True,
        updating="deferred",
        callback=lambda intermediate_result: judge.fooled,
    )


SEARCHES: dict[str, Callable[[Space, Judge, int, int, int], None]] = {
    "cma-es": cma_es,
    "differential-evolution": differential_evolution,
}


@dataclass(frozen=True)
class Search:
    """How images are searched for: by which algorithm, how long, how many candidates at a time, by which draws."""

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

    def run(self, judge: Judge) -> None:
        """Show the judge candidates until one fools the network, or all generations are over."""
        SEARCHES[self.kind](judge.space, judge, self.generations, self.population, self.seed)


@attack(name="pixel", norm="L0", source="Su et al. 2019, arXiv:1710.08864; " + KOTYAN, trains=False)
def pixel(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    pixels: int = 1,
    search: Searching = "cma-es",
    generations: int = 100,
    population: int = 400,
    seed: int = 0,
) -> Adversarial:
    """A few pixels of any colour, found by answers alone: with `pixels=1` the one-pixel attack."""
    space = partial(_pixel_space, pixels=pixels, population=population)
    return _attacked(net, images, labels, space, Search(search, generations, population, seed))


def _pixel_space(levels: Tensor, pixels: int, population: int) -> Space:
    lower, upper = (end.double().numpy() for end in pixel_bounds(levels, pixels))
    if pixels > levels[0].numel():
        raise InputError(f"pixels is {pixels}, and an image has {levels[0].numel()}. Change fewer.")
    images = partial(change_pixels, levels, out=levels.new_empty(population, *levels.shape))
    return Space(_first_pixels(levels, pixels), SPREAD, lower, upper, images)


def _first_pixels(levels: Tensor, pixels: int) -> Array:
    """The entries that leave an image as it is: its first pixels, row by row, with their own colours."""
    channels, _, wide = levels.shape
    found = np.empty((pixels, PLACE + channels))
    for number in range(pixels):
        row, column = divmod(number, wide)
        found[number] = [row, column, *levels[:, row, column].tolist()]
    return found.ravel()


@attack(name="threshold", norm="Linf", source=KOTYAN, trains=False)
def threshold(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    threshold: float = 10,
    search: Searching = "cma-es",
    generations: int = 100,
    population: int = 400,
    seed: int = 0,
) -> Adversarial:
    """All values by up to `threshold` grey levels of 255, found by answers alone."""
    space = partial(_threshold_space, threshold=threshold)
    return _attacked(net, images, labels, space, Search(search, generations, population, seed))


def _threshold_space(levels: Tensor, threshold: float) -> Space:
    lower, upper = (end.numpy() for end in threshold_bounds(levels, threshold))
    start, change = levels.flatten().double().numpy(), partial(change_all, levels, threshold=threshold)
    return Space(start, SHARE * threshold, lower, upper, change, separate=True)


def _attacked(
    net: nn.Module, images: Tensor, labels: Tensor | None, space: Callable[[Tensor], Space], search: Search
) -> Adversarial:
    """Every image by a search of its own; the draws are the same, so that images do not depend on each other."""
    with target(net, images, labels) as aim:
        with torch.no_grad():
            wrong = aim.answer(aim.clean).argmax(dim=1) != aim.labels
        moved = aim.clean.clone()
        for row in (~wrong).nonzero()[:, 0].tolist():
            levels = (BRIGHTEST * aim.clean[row].cpu()).round()
            judge = Judge(aim, int(aim.labels[row]), space(levels), levels)
            search.run(judge)
            moved[row] = _changed(aim.clean[row], levels, judge.best)
        return Adversarial(moved, aim.labels, aim.stalled)


def _changed(clean: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """The image with what was changed; what was not keeps its value, also where that lies between two levels."""
    return torch.where((before == after).to(clean.device), clean, (after / BRIGHTEST).to(clean))


def smallest_threshold(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    attack: Literal["pixel", "threshold"] = "threshold",
    most: int = 127,
    **options: Any,
) -> Tensor:
    """The fewest pixels or grey levels found by bisection that fool a network, one number per image.

    0 where an image is misclassified already, infinity where `most` and all that were tried below do not fool. Success
    need not grow with the threshold, nor is a search sure to find it, so a smaller one may exist.
    """
    attacks = {"pixel": pixel, "threshold": threshold}
    if attack not in attacks:
        raise InputError(f"{brief(attack)} has no thresholds. Choose {' or '.join(map(repr, attacks))}.")
    run, name = attacks[attack], {"pixel": "pixels", "threshold": "threshold"}[attack]
    if most < 1:
        raise InputError(f"most is {most}. Give at least 1.")

    def fools(row: int, size: int) -> bool:
        moved = run(net, images[row : row + 1], truth[row : row + 1], **{name: size}, **options)
        return bool(_answers(net, moved.images)[0] != truth[row])

    with target(net, images, labels) as aim:
        truth = aim.labels
    found = []
    for row in range(len(images)):
        low, high, best = 1, most, float("inf")
        if int(_answers(net, images[row : row + 1])[0]) != int(truth[row]):
            low, best = high + 1, 0.0
        while low <= high:
            middle = (low + high) // 2
            if fools(row, middle):
                best, high = float(middle), middle - 1
            else:
                low = middle + 1
        found.append(best)
    return torch.tensor(found)


def _answers(net: nn.Module, images: Tensor) -> Tensor:
    with target(net, images, None) as aim:
        return aim.labels
