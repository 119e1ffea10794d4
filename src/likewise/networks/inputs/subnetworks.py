"""Parts of a network of transformers: one of two towers, or the encoder or decoder of two halves.

A tower is called by the network's own `get_image_features` and its like, so that its projection is part of it; what
belongs to the other tower is taken out. Layers keep the names they have in the whole network.
"""

from __future__ import annotations

import inspect
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError

# part: its method, the kind of inputs it takes, and the words in the names of what belongs to others
TOWERS = {
    "vision": ("get_image_features", "pixel_values", ("text", "audio")),
    "text": ("get_text_features", "input_ids", ("vision", "visual", "image", "audio")),
    "audio": ("get_audio_features", "input_features", ("text", "vision", "visual", "image")),
}
HALVES = ("encoder", "decoder")
# of a language model that sees: it is shown texts whole, and what it has for images is asked for by name
_INSIDE = {"vision": ("vision_tower", "vision_model", "visual"), "text": ("language_model", "text_model")}
_TOWER_OF = {"image": "vision", "text": "text", "audio": "audio"}


def subnetworks_of(net: nn.Module) -> tuple[str, ...]:
    """The parts a network can be asked for, none where it is one piece."""
    if sees(net):
        return tuple(part for part in _INSIDE if _inside(net, part) is not None)
    towers = tuple(name for name, (method, _, _) in TOWERS.items() if callable(getattr(net, method, None)))
    if len(towers) > 1:
        return towers
    return HALVES if "decoder_input_ids" in inspect.signature(net.forward).parameters else ()


def sees(net: nn.Module) -> bool:
    """Whether this is a language model that takes images among its words (LLaVA, Gemma 3, Qwen2-VL)."""
    features = [callable(getattr(net, TOWERS[part][0], None)) for part in ("vision", "text")]
    return features == [True, False] and _inside(net, "text") is not None


def _inside(net: nn.Module, part: str) -> nn.Module | None:
    """The network inside a language model that sees which is this part of it, None where there is none."""
    modules = (getattr(net, name, None) for name in _INSIDE[part])
    return next((one for one in modules if getattr(one, "main_input_name", None) == TOWERS[part][1]), None)


def choose_subnetwork(net: nn.Module, asked: Any, domain: str | None, address: str) -> str | None:
    """The part that was asked for, else the tower for inputs of this kind or the encoder; None for the whole."""
    names, fitting = subnetworks_of(net), _TOWER_OF.get(domain or "")
    if sees(net) and "vision" not in names and "vision" in (asked, fitting):
        raise InputError(
            f"{address} takes the patches of all images in one row, so what it has for images gives no row per image. "
            "Wrap that in a module of yours that does, or show it texts."
        )
    if asked is None and (not names or (sees(net) and fitting != "vision")):  # texts are shown to all that sees
        return None
    return "encoder" if asked is None and names == HALVES else choose_tower(names, asked, domain, address)


def choose_tower(names: tuple[str, ...], asked: Any, domain: str | None, address: str) -> str:
    """The tower that was asked for, else the one for inputs of this kind."""
    if asked is not None and asked not in names:
        remedy = f"Choose {' or '.join(f'part={name}' for name in names)}." if names else "Leave part out."
        raise InputError(f"{address} has no part {asked!r}. {remedy}")
    tower = _TOWER_OF.get(domain or "") if asked is None else asked
    if tower in names:
        return str(tower)
    choices = " or ".join(f"'{_bare(address)},part={name}'" for name in names)
    raise InputError(
        f"{address} has {len(names)} towers, and nothing says which is to be looked at. Name one: {choices}."
    )


def take_subnetwork(net: nn.Module, name: str) -> nn.Module:
    """One part of a network, to be called as a network of its own."""
    if name == "encoder":
        encoder: nn.Module = net.get_encoder()  # type: ignore[operator]
        return encoder
    if sees(net) and name in _INSIDE:
        return _inside(net, name) or net
    whole: Any = net
    if name == "decoder":
        whole.forward = MethodType(_decode, whole)
        return net
    method, whole.main_input_name, foreign = TOWERS[name]
    for child, _ in list(net.named_children()):
        if any(word in child for word in foreign):
            delattr(net, child)
    whole.forward = getattr(whole, method)
    whole.head_layer = None  # its last layer projects, and names no classes
    return net


def _decode(self: Any, **inputs: Tensor) -> Any:
    """The network's answer with its decoder shown the same text, one token late, as in training.

    Sounds have no tokens: the decoder is then shown the token a text begins with.
    """
    ids, first = inputs.get("input_ids"), next(iter(inputs.values()))
    begin = torch.full((len(first), 1), self.config.decoder_start_token_id, dtype=torch.long, device=first.device)
    decoded = {"decoder_input_ids": begin if ids is None else torch.cat([begin, ids[:, :-1]], dim=1)}
    if ids is not None and "attention_mask" in inputs:
        decoded["decoder_attention_mask"] = inputs["attention_mask"]
    return type(self).forward(self, **inputs, **decoded)


def start_token(config: Any) -> int:
    """The token a decoder's texts begin with; networks without one of their own begin with padding."""
    names = ("bos_token_id", "pad_token_id")
    return int(next((getattr(config, name) for name in names if getattr(config, name, None) is not None), 0))


def note(names: tuple[str, ...], name: str, address: str) -> str:
    """The warning where no part was chosen."""
    other = next(one for one in names if one != name)
    what = name if name in HALVES else f"{name} tower"
    return f"of {address} the {what} is looked at: '{_bare(address)},part={other}' looks at another."


def _bare(address: str) -> str:
    """An address without its revision or weights, so that options can be added to it."""
    return address.partition("@")[0]
