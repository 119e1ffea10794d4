"""Networks that do not convolve over the whole image: MLP, ViT, MLP-Mixer, and a patch network.

Attention is written out from linear layers, so that each of its parts can be looked at: torch's
fused encoder skips the layers it is made of.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.networks.zoo.registry import ImageNetwork, architecture

# Published weights of torch's encoder name the same tensors by where torch keeps them.
_TORCH_ENCODER = (
    (r"^patch_embed\.proj\.", "patch_embed."),
    (r"^mlp_head\.0\.", "norm."),
    (r"^mlp_head\.1\.", "fc."),
    (r"^transformer\.layers\.", "blocks."),
    (r"\.self_attn\.in_proj_", ".attention.qkv."),
    (r"\.self_attn\.out_proj\.", ".attention.proj."),
)
_VIT = "Dosovitskiy et al. 2020, arXiv:2010.11929"


@architecture("mlp", summary="Multi-layer perceptron, two hidden layers of 256")
class MLP(ImageNetwork):
    """Hidden layers with ReLU on the flattened image."""

    def __init__(self, hidden: int = 256, depth: int = 2, channels: int = 3, size: int = 32, classes: int = 10) -> None:
        super().__init__(channels, size)
        widths = [channels * size**2, *[hidden] * depth]
        layers: list[nn.Module] = []
        for before, width in pairwise(widths):
            layers += [nn.Linear(before, width), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.fc = nn.Linear(widths[-1], classes)

    def answer(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.fc(self.hidden(images.flatten(1))))


def patch_side(size: int) -> int:
    """The smallest patch that cuts the image into at most 8 × 8 pieces: 4 for 32 and 28 pixels."""
    return next(side for side in range(2, size + 1) if size % side == 0 and size <= 8 * side)


class Attention(nn.Module):
    """Self-attention with several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return cast(Tensor, self.proj(mixed.transpose(1, 2).flatten(2)))


class Encoder(nn.Module):
    """Attention and a two-layer MLP, each with a shortcut; normalised before or after."""

    def __init__(self, width: int, heads: int, hidden: int, norm: Literal["pre", "post"], act: nn.Module) -> None:
        super().__init__()
        self.norm, self.act = norm, act
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.norm == "pre":
            tokens = tokens + self.attention(self.norm1(tokens))
            return tokens + self.mlp(self.norm2(tokens))
        tokens = self.norm1(tokens + self.attention(tokens))
        return cast(Tensor, self.norm2(tokens + self.mlp(tokens)))

    def mlp(self, tokens: Tensor) -> Tensor:
        return cast(Tensor, self.linear2(self.act(self.linear1(tokens))))

    mlp.__doc__ = "The feed-forward part of the block."  # beside it: the code is part of the network's fingerprint


@architecture(
    "vit-tiny-post",
    norm="post",
    summary="The same, normalised after each part, with ReLU",
    source=_VIT,
    renames=_TORCH_ENCODER,
)
@architecture("vit-tiny", summary="Vision transformer, 6 blocks of width 128", source=_VIT)
class ViT(ImageNetwork):
    """Vision transformer on small patches, answering from a class token."""

    def __init__(
        self,
        width: int = 128,
        depth: int = 6,
        heads: int = 8,
        hidden: int = 256,
        norm: Literal["pre", "post"] = "pre",
        channels: int = 3,
        size: int = 32,
        classes: int = 10,
    ) -> None:
        super().__init__(channels, size)
        patch = patch_side(size)
        self.patch_embed = nn.Conv2d(channels, width, patch, stride=patch)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + (size // patch) ** 2, width))
        act: nn.Module = nn.GELU() if norm == "pre" else nn.ReLU()
        self.blocks = nn.Sequential(*(Encoder(width, heads, hidden, norm, act) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, classes)

    def answer(self, images: Tensor) -> Tensor:
        tokens = self.patch_embed(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], dim=1)
        tokens = self.blocks(tokens + self.pos_embed)
        return cast(Tensor, self.fc(self.norm(tokens[:, 0])))


class MixerBlock(nn.Module):
    """One MLP across the patches, one across the channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(patches, width // 2), nn.GELU(), nn.Linear(width // 2, patches))
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.tokens(self.norm1(tokens).transpose(1, 2)).transpose(1, 2)
        return cast(Tensor, tokens + self.channels(self.norm2(tokens)))


@architecture(
    "mixer-tiny", summary="MLP-Mixer, 6 blocks of width 128", source="Tolstikhin et al. 2021, arXiv:2105.01601"
)
class Mixer(ImageNetwork):
    """MLP-Mixer: patches, and nothing but MLPs on them."""

    def __init__(self, width: int = 128, depth: int = 6, channels: int = 3, size: int = 32, classes: int = 10) -> None:
        super().__init__(channels, size)
        patch = patch_side(size)
        self.patch_embed = nn.Conv2d(channels, width, patch, stride=patch)
        patches = (size // patch) ** 2
        self.blocks = nn.Sequential(*(MixerBlock(patches, width) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, classes)

    def answer(self, images: Tensor) -> Tensor:
        tokens = self.blocks(self.patch_embed(images).flatten(2).transpose(1, 2))
        return cast(Tensor, self.fc(self.norm(tokens).mean(dim=1)))


@architecture("conv-mlp", summary="Averaged patches and an MLP")
class PatchMLP(ImageNetwork):
    """One convolution over patches, averaged, then one hidden layer."""

    head_layer = "mlp.4"

    def __init__(self, patch: int = 4, channels: int = 3, classes: int = 10) -> None:
        super().__init__(channels)
        conv = nn.Conv2d(channels, 128, patch, stride=patch)
        self.cnn = nn.Sequential(conv, nn.ReLU(), nn.BatchNorm2d(128))
        self.mlp = nn.Sequential(
            *(nn.Linear(128, 256), nn.ReLU(), nn.BatchNorm1d(256)), *(nn.Dropout(0.1), nn.Linear(256, classes))
        )

    def answer(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.mlp(self.cnn(images).mean(dim=(2, 3))))
