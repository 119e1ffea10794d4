"""Examples made by a network: one that was trained to change images so that others fail."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import Ball, Norm, target
from likewise.errors import InputError
from likewise.networks.forward import at_rest


@attack(name="generator", norm="Linf", source="Zhang et al. 2022, arXiv:2201.11528", aliases=("BIA",), trains=False)
def generate(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    generator: nn.Module | None = None,
    eps: float = 10 / 255,
    norm: Norm = "Linf",
) -> Adversarial:
    """What a generator of one's own makes of the images, kept near them.

    The `generator` takes images in [0, 1] and gives images of the same shape. These are brought within `eps` and
    within [0, 1]. The network itself is asked for its answers only.
    """
    if not isinstance(generator, nn.Module):
        raise InputError("the attack 'generator' needs a network that changes images. Pass generator=NETWORK.")
    ball = Ball(eps, norm)
    with target(net, images, labels, exact=True) as aim, at_rest(generator) as made_by, torch.no_grad():
        moved = made_by(aim.clean)
        given = tuple(moved.shape) if isinstance(moved, Tensor) else type(moved).__name__
        if given != tuple(aim.clean.shape) or not bool(moved.isfinite().all()):
            raise InputError(
                f"{type(made_by).__name__} makes {given} of images {tuple(aim.clean.shape)}. Give a generator whose "
                "images have the shape of those it is shown, and finite values."
            )
        return Adversarial(ball.project(moved, aim.clean), aim.labels, aim.stalled)
