"""Attacks without gradients beside ART: CPU seconds per candidate, and per generation outside the network's own pass.

A small network of 32 × 32 × 3 images, one thread. Ours evaluates 400 candidates in one batch; ART's PixelAttack and
ThresholdAttack by CMA-ES ask for a few at a time. By differential evolution they ask for batches of 128, and of a few
pixels the network's own pass is half of our time: `at_most` is the ratio if all else were free, `outside_times_ours`
that of all else. Each is stopped by its number of generations, never by success: the network is so sure that nothing
fools it. Candidates are counted at the network, and seconds are per thousand of them, so that populations of any size
compare. ART is installed as `benchmarks.attacks` says; without it, its rows are left out.

    python -m benchmarks.black_box
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from benchmarks.common import write
from likewise import attacks

POPULATION, GENERATIONS, SIZE = 400, 5, 5
GOAL_SECONDS, GOAL_RATIO = 0.3, 5.0  # per generation outside the network; as fast as ART, at least


class Counted(nn.Module):
    """A small network that is sure of class 0, and notes for all of its copies what they are shown and for how long."""

    shown: ClassVar[int] = 0
    seconds: ClassVar[float] = 0.0

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 5, 2), nn.ReLU(), nn.Flatten())
        self.fc = nn.Linear(400, 10)
        self.fc.bias.data[0] = 8.0
        Counted.shown, Counted.seconds = 0, 0.0

    def forward(self, images: Tensor) -> Tensor:
        start = time.process_time()
        answers = self.fc(self.layers(images))
        Counted.shown += len(images)
        Counted.seconds += time.process_time() - start
        return answers


def ours(name: str, search: str) -> Callable[[nn.Module, Tensor], None]:
    size = {"pixel": "pixels"}.get(name, name)
    options = {size: SIZE, "search": search, "generations": GENERATIONS, "population": POPULATION}
    return lambda net, image: attacks.get(name)(net, image, **options)  # type: ignore[return-value]


def toolbox(name: str, search: str) -> Callable[[nn.Module, Tensor], None]:
    def run(net: nn.Module, image: Tensor) -> None:
        from art.attacks.evasion import PixelAttack, ThresholdAttack
        from art.estimators.classification import PyTorchClassifier

        kind = {"pixel": PixelAttack, "threshold": ThresholdAttack}[name]
        network = PyTorchClassifier(
            nn.Sequential(net, nn.Softmax(dim=1)), nn.CrossEntropyLoss(), (3, 32, 32), 10, clip_values=(0, 255)
        )
        es = {"cma-es": 0, "differential-evolution": 1}[search]
        attack = kind(network, th=SIZE, es=es, max_iter=GENERATIONS, verbose=False)
        attack.generate((255 * image).round().numpy(), max_iter=GENERATIONS)

    return run


def rows() -> Iterator[dict[str, Any]]:
    """Each attack by each search, ours and ART's one after the other."""
    image = (255 * torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))).round() / 255
    with_art = find_spec("art") is not None
    for name in ("pixel", "threshold"):
        for search in ("cma-es", "differential-evolution"):
            per_thousand: dict[str, float] = {}
            in_network: dict[str, float] = {}
            for by, run in (("ours", ours(name, search)), ("ART", toolbox(name, search)))[: 1 + with_art]:
                run(Counted(), image)  # the first call wakes the libraries
                net = Counted()
                start = time.process_time()
                run(net, image)
                seconds = time.process_time() - start
                per_thousand[by], in_network[by] = 1000 * seconds / net.shown, 1000 * net.seconds / net.shown
                row = {"attack": name, "search": search, "by": by, "size": SIZE, "candidates": net.shown}
                row |= {"cpu_seconds": seconds, "of_it_network": net.seconds, "per_thousand": per_thousand[by]}
                outside = (seconds - net.seconds) / max(1, (net.shown - 2) / POPULATION)
                if by == "ours":
                    row |= {"outside_per_400": outside, "target": GOAL_SECONDS, "met": outside <= GOAL_SECONDS}
                else:
                    ratio = per_thousand["ART"] / per_thousand["ours"]
                    row |= {"times_ours": ratio, "target": GOAL_RATIO, "met": ratio >= GOAL_RATIO}
                    apart = {by: per_thousand[by] - in_network[by] for by in per_thousand}
                    row |= {"outside_times_ours": apart["ART"] / apart["ours"]}
                    row |= {"at_most": per_thousand["ART"] / in_network["ours"]}  # if all but the network were free
                yield row


if __name__ == "__main__":
    write("black_box", rows())
