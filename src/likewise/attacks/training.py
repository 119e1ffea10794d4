"""Attacks as a part of training: what `adversarial=dict(attack="pgd", eps=8/255, iterations=10)` means.

Examples are made from the network as it is at each batch, in evaluation mode, so that the attack moves no statistics
of batch normalisation. Defaults follow the usual practice of adversarial training (Madry et al. 2018): `eps` 8/255, 10
iterations, and steps that reach 2.5 times as far as `eps`. The network itself is attacked; `exact=False` attacks a
faster copy, whose rounding then shows in the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import torch
from torch import Generator, Tensor, nn

from likewise.attacks.registry import ATTACKS, Attack
from likewise.attacks.steps import EPS
from likewise.errors import InputError, OptionError, brief
from likewise.networks.training.step import ADVERSARIES

USUAL = {"eps": EPS, "iterations": 10}
EXACT = {"exact": True}
REACH = 2.5  # how far all steps go together, in eps
_SETTLED = {"seed": "follows from the seed of the training", "targeted": "would lead to the labels, not away"}


@dataclass(frozen=True)
class AttackedBatch:
    """An attack with its options, as a step of training calls it."""

    attack: Attack
    options: dict[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        """The attack and those of its options that are not its defaults, eps and iterations always."""
        defaults = self.attack.options | EXACT
        kept = {name: value for name, value in self.options.items() if name in USUAL or value != defaults[name]}
        return {"attack": self.attack.name} | kept

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        """The images of a batch, changed to mislead the network as it is now."""
        draw = int(torch.randint(2**31, (), generator=generator))
        seed = {"seed": draw} if "seed" in self.attack.options else {}
        return self.attack(net, images, labels, **self.options, **seed)[0].detach()


def attacked_batch(options: Mapping[str, Any]) -> AttackedBatch:
    """The attack these options name, all of them checked; `steps` is another word for `iterations`."""
    settings = dict(options)
    name = settings.pop("attack", "pgd")
    if not isinstance(name, str):
        raise InputError(f"the attack to train against is {brief(name)}. Give its name, such as 'pgd'.")
    attack = ATTACKS.get(name)
    if not attack.trains:
        raise InputError(f"{attack.name} makes no examples to train on. Choose another attack, such as 'pgd'.")
    if "steps" in settings and "steps" not in attack.options and "iterations" not in settings:
        settings["iterations"] = settings.pop("steps")
    attack.check(settings)
    for option, reason in _SETTLED.items():
        if option in settings:
            raise OptionError(f"{option} {reason}. Leave it out of adversarial.")
    usual = {option: value for option, value in (USUAL | EXACT).items() if option in attack.options}
    whole = usual | settings
    missing = [option for option, value in attack.options.items() if value is Parameter.empty and option not in whole]
    if missing:
        raise OptionError(f"{attack.name} needs the option {missing[0]!r}. Give it in adversarial.")
    if "relative_step" in attack.options and whole.get("step") is None and whole.get("relative_step") is None:
        whole["relative_step"] = REACH / max(whole["iterations"], 1)
    return AttackedBatch(attack, whole)


ADVERSARIES.add("attack", attacked_batch, module=__name__)
