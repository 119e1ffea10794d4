"""Networks with adapters of PEFT inside: which layers have one, and the weights that a network amounts to with them.

A layer with an adapter keeps its name and gives what the layer and its adapter give together; its parts (`base_layer`,
`lora_A`) are no layers of the network it was made from. Merging puts the adapter into the weights of the layer.
"""

from __future__ import annotations

import copy
import re

from torch import Tensor, nn

from likewise.networks.inputs.normalisation import unwrapped

_SAVED = re.compile(r"modules_to_save\.[^.]+\.")


def is_adapted(layer: nn.Module) -> bool:
    """Whether a layer has an adapter of PEFT."""
    return hasattr(layer, "base_layer") and hasattr(layer, "merge")


def adapted_layers(net: nn.Module) -> dict[str, nn.Module]:
    """The layers of a network that have an adapter of PEFT, by name."""
    return {name: layer for name, layer in unwrapped(net).named_modules() if name and is_adapted(layer)}


def original_layer(layer: nn.Module) -> nn.Module:
    """The layer that an adapter was put on, any other as it is."""
    original: nn.Module = layer.get_base_layer() if is_adapted(layer) else layer  # type: ignore[operator]
    return original


def merged_weights(net: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by their names in the network without adapters, which are merged into them."""
    inside = unwrapped(net)
    weights = {name: value for name, value in inside.state_dict().items() if isinstance(value, Tensor)}
    for name, layer in adapted_layers(inside).items():
        parts = [key for key in weights if key.startswith(f"{name}.")]
        merged = {f"{name}.{key}": value for key, value in merged_layer(layer).state_dict().items()}
        # in their place, so that weights stay in the order of the network
        weights = _replaced(weights, parts, merged)
    return {_SAVED.sub("", name): value for name, value in weights.items() if ".original_module." not in name}


def merged_layer(layer: nn.Module) -> nn.Module:
    """The plain layer that a layer and its adapters amount to."""
    if is_adapted(layer) and not getattr(layer, "merged", True) and not getattr(layer, "disable_adapters", False):
        layer = copy.deepcopy(layer)
        layer.merge()  # type: ignore[operator]
    return original_layer(layer)


def _replaced(weights: dict[str, Tensor], old: list[str], new: dict[str, Tensor]) -> dict[str, Tensor]:
    replaced: dict[str, Tensor] = {}
    for name, value in weights.items():
        replaced |= new if name == old[0] else {} if name in old else {name: value}
    return replaced
