"""Adversarial training: every batch is attacked before the network learns from it.

Attacks live in a later room, which adds itself to this registry; its path is loaded when a training asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch import Generator, Tensor, nn

from likewise._base.registry import Registry


class Adversary(Protocol):
    """What makes a batch harder; `record` holds the options that decide how, as plain values."""

    @property
    def record(self) -> dict[str, Any]:
        """The attack and its options."""

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        """The images of a batch, changed to mislead the network as it is now."""


ADVERSARIES: Registry[Callable[[Mapping[str, Any]], Adversary]] = Registry(
    "adversary", group="likewise.adversaries", modules=("likewise.attacks.training",)
)


def adversary(options: Mapping[str, Any]) -> Adversary:
    """The attack that `Settings.adversarial` describes, its options checked."""
    return ADVERSARIES.get("attack")(options)
