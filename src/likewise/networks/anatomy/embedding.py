"""The embedding: the representation of a network without a classifier.

That is its pooled output where it has one. Else it is its last states, in one row per input: the first token where
the network keeps one for that (`cls_token`), the last token where no token sees those after it, else the mean of the
tokens or positions. Whether tokens see those after them is tried, not looked up. The output of a module
that comes from no library is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import ForwardError, InputError
from likewise.networks.anatomy.outputs import POOLED, STATES, fields, gives_stages
from likewise.networks.inputs.normalisation import unwrapped

_ROUNDING = 1e-5  # experts add up the same numbers in another order


def embedding_field(net: nn.Module, output: Any, reduce: str | None, label: str) -> Any:
    """The field of an output that holds the embedding; None where it is the output itself.

    Where a reduction is asked for, states that can be reduced come before what is pooled.
    """
    parts = {} if isinstance(output, Tensor) else fields(output)
    if gives_stages(unwrapped(net), output):
        return list(parts)[-1]
    pooled = [name for name in POOLED if isinstance(parts.get(name), Tensor)]
    states = [name for name in STATES if isinstance(parts.get(name), Tensor)]
    if pooled[:2] == list(POOLED[:2]):
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


def predicts_words(net: nn.Module, calls: Collection[str]) -> bool:
    """Whether the layer that answers is the head of a language model, which answers once per token."""
    head: Any = getattr(unwrapped(net), "get_output_embeddings", None)
    head = head() if callable(head) else None
    return head is not None and any(unwrapped(net).get_submodule(call.partition("#")[0]) is head for call in calls)


def is_causal(states_of: Callable[[Any], Tensor | None], inputs: Any) -> bool | None:
    """Whether the states of tokens are the same whatever tokens come after them; None where that cannot be tried."""
    words = inputs.get("input_ids") if isinstance(inputs, Mapping) else None
    if not isinstance(words, Tensor) or words.ndim != 2:
        return False
    before, places = _longest(inputs, words)
    early, late = places[: len(places) // 2], places[len(places) // 2 :]
    vocabulary = torch.tensor(sorted(set(words.flatten().tolist())), device=words.device)
    tokens = before["input_ids"].clone()
    others = vocabulary[(torch.searchsorted(vocabulary, tokens[0, late]) + 1) % len(vocabulary)]
    tokens[0, late] = others if len(vocabulary) > 1 else (others - 1).abs()
    try:
        states = [states_of(batch) for batch in (before, {**before, "input_ids": tokens})]
    except ForwardError:
        return None
    kept = [state[0, early].cpu().double() for state in states if state is not None and state.ndim == 3]
    if len(kept) < 2 or states[0] is None:
        return None
    one, other = kept
    return bool((one - other).norm() <= max(_ROUNDING, torch.finfo(states[0].dtype).eps / 2) * one.norm())


def _longest(inputs: Mapping[str, Any], words: Tensor) -> tuple[dict[str, Any], Tensor]:
    """The text of most tokens, of two at least, and where they are."""
    mask = inputs.get("attention_mask")
    real = mask if isinstance(mask, Tensor) and mask.shape == words.shape else torch.ones_like(words)
    row = int(real.sum(dim=1).argmax())
    text = {k: v[row : row + 1] if isinstance(v, Tensor) and len(v) == len(words) else v for k, v in inputs.items()}
    places = real[row].nonzero()[:, 0]
    if len(places) < 2:
        per_token = {k for k, v in text.items() if isinstance(v, Tensor) and v.shape[1:] == words.shape[1:]}
        text = {k: torch.cat([v, v], dim=1) if k in per_token else v for k, v in text.items()}
        if "attention_mask" in text:
            text["attention_mask"] = torch.ones_like(text["attention_mask"])
        places = torch.arange(text["input_ids"].shape[1], device=words.device)
    return text, places


def _is_of_library(net: nn.Module) -> bool:
    """Whether a network comes with what transformers or timm say of theirs."""
    return any(hasattr(net, fact) for fact in ("main_input_name", "default_cfg", "pretrained_cfg", "feature_info"))
