"""How networks are trained: as in the paper's code, or in minutes.

`paper` follows that code: 200 epochs (50 for capsules), batches of 64, no augmentation, a schedule per architecture.
Two things differ. It penalises the squares of kernels, λ |w|², where torch's weight decay is half of that and takes in
biases: ours is 2 λ, of all weights. And its networks start from He's initial weights, ours from torch's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likewise.errors import InputError, did_you_mean
from likewise.networks import Settings
from likewise.networks.address import is_checkpoint, parse
from likewise.networks.zoo import ZOO


@dataclass(frozen=True)
class Steps:
    """A schedule: factors of the learning rate, each until so many of `epochs` are done."""

    epochs: int
    until: tuple[int, ...]
    factors: tuple[float, ...]

    def __call__(self, share: float) -> float:
        """The factor after a share of all epochs."""
        return self.factors[sum(share >= mark / self.epochs for mark in self.until)]


@dataclass(frozen=True)
class Decay:
    """A schedule: exp(-epoch / scale), constant within an epoch of the `epochs` it was made for."""

    epochs: int
    scale: float

    def __call__(self, share: float) -> float:
        """The factor after a share of all epochs."""
        return math.exp(-math.floor(share * self.epochs + 1e-9) / self.scale)


@dataclass(frozen=True)
class Preset:
    """Settings of the training, options the network is built with, and the most samples per class it is shown."""

    settings: Settings
    options: Mapping[str, Any] = field(default_factory=dict)
    per_class: int | None = None


def _paper(rate: float, until: tuple[int, ...], rates: tuple[float, ...], decay: float = 1e-4, **more: Any) -> Preset:
    factors = (1.0, *(later / rate for later in rates))
    schedule = Steps(200, until, factors)
    return Preset(Settings(epochs=200, batch_size=64, lr=rate, weight_decay=2 * decay, schedule=schedule), more)


_ADAM: dict[str, Any] = {"batch_size": 64, "optimiser": "adam"}
PAPER = {
    "lenet": _paper(0.01, (100, 150), (0.005, 0.001)),
    "nin": _paper(0.05, (61, 121, 161), (0.01, 0.002, 0.0004)),
    "allconv": Preset(Settings(epochs=200, lr=1e-4, weight_decay=2e-4, schedule="constant", **_ADAM)),
    "resnet32-pre": _paper(0.1, (80, 150), (0.01, 0.001)),
    "wideresnet": _paper(0.1, (61, 121, 161), (0.02, 0.004, 0.0008), 5e-4, project_every=True),
    "densenet": _paper(0.1, (76, 151), (0.01, 0.001), last_transition=True),
    "capsnet": Preset(
        Settings(epochs=50, lr=1e-3, weight_decay=0.0, schedule=Decay(50, 10.0), **_ADAM), {"reconstruction": 0.1}
    ),
}
OTHERS = PAPER["resnet32-pre"]  # of networks that the paper did not train
SMALL = Preset(
    Settings(epochs=5, batch_size=64, optimiser="adamw", lr=2e-3, weight_decay=0.01, warmup=0.5), per_class=500
)
NAMES = ("paper", "small")


def preset_of(name: str, network: Any) -> Preset:
    """How a network is trained under a preset: `paper`, which differs by architecture, or `small`."""
    if name not in NAMES:
        raise InputError(f"no preset named {name!r}.{did_you_mean(str(name), NAMES)} Give {' or '.join(NAMES)}.")
    if name == "small":
        return SMALL
    if not isinstance(network, str) or is_checkpoint(network) or (address := parse(network)).prefix != "zoo":
        return OTHERS
    return PAPER.get(ZOO.get(address.name).name, OTHERS)  # by any of its aliases
