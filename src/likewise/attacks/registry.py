"""The registry of attacks: a function of a network and a batch, with its facts beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor, nn

from likewise._base.registry import Registry, module_of


class Adversarial(NamedTuple):
    """What an attack made of a batch: the changed images, the labels it led away from (or towards).

    `stalled` counts, per image, the steps at which the loss had no gradient.
    """

    images: Tensor
    labels: Tensor
    stalled: Tensor


@dataclass(frozen=True)
class Attack:
    """One attack: `run(net, images, labels, **options)` gives an `Adversarial`.

    `norm` is what keeps the change small; the first line of the docstring is the summary.
    """

    name: str
    run: Callable[..., Adversarial]
    norm: str
    source: str
    summary: str

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor | None = None, **options: Any) -> Adversarial:
        return self.run(net, images, labels, **options)


ATTACKS: Registry[Attack] = Registry("attack", group="likewise.attacks", modules=("likewise.attacks.*",))


def attack(
    *, name: str, norm: str, source: str, aliases: tuple[str, ...] = ()
) -> Callable[[Callable[..., Adversarial]], Attack]:
    """Declare an attack `f(net, images, labels=None, *, ...) -> Adversarial`."""

    def declare(run: Callable[..., Adversarial]) -> Attack:
        summary = (run.__doc__ or "").split("\n")[0]
        return ATTACKS.add(name, Attack(name, run, norm, source, summary), aliases, module=module_of(run))

    return declare
