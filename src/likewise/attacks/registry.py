"""The registry of attacks: a function of a network and a batch, with its facts beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise._base.registry import Registry, module_of


@dataclass(frozen=True)
class Attack:
    """One attack: `run(net, images, labels, **options)` gives the changed images and the labels led away from.

    `norm` is what keeps the change small; the first line of the docstring is the summary.
    """

    name: str
    run: Callable[..., tuple[Tensor, Tensor]]
    norm: str
    source: str
    summary: str

    def __call__(
        self, net: nn.Module, images: Tensor, labels: Tensor | None = None, **options: Any
    ) -> tuple[Tensor, Tensor]:
        return self.run(net, images, labels, **options)


ATTACKS: Registry[Attack] = Registry("attack", group="likewise.attacks", modules=("likewise.attacks.*",))


def attack(
    *, name: str, norm: str, source: str, aliases: tuple[str, ...] = ()
) -> Callable[[Callable[..., tuple[Tensor, Tensor]]], Attack]:
    """Declare an attack `f(net, images, labels=None, *, ...) -> (changed images, labels led away from)`."""

    def declare(run: Callable[..., tuple[Tensor, Tensor]]) -> Attack:
        summary = (run.__doc__ or "").split("\n")[0]
        return ATTACKS.add(name, Attack(name, run, norm, source, summary), aliases, module=module_of(run))

    return declare
