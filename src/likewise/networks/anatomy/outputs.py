"""What a network gives: the fields of its output, and what the numbers of its answer are.

Networks give a tensor, a tuple, a mapping or an object of their library. Which of its fields may be the answer is found
here, from the output alone; `classifier.answer_field` decides between several.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Literal, cast, get_args

from torch import Tensor, nn

from likewise.errors import InputError, did_you_mean
from likewise.networks.inputs.normalisation import unwrapped

OutputKind = Literal["logits", "probabilities", "lengths"]
OUTPUT_KINDS: tuple[str, ...] = get_args(OutputKind)

# the fields of an output, as transformers names them, that are an embedding
POOLED = ("image_embeds", "text_embeds", "sentence_embedding", "pooler_output")
STATES = ("encoder_last_hidden_state", "last_hidden_state")


def output_kind(net: nn.Module) -> OutputKind:
    """What a network answers with: `logits`, `probabilities` that sum to one, or `lengths` in [0, 1] that do not.

    A network says so by its attribute `answers`; one without it answers with logits.

    >>> output_kind(nn.Linear(2, 2))
    'logits'
    """
    declared = getattr(unwrapped(net), "answers", "logits")
    return check_output_kind(declared) if isinstance(declared, str) else "logits"


def check_output_kind(kind: str) -> OutputKind:
    """One of the three kinds of answers, or a sentence that names them."""
    if kind not in OUTPUT_KINDS:
        raise InputError(
            f"networks do not answer with {kind!r}.{did_you_mean(str(kind), OUTPUT_KINDS)} Give "
            f"{', '.join(OUTPUT_KINDS[:-1])} or {OUTPUT_KINDS[-1]}."
        )
    return cast(OutputKind, kind)


def fields(output: Any) -> Mapping[Any, Any]:
    """What an output is made of, by name or by position."""
    if isinstance(output, Mapping):
        return output
    if isinstance(output, (list, tuple)):
        return output._asdict() if hasattr(output, "_asdict") else dict(enumerate(output))
    if dataclasses.is_dataclass(output) or isinstance(output, SimpleNamespace):
        return vars(output)
    return {"logits": output.logits} if hasattr(output, "logits") else {}


def first_tensor(output: Any) -> Tensor | None:
    """The tensor an output means: itself, its logits or last states by name, else the first within.

    One of a quantised layer is dequantised.

    >>> import torch
    >>> first_tensor({"loss": None, "last_hidden_state": torch.zeros(2, 3), "logits": (torch.ones(2), 0)})
    tensor([1., 1.])
    """
    if isinstance(output, Tensor):
        return output.dequantize() if output.is_quantized else output
    values = fields(output)
    named = [values[name] for name in ("logits", "last_hidden_state") if name in values]
    tensors = (first_tensor(value) for value in [*named, *values.values()])
    return next((tensor for tensor in tensors if tensor is not None), None)


def tensor_at(output: Any, field: Any) -> Tensor | None:
    """The tensor of one field of an output; None means the one `first_tensor` finds."""
    return first_tensor(output if field is None else fields(output).get(field))


def possible_answers(output: Any) -> dict[Any, Tensor]:
    """The rows `(n, k)` in an output that may each be its answer; empty where it is clear which is.

    It is where one is named logits, and where the first tensor is rows and all rows are of one width.

    >>> import torch
    >>> list(possible_answers((torch.zeros(2, 16), torch.zeros(2, 10))))
    [0, 1]
    """
    values = {} if isinstance(output, Tensor) else fields(output)
    if "logits" in values or "last_hidden_state" in values:
        return {}
    tensors = {k: v for k, v in values.items() if isinstance(v, Tensor) and v.ndim > 1 and v.is_floating_point()}
    rows = {field: value for field, value in tensors.items() if value.ndim == 2}
    one_width = len({value.shape[1] for value in rows.values()}) == 1
    return {} if one_width and next(iter(tensors)) in rows else rows


def why_no_logits(net: nn.Module, output: Any) -> str:
    """Why what a network gives are no logits, where that is known; else nothing."""
    if isinstance(output, Tensor):
        return ""
    if gives_stages(unwrapped(net), output):
        return "it gives the maps of its stages"
    values = fields(output)
    embeddings = [name for name in (*POOLED, *STATES) if values.get(name) is not None]
    return f"it gives {embeddings[0]!r} and no logits" if embeddings and "logits" not in values else ""


def gives_stages(net: nn.Module, output: Any) -> bool:
    """Whether this is a network of timm made with `features_only`."""
    listed = getattr(net, "feature_info", None)
    return isinstance(output, (list, dict)) and callable(getattr(listed, "channels", None))
