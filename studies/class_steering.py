"""What class similarity is good for while a network is trained: `python -m studies.class_steering OUT [PART ...]`.

Three parts on small networks, all paired by seed: `stop` (stopping at rest, by the weights alone, against patience on
held-out labels, under three levels of label noise), `rate` (a lower learning rate after the surge, against one at a
fixed epoch and none) and `losses` (alignment with WordNet or WSI beside cross-entropy). Every training leaves a table
of its epochs in OUT and is not repeated; `python -m studies.class_steering_page OUT` makes the page of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import likewise
from likewise import classes
from likewise.classes import losses
from likewise.data import Data, randomise_labels

NOISE, EPOCHS, HELD_OUT = (0.0, 0.2, 0.4), 50, 0.2
ROUNDS = (range(5), range(5, 10))  # of seeds: after the first there is something of every part
NETWORKS = {"MLP": "zoo:mlp,hidden=128", "LeNet": "zoo:lenet"}
SETTINGS: dict[str, Any] = {"lr": 0.02, "batch_size": 64, "schedule": "constant", "progress": False, "num_workers": 0}
RATES: dict[str, dict[str, Any]] = {
    "after the surge": {},
    "at epoch 20": {"schedule": "step", "milestones": (20 / EPOCHS,)},
    "cosine": {"schedule": "cosine"},
}
REFERENCE = classes.from_wordnet("cifar10")
SHUFFLED = np.random.default_rng(0).permutation(10)
TERMS: dict[str, tuple[Callable[[Tensor], Tensor], float] | None] = {
    "cross-entropy": None,
    "alignment × 0.3": (partial(losses.alignment, reference=REFERENCE), 0.3),
    "alignment × 1": (partial(losses.alignment, reference=REFERENCE), 1.0),
    "alignment × 3": (partial(losses.alignment, reference=REFERENCE), 3.0),
    "alignment with shuffled classes × 1": (
        partial(losses.alignment, reference=REFERENCE.values[np.ix_(SHUFFLED, SHUFFLED)]),
        1.0,
    ),
    "WSI mean × 1": (losses.wsi, 1.0),
    "WSI max × 1": (partial(losses.wsi, end="max"), 1.0),
    "WSI max × -1": (partial(losses.wsi, end="max"), -1.0),
}


@cache
def images(address: str) -> Data:
    """The images of an address, decoded once."""
    data = likewise.dataset(address)
    pixels = torch.cat([(batch * 255).round().to(torch.uint8) for batch, _ in data.batches(1000)])
    return Data(data.name, "image", pixels, data.labels, data.classes, data.wnids)


def accuracy_on(test: Data) -> Callable[[torch.nn.Module, Mapping[str, Any]], dict[str, float]]:
    """A callback that measures accuracy on clean test images, which no rule is told."""
    inputs, labels = next(test.batches(len(test)))

    def measure(net: torch.nn.Module, record: Mapping[str, Any]) -> dict[str, float]:
        training = net.training
        with torch.inference_mode():
            right = float((net.eval()(inputs).argmax(dim=1) == labels).float().mean())
        net.train(training)
        return {"test_accuracy": right}

    return measure


def trained(network: str, data: Data, seed: int, validation: Data | None = None, **options: Any) -> pd.DataFrame:
    """One row per epoch of a training: accuracy on clean test images, losses, and indices of class similarity."""
    test = options.pop("test")
    watch = classes.Inspector(data, **options.pop("watch", {}))
    settings: dict[str, Any] = SETTINGS | {"epochs": EPOCHS, "seed": seed} | options
    history = likewise.train(
        NETWORKS[network], data, validation=validation or test, callbacks=[watch, accuracy_on(test)], **settings
    ).history
    table = pd.DataFrame(history).set_index("epoch")
    return watch.curves().combine_first(table)


def noisy(noise: float, seed: int) -> Data:
    """2,000 images of Fashion-MNIST, some with labels that say nothing."""
    data = images("fashion-mnist:train[:2000],size=14")
    return randomise_labels(data, noise, seed=seed) if noise else data


def stop(network: str, noise: float, held_out: str, seed: int) -> pd.DataFrame:
    """A training to the end, from which both rules are read: on all images, or with some held out to validate on."""
    data, test = noisy(noise, seed), images("fashion-mnist:test[:2000],size=14")
    first = len(data) - round(HELD_OUT * len(data))
    if held_out == "all":
        return trained(network, data, seed, test=test)
    return trained(network, data[:first], seed, data[first:], test=test)


def rate(network: str, noise: float, schedule: str, seed: int) -> pd.DataFrame:
    """A training on all images whose learning rate is lowered in some way."""
    test = images("fashion-mnist:test[:2000],size=14")
    watch = {"reduce_lr_after": "surge", "phases_of": "sai_ncsm_scsm"} if schedule == "after the surge" else {}
    return trained(network, noisy(noise, seed), seed, test=test, watch=watch, **RATES[schedule])


def loss(term: str, seed: int) -> pd.DataFrame:
    """A training on 3,000 images of CIFAR-10 with a term beside cross-entropy."""
    data, test = images("cifar10:train[:3000],size=16"), images("cifar10:test[:2000],size=16")
    found = TERMS[term]
    step = {} if found is None else {"step": losses.step(*found)}
    return trained("LeNet", data, seed, test=test, epochs=10, schedule="cosine", **step)


def parts() -> Iterator[tuple[str, Callable[..., pd.DataFrame], tuple[Any, ...]]]:
    """All trainings, those of the first seeds first."""
    for seeds in ROUNDS:
        for seed, noise, held_out in product(seeds, NOISE, ("all", "held out")):
            yield "stop", stop, ("MLP", noise, held_out, seed)
        for seed, term in product(seeds, TERMS):
            yield "losses", loss, (term, seed)
        for seed, noise, schedule in product(seeds, NOISE, RATES):
            yield "rate", rate, ("MLP", noise, schedule, seed)


def main(out: str, *chosen: str) -> None:
    torch.set_num_threads(1)
    for part, run, arguments in parts():
        file = Path(out) / part / f"{'_'.join(map(str, arguments))}.csv"
        if (chosen and part not in chosen) or file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        table = run(*arguments)
        table.to_csv(file.with_suffix(".part"))
        file.with_suffix(".part").rename(file)
        print(part, *arguments, round(float(table["test_accuracy"].iloc[-1]), 3), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
