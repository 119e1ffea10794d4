"""Networks that answer with tokens: which class of transformers has the head of a language model, and of which kind.

`part=lm` in an address takes a network with that head; without it the bare encoder is taken, which is what
representations are read from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import nn

from likewise.errors import InputError
from likewise.networks.inputs.normalisation import unwrapped

LanguageKind = Literal["causal", "masked", "seq2seq"]
LM = "lm"  # the part of an address that is the whole network with its language-model head
_ENDINGS: dict[LanguageKind, tuple[str, ...]] = {
    "causal": ("ForCausalLM", "LMHeadModel"),
    "masked": ("ForMaskedLM",),
    "seq2seq": ("ForConditionalGeneration",),
}


class NoLanguageModelError(InputError):
    """The network has no head of a language model."""


def kind_of_architecture(name: str, *, encoder_decoder: bool) -> LanguageKind | None:
    """How the class of transformers of this name answers with tokens, None where it does not.

    >>> kind_of_architecture("LlamaForCausalLM", encoder_decoder=False)
    'causal'
    >>> kind_of_architecture("LlavaForConditionalGeneration", encoder_decoder=False)
    'causal'
    """
    kind = next((kind for kind, endings in _ENDINGS.items() if name.endswith(endings)), None)
    if kind == "seq2seq" and not encoder_decoder:  # a language model that sees
        return "causal"
    return "seq2seq" if kind == "causal" and encoder_decoder else kind


def language_kind(net: nn.Module) -> LanguageKind | None:
    """How a network of transformers answers with tokens, None where it does not, or where nothing says so."""
    inside: Any = unwrapped(net)
    config = getattr(inside, "config", None)
    if config is None or getattr(inside, "main_input_name", None) != "input_ids":
        return None
    halves = bool(getattr(config, "is_encoder_decoder", False))
    return kind_of_architecture(type(inside).__name__, encoder_decoder=halves)


def encoder_of(net: nn.Module) -> nn.Module:
    """A language model without its head, which reads texts by the same tokens."""
    inside: Any = unwrapped(net)
    halves = bool(getattr(inside.config, "is_encoder_decoder", False))
    encoder: Any = inside.get_encoder() if halves else inside.base_model
    if callable(getattr(inside, "tokenize", None)):
        encoder.tokenize = inside.tokenize
    return encoder


def architecture(transformers: Any, config: Any) -> str:
    """The class that a configuration names; where a file of GGUF leaves that out, the causal one of its kind."""
    causal = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    name = next(iter(config.architectures or ()), None)
    return str(causal.get(config.model_type, "") if name is None else name)


def language_class(transformers: Any, config: Any, address: str) -> Any:
    """The class that a configuration names, which has to have the head of a language model."""
    name = architecture(transformers, config)
    halves = bool(getattr(config, "is_encoder_decoder", False))
    if kind_of_architecture(name, encoder_decoder=halves) is None or not hasattr(transformers, name):
        raise NoLanguageModelError(
            f"{address} names no language model: its config.json says {name or 'no architecture'!r}. Leave part out."
        )
    return getattr(transformers, name)


@contextmanager
def weights_on_meta() -> Iterator[None]:
    """Modules that are made inside have weights without values, and buffers with theirs."""
    register = nn.Module.register_parameter

    def without_values(module: nn.Module, name: str, weight: nn.Parameter | None) -> None:
        if weight is not None and not weight.is_meta:  # weights that are tied stay one
            weight = nn.Parameter(torch.empty_like(weight, device="meta"), requires_grad=False)
        register(module, name, weight)

    nn.Module.register_parameter = without_values  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]
