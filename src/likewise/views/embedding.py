"""The embedding: what a network without a classifier gives to whoever uses it.

That is its pooled output where it has one. Else it is its last states, in one row per input: the first token where
the network keeps one for that (`cls_token`), the last token where no token sees those after it, else the mean of the
tokens or positions. Whether tokens see those after them is tried, not looked up. What a module of nobody's library
gives is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import ForwardError, InputError
from likewise.networks.forward import fields
from likewise.networks.normalise import unwrapped

_POOLED = ("image_embeds", "text_embeds", "pooler_output", "sentence_embedding")
_STATES = ("encoder_last_hidden_state", "last_hidden_state")
_TOLERANCE = 4  # of the precision: experts add up the same numbers in another order


def without_logits(net: nn.Module, output: Any) -> str:
    """Why what a network gives are no logits, where that is known; else nothing."""
    if isinstance(output, Tensor):
        return ""
    if _gives_stages(unwrapped(net), output):
        return "it gives the maps of its stages"
    parts = fields(output)
    named = [name for name in (*_POOLED, *_STATES) if parts.get(name) is not None]
    return f"it gives {named[0]!r} and no logits" if named and "logits" not in parts else ""


def embedding_field(net: nn.Module, output: Any, reduce: str | None, label: str) -> Any:
    """The field of an output that holds the embedding; None where it is the output itself.

    Where a reduction is asked for, states that can be reduced come before what is pooled.
    """
    parts = {} if isinstance(output, Tensor) else fields(output)
    if _gives_stages(unwrapped(net), output):
        return list(parts)[-1]
    pooled = [name for name in _POOLED if isinstance(parts.get(name), Tensor)]
    states = [name for name in _STATES if isinstance(parts.get(name), Tensor)]
    if pooled[:2] == list(_POOLED[:2]):
        raise InputError(
            f"{label} gives 'image_embeds' and 'text_embeds', and only one can be compared. Choose a part: "
            "'hf:NAME,part=vision' or 'hf:NAME,part=text'."
        )
    return next(iter([*states, *pooled] if reduce else [*pooled, *states]), None)


def own_reduction(net: nn.Module, value: Tensor, maps: bool, causal: bool | None) -> str | None:
    """How the states of a network of a library become rows; None where that is not known."""
    net = unwrapped(net)
    if not _is_of_library(net):
        return None
    if maps:
        return "mean"
    if any(name.rpartition(".")[2] == "cls_token" for name, _ in net.named_parameters()):
        return "cls"
    return None if causal is None else "last" if causal else "mean"


def is_causal(states_of: Callable[[Any], Tensor | None], inputs: Any) -> bool | None:
    """Whether the state of a token is the same whatever token comes after it; None where that cannot be tried."""
    words = inputs.get("input_ids") if isinstance(inputs, Mapping) else None
    if not isinstance(words, Tensor) or words.ndim != 2:
        return False
    before, place = _longest(inputs, words)
    tokens = before["input_ids"]
    others = words[words != tokens[0, place]]
    after = {**before, "input_ids": tokens.clone()}
    after["input_ids"][0, place] = others[0] if len(others) else (tokens[0, place] - 1).abs()
    try:
        states = [states_of(given) for given in (before, after)]
    except ForwardError:
        return None
    tokens_of = [state[0, place - 1] for state in states if state is not None and state.ndim == 3]
    if len(tokens_of) < 2:
        return None
    one, other = tokens_of
    return bool((one - other).abs().max() <= _TOLERANCE * torch.finfo(one.dtype).eps * one.abs().max())


def _longest(inputs: Mapping[str, Any], words: Tensor) -> tuple[dict[str, Any], int]:
    """The text of most tokens, of two at least, and the place of its last one."""
    mask = inputs.get("attention_mask")
    real = mask if isinstance(mask, Tensor) and mask.shape == words.shape else torch.ones_like(words)
    row = int(real.sum(dim=1).argmax())
    text = {k: v[row : row + 1] if isinstance(v, Tensor) and len(v) == len(words) else v for k, v in inputs.items()}
    kept = real[row].bool()
    if int(kept.sum()) < 2:
        text = {k: torch.cat([v, v], dim=1) if _is_per_token(v, words) else v for k, v in text.items()}
        kept = torch.cat([kept, kept])
        if "attention_mask" in text:
            text["attention_mask"] = torch.ones_like(text["attention_mask"])
            kept = torch.ones_like(kept)
    return text, int(kept.nonzero()[-1])


def _is_per_token(value: Any, words: Tensor) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2 and value.shape[1] == words.shape[1]


def _gives_stages(net: nn.Module, output: Any) -> bool:
    """Whether this is a network of timm made with `features_only`."""
    listed = getattr(net, "feature_info", None)
    return isinstance(output, (list, dict)) and callable(getattr(listed, "channels", None))


def _is_of_library(net: nn.Module) -> bool:
    """Whether a network comes with what transformers or timm say of theirs."""
    return any(hasattr(net, fact) for fact in ("main_input_name", "default_cfg", "pretrained_cfg", "feature_info"))
