"""Small networks for studies of many: `python -m studies.small_networks [0/2 | PATTERN ...]` trains them.

The zoo of `studies.fashion_networks` at 14 x 14 pixels and on 3,000 images, so that each trains in about ten seconds:
initialisations of eleven architectures, and ResNets that differ by hyper-parameters or regime. A run that was stopped
is resumed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import torch

import likewise
from studies import fashion_networks as large

RUNS = Path(os.environ.get("LIKEWISE_STUDY", Path(__file__).parent / "runs")) / "small"
SIZE = ",size=14"
TRAIN, VALIDATE = f"fashion-mnist:train[:3000]{SIZE}", f"fashion-mnist:train[-1000:]{SIZE}"
EPOCHS = {"lenet": 6, "mlp": 8, "vit": 6, "mixer": 6, "efficientnet": 5, "byobnet": 4}  # others 3
SEEDS = {"resnet": 6, "lenet": 3, "mlp": 4, "efficientnet": 3, "efficientnet-gn": 3, "nfnet": 3, "mambaout": 4}
SEEDS |= {"byobnet": 3, "resnet-timm": 4, "mixer": 2, "vit": 1}


@dataclass(frozen=True)
class Small(large.Trained):
    """One network of the zoo, at a quarter of the pixels."""

    @property
    def folder(self) -> Path:
        """Where the training leaves its weights."""
        return RUNS / self.name

    def train(self) -> float:
        """Train it, or take what is there; the accuracy on images it was not trained on."""
        settings = large.BASE | self.settings | {"epochs": EPOCHS.get(self.architecture, 3)}
        done = likewise.train(self.address, TRAIN, validation=VALIDATE, out=self.folder, progress=False, **settings)
        return float(done.history[-1]["validation_accuracy"])


def zoo() -> list[Small]:
    """All networks, one of each kind first: initialisations of all, and ResNets by hyper-parameters and regime."""
    plain = [one for one in large.zoo() if not {"teacher", "adversarial"} & set(one.settings)]
    first = {one.architecture: one for one in plain if one.name == f"{one.architecture}-0"}
    grown = [one for one in plain if one.architecture == "resnet" and one.group != "initialisation"]
    seeds = [
        replace(
            first[architecture], name=f"{architecture}-{seed}", settings=first[architecture].settings | {"seed": seed}
        )
        for seed in range(max(SEEDS.values()))
        for architecture, count in SEEDS.items()
        if seed < count
    ]
    return [Small(one.name, one.address, one.architecture, one.group, one.settings) for one in (*seeds, *grown)]


@cache
def trained() -> tuple[Small, ...]:
    """The networks that are there."""
    return tuple(one for one in zoo() if Path(one.weights).is_file())


def main(arguments: list[str]) -> int:
    """Train what is asked for, or all."""
    torch.set_num_threads(1)
    chosen = zoo()
    for argument in arguments:
        if "/" in argument:
            first, step = (int(part) for part in argument.split("/"))
            chosen = chosen[first::step]
        else:
            chosen = [one for one in chosen if fnmatchcase(one.name, argument)]
    for one in chosen:
        sys.stdout.write(f"{one.name:24} {one.train():.4f}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
