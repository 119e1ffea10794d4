"""The components of a network, read from what it does in one pass: stem, normalisation, activation, attention, …

The thirteen of "Similarity of Neural Architectures using Adversarial Attack Transferability", in its words. What a
pass does not show is None, such as the stem of a network of text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likewise.analysis import structure
from likewise.analysis.trace import Call, Trace

NORMALISATIONS = {  # by function, or by class where the function does not tell, in the order they are named
    "layer_norm": "LN",
    "batch_norm": "BN",
    "group_norm": "GN",
    "instance_norm": "IN",
    "rms_norm": "RMS",
    "local_response_norm": "LRN",
    "FrozenBatchNorm2d": "BN",
    "EvoNorm2dS0": "EvoNorm",
    "EvoNorm2dB0": "EvoNorm",
    "Affine": "Affine transform",
}
ACTIVATIONS = {
    "gelu": "GeLU",
    "relu": "ReLU",
    "leaky_relu": "Leaky ReLU",
    "prelu": "PReLU",
    "silu": "SiLU",
    "Swish": "SiLU",
    "hardswish": "HardSwish",
    "mish": "Mish",
    "elu": "ELU",
    "selu": "SELU",
    "softplus": "Softplus",
    "relu6": "ReLU6",
    "ReLU6": "ReLU6",
    "QuickGELU": "QuickGeLU",
}
LAST_RESORTS = {"tanh": "Tanh", "sigmoid": "Sigmoid"}  # gates, unless a network has nothing else


def architecture(found: Trace) -> dict[str, str | None]:
    """The thirteen components by name, from one pass; None where it does not show."""
    return {name: read(found) for name, read in READERS.items()}


def base_architecture(found: Trace) -> str | None:
    """CNN, Transformer, Hybrid of both, MLP-Mixer, or MLP."""
    if structure.attends_to_tokens(found):
        mixing = (call for call in structure.beyond_stem(found) if structure.is_spatial(call))
        return "Hybrid" if any(_size(call.argument(3, "stride", 1)) == "1" for call in mixing) else "Transformer"
    if structure.mixes_tokens(found):
        return "MLP-Mixer"
    if structure.convolutions(found):
        return "CNN"
    return "MLP" if _reads_rows(found) else None


def hierarchical(found: Trace) -> str | None:
    """Whether maps or tokens become fewer after the stem."""
    first, last = structure.places_after_stem(found), structure.places_at_end(found)
    return _yes(last < first / 1.9) if first and last else None


def stem(found: Trace) -> str | None:
    """The first convolutions, each as kernel and stride: 7s2, or 3s2/3/3."""
    words: list[str] = []
    for call in structure.stem_of(found):
        kernel, stride = _size(call.weight[2:]), _size(call.argument(3, "stride", 1))
        words.append(kernel if stride == "1" and words else f"{kernel}s{stride}")
    return "/".join(words) or ("linear" if _reads_rows(found) else None)


def input_resolution(found: Trace) -> str | None:
    """The height of its images, with the width where that is another."""
    return _size(found.shape[1:]) if len(found.shape) == 3 else None


def normalization(found: Trace) -> str | None:
    """Kinds of normalisation, of maps and not of weights."""
    calls = [call for call in found.calls if len(call.given) != 3 or call.given[0] > 1 or found.batch == 1]
    return _kinds(found, NORMALISATIONS, calls) or "Norm-free"


def activation(found: Trace) -> str | None:
    """Kinds of activation; gates count where there is nothing else."""
    norms = {run.path for run in found.runs if run.kind in NORMALISATIONS}
    calls = [call for call in found.calls if call.module not in norms]
    return _kinds(found, ACTIVATIONS, calls) or _kinds(found, LAST_RESORTS, calls) or "-"


def pooling_at_stem(found: Trace) -> str | None:
    """Whether maps are pooled between the stem and the first block."""
    return _yes(structure.pools_after_stem(found)) if structure.stem_of(found) else None


def final_pooling(found: Trace) -> str | None:
    """How maps or tokens become the one vector that is classified."""
    last = structure.final(found)
    if last is None or _reads_rows(found):
        return None
    if structure.takes_token(last):
        return "CLS token"
    return "Flatten" if structure.flattens(last) else "GMP" if "max" in last.name else "GAP"


def self_attention_2d(found: Trace) -> str | None:
    """Attention among the places of maps, in a network of convolutions."""
    kinds = {run.kind for run in structure.grid_attention(found)}
    known = [short for kind, short in structure.GRID_ATTENTION.items() if kind in kinds]
    return _named([*known, *sorted(kinds - set(structure.GRID_ATTENTION))]) if kinds else "No"


def channel_attention(found: Trace) -> str | None:
    """Gates of channels, by their kind."""
    kinds = [structure.CHANNEL_ATTENTION.get(run.kind, "") for run in structure.channel_attention(found)]
    return _named(list(dict.fromkeys(filter(None, kinds)))) if kinds else "No"


def channel_attention_location(found: Trace) -> str | None:
    """Whether channels are gated at the end of a block or amid it; "-" without gates."""
    run = next(iter(structure.channel_attention(found)), None)
    if run is None:
        return "-"
    parent = run.path.rpartition(".")[0]
    block = next(each for each in found.around(run.first) if each.path == parent)
    later = (call for call in found.calls[run.last : block.last] if call.name in structure.CONVOLUTIONS)
    return "Middle" if any(call.source != block.source for call in later) else "End"  # a shortcut is no part of it


def depthwise_conv(found: Trace) -> str | None:
    """Whether there are convolutions of one channel each."""
    return _yes(any(_groups(call) > 1 == call.weight[1] for call in structure.convolutions(found)))


def group_conv(found: Trace) -> str | None:
    """Whether there are convolutions of groups of channels."""
    return _yes(any(_groups(call) > 1 < call.weight[1] for call in structure.convolutions(found)))


READERS: dict[str, Callable[[Trace], str | None]] = {
    read.__name__: read
    for read in (
        base_architecture,
        hierarchical,
        stem,
        input_resolution,
        normalization,
        activation,
        pooling_at_stem,
        final_pooling,
        self_attention_2d,
        channel_attention,
        channel_attention_location,
        depthwise_conv,
        group_conv,
    )
}


def _kinds(found: Trace, words: dict[str, str], calls: list[Call]) -> str:
    """The kinds that occur, by function or by class, in the order of the table."""
    met = {call.name for call in calls} | {run.kind for run in found.runs}
    return " + ".join(dict.fromkeys(word for name, word in words.items() if name in met))


def _groups(call: Call) -> int:
    return int(call.argument(6, "groups", 1))


def _size(sides: Any) -> str:
    """7 for (7, 7), 3x5 for (3, 5)."""
    sides = (sides,) if isinstance(sides, int) else tuple(sides)
    return str(sides[0]) if len(set(sides)) == 1 else "x".join(map(str, sides))


def _reads_rows(found: Trace) -> bool:
    """Whether all layers are linear ones, of one row per input."""
    return all(call.name == "linear" and len(call.given) == 2 for call in structure.layers(found))


def _named(kinds: list[str]) -> str:
    return f"Yes ({', '.join(kinds)})" if kinds else "Yes"


def _yes(holds: bool) -> str:
    return "Yes" if holds else "No"
