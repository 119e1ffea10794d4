"""The structure of a network in a trace: its stem, its attention, its gates, its final pooling."""

from __future__ import annotations

import itertools
import math

from likewise.analysis.trace import Call, ModuleCall, Trace

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
LONGEST_STEM = 4  # convolutions
ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward", "native_multi_head_attention")
GATES = ("sigmoid", "hardsigmoid")
GRID_ATTENTION = {"LambdaLayer": "Lambda", "HaloAttn": "Halo", "BottleneckAttn": "BoT"}
CHANNEL_ATTENTION = {  # the short name of a class; "" for one without
    "SEModule": "SE",
    "SqueezeExcite": "SE",
    "SqueezeExcitation": "SE",
    "EcaModule": "ECA",
    "CecaModule": "ECA",
    "EffectiveSEModule": "ESE",
    "GlobalContext": "GCA",
    "SplitAttn": "",
    "SelectiveKernel": "",
}


def layers(trace: Trace) -> list[Call]:
    """The convolutions and linear layers that have learned weights: not filters of a fixed blur."""
    learned = {module.path for module in trace.modules if module.weights}
    return [call for call in trace.calls if call.name in (*CONVOLUTIONS, "linear") and call.module in learned]


def convolutions(trace: Trace) -> list[Call]:
    """The convolutions among the layers."""
    return [call for call in layers(trace) if call.name in CONVOLUTIONS]


def stem_of(trace: Trace) -> list[Call]:
    """The first convolutions that belong together: those of one module, or one after the other before its blocks.

    The module is the largest around the first one that holds four at most, and no more than half of all layers.
    """
    every = layers(trace)
    if not every or every[0].name not in CONVOLUTIONS:
        return []
    first, most = every[0], min(LONGEST_STEM, len(every) // 2)
    steps = first.module.split(".")
    for depth in range(1, len(steps)):
        inside = _leading(every, ".".join(steps[:depth]) + ".")
        if len(inside) <= most:
            return _chain(inside)
    parent = first.module[: len(first.module) - len(steps[-1])]
    beside = list(itertools.takewhile(lambda call: "." not in call.module[len(parent) :], _leading(every, parent)))
    before_blocks = len(beside) < len(every) and every[len(beside)].name in CONVOLUTIONS
    return _chain(beside) if before_blocks and len(beside) <= most else [first]


def _leading(every: list[Call], prefix: str) -> list[Call]:
    """The convolutions of a module before any other layer."""
    return list(itertools.takewhile(lambda call: call.name in CONVOLUTIONS and call.module.startswith(prefix), every))


def _chain(calls: list[Call]) -> list[Call]:
    """Convolutions that each take what the one before gives, up to a pooling or a branch beside it."""

    def follows(one: Call, other: Call) -> bool:
        same_size = math.prod(other.takes[2:]) >= math.prod(one.gives[2:])
        return other.takes[1] == one.gives[1] and same_size

    ends = (i for i in range(1, len(calls)) if not follows(calls[i - 1], calls[i]))
    return calls[: next(ends, None)]


def beyond_stem(trace: Trace) -> list[Call]:
    """The convolutions after the stem."""
    return convolutions(trace)[len(stem_of(trace)) :]


def positions_after_stem(trace: Trace) -> float:
    """How many positions feature maps have per input after the stem, 0 without one."""
    stem = stem_of(trace)
    return math.prod(stem[-1].gives) / stem[-1].gives[1] / trace.batch if stem else 0


def pools_after_stem(trace: Trace) -> bool:
    """Whether maps are pooled between the stem and the first block."""
    stem, every = stem_of(trace), layers(trace)
    if len(every) == len(stem):
        return False
    follows = every[len(stem)]
    start, end = (next(i for i, call in enumerate(trace.calls) if call is one) for one in (stem[-1], follows))
    outside = _shared_path(stem[-1].module, follows.module)  # a block may begin with a pooling of its own
    between = [call for call in trace.calls[start:end] if "_pool" in call.name]
    pools = any(_shared_path(call.module, follows.module) <= outside for call in between)
    return pools and len(follows.takes) == 4 and math.prod(follows.takes[2:]) < math.prod(stem[-1].gives[2:])


def _shared_path(one: str, other: str) -> int:
    """How many modules two paths share."""
    both = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda steps: steps[0] == steps[1], both))


def attention(trace: Trace) -> list[ModuleCall]:
    """The modules with weights in which tokens or positions attend to one another."""
    modules = []
    for index, call in enumerate(trace.calls):
        if call.name in ATTENTION or _is_attention_map(call):
            modules += [module for module in trace.around(index) if module.weights][:1]
    return modules


def _is_attention_map(call: Call) -> bool:
    rank, axis = len(call.takes), call.argument(1, "dim", None)
    if call.name != "softmax" or not isinstance(axis, int) or rank < 3 or min(call.takes[-2:]) < 2:
        return False
    return axis % rank == rank - 1 or (rank > 3 and axis % rank == rank - 2)


def grid_attention(trace: Trace) -> list[ModuleCall]:
    """Attention within maps, where convolutions are the rule."""
    grid = [module for module in attention(trace) if len(module.takes) == 4 and module.takes[0] == trace.batch]
    listed = [module for module in grid if module.kind in GRID_ATTENTION]
    return listed or (grid if 4 * len(grid) <= sum(map(is_spatial, beyond_stem(trace))) else [])


def mixes_tokens(trace: Trace) -> bool:
    """Whether a linear layer reads along the tokens, of which there are as many as the stem gives."""
    tokens = positions_after_stem(trace)
    return any(call.name == "linear" and len(call.takes) > 2 and call.takes[-1] == tokens for call in layers(trace))


def channel_attention(trace: Trace) -> list[ModuleCall]:
    """The modules that gate channels: those of known classes, and those that multiply each map by one number."""
    gates = [module for module in trace.modules if module.kind in CHANNEL_ATTENTION]
    for index, call in enumerate(trace.calls):
        if call.name in GATES and 1 < math.prod(call.takes[1:]) == max(call.takes[1:]):
            around = (m for m in trace.around(index) if len(m.takes) == 4 and m.takes == m.gives)
            maps = [module for module in around if math.prod(module.takes[2:]) > 1][:1]
            gates += [module for module in maps if module.weights and module not in gates]
    return sorted(gates, key=lambda module: module.first)


def final(trace: Trace) -> Call | None:
    """The call that makes one vector of maps or tokens, before the classifier where that is a linear layer."""
    last = layers(trace)[-1]
    whole = last.name != "linear" or len(last.takes) != 2
    end = len(trace.calls) if whole else next(i for i, call in enumerate(trace.calls) if call is last)
    return next(filter(_makes_vector, reversed(trace.calls[:end])), None)


def _makes_vector(call: Call) -> bool:
    if len(call.takes) < 3 or takes_token(call) or flattens(call):
        return takes_token(call) or flattens(call)
    pools = call.name in ("mean", "amax") or "_pool" in call.name
    return pools and 1 < math.prod(call.gives[1:]) in (call.takes[1], call.takes[-1])


def takes_token(call: Call) -> bool:
    """Whether the first of all tokens is taken."""
    if call.name not in ("getitem", "select") or len(call.takes) != 3 or len(call.gives) != 2:
        return False
    index = call.argument(1, "index", None)
    if call.name == "select":
        return (call.argument(1, "dim", None), call.argument(2, "index", None)) == (1, 0)
    kinds = [type(entry) for entry in index[:2]] if isinstance(index, tuple) else []
    return kinds == [slice, int] and index[0] == slice(None) and index[1] == 0


def flattens(call: Call) -> bool:
    """Whether maps become a vector as they are."""
    maps = len(call.takes) == 4 and len(call.gives) == 2 and math.prod(call.takes[2:]) > 1
    return call.name in ("flatten", "view", "reshape") and maps


def positions_at_end(trace: Trace) -> float | None:
    """How many positions or tokens per input the final pooling takes."""
    last = final(trace)
    if last is None:
        return None
    if not takes_token(last):
        width = last.takes[1] if flattens(last) else math.prod(last.gives[1:])
        return math.prod(last.takes[1:]) / width
    # the class token may have been taken out before: what the last layer of tokens saw
    tokens = [call.takes[1] for call in layers(trace) if len(call.takes) == 3 and call.takes[0] == trace.batch]
    return max(last.takes[1], *tokens[-1:]) - 1


def is_spatial(call: Call) -> bool:
    """Whether a convolution looks at more than one position."""
    return max(call.weight[2:]) > 1
