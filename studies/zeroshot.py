"""The study of Raw Zero-Shot: `python -m studies.zeroshot [fashion | attacks | cifar | long | budget] ...`.

Seven architectures on Fashion-MNIST, each trained without every class and once with all, and LeNet on all of CIFAR-10
with two seeds; attacks without gradients on the networks of all classes. Each step leaves one file in `runs/`, and one
that has it is skipped, so a run that was stopped is resumed and `python -m studies.zeroshot_page` makes a page of what
is there. `0/2` and `1/2` among the arguments divide the networks between two processes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import likewise
from likewise.data import Data
from likewise.transfer import robustness
from likewise.zeroshot import ZeroShot
from likewise.zeroshot.presets import PAPER

RUNS = Path(__file__).parent / "runs" / "zeroshot"
TRAIN, TEST = "fashion-mnist:train[:1000],size=14", "fashion-mnist:test[:500],size=14"
IMAGES = "fashion-mnist:test[:100],size=14"
CIFAR, CIFAR_IMAGES = "cifar10:train", "cifar10:test[:100]"
BASE: dict[str, Any] = {
    "optimiser": "adamw",
    "lr": 2e-3,
    "weight_decay": 0.01,
    "warmup": 0.5,
    "batch_size": 32,
    "schedule": "cosine",
}
THRESHOLDS = (1, 3, 5, 10)
FEW = 20  # candidates per generation where there are 100 of them
BUDGET_EPOCHS, BUDGET_IMAGES, BUDGET = 10, "cifar10:test[:50]", (100, 400)  # generations and candidates of the paper


@dataclass(frozen=True)
class Architecture:
    """A network of the study: its address, how far it is from the paper's, and how long it is trained."""

    name: str
    address: str
    differs: str
    epochs: int
    settings: dict[str, Any] = field(default_factory=dict)


ARCHITECTURES = (
    Architecture("LeNet", "zoo:lenet", "windows padded", 6),
    Architecture("Mixer", "zoo:mixer-tiny,depth=3,width=48", "3 blocks of width 48", 8),
    Architecture("ViT", "zoo:vit-tiny,depth=3,width=48,heads=4,hidden=96", "3 blocks of width 48", 8),
    Architecture("CapsNet", "zoo:capsnet,width=32", "an eighth of its width, windows of 3", 4),
    Architecture("ResNet", "zoo:resnet32-pre,depth=14", "14 layers for 32", 5, {"lr": 4e-3}),
    Architecture("AllConv", "zoo:allconv,width=32", "a third of its width", 40, {"lr": 6e-4}),
    Architecture("NIN", "zoo:nin,width=32", "a sixth of its width", 16, {"lr": 4e-3}),
)


@cache
def data(address: str) -> Data:
    """Data in memory, so that images are made smaller once, not every epoch."""
    images = likewise.dataset(address)
    return Data(images.name, "image", images.inputs[:], images.labels, images.classes)


def trained(name: str) -> ZeroShot | None:
    """What the test found of a network, if that is there."""
    path = RUNS / f"{name}.safetensors"
    return ZeroShot.load(path) if path.is_file() else None


def attacked(name: str, generations: int, threshold: int) -> pd.DataFrame | None:
    """What attacks of one size did to a network, if that is there."""
    path = _table(name, generations, threshold)
    return pd.read_csv(path) if path.is_file() else None


def _table(name: str, generations: int, threshold: int) -> Path:
    return RUNS / f"{name}-{generations}-{threshold}.csv"


def fashion(networks: list[Architecture]) -> None:
    """Trainings on a part of Fashion-MNIST."""
    for one in networks:
        if trained(one.name) is None:
            options = BASE | {"epochs": one.epochs} | one.settings
            start = time.process_time()
            result = likewise.zeroshot.run(
                one.address, data(TRAIN), test=data(TEST), store=RUNS / "store", progress=False, **options
            )
            result.save(RUNS / one.name)
            _say(f"{one.name}: {result.dbi()}, {result.amalgam()}, accuracy {result.accuracy[0]:.3f}", start)


def attacks(networks: list[Architecture]) -> None:
    """One generation of 400, as the paper's code runs."""
    for threshold in (10, 3, 5, 1):
        for one in networks:
            _attack(one.name, IMAGES, 1, 400, threshold)


def long(networks: list[Architecture]) -> None:
    """A hundred generations of few candidates each, from the threshold in the middle outwards."""
    for threshold in (5, 10, 3, 1):
        for one in networks:
            _attack(one.name, IMAGES, 100, FEW, threshold)


def cifar(networks: list[Architecture]) -> None:
    """LeNet on all of CIFAR-10."""
    if trained("LeNet-cifar") is None:
        options = BASE | {"epochs": 1, "batch_size": 128, "lr": 4e-3}
        start = time.process_time()
        test = likewise.dataset("cifar10:test")
        result = likewise.zeroshot.run(
            "zoo:lenet", likewise.dataset(CIFAR), test=test, seeds=2, store=RUNS / "store", progress=False, **options
        )
        result.save(RUNS / "LeNet-cifar")
        _say(f"LeNet on CIFAR-10: {result.dbi()}, {result.amalgam()}, accuracy {result.accuracy.mean():.3f}", start)
    for threshold in THRESHOLDS:
        _attack("LeNet-cifar", CIFAR_IMAGES, 1, 400, threshold)


def budget(networks: list[Architecture]) -> None:
    """LeNet of all classes of CIFAR-10, by the recipe in fewer epochs, attacked with the whole budget of the paper."""
    weights, start = RUNS / "LeNet-budget" / "weights.safetensors", time.process_time()
    if not weights.is_file():
        settings = replace(PAPER["lenet"].settings, epochs=BUDGET_EPOCHS)
        test = likewise.dataset("cifar10:test")
        done = likewise.train("zoo:lenet", CIFAR, settings, validation=test, out=weights.parent, progress=False)
        _say(f"LeNet, {BUDGET_EPOCHS} epochs: accuracy {done.history[-1]['validation_accuracy']:.3f}", start)
    for kind, threshold in product(("pixel", "threshold"), (10, 5, 3, 1)):
        path, start = _budget_table(kind, threshold), time.process_time()
        if path.is_file():
            continue
        options: dict[str, Any] = {"attacks": [kind], "thresholds": [threshold], "generations": [1, BUDGET[0]]}
        table = robustness(
            str(weights),
            data(BUDGET_IMAGES),
            population=BUDGET[1],
            store=RUNS / "store",
            progress=False,
            **options,
        )
        table.to_csv(path, index=False)
        _say(f"LeNet {kind} {threshold}: {table['fooled'].tolist()} fooled of {table['images'].tolist()}", start)


def budgeted(kind: str, threshold: int) -> pd.DataFrame | None:
    """What the whole budget did to LeNet, if that is there."""
    path = _budget_table(kind, threshold)
    return pd.read_csv(path) if path.is_file() else None


def _budget_table(kind: str, threshold: int) -> Path:
    return RUNS / f"LeNet-budget-{kind}-{threshold}.csv"


def _attack(name: str, images: str, generations: int, population: int, threshold: int) -> None:
    result, path = trained(name), _table(name, generations, threshold)
    if result is None or path.is_file():
        return
    start = time.process_time()
    options: dict[str, Any] = {"thresholds": [threshold], "generations": [generations], "population": population}
    table = robustness(result.about["weights"][0], data(images), store=RUNS / "store", progress=False, **options)
    table.to_csv(path, index=False)
    _say(f"{name} {generations} x {population}, {threshold}: {table['fooled'].tolist()} fooled", start)


def _say(text: str, start: float) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M')} {text}, {time.process_time() - start:.0f} s\n")
    sys.stdout.flush()


STEPS: dict[str, Callable[[list[Architecture]], None]] = {
    "fashion": fashion,
    "attacks": attacks,
    "cifar": cifar,
    "long": long,
    "budget": budget,
}


def _networks(arguments: list[str]) -> Iterator[Architecture]:
    shares = [argument.split("/") for argument in arguments if "/" in argument]
    first, step = (int(word) for word in shares[0]) if shares else (0, 1)
    yield from ARCHITECTURES[first::step]


def main(arguments: list[str]) -> int:
    """Run what is asked for, or all."""
    torch.set_num_threads(1)
    RUNS.mkdir(parents=True, exist_ok=True)
    networks = list(_networks(arguments))
    for name in [argument for argument in arguments if argument in STEPS] or list(STEPS):
        STEPS[name](networks)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
