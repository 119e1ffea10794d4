"""Attacks that see nothing but answers: a few pixels of any colour (L0), or all values by a few grey levels (Linf).

A search, CMA-ES or differential evolution, makes the label as improbable as it can. Candidates are answered in large
batches, of several images where a generation has few, and the search of an image ends with the first generation whose
best candidate fools the network: the next image takes its place. Images are taken as files hold them: values between
two grey levels are rounded first. An image that is misclassified already is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from likewise._base.arrays import Array
from likewise.attacks.encodings import (
    BRIGHTEST,
    PLACE,
    change_all,
    change_pixels,
    pixel_bounds,
    threshold_bounds,
)
from likewise.attacks.inference import layout
from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.searches import Proposals, Search, Space
from likewise.attacks.steps import Target, target
from likewise.errors import InputError, brief

Searching = Literal["cma-es", "differential-evolution"]
KOTYAN = "Kotyan and Vargas 2019, arXiv:1906.06026"
SPREAD = 63 / 4  # the first standard deviation of rows, columns and colours alike
SHARE = 1 / 4  # of the threshold, the first standard deviation of grey levels
AT_ONCE = 200  # candidates shown in one pass: enough for small networks, few enough for the processor's cache


@dataclass
class Case:
    """An image under search: what was proposed last, and the best candidate so far, which makes the label least."""

    row: int
    label: int
    levels: Tensor
    space: Space
    proposals: Proposals
    vectors: Tensor
    best: Tensor
    probability: float = float("inf")

    @classmethod
    def of(cls, aim: Target, row: int, space: Callable[[Tensor], Space], search: Search) -> Case:
        """The search of one image, with its first candidates."""
        levels = (BRIGHTEST * aim.clean[row].cpu()).round()
        where = space(levels)
        proposals = search.start(where)
        first = torch.from_numpy(next(proposals))
        return cls(row, int(aim.labels[row]), levels, where, proposals, first, torch.from_numpy(where.start))

    def goes_on(self, answers: Tensor, soft: Tensor) -> bool:
        """Learn from the answers and propose anew; False where the network is fooled or all generations are over."""
        probabilities = soft[:, self.label]
        first = int(probabilities.argmin())
        least = float(probabilities[first])
        if least < self.probability:
            self.best, self.probability = self.vectors[first].clone(), least
            if int(answers[first].argmax()) != self.label:
                return False
        try:
            self.vectors = torch.from_numpy(self.proposals.send(probabilities.numpy()))
        except StopIteration:
            return False
        return True

    def changed(self, clean: Tensor) -> Tensor:
        """The image with what was changed; what was not keeps its value, also where that lies between two levels."""
        best = self.space.images(self.best[None])[0]
        return torch.where((self.levels == best).to(clean.device), clean, (best / BRIGHTEST).to(clean))


@dataclass
class Panel:
    """Shows a network the candidates of all images under search, in batches that are filled up."""

    aim: Target
    batch: Tensor

    @classmethod
    def of(cls, aim: Target) -> Panel:
        """With memory for one batch: to allocate it anew takes longer than to fill it."""
        shape, order = (AT_ONCE, *aim.clean.shape[1:]), layout(aim.net, aim.clean)
        return cls(aim, torch.empty(shape, dtype=aim.clean.dtype, memory_format=order))

    def answers(self, cases: list[Case]) -> list[tuple[Tensor, Tensor]]:
        """What the network answers to each image's candidates, and as probabilities.

        Of a network that answers with probabilities or lengths, these are the answers themselves.
        """
        found = torch.cat([self._answer(images) for images in self._batches(cases)])
        if not bool(found.isfinite().all()):
            raise InputError(
                f"the answers of {self.aim.name} to changed images are not finite. Attack another network."
            )
        soft = found.softmax(dim=1) if self.aim.answers == "logits" else found
        counts = [len(case.vectors) for case in cases]
        return list(zip(torch.split(found, counts), torch.split(soft, counts), strict=True))

    def _answer(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            return self.aim.answer(images.div_(BRIGHTEST).to(self.aim.clean.device)).double().cpu()

    def _batches(self, cases: list[Case]) -> Iterator[Tensor]:
        filled = 0
        for case in cases:
            for part in torch.split(case.vectors, len(self.batch)):
                if filled + len(part) > len(self.batch):
                    yield self.batch[:filled]
                    filled = 0
                case.space.images(part, out=self.batch[filled : filled + len(part)])
                filled += len(part)
        yield self.batch[:filled]


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
    space = partial(_pixel_space, pixels=pixels)
    return _attacked(net, images, labels, space, Search(search, generations, population, seed))


def _pixel_space(levels: Tensor, pixels: int) -> Space:
    lower, upper = (end.double().numpy() for end in pixel_bounds(levels, pixels))
    if pixels > levels[0].numel():
        raise InputError(f"pixels is {pixels}, and an image has {levels[0].numel()}. Change fewer.")
    return Space(_first_pixels(levels, pixels), SPREAD, lower, upper, partial(change_pixels, levels))


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
        rows = (~wrong).nonzero()[:, 0].tolist()
        for case in _searched(aim, (Case.of(aim, row, space, search) for row in rows), AT_ONCE // search.population):
            moved[case.row] = case.changed(aim.clean[case.row])
        return Adversarial(moved, aim.labels, aim.stalled)


def _searched(aim: Target, waiting: Iterator[Case], most: int) -> Iterator[Case]:
    """Search up to `most` images at a time; each is given when it is done, and the next takes its place."""
    panel = Panel.of(aim)
    cases = list(islice(waiting, max(1, most)))
    while cases:
        going = []
        for case, found in zip(cases, panel.answers(cases), strict=True):
            if case.goes_on(*found):
                going.append(case)
            else:
                yield case
        cases = going + list(islice(waiting, max(1, most) - len(going)))


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
