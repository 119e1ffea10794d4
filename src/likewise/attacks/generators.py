"""Generators for the attack `generator`: they change images so that a middle layer of a network sees others in them.

Trained once on one network (BIA: beyond ImageNet attack), they change any image in one pass, and also mislead networks
that were trained on other classes, since they follow no label.
"""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.attacks.steps import EPS, Ball, target
from likewise.errors import InputError, brief, check_count, check_seed, did_you_mean


class ImageGenerator(nn.Module):
    """Images to changed images of the same shape: two halvings, residual blocks, two doublings."""

    def __init__(self, channels: int = 3, width: int = 16, blocks: int = 2) -> None:
        """Build it.

        Args:
            channels: Channels of the images.
            width: Channels of the first layer; the blocks have four times as many.
            blocks: Residual blocks.
        """
        super().__init__()
        wide = 4 * width
        self.down = nn.Sequential(
            _layer(channels, width, 7), _layer(width, 2 * width, 3, 2), _layer(2 * width, wide, 3, 2)
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(_layer(wide, wide, 3), nn.Conv2d(wide, wide, 3, padding=1), nn.InstanceNorm2d(wide))
            for _ in range(blocks)
        )
        self.up = nn.Sequential(_layer(wide, 2 * width, 3), _layer(2 * width, width, 3))
        self.last = nn.Conv2d(width, channels, 7, padding=3)

    def forward(self, images: Tensor) -> Tensor:
        """Changed images in [0, 1]."""
        maps = self.down(images)
        for block in self.blocks:
            maps = maps + block(maps)
        maps = functional.interpolate(maps, size=images.shape[2:], mode="nearest")
        return torch.sigmoid(self.last(self.up(maps)))


def train_generator(
    net: nn.Module,
    images: Tensor,
    layer: str,
    *,
    eps: float = EPS,
    epochs: int = 1,
    batch_size: int = 16,
    lr: float = 2e-4,
    width: int = 16,
    blocks: int = 2,
    seed: int = 0,
) -> ImageGenerator:
    """Train a generator that makes a layer of a network see its images as unlike the clean ones as it can.

    The loss is the mean cosine of what the layer gives for the changed image, within `eps`, and for the clean one
    (Zhang et al. 2022, arXiv:2201.11528). The paper's are 64 channels wide, on all of ImageNet, within 10/255.

    Args:
        net: The network, which is left as it was.
        images: Images in [0, 1], (n, channels, height, width).
        layer: A module of the network by name; the paper takes one in the middle.
        eps: How far an image may move, in the largest norm.
        epochs: How often all images are shown.
        batch_size: Images per step.
        lr: The learning rate of Adam.
        width: Channels at full size.
        blocks: Residual blocks.
        seed: Of the first weights and of the order of images.

    Returns:
        The generator, for `likewise.attacks.generator(..., generator=it)`.

    Raises:
        InputError: There is no such layer, or a setting is no number above 0.

    Example:
        >>> net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
        >>> model = train_generator(net, torch.rand(8, 1, 8, 8), "0", epochs=1, width=4)
        >>> model(torch.rand(2, 1, 8, 8)).shape
        torch.Size([2, 1, 8, 8])
    """
    for name, value in {"epochs": epochs, "batch_size": batch_size, "width": width, "blocks": blocks}.items():
        check_count(name, value)
    if not isinstance(lr, Real) or not lr > 0:
        raise InputError(f"lr is {brief(lr)}. Give a number above 0.")
    check_seed(seed)
    ball = Ball(eps)
    with target(net, images, None, exact=True) as aim, torch.random.fork_rng():
        if aim.clean.ndim != 4:
            raise InputError(
                f"a generator was shown {tuple(aim.clean.shape)}. Give images (n, channels, height, width)."
            )
        modules = dict(aim.net.named_modules())
        if not isinstance(layer, str) or layer not in modules or not layer:
            close = did_you_mean(str(layer), modules)
            raise InputError(f"{aim.name} has no layer {brief(layer)}.{close} Give a module by name.")
        torch.manual_seed(seed)
        model = ImageGenerator(aim.clean.shape[1], width, blocks).to(aim.clean)
        optimiser = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.5, 0.999))
        maps: list[Tensor] = []
        handle = modules[layer].register_forward_hook(lambda _, __, output: maps.append(output))
        try:
            for _ in range(epochs):
                for rows in torch.split(torch.randperm(len(aim.clean)), batch_size):
                    clean = aim.clean[rows]
                    with torch.no_grad():
                        aim.answer(clean)
                    aim.answer(ball.project(model(clean), clean))
                    before, after = (found.flatten(1) for found in maps)
                    maps.clear()
                    optimiser.zero_grad()
                    torch.autograd.backward(functional.cosine_similarity(after, before, dim=1).mean())
                    optimiser.step()
        finally:
            handle.remove()
    return model.eval()


def _layer(inner: int, outer: int, window: int, stride: int = 1) -> nn.Sequential:
    """Convolution that keeps the size or halves it, normalised per image, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inner, outer, window, stride, padding=window // 2),
        nn.InstanceNorm2d(outer, affine=True),
        nn.ReLU(),
    )
