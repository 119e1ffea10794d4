"""What a trace says of the structure of a network: its stem, its attention, its gates, its final pooling."""

from __future__ import annotations

import itertools
import math

from likewise.analysis.trace import Call, Run, Trace

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


def layers(found: Trace) -> list[Call]:
    """The convolutions and linear layers that have learned weights: not filters of a fixed blur."""
    learned = {run.path for run in found.runs if run.weights}
    return [call for call in found.calls if call.name in (*CONVOLUTIONS, "linear") and call.module in learned]


def convolutions(found: Trace) -> list[Call]:
    """The convolutions among the layers."""
    return [call for call in layers(found) if call.name in CONVOLUTIONS]


def stem_of(found: Trace) -> list[Call]:
    """The first convolutions that belong together: one part of the network, or one after the other before its blocks.

    The part is the largest around the first one that holds four at most, and no more than half of all layers.
    """
    every = layers(found)
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


def _leading(every: list[Call], part: str) -> list[Call]:
    """The convolutions of a part before any other layer."""
    return list(itertools.takewhile(lambda call: call.name in CONVOLUTIONS and call.module.startswith(part), every))


def _chain(calls: list[Call]) -> list[Call]:
    """Convolutions that each take what the one before gives, up to a pooling or a branch beside it."""

    def follows(one: Call, other: Call) -> bool:
        same_size = math.prod(other.given[2:]) >= math.prod(one.gives[2:])
        return other.given[1] == one.gives[1] and same_size

    ends = (i for i in range(1, len(calls)) if not follows(calls[i - 1], calls[i]))
    return calls[: next(ends, None)]


def beyond_stem(found: Trace) -> list[Call]:
    """The convolutions after the stem."""
    return convolutions(found)[len(stem_of(found)) :]


def places_after_stem(found: Trace) -> float:
    """How many places of maps there are per input after the stem, 0 without one."""
    stem = stem_of(found)
    return math.prod(stem[-1].gives) / stem[-1].gives[1] / found.batch if stem else 0


def pools_after_stem(found: Trace) -> bool:
    """Whether maps are pooled between the stem and the first block."""
    stem, every = stem_of(found), layers(found)
    if len(every) == len(stem):
        return False
    follows = every[len(stem)]
    start, end = (next(i for i, call in enumerate(found.calls) if call is one) for one in (stem[-1], follows))
    outside = _shared_path(stem[-1].module, follows.module)  # a block may begin with a pooling of its own
    between = [call for call in found.calls[start:end] if "_pool" in call.name]
    pools = any(_shared_path(call.module, follows.module) <= outside for call in between)
    return pools and len(follows.given) == 4 and math.prod(follows.given[2:]) < math.prod(stem[-1].gives[2:])


def _shared_path(one: str, other: str) -> int:
    """How many parts of a network two modules are both in."""
    both = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda steps: steps[0] == steps[1], both))


def attention(found: Trace) -> list[Run]:
    """The modules with weights in which tokens or places attend to one another."""
    runs = []
    for place, call in enumerate(found.calls):
        if call.name in ATTENTION or _is_attention_map(call):
            runs += [run for run in found.around(place) if run.weights][:1]
    return runs


def _is_attention_map(call: Call) -> bool:
    rank, axis = len(call.given), call.argument(1, "dim", None)
    if call.name != "softmax" or not isinstance(axis, int) or rank < 3 or min(call.given[-2:]) < 2:
        return False
    return axis % rank == rank - 1 or (rank > 3 and axis % rank == rank - 2)


def grid_attention(found: Trace) -> list[Run]:
    """Attention within maps, where convolutions are the rule."""
    grid = [run for run in attention(found) if len(run.given) == 4 and run.given[0] == found.batch]
    known = [run for run in grid if run.kind in GRID_ATTENTION]
    return known or (grid if 4 * len(grid) <= sum(map(is_spatial, beyond_stem(found))) else [])


def attends_to_tokens(found: Trace) -> bool:
    """Whether tokens attend to one another, or places of maps as the rule."""
    return len(attention(found)) > len(grid_attention(found))


def mixes_tokens(found: Trace) -> bool:
    """Whether a linear layer reads along the tokens, of which there are as many as the stem gives."""
    tokens = places_after_stem(found)
    return any(call.name == "linear" and len(call.given) > 2 and call.given[-1] == tokens for call in layers(found))


def channel_attention(found: Trace) -> list[Run]:
    """The modules that gate channels: those of known classes, and those that multiply maps by one number each."""
    runs = [run for run in found.runs if run.kind in CHANNEL_ATTENTION]
    for place, call in enumerate(found.calls):
        if call.name in GATES and 1 < math.prod(call.given[1:]) == max(call.given[1:]):
            maps = [run for run in found.around(place) if _gives_maps(run)][:1]
            runs += [run for run in maps if run.weights and run not in runs]
    return sorted(runs, key=lambda run: run.first)


def _gives_maps(run: Run) -> bool:
    return len(run.given) == 4 and run.given == run.gives and math.prod(run.given[2:]) > 1


def final(found: Trace) -> Call | None:
    """The call that makes one vector of maps or tokens, before the classifier where that is a linear layer."""
    last = layers(found)[-1]
    whole = last.name != "linear" or len(last.given) != 2
    end = len(found.calls) if whole else next(i for i, call in enumerate(found.calls) if call is last)
    return next(filter(_makes_vector, reversed(found.calls[:end])), None)


def _makes_vector(call: Call) -> bool:
    if len(call.given) < 3 or takes_token(call) or flattens(call):
        return takes_token(call) or flattens(call)
    pools = call.name in ("mean", "amax") or "_pool" in call.name
    return pools and 1 < math.prod(call.gives[1:]) in (call.given[1], call.given[-1])


def takes_token(call: Call) -> bool:
    """Whether the first of all tokens is taken."""
    if call.name not in ("getitem", "select") or len(call.given) != 3 or len(call.gives) != 2:
        return False
    index = call.argument(1, "index", None)
    if call.name == "select":
        return (call.argument(1, "dim", None), call.argument(2, "index", None)) == (1, 0)
    kinds = [type(entry) for entry in index[:2]] if isinstance(index, tuple) else []
    return kinds == [slice, int] and index[0] == slice(None) and index[1] == 0


def flattens(call: Call) -> bool:
    """Whether maps become a vector as they are."""
    maps = len(call.given) == 4 and len(call.gives) == 2 and math.prod(call.given[2:]) > 1
    return call.name in ("flatten", "view", "reshape") and maps


def width(call: Call) -> int:
    """How many numbers of one place or token a call that makes a vector leaves."""
    return call.given[1] if flattens(call) else math.prod(call.gives[1:])


def places_at_end(found: Trace) -> float | None:
    """How many places or tokens the final pooling is given per input."""
    last = final(found)
    if last is None:
        return None
    if not takes_token(last):
        return math.prod(last.given[1:]) / width(last)
    # the class token may have been taken out before: what the last layer of tokens saw
    tokens = [call.given[1] for call in layers(found) if len(call.given) == 3 and call.given[0] == found.batch]
    return max(last.given[1], *tokens[-1:]) - 1


def is_spatial(call: Call) -> bool:
    """Whether a convolution looks at more than one place."""
    return max(call.weight[2:]) > 1
