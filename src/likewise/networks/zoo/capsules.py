"""Capsules with dynamic routing, as Sabour et al. describe them.

The code of Raw Zero-Shot keeps its routing logits between batches, so that an answer depends on
what was asked before. Here they start at zero for every input. Widths and windows are the paper's, and so is the
decoder: it is shown the capsule of the true class alone, 16 numbers, where Sabour et al. show it all capsules with
the others set to zero. So it does not depend on the number of classes. It rebuilds images in [0, 1], which a sigmoid
can reach; that code has it rebuild standardised ones, which it cannot.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.zoo.registry import ImageNetwork, architecture

SMALL = 8  # numbers of a capsule of the first kind


def squash(vectors: Tensor) -> Tensor:
    """Keep the direction, bring the length into [0, 1): |v|² / (1 + |v|²) · v / |v|."""
    square = vectors.square().sum(dim=-1, keepdim=True)
    return vectors * (square + 1e-12).sqrt() / (1 + square)  # the root has no slope at 0


class Routing(nn.Module):
    """From many small capsules to one per class, by agreement."""

    def __init__(self, capsules: int, classes: int, width_in: int, width: int, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.weight = nn.Parameter(0.1 * torch.randn(classes, capsules, width, width_in))

    def forward(self, small: Tensor) -> Tensor:
        votes = torch.einsum("kiov,niv->nkio", self.weight, small)
        fixed = votes.detach()  # gradients flow through the last round alone, as published
        agreement = torch.zeros(votes.shape[:3], device=votes.device, dtype=votes.dtype)
        for _ in range(self.rounds - 1):
            share = agreement.softmax(dim=1)
            result = squash(torch.einsum("nki,nkio->nko", share, fixed))
            agreement = agreement + torch.einsum("nkio,nko->nki", fixed, result)
        return squash(torch.einsum("nki,nkio->nko", agreement.softmax(dim=1), votes))


@architecture("capsnet", summary="Capsules with dynamic routing", source="Sabour et al. 2017, arXiv:1710.09829")
class CapsNet(ImageNetwork):
    """A convolution, capsules of 8, one capsule of 16 per class; a class is as likely as it is long.

    The answers are lengths in [0, 1), not logits, and there is no linear classifier, hence no head. It is trained by
    the margin loss and, with a `decoder`, by how well that rebuilds the image from the capsule of its class:
    `reconstruction` times the mean squared error, Sabour's 0.0005 times the summed one if not given. `width` is
    that of the convolutions, and makes width / 8 capsules at every place.
    """

    head_layer: ClassVar[str | None] = None
    answers: ClassVar[str] = "lengths"
    loss_layer: ClassVar[str] = "routing"

    def __init__(
        self,
        channels: int = 3,
        size: int = 32,
        classes: int = 10,
        rounds: int = 3,
        decoder: bool = True,
        reconstruction: float | None = None,
        width: int = 256,
    ) -> None:
        super().__init__(channels, size)
        if width < SMALL or width % SMALL:
            raise InputError(f"width is {width}, and capsules are of {SMALL} channels. Give a multiple of {SMALL}.")
        roomy = size >= 20  # 8 × 8 and then 9 × 9 windows need 16 pixels, and some left over
        first, second, pad = (8, 9, 0) if roomy else (3, 3, 1)
        self.conv1 = nn.Conv2d(channels, width, first, padding=pad)
        self.primary = nn.Conv2d(width, width, second, stride=2, padding=pad)
        side = (size + 2 * pad - first + 1 + 2 * pad - second) // 2 + 1
        self.routing = Routing(width // SMALL * side**2, classes, SMALL, 16, rounds)
        pixels = channels * size**2
        self.reconstruction = 0.0005 * pixels if reconstruction is None else reconstruction
        self.decoder = _decoder(pixels) if decoder else None

    def answer(self, images: Tensor) -> Tensor:
        maps = self.primary(self.conv1(images).relu())
        small = maps.unflatten(1, (-1, SMALL)).permute(0, 1, 3, 4, 2).flatten(1, 3)
        capsules: Tensor = self.routing(squash(small))
        return (capsules.square().sum(dim=-1) + 1e-12).sqrt()

    def loss(
        self, lengths: Tensor, targets: Tensor, inputs: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Margin loss for targets `(n, classes)`, and what the decoder makes of the images `inputs`.

        Present classes are to be longer than 0.9, others shorter than 0.1. `hidden` are the capsules
        `(n, classes, 16)`; without them the margin loss is all.
        """
        short, long = (0.9 - lengths).relu().square(), (lengths - 0.1).relu().square()
        margin = (targets * short + 0.5 * (1 - targets) * long).sum(dim=1).mean()
        if self.decoder is None or inputs is None or hidden is None:
            return margin
        capsule = torch.einsum("nk,nkv->nv", targets, hidden)
        return margin + self.reconstruction * (self.decoder(capsule) - inputs.flatten(1)).square().mean()


def _decoder(pixels: int) -> nn.Sequential:
    """From one capsule to an image."""
    return nn.Sequential(
        *(nn.Linear(16, 512), nn.ReLU()), *(nn.Linear(512, 1024), nn.ReLU()), *(nn.Linear(1024, pixels), nn.Sigmoid())
    )
