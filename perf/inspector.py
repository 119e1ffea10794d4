"""What watching a training costs: a report by the number of classes, and the share of an epoch.

A report is timed in CPU seconds of one thread, the median of ten, with a reference (WordNet for 10, 100 and
1000 classes), a confusion matrix of 100 samples a class (50 for 1000) and weights of width 512. The share
is the CPU time spent in the inspector (counting every batch, features too, and the report) over that of the
whole epoch it ran in: ResNet-20 on CIFAR-10, 50,000 images trained on and 10,000 validated.

    LIKEWISE_DATA=... python -m perf.inspector
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import likewise
from likewise.classes import Inspector, batches
from likewise.errors import MissingDataError
from likewise.networks import train
from perf.common import write

TARGETS = {10: None, 100: 0.005, 1000: 0.3}  # seconds
SHARE = 0.002


def reports() -> Iterator[dict[str, Any]]:
    for name, per_class in (("cifar10", 100), ("cifar100", 100), ("imagenet1k", 50)):
        inspector = Inspector(name)
        c = len(inspector.classes)
        draw = np.random.default_rng(0)
        labels = np.repeat(np.arange(c), per_class)
        answers = np.where(draw.random(len(labels)) < 0.7, labels, draw.integers(0, c, len(labels)))
        weights = draw.normal(size=(c, 512))
        taken = []
        for _ in range(10):
            inspector.update(answers, labels)
            start = time.process_time()
            inspector.report(weights)
            taken.append(time.process_time() - start)
        seconds = statistics.median(taken)
        target = TARGETS[c]
        yield {
            "job": "report",
            "classes": c,
            "cpu_seconds": seconds,
            "target": target,
            "met": None if target is None else seconds <= target,
        }


class Timed(Inspector):
    """An inspector that counts the CPU seconds it takes."""

    spent = 0.0

    def begin(self, *arguments: Any) -> None:
        self._timed(super().begin, *arguments)

    def watch(self, *arguments: Any) -> None:
        self._timed(super().watch, *arguments)

    def __call__(self, *arguments: Any) -> Any:
        return self._timed(super().__call__, *arguments)

    def _timed(self, work: Callable[..., Any], *arguments: Any) -> Any:
        start = time.process_time()
        try:
            return work(*arguments)
        finally:
            Timed.spent += time.process_time() - start


def share() -> dict[str, Any]:
    features = batches._features

    def timed(inputs: Any) -> Any:
        start = time.process_time()
        try:
            return features(inputs)
        finally:
            Timed.spent += time.process_time() - start

    batches._features = timed
    data = likewise.dataset("cifar10:train")
    inspector = Timed(data)
    start = time.process_time()
    train("zoo:resnet20", data, validation="cifar10:test", epochs=1, augment=("flip", "crop"), callbacks=[inspector])
    total = time.process_time() - start
    return {
        "job": "epoch of ResNet-20 on CIFAR-10",
        "classes": 10,
        "cpu_seconds": Timed.spent,
        "epoch_cpu_seconds": total,
        "share": Timed.spent / (total - Timed.spent),
        "target": SHARE,
        "met": Timed.spent / (total - Timed.spent) <= SHARE,
    }


def rows() -> Iterator[dict[str, Any]]:
    yield from reports()
    try:
        yield share()
    except MissingDataError as error:
        print(f"the share of an epoch was not measured: {error}")


if __name__ == "__main__":
    write("inspector", rows())
