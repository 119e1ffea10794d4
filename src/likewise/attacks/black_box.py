"""Attacks that see nothing but answers: a few pixels of any colour (L0), or all values by a few grey levels (Linf).

A search, CMA-ES or differential evolution, makes the label as improbable as it can. Candidates are answered in large
batches, of several images where a generation has few, and the search of an image ends with the first generation whose
best candidate fools the network: the next image takes its place. Images are taken as files hold them: values between
two grey levels are rounded first. An image that is misclassified already is left as it is. A generator, a network
trained elsewhere to change images, needs no search at all.
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
from likewise.attacks.encodings import BRIGHTEST, POSITION, change_all, change_pixels, pixel_bounds, threshold_bounds
from likewise.attacks.inference import layout
from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.searches import Proposals, Search, Space
from likewise.attacks.steps import EPS, Ball, Norm, Target, target
from likewise.errors import InputError, brief
from likewise.networks.forward import eval_mode

Searching = Literal["cma-es", "differential-evolution"]
KOTYAN = "Kotyan and Vargas 2019, arXiv:1906.06026"
SPREAD = 63 / 4  # the first standard deviation of rows, columns and colours alike
SHARE = 1 / 4  # of the threshold, the first standard deviation of grey levels
AT_ONCE = 200  # candidates shown in one pass: enough for small networks, few enough for the processor's cache


@dataclass
class ImageSearch:
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
    def of(cls, aim: Target, row: int, space: Callable[[Tensor], Space], search: Search) -> ImageSearch:
        """The search of one image, with its first candidates."""
        levels = (BRIGHTEST * aim.clean[row].cpu()).round()
        bounds = space(levels)
        proposals = search.start(bounds)
        first = torch.from_numpy(next(proposals))
        return cls(row, int(aim.labels[row]), levels, bounds, proposals, first, torch.from_numpy(bounds.start))

    def step(self, answers: Tensor, soft: Tensor) -> bool:
        """Propose the next candidates from the answers; False if the network is fooled or the search is over."""
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
class CandidateBatches:
    """Shows a network the candidates of all images under search, in batches that are filled up."""

    aim: Target
    batch: Tensor

    @classmethod
    def of(cls, aim: Target) -> CandidateBatches:
        """With memory for one batch: to allocate it again takes longer than to fill it."""
        shape, order = (AT_ONCE, *aim.clean.shape[1:]), layout(aim.net, aim.clean)
        return cls(aim, torch.empty(shape, dtype=aim.clean.dtype, memory_format=order))

    def answers(self, searches: list[ImageSearch]) -> list[tuple[Tensor, Tensor]]:
        """What the network answers to each image's candidates, and as probabilities.

        Of a network that answers with probabilities or lengths, these are the answers themselves.
        """
        answers = torch.cat([self._answer(images) for images in self._batches(searches)])
        if not bool(answers.isfinite().all()):
            raise InputError(
                f"the answers of {self.aim.name} to changed images are not finite. Attack another network."
            )
        soft = answers.softmax(dim=1) if self.aim.answers == "logits" else answers
        counts = [len(search.vectors) for search in searches]
        return list(zip(torch.split(answers, counts), torch.split(soft, counts), strict=True))

    def _answer(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            return self.aim.answer(images.div_(BRIGHTEST).to(self.aim.clean.device)).cpu().double()

    def _batches(self, searches: list[ImageSearch]) -> Iterator[Tensor]:
        filled = 0
        for search in searches:
            for vectors in torch.split(search.vectors, len(self.batch)):
                if filled + len(vectors) > len(self.batch):
                    yield self.batch[:filled]
                    filled = 0
                search.space.images(vectors, out=self.batch[filled : filled + len(vectors)])
                filled += len(vectors)
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
    """A few pixels of any colour, found by answers alone: with `pixels=1` the one-pixel attack.

    Options:
        pixels: How many pixels are changed.
    """
    space = partial(_pixel_space, pixels=pixels)
    return _search_images(net, images, labels, space, Search(search, generations, population, seed))


def _pixel_space(levels: Tensor, pixels: int) -> Space:
    lower, upper = (end.double().numpy() for end in pixel_bounds(levels, pixels))
    if pixels > levels[0].numel():
        raise InputError(f"pixels is {pixels}, and an image has {levels[0].numel()}. Change fewer.")
    return Space(_first_pixels(levels, pixels), SPREAD, lower, upper, partial(change_pixels, levels))


def _first_pixels(levels: Tensor, pixels: int) -> Array:
    """The entries that leave an image as it is: its first pixels, row by row, with their own colours."""
    channels, _, wide = levels.shape
    entries = np.empty((pixels, POSITION + channels))
    for number in range(pixels):
        row, column = divmod(number, wide)
        entries[number] = [row, column, *levels[:, row, column].tolist()]
    return entries.ravel()


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
    """All values by up to `threshold` grey levels of 255, found by answers alone.

    Options:
        threshold: Grey levels of 255 that a value may move.
    """
    space = partial(_threshold_space, threshold=threshold)
    return _search_images(net, images, labels, space, Search(search, generations, population, seed))


def _threshold_space(levels: Tensor, threshold: float) -> Space:
    lower, upper = (end.numpy() for end in threshold_bounds(levels, threshold))
    start, change = levels.flatten().double().numpy(), partial(change_all, levels, threshold=threshold)
    return Space(start, SHARE * threshold, lower, upper, change, separate=True)


def _search_images(
    net: nn.Module, images: Tensor, labels: Tensor | None, space: Callable[[Tensor], Space], search: Search
) -> Adversarial:
    """Every image by a search of its own; the draws are the same, so that images do not depend on each other."""
    with target(net, images, labels) as aim:
        with torch.no_grad():
            wrong = aim.answer(aim.clean).argmax(dim=1) != aim.labels
        moved = aim.clean.clone()
        rows = (~wrong).nonzero()[:, 0].tolist()
        waiting = (ImageSearch.of(aim, row, space, search) for row in rows)
        for done in _run_searches(aim, waiting, AT_ONCE // search.population):
            moved[done.row] = done.changed(aim.clean[done.row])
        return Adversarial(moved, aim.labels, aim.stalled)


def _run_searches(aim: Target, waiting: Iterator[ImageSearch], most: int) -> Iterator[ImageSearch]:
    """Search up to `most` images at a time; each is yielded when it is done, and the next takes its place."""
    batches = CandidateBatches.of(aim)
    searches = list(islice(waiting, max(1, most)))
    while searches:
        running = []
        for search, answers in zip(searches, batches.answers(searches), strict=True):
            if search.step(*answers):
                running.append(search)
            else:
                yield search
        searches = running + list(islice(waiting, max(1, most) - len(running)))


def smallest_threshold(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    attack: Literal["pixel", "threshold"] = "threshold",
    most: int = 127,
    **options: Any,
) -> Tensor:
    """The fewest pixels or grey levels found by bisection that fool a network.

    Success need not grow with the threshold, nor is a search sure to find it, so a smaller one may exist.

    Args:
        net: The network.
        images: Images `(n, channels, height, width)` in [0, 1].
        labels: Their classes; by default what the network answers.
        attack: "pixel" or "threshold".
        most: The largest number of pixels or grey levels to try.
        **options: Options of the attack.

    Returns:
        One number per image: 0 where it is misclassified already, infinity where nothing that was tried fools.

    Raises:
        InputError: The attack has no thresholds, or `most` is below 1.
    """
    attacks = {"pixel": (pixel, "pixels"), "threshold": (threshold, "threshold")}
    if attack not in attacks:
        raise InputError(f"{brief(attack)} has no thresholds. Choose {' or '.join(map(repr, attacks))}.")
    if most < 1:
        raise InputError(f"most is {most}. Give at least 1.")
    run, size = attacks[attack]
    smallest = []
    for image, truth in zip(torch.split(images, 1), _predictions(net, images, labels), strict=True):
        low, high, best = 1, most, float("inf")
        if _predictions(net, image)[0] != truth:
            low, best = most + 1, 0.0
        while low <= high:
            middle = (low + high) // 2
            moved = run(net, image, truth[None], **{size: middle}, **options).images
            if _predictions(net, moved)[0] != truth:
                best, high = float(middle), middle - 1
            else:
                low = middle + 1
        smallest.append(best)
    return torch.tensor(smallest)


def _predictions(net: nn.Module, images: Tensor, labels: Tensor | None = None) -> Tensor:
    """What the network answers, or the labels once they are checked."""
    with target(net, images, labels) as aim:
        return aim.labels


@attack(name="generator", norm="Linf", source="Zhang et al. 2022, arXiv:2201.11528", aliases=("BIA",), trains=False)
def generate(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    generator: nn.Module | None = None,
    eps: float = EPS,
    norm: Norm = "Linf",
) -> Adversarial:
    """What a generator of your own makes of the images, kept near them.

    The `generator` takes images in [0, 1] and returns images of the same shape, which are brought within `eps` and
    within [0, 1]. Of the network itself only answers are read.

    Options:
        generator: Takes images in [0, 1] and returns images of the same shape.
    """
    if not isinstance(generator, nn.Module):
        raise InputError("the attack 'generator' needs a network that changes images. Pass generator=NETWORK.")
    ball = Ball(eps, norm)
    with target(net, images, labels, exact=True) as aim, eval_mode(generator) as model, torch.no_grad():
        moved = model(aim.clean)
        shape = tuple(moved.shape) if isinstance(moved, Tensor) else type(moved).__name__
        if shape != tuple(aim.clean.shape) or not bool(moved.isfinite().all()):
            raise InputError(
                f"{type(model).__name__} makes {shape} of images {tuple(aim.clean.shape)}. Give a generator whose "
                "images have the shape of those it is shown, and finite values."
            )
        return Adversarial(ball.project(moved, aim.clean), aim.labels, aim.stalled)
