"""Attacks that follow the gradient of the loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.attacks.registry import attack
from likewise.errors import InputError
from likewise.networks.forward import at_rest
from likewise.networks.forward import logits as answer


@attack(name="pgd", norm="Linf", source="Madry et al. 2018, arXiv:1706.06083")
def pgd(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = 0.05,
    step: float = 0.001,
    iterations: int = 2,
    random_start: bool = True,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Projected gradient descent in the maximum norm; the changed images, and the labels led away from.

    From a random point within `eps` of the images, `iterations` steps of `step` along the sign of the
    gradient of the cross-entropy, kept within `eps` and within [0, 1]. Without labels, away from what the
    network answers before. The defaults are those of Deep Similarity Inspector's appendix K. The network
    is left as it was.
    """
    if not images.is_floating_point() or float(images.min()) < 0 or float(images.max()) > 1:
        raise InputError("an attack needs images as floats between 0 and 1. Scale them first.")
    with at_rest(net, input_gradients=True):
        clean = images.detach().clone()
        truth = answer(net, clean).argmax(dim=1) if labels is None else labels.detach().clone()
        moved = clean.clone()
        if random_start:
            draw = torch.Generator().manual_seed(seed)
            noise = torch.rand(clean.shape, generator=draw, dtype=clean.dtype)
            moved = (clean + (2 * noise.to(clean.device) - 1) * eps).clamp(0, 1)
        for _ in range(iterations):
            moved.requires_grad_(True)
            loss = functional.cross_entropy(answer(net, moved), truth, reduction="sum")
            (slope,) = torch.autograd.grad(loss, moved)
            moved = moved.detach() + step * slope.sign()
            moved = clean + (moved - clean).clamp(-eps, eps)
            moved = moved.clamp(0, 1)
    return moved.detach(), truth
