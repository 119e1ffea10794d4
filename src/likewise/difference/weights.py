"""Which weights of a network changed in a copy of it, and how many became zero."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise._base.machine import on_precise_device
from likewise.difference.counterparts import counterparts
from likewise.networks import unwrapped
from likewise.networks.anatomy.adapters import merged_weights


@dataclass(frozen=True)
class WeightChange:
    """Weights that both networks have under one name and in one shape."""

    shared: int  # how many such tensors there are
    changed: tuple[tuple[str, float], ...]  # those that differ, with |W - V| / |W|, in the order of the network
    other: int  # how many tensors are in one network only, or of another shape
    zeros: tuple[float, float]  # shares of zeros among the shared weights, before and after


def weight_changes(a: nn.Module, b: nn.Module) -> WeightChange:
    """Which parameters and buffers of two networks differ."""
    left, right = (_tensors(net) for net in (a, b))
    same = counterparts(left, right)
    right = {same.get(name, f"{name} of the other"): value for name, value in right.items()}
    common = [name for name, value in left.items() if name in right and right[name].shape == value.shape]
    changed, zeros, numbers = [], [0, 0], 0
    for name in common:
        first = on_precise_device(left[name]).double()
        second = right[name].to(first.device).double()
        numbers += first.numel()
        zeros = [zeros[0] + int((first == 0).sum()), zeros[1] + int((second == 0).sum())]
        if not torch.equal(first, second):
            scale = float(first.norm())
            changed.append((name, float((first - second).norm()) / scale if scale else float("inf")))
    other = len(left.keys() | right.keys()) - len(common)
    shares = (zeros[0] / max(numbers, 1), zeros[1] / max(numbers, 1))
    return WeightChange(len(common), tuple(changed), other, shares)


def _tensors(net: nn.Module) -> dict[str, Tensor]:
    """Weights and statistics by name; those of quantised layers as the numbers they stand for.

    A weight that torch prunes is kept as two, `weight_orig` and `weight_mask`: it is their product. Adapters are
    merged.
    """
    kept = _dequantised(net, {name: value for name, value in merged_weights(net).items() if value.numel() > 0})
    weights = {}
    for name, value in kept.items():
        whole = name.removesuffix("_orig")
        if name.endswith("_mask") and f"{name.removesuffix('_mask')}_orig" in kept:
            continue
        pruned = whole != name and f"{whole}_mask" in kept
        weights[whole if pruned else name] = value * kept[f"{whole}_mask"] if pruned else value
    return weights


def _dequantised(net: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights with what torch packs into layers of whole numbers, and without the scales of such layers."""
    packed = "._packed_params._packed_params"
    state = {name: value for name, value in unwrapped(net).state_dict().items() if name.endswith(packed)}
    layers = {name.removesuffix(packed): value for name, value in state.items() if isinstance(value, tuple)}
    quantised = {name.removesuffix(".weight") for name, value in weights.items() if value.is_quantized} | set(layers)
    scales = {f"{layer}.{fact}" for layer in quantised for fact in ("scale", "zero_point")}
    tensors = {name: value for name, value in weights.items() if name not in scales}
    for layer, (weight, bias) in layers.items():
        tensors[f"{layer}.weight"] = weight
        tensors |= {} if bias is None else {f"{layer}.bias": bias}
    return {name: value.dequantize() if value.is_quantized else value for name, value in tensors.items()}
