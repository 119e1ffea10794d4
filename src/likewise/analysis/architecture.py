"""The components of a network, read from what it does in one pass: stem, normalisation, activation, attention, …

The thirteen of "Similarity of Neural Architectures using Adversarial Attack Transferability", in its words. What a
pass does not show is None, such as the stem of a text network.
"""

from __future__ import annotations

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


def base_architecture(trace: Trace) -> str | None:
    """CNN, Transformer, Hybrid of both, MLP-Mixer, or MLP."""
    if len(structure.attention(trace)) > len(structure.grid_attention(trace)):  # tokens, or maps as the rule
        mixing = (call for call in structure.beyond_stem(trace) if structure.is_spatial(call))
        return "Hybrid" if any(_size(call.argument(3, "stride", 1)) == "1" for call in mixing) else "Transformer"
    if structure.mixes_tokens(trace):
        return "MLP-Mixer"
    if structure.convolutions(trace):
        return "CNN"
    return "MLP" if _reads_rows(trace) else None


def hierarchical(trace: Trace) -> str | None:
    """Whether maps or tokens become fewer after the stem."""
    first, last = structure.positions_after_stem(trace), structure.positions_at_end(trace)
    return _yes(last < first / 1.9) if first and last else None


def stem(trace: Trace) -> str | None:
    """The first convolutions, each as kernel and stride: 7s2, or 3s2/3/3."""
    words: list[str] = []
    for call in structure.stem_of(trace):
        kernel, stride = _size(call.weight[2:]), _size(call.argument(3, "stride", 1))
        words.append(kernel if stride == "1" and words else f"{kernel}s{stride}")
    return "/".join(words) or ("linear" if _reads_rows(trace) else None)


def input_resolution(trace: Trace) -> str | None:
    """The height of its images, with the width where that is another."""
    return _size(trace.shape[1:]) if len(trace.shape) == 3 else None


def normalization(trace: Trace) -> str | None:
    """Kinds of normalisation, of maps and not of weights."""
    calls = [call for call in trace.calls if len(call.takes) != 3 or call.takes[0] > 1 or trace.batch == 1]
    return _kinds(trace, NORMALISATIONS, calls) or "Norm-free"


def activation(trace: Trace) -> str | None:
    """Kinds of activation; gates count where there is nothing else."""
    norms = {module.path for module in trace.modules if module.kind in NORMALISATIONS}
    calls = [call for call in trace.calls if call.module not in norms]
    return _kinds(trace, ACTIVATIONS, calls) or _kinds(trace, LAST_RESORTS, calls) or "-"


def pooling_at_stem(trace: Trace) -> str | None:
    """Whether maps are pooled between the stem and the first block."""
    return _yes(structure.pools_after_stem(trace)) if structure.stem_of(trace) else None


def final_pooling(trace: Trace) -> str | None:
    """How maps or tokens become the one vector that is classified."""
    last = structure.final(trace)
    if last is None or _reads_rows(trace):
        return None
    if structure.takes_token(last):
        return "CLS token"
    return "Flatten" if structure.flattens(last) else "GMP" if "max" in last.name else "GAP"


def self_attention_2d(trace: Trace) -> str | None:
    """Attention among the positions of maps, in a network of convolutions."""
    kinds = {module.kind for module in structure.grid_attention(trace)}
    listed = [short for kind, short in structure.GRID_ATTENTION.items() if kind in kinds]
    return _named([*listed, *sorted(kinds - set(structure.GRID_ATTENTION))]) if kinds else "No"


def channel_attention(trace: Trace) -> str | None:
    """Gates of channels, by their kind."""
    kinds = [structure.CHANNEL_ATTENTION.get(module.kind, "") for module in structure.channel_attention(trace)]
    return _named(list(dict.fromkeys(filter(None, kinds)))) if kinds else "No"


def channel_attention_location(trace: Trace) -> str | None:
    """Whether channels are gated at the end of a block or amid it; "-" without gates."""
    gate = next(iter(structure.channel_attention(trace)), None)
    if gate is None:
        return "-"
    parent = gate.path.rpartition(".")[0]
    block = next(module for module in trace.around(gate.first) if module.path == parent)
    later = (call for call in trace.calls[gate.last : block.last] if call.name in structure.CONVOLUTIONS)
    return "Middle" if any(call.source != block.source for call in later) else "End"  # not a shortcut


def depthwise_conv(trace: Trace) -> str | None:
    """Whether there are convolutions of one channel each."""
    return _yes(any(_groups(call) > 1 == call.weight[1] for call in structure.convolutions(trace)))


def group_conv(trace: Trace) -> str | None:
    """Whether there are convolutions of groups of channels."""
    return _yes(any(_groups(call) > 1 < call.weight[1] for call in structure.convolutions(trace)))


READERS = [base_architecture, hierarchical, stem, input_resolution, normalization, activation, pooling_at_stem]
READERS += [final_pooling, self_attention_2d, channel_attention, channel_attention_location, depthwise_conv, group_conv]


def _kinds(trace: Trace, words: dict[str, str], calls: list[Call]) -> str:
    """The kinds that occur, by function or by class, in the order of the table."""
    met = {call.name for call in calls} | {module.kind for module in trace.modules}
    return " + ".join(dict.fromkeys(word for name, word in words.items() if name in met))


def _groups(call: Call) -> int:
    return int(call.argument(6, "groups", 1))


def _size(sides: Any) -> str:
    """7 for (7, 7), 3x5 for (3, 5)."""
    sides = (sides,) if isinstance(sides, int) else tuple(sides)
    return str(sides[0]) if len(set(sides)) == 1 else "x".join(map(str, sides))


def _reads_rows(trace: Trace) -> bool:
    """Whether all layers are linear ones, of one row per input."""
    return all(call.name == "linear" and len(call.takes) == 2 for call in structure.layers(trace))


def _named(kinds: list[str]) -> str:
    return f"Yes ({', '.join(kinds)})" if kinds else "Yes"


def _yes(holds: bool) -> str:
    return "Yes" if holds else "No"
