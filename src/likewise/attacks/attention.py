"""Patch-Fool: one patch of an image, chosen and changed by what a vision transformer attends to.

Attention is read where it is computed, from the calls of torch that compute it, so any network that is made of them
will do, whatever library it comes from and whether or not its attention is fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import Target, cross_entropy, target
from likewise.errors import InputError

SHRINK, EVERY = 0.95, 10  # the steps are multiplied by this every so many iterations
_SOFTMAX = (functional.softmax, torch.softmax, Tensor.softmax)


@attack(
    name="patch-fool", norm="patch", source="Fu et al. 2022, arXiv:2203.08392", aliases=("PatchFool",), trains=False
)
def patch_fool(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    patches: int = 1,
    layer: int = 4,
    iterations: int = 250,
    rate: float = 0.22,
    weight: float = 0.002,
    seed: int = 0,
) -> Adversarial:
    """The patch a vision transformer attends to most is replaced by what misleads it, the rest stays as it is.

    The patch is that of most attention in `layer` (counted from 0; the last one of a shallower network). From random
    values in [0, 1] it follows Adam at `rate` along the gradient of the cross-entropy, and by `weight` along those of
    the attention to it in layers 1 to half the depth, without their part against the former.

    Options:
        patches: How many patches are replaced.
        layer: The layer whose attention counts, from 0.
        rate: The learning rate of Adam.
        weight: What attention counts beside the cross-entropy.
    """
    if patches < 1 or iterations < 0 or layer < 0 or not rate > 0:
        raise InputError(
            f"patches is {patches}, layer {layer}, iterations {iterations} and rate {rate}. Give at least one patch, a "
            "rate above 0, and nothing below 0."
        )
    with target(net, images, labels, exact=True) as aim:
        seen = Attention(len(aim.clean))
        with seen, torch.no_grad():
            aim.answer(aim.clean)
        grid, prefix = _tokens(aim, seen.maps)
        received = seen.maps[min(layer, len(seen.maps) - 1)].mean(dim=(1, 2))[:, prefix:]
        if patches > received.shape[1]:
            raise InputError(f"patches is {patches}, and the image has {received.shape[1]}. Give fewer.")
        tokens = received.topk(patches, dim=1).indices
        mask = _mask(tokens, grid, aim.clean)
        noise = torch.rand(aim.clean.shape, generator=torch.Generator().manual_seed(seed), dtype=aim.clean.dtype)
        patch = noise.to(aim.clean.device)
        adam = torch.optim.Adam([patch], lr=rate, maximize=True)
        for number in range(iterations):
            adam.param_groups[0]["lr"] = rate * SHRINK ** (number // EVERY)
            patch.grad = _slope(aim, torch.where(mask, patch, aim.clean), tokens + prefix, mask, weight)
            adam.step()
            patch.clamp_(0, 1)
        return Adversarial(torch.where(mask, patch, aim.clean).detach(), aim.labels, aim.stalled)


def _slope(aim: Target, images: Tensor, tokens: Tensor, mask: Tensor, weight: float) -> Tensor:
    """Where the loss rises, and the attention to some tokens, within the mask."""
    images, seen = images.detach().requires_grad_(True), Attention(len(images))
    with seen:
        losses = cross_entropy(aim.answer(images), aim.labels)
    total = main = (aim.slope_of(losses, images, keep_graph=True) * mask).flatten(1)
    for weights in seen.maps[1 : len(seen.maps) // 2]:
        attended = weights.mean(dim=1).clamp(min=1e-12).log().mean(dim=1).gather(1, tokens).mean(dim=1)
        (slope,) = torch.autograd.grad(attended.sum(), images, retain_graph=True)
        total = total + weight * without_conflict((slope * mask).flatten(1), main)
    return total.view_as(images)


def without_conflict(slope: Tensor, main: Tensor) -> Tensor:
    """Each row without its part along another row, where the two point apart (PCGrad).

    >>> without_conflict(torch.tensor([[-1.0, 1.0], [1.0, 1.0]]), torch.tensor([[2.0, 0.0], [2.0, 0.0]]))
    tensor([[0., 1.],
            [1., 1.]])
    """
    along = (slope * main).sum(dim=1, keepdim=True).clamp(max=0)
    return slope - along / (main * main).sum(dim=1, keepdim=True).clamp(min=1e-30) * main


class Attention(TorchFunctionMode):
    """Keeps the attention `(n, heads, tokens, tokens)` of every layer that is run meanwhile, in order."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.maps: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Run what was called, and look at it if it is attention."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            self._keep(_weights(*args, **kwargs))
        elif func in _SOFTMAX:
            self._keep(result)
        return result

    def _keep(self, weights: Tensor) -> None:
        if weights.ndim == 4 and len(weights) == self.n and weights.shape[2] == weights.shape[3]:
            self.maps.append(weights)


def _weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What torch multiplies the values by: the softmax of query · key, scaled and masked."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    return scores.softmax(dim=-1)


def _tokens(aim: Target, maps: list[Tensor]) -> tuple[tuple[int, int], int]:
    """How many patches an image has, down and across, and how many tokens come before them."""
    name, images = aim.name, aim.clean
    counts = {weights.shape[-1] for weights in maps}
    sides = _patch_sides(aim.net, images) or (1, 1)
    grid = (images.shape[-2] // sides[0], images.shape[-1] // sides[1])
    prefix = max(counts, default=0) - grid[0] * grid[1]
    if len(counts) != 1 or prefix < 0:
        raise InputError(
            f"patch-fool needs a vision transformer, with one attention over all patches per layer, and {name} shows "
            "none. Choose another attack, such as pgd."
        )
    if (grid[0] * sides[0], grid[1] * sides[1]) != tuple(images.shape[2:]):
        raise InputError(
            f"the {sides[0]} × {sides[1]} patches of {name} do not tile images of {images.shape[2]} × "
            f"{images.shape[3]}. Give images of the size it was built for."
        )
    return grid, prefix


def _patch_sides(net: nn.Module, images: Tensor) -> tuple[int, int] | None:
    """The sides of the patches that a convolution cuts an image into."""
    for module in net.modules():
        cuts = isinstance(module, nn.Conv2d) and module.kernel_size == module.stride and max(module.stride) > 1
        if cuts and images.ndim == 4 and module.in_channels == images.shape[1]:
            return module.stride[0], module.stride[1]  # type: ignore[index, return-value]
    return None


def _mask(patches: Tensor, grid: tuple[int, int], images: Tensor) -> Tensor:
    """True at the pixels of these patches."""
    cells = torch.zeros(len(patches), grid[0] * grid[1], device=images.device).scatter(1, patches, 1)
    return functional.interpolate(cells.view(-1, 1, *grid), images.shape[2:], mode="nearest").bool().expand_as(images)
