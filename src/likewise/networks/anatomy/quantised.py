"""The numbers that quantised and offloaded weights stand for: of torch, of bitsandbytes and torchao, of accelerate."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch import Tensor, nn

from likewise.networks.anatomy.adapters import merged_weights
from likewise.networks.inputs.normalisation import unwrapped

_PACKED = "._packed_params._packed_params"  # where torch keeps the weight and bias of a layer of whole numbers


def plain_weights(net: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, adapters merged; those of quantised layers as the numbers they stand for.

    What accelerate keeps elsewhere is on the device "meta": `present` reads it.
    """
    inside = unwrapped(net)
    layers = {**_packed(inside), **_of_bitsandbytes(inside)}
    weights: dict[str, Tensor] = {}
    for name, value in merged_weights(net).items():
        layer = next((layer for layer in layers if name.startswith(f"{layer}.")), None)
        weights |= {name: value} if layer is None else layers[layer]
    quantised = {name.removesuffix(".weight") for name, value in weights.items() if value.is_quantized}
    facts = {f"{layer}.{fact}" for layer in quantised for fact in ("scale", "zero_point")}
    return {name: _numbers(value) for name, value in weights.items() if name not in facts}


def present(net: nn.Module, name: str, value: Tensor) -> Tensor:
    """A weight, read from where accelerate keeps it if it is not in memory."""
    if not value.is_meta:
        return value
    layer, _, key = name.rpartition(".")
    hook: Any = unwrapped(net).get_submodule(layer)._hf_hook
    hooks = getattr(hook, "hooks", [hook])
    kept: Tensor = next(one.weights_map for one in hooks if getattr(one, "weights_map", None) is not None)[key]
    return kept


def _numbers(value: Tensor) -> Tensor:
    is_ours = type(value).__module__.partition(".")[0] == "torchao"
    return value.dequantize() if value.is_quantized or is_ours else value


def _packed(net: nn.Module) -> dict[str, dict[str, Tensor]]:
    """The tensors of layers that torch packs, by the name of the layer."""
    state = {name: value for name, value in net.state_dict().items() if name.endswith(_PACKED)}
    layers: dict[str, dict[str, Tensor]] = {}
    for name, value in state.items():
        if isinstance(value, tuple):
            layer = name.removesuffix(_PACKED)
            weight, bias = value
            layers[layer] = {f"{layer}.weight": weight} | ({} if bias is None else {f"{layer}.bias": bias})
    return layers


def _of_bitsandbytes(net: nn.Module) -> dict[str, dict[str, Tensor]]:
    """The tensors of layers of bitsandbytes, by the name of the layer."""
    layers: dict[str, dict[str, Tensor]] = {}
    for layer, module in net.named_modules():
        weight = module._parameters.get("weight")
        if type(weight).__name__ not in ("Int8Params", "Params4bit"):
            continue
        read = import_module("transformers.integrations.bitsandbytes").dequantize_bnb_weight
        layers[layer] = {f"{layer}.weight": read(weight, getattr(module, "state", None))}
        bias = module._parameters.get("bias")
        layers[layer] |= {} if bias is None else {f"{layer}.bias": bias}
    return layers
