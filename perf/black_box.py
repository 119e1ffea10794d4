"""Attacks without gradients beside ART: CPU seconds per candidate, and per generation outside the network's own pass.

A small network of 32 × 32 × 3 images that is so sure that nothing fools it: what ends an attack is its number of
candidates, which is the same for both. Four images, one thread, both sides in turn and the best of ten rounds, of
fewer where that takes more than ten seconds. ART is called as its documentation says, with images from 0 to 255, a
network that divides them, and the batches and populations of its own: by CMA-ES a few at a time for more generations,
by differential evolution as many as ours. Candidates are counted at the network, and seconds are per thousand of
them. `outside_times_ours` is the ratio of what is not the network's own pass, `at_most` the ratio if only that were
left of ours. ART is installed as `perf.attacks` says; without it, its rows are left out.

    python -m perf.black_box
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from likewise import attacks
from perf.common import write

POPULATION, SIZE, IMAGES, ROUNDS, ENOUGH = 400, 5, 4, 10, 10.0
GENERATIONS = {("threshold", "differential-evolution"): 1}  # of 3072 candidates each; of 400 all others
GOAL_SECONDS, GOAL_RATIO = 0.3, 5.0  # per generation outside the network; as fast as ART, at least
Run = Callable[[nn.Module, Tensor], None]


class Counted(nn.Module):
    """A small network that is sure of class 0, and notes for all of its copies what they are shown and for how long."""

    candidates: ClassVar[int] = 0
    seconds: ClassVar[float] = 0.0

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 5, 2), nn.ReLU(), nn.Flatten())
        self.fc = nn.Linear(400, 10)
        self.fc.bias.data[0] = 8.0
        Counted.candidates, Counted.seconds = 0, 0.0

    def forward(self, images: Tensor) -> Tensor:
        start = time.process_time()
        answers = self.fc(self.layers(images))
        Counted.candidates += len(images)
        Counted.seconds += time.process_time() - start
        return answers


class Levels(nn.Module):
    """Grey levels as the numbers from 0 to 1 that the network takes."""

    def forward(self, images: Tensor) -> Tensor:
        return images / 255


def ours(name: str, search: str) -> Run:
    size = {"pixel": "pixels"}.get(name, name)
    generations = GENERATIONS.get((name, search), 5)
    options = {size: SIZE, "search": search, "generations": generations, "population": POPULATION}
    return lambda net, images: attacks.get(name)(net, images, **options)  # type: ignore[return-value]


def toolbox(name: str, search: str) -> Run:
    """ART's attack with as many candidates: of a smaller population by CMA-ES, so in more generations."""
    entries = {"pixel": SIZE * 5, "threshold": 3 * 32 * 32}[name]
    generations = GENERATIONS.get((name, search), 5)
    if search == "cma-es":
        generations = round(generations * POPULATION / (4 + int(3 * math.log(entries))))

    def run(net: nn.Module, images: Tensor) -> None:
        from art.attacks.evasion import PixelAttack, ThresholdAttack
        from art.estimators.classification import PyTorchClassifier

        kind = {"pixel": PixelAttack, "threshold": ThresholdAttack}[name]
        network = PyTorchClassifier(
            nn.Sequential(Levels(), net, nn.Softmax(dim=1)),
            nn.CrossEntropyLoss(),
            (3, 32, 32),
            10,
            clip_values=(0, 255),
            device_type="cpu",
        )
        es = {"cma-es": 0, "differential-evolution": 1}[search]
        kind(network, th=SIZE, es=es, max_iter=generations, verbose=False).generate((255 * images).round().numpy())

    return run


@dataclass
class Cost:
    """The best round of one side: CPU seconds, those within the network, and how many candidates it had."""

    seconds: float = float("inf")
    network: float = 0.0
    candidates: int = 0
    spent: float = 0.0

    def measure(self, run: Run, images: Tensor) -> None:
        net = Counted()
        start = time.process_time()
        run(net, images)
        seconds = time.process_time() - start
        self.spent += seconds
        if seconds < self.seconds:
            self.seconds, self.network, self.candidates = seconds, net.seconds, net.candidates

    def per_thousand(self, seconds: float) -> float:
        return 1000 * seconds / self.candidates

    @property
    def outside(self) -> float:
        """Seconds per thousand candidates without the network's own."""
        return self.per_thousand(self.seconds - self.network)


def costs(name: str, search: str, images: Tensor) -> dict[str, Cost]:
    """Both sides in turn, after a first call on one image that wakes the libraries."""
    runs = {"ours": ours(name, search)}
    if find_spec("art") is not None:
        runs["ART"] = toolbox(name, search)
    by_library = {by: Cost() for by in runs}
    if name == "pixel":
        for run in runs.values():
            run(Counted(), images[:1])
    for _ in range(ROUNDS):
        for by, run in runs.items():
            by_library[by].measure(run, images)
        if max(cost.spent for cost in by_library.values()) > ENOUGH:
            break
    return by_library


def rows() -> Iterator[dict[str, Any]]:
    """Each attack by each search, ours and ART's."""
    images = (255 * torch.rand(IMAGES, 3, 32, 32, generator=torch.Generator().manual_seed(1))).round() / 255
    for name in ("pixel", "threshold"):
        for search in ("cma-es", "differential-evolution"):
            by_library = costs(name, search, images)
            mine = by_library["ours"]
            for by, cost in by_library.items():
                row = {"attack": name, "search": search, "by": by, "size": SIZE, "images": IMAGES}
                row |= {"candidates": cost.candidates, "cpu_seconds": cost.seconds, "of_it_network": cost.network}
                row |= {"per_thousand": cost.per_thousand(cost.seconds)}
                if by == "ours":
                    outside = cost.outside * POPULATION / 1000
                    row |= {"outside_per_400": outside, "target": GOAL_SECONDS, "met": outside <= GOAL_SECONDS}
                else:
                    ratio = cost.per_thousand(cost.seconds) / mine.per_thousand(mine.seconds)
                    row |= {"times_ours": ratio, "target": GOAL_RATIO, "met": ratio >= GOAL_RATIO}
                    row |= {"outside_times_ours": cost.outside / mine.outside}
                    row |= {"at_most": cost.per_thousand(cost.seconds) / mine.per_thousand(mine.network)}
                yield row


if __name__ == "__main__":
    write("black_box", rows())
