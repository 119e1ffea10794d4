"""Looking inside a network while it runs, and leaving it as it was.

What a layer gives is handed on the moment it exists, before an in-place operation further on can
change it, and nothing else is kept. Modes, hooks and devices are put back whatever happens.
"""

from __future__ import annotations

import dataclasses
import math
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from likewise.errors import ForwardError, InputError, LikewiseError
from likewise.networks.call import call
from likewise.networks.heads import last_that_matters, weighted_parts
from likewise.views.batches import Batch
from likewise.views.selection import bare

Receive = Callable[[str, nn.Module, Any], None]

_CHANNELS_FIRST = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._LPPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
)
_CHANNELS_LAST = (nn.RNNBase, nn.MultiheadAttention, nn.Embedding)


@contextmanager
def at_rest(network: nn.Module, device: Any = None) -> Iterator[nn.Module]:
    """The network in evaluation mode, without gradients, on the device; as it was afterwards."""
    modes = [(part, part.training) for part in network.modules()]
    home = _only_device(network, device)
    try:
        for part, _ in modes:
            part.training = False
        with torch.no_grad():
            yield _alone(network).to(device) if home is not None else _alone(network)
    finally:
        for part, mode in modes:
            part.training = mode
        if home is not None:
            network.to(home)


@contextmanager
def watched(
    modules: Mapping[str, nn.Module],
    receive: Receive,
    inputs_of: Mapping[str, nn.Module],
    *,
    first: Mapping[nn.Module, Callable[..., None]] | None = None,
) -> Iterator[Callable[[], None]]:
    """Hand on what these modules give (and what those are given); call the result before each pass.

    The second call of a module within one pass is handed on as `name#2`. Hooks in `first` are told
    of a call (module, arguments, arguments by name, output) before it is handed on.
    """
    calls: Counter[str] = Counter()

    def given(name: str, module: nn.Module, value: Any) -> None:
        calls[name] += 1
        receive(name if calls[name] == 1 else f"{name}#{calls[name]}", module, value)

    def after(name: str) -> Any:
        return lambda module, _args, output: given(name, module, output)

    def before(name: str) -> Any:
        return lambda module, args, words: given(name, module, args or words)

    hooks = []
    try:
        for module, told in (first or {}).items():
            hooks.append(module.register_forward_hook(told, with_kwargs=True))
        for name, module in modules.items():
            hooks.append(module.register_forward_hook(after(name)))
        for name, module in inputs_of.items():
            hooks.append(module.register_forward_pre_hook(before(name), with_kwargs=True))
        yield calls.clear
    finally:
        for hook in hooks:
            hook.remove()


def answered(network: nn.Module, inputs: Any, batch: Batch, number: int, label: str) -> Any:
    """The network's answer to a batch; where it fails, an error with the layer and the batch."""
    try:
        return call(network, inputs)
    except LikewiseError:
        raise
    except Exception as error:
        first, last = batch.start, batch.start + batch.size - 1
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ForwardError(
            f"{label} failed in {_failing_layer(network, error)} on batch {number} (inputs {first} "
            f"to {last}, {_described(inputs)}): {type(error).__name__}: {reason}. Check that the "
            "network takes inputs of this shape and type."
        ) from error


def first_tensor(output: Any) -> Tensor | None:
    """The tensor an output means: itself, the first of a tuple, the logits or states by name."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        named = [output[key] for key in ("logits", "last_hidden_state") if key in output]
        return first_tensor([*named, *output.values()])
    if isinstance(output, (list, tuple)):
        found = (first_tensor(entry) for entry in output)
        return next((tensor for tensor in found if tensor is not None), None)
    if dataclasses.is_dataclass(output) or isinstance(output, SimpleNamespace):
        return first_tensor(dict(vars(output)))
    return None


def answering_layer(network: nn.Module, ask: Callable[[], Any], guess: str | None) -> str | None:
    """The classifier, by what the network does when asked rather than by how it was written down.

    That is the guess, if what it gives is the answer; otherwise the last layer with weights that
    the answer changes with. Where that is no linear layer, the guess counts if something beside the
    answer changes with it. None where the network gives no tensor.
    """
    layers = weighted_parts(bare(network))
    given: dict[str, Tensor | None] = {}

    def receive(name: str, _module: nn.Module, output: Any) -> None:
        name = name.partition("#")[0]
        given.pop(name, None)  # in the order of last calls
        given[name] = first_tensor(output)

    with watched(layers, receive, {}):
        whole = ask()
    answer = first_tensor(whole)
    if answer is None or (guess is not None and _same(given.get(guess), answer)):
        return guess

    def matters(name: str) -> bool:
        return not _same(first_tensor(_asked_disturbed(layers[name], ask)), answer)

    try:
        return last_that_matters(bare(network), given, matters)
    except InputError:
        # a pooled state beside the states themselves, as encoders of text give it
        if guess not in given or matters(guess):
            raise
        if _all_same(_asked_disturbed(layers[guess], ask), whole):
            raise
        return guess


def _asked_disturbed(layer: nn.Module, ask: Callable[[], Any]) -> Any:
    """What the network answers if a layer gives something else; None where it cannot be changed."""
    changed = []

    def disturb(_module: nn.Module, _args: Any, output: Any) -> Any:
        changed.append(_other(output))
        return changed[-1]

    hook = layer.register_forward_hook(disturb)
    try:
        answer = ask()
    finally:
        hook.remove()
    return None if any(value is None for value in changed) else answer


def _other(output: Any) -> Any:
    """The same kind of output with other values, None where there are none."""
    if isinstance(output, Tensor) and output.is_floating_point():
        # not a shift, which a softmax would not show
        ramp = torch.linspace(0, 1, output.numel(), dtype=output.dtype, device=output.device)
        return ramp.reshape(output.shape) - output
    if type(output) is tuple:  # a recurrent layer's, with its states
        others = [_other(entry) for entry in output]
        if any(other is not None for other in others):
            pairs = zip(others, output, strict=True)
            return tuple(entry if other is None else other for other, entry in pairs)
    return None


def _all_same(one: Any, other: Any) -> bool:
    if isinstance(other, Mapping) and isinstance(one, Mapping):
        return all(_all_same(one.get(key), value) for key, value in other.items())
    if isinstance(other, (list, tuple)) and isinstance(one, (list, tuple)):
        return all(_all_same(a, b) for a, b in zip(one, other, strict=False))
    return not isinstance(other, Tensor) or _same(one, other)


def _same(value: Any, answer: Tensor) -> bool:
    if not isinstance(value, Tensor) or value.numel() != answer.numel():
        return False
    return torch.equal(value.reshape(-1), answer.reshape(-1))


class Layouts:
    """Which axis of what layers give holds the channels, learned while a network runs once.

    Nothing in a tensor says so, but some layers do: a convolution gives `(n, c, ...)`, a
    normalisation of a layer works on the last axis. What comes after them (an activation function,
    a permutation, a whole block) is told by the tensor it was given, or by the sizes there were
    last. A linear layer says nothing alone: it may mix positions as well as channels.
    """

    def __init__(self) -> None:
        self._known: Any = WeakTensorKeyDictionary()  # what passed between layers: `_Told` of it
        self._last: dict[int, tuple[int, tuple[int, ...]]] = {}  # by rank: axis, sizes of an input
        self._met: set[tuple[int, int]] = set()

    def start(self, inputs: Any) -> None:
        """Images have one or three channels, which says where those are."""
        if isinstance(inputs, Tensor) and inputs.ndim > 3:
            sides = [axis for axis in (1, -1) if inputs.shape[axis] in (1, 3)]
            if len(sides) == 1:
                self._note(inputs, _Told(sides[0]))

    def after(self, module: nn.Module, args: Any, words: Any, output: Any) -> None:
        """A forward hook of every layer."""
        value = first_tensor(output)
        if value is None or value.ndim < 3 or not value.is_floating_point():
            return
        given = first_tensor([*args, *words.values()])
        told = self._by(module, given if given is None or given.ndim == value.ndim else None, value)
        if told is not None:
            self._note(value, told)

    def axis(self, value: Tensor) -> int:
        """1 or -1; 0 where it could be either."""
        told = self._told(value)
        return (-1 if value.ndim == 3 else 1) if told is None else told.axis

    def _note(self, value: Tensor, told: _Told) -> None:
        self._known[value] = told
        if told.firm and told.axis:
            self._last[value.ndim] = told.axis, tuple(value.shape[1:])
            self._met.add((value.ndim, told.axis))

    def _told(self, value: Tensor) -> _Told | None:
        """The axis of a tensor by itself or by its sizes; None where nothing is known of it."""
        if value in self._known or value.ndim not in self._last:
            return self._known.get(value)
        (axis, last), now = self._last[value.ndim], tuple(value.shape[1:])
        channels = last[0 if axis == 1 else -1]
        fitting = [side for side in (1, -1) if value.shape[side] == channels]
        if len(fitting) == 2:
            unsure = _rearranged(now, last) or (value.ndim, -axis) in self._met
            return _Told(0 if unsure else axis)
        if not fitting or (fitting == [-axis] and not _rearranged(now, last)):
            return None  # as large by chance
        return _Told(fitting[0])

    def _by(self, module: nn.Module, given: Tensor | None, value: Tensor) -> _Told | None:
        if isinstance(module, _CHANNELS_FIRST):
            return _Told(1)
        if isinstance(module, _CHANNELS_LAST):
            return _Told(-1)
        before = None
        if given is not None:  # a block was given it before the sizes that were last
            before = self._known.get(given) if any(module.children()) else self._told(given)
        if isinstance(module, (nn.Linear, nn.LayerNorm, nn.RMSNorm)):
            return self._by_last_axis(module, given, before, value)
        if type(module).__name__ == "Permute" and before is not None and before.axis:
            places: Any = getattr(module, "dims", ())
            if len(places) == value.ndim:
                axis = list(places).index(before.axis % value.ndim)
                return {1: _Told(1), value.ndim - 1: _Told(-1)}.get(axis)
        if given is not None and given.shape == value.shape and given in self._known:
            return before
        told = self._told(value)
        if told is not None or given is None:
            return told
        if any(module.children()):  # a block ends as its last layers do
            return _Told(self._last[value.ndim][0]) if value.ndim in self._last else None
        return None if _rearranged(given.shape[1:], value.shape[1:]) else before

    def _by_last_axis(
        self, module: nn.Module, given: Tensor | None, before: _Told | None, value: Tensor
    ) -> _Told:
        linear = isinstance(module, nn.Linear)
        if _turns_inside(module, value):
            return _Told(1)
        if given is not None and given not in self._known and given.shape[1] == given.shape[-1]:
            # moved there for a normalisation surely, for another layer perhaps
            unsure = linear and before is not None and before.axis != -1
            return _Told(0 if unsure else -1, firm=not linear or before is not None)
        if before is not None and before.axis == 1:
            return before  # maps (n, c, h, w) as they are: it mixes positions, the channels stay
        return _Told(-1, firm=not linear or (before is not None and before.firm))


@dataclasses.dataclass(frozen=True)
class _Told:
    """The axis of the channels, 0 where it may be either; not firm where nothing confirms it."""

    axis: int
    firm: bool = True


def _rearranged(now: Sequence[int], before: Sequence[int]) -> bool:
    return now != before and math.prod(now) == math.prod(before)


def _turns_inside(module: nn.Module, value: Tensor) -> bool:
    """Whether a normalisation moves the channels to the end and back, as LayerNorm2d does."""
    sizes: Any = getattr(module, "normalized_shape", None)
    if not sizes or type(module) in (nn.LayerNorm, nn.RMSNorm):
        return False
    named = "2d" in type(module).__name__.lower() and value.shape[1] == sizes[-1]
    return named or value.shape[-1] != sizes[-1]


def _alone(network: nn.Module) -> nn.Module:
    """Without DataParallel, whose copies would each see a part of the batch, and uncompiled."""
    while isinstance(network, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        network = network.module
    compiled = getattr(network, "_orig_mod", None)
    return _alone(compiled) if isinstance(compiled, nn.Module) else network


def _only_device(network: nn.Module, device: Any) -> torch.device | None:
    """Where the network has to be brought back to: None where it stays."""
    if device is None:
        return None
    try:
        usable = torch.empty(0, device=device).device.type != "meta"  # it would lose the weights
    except (RuntimeError, AssertionError, NotImplementedError):
        usable = False
    if not usable:
        raise InputError(
            f"device {str(device)!r} cannot be used here. Leave it out, or name one that torch has, "
            "such as 'cpu'."
        )
    homes = {value.device for value in [*network.parameters(), *network.buffers()]}
    if len(homes) > 1:
        raise InputError(
            f"the network lies on {len(homes)} devices, so it cannot be moved to {device}. "
            "Leave out device."
        )
    home = next(iter(homes), None)
    return None if home == torch.device(device) else home


def _failing_layer(network: nn.Module, error: Exception) -> str:
    """The innermost layer on the traceback: found afterwards, so that a good pass costs nothing."""
    names = {id(part): name for name, part in bare(network).named_modules() if name}
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        part = frame.f_locals.get("self")
        if id(part) in names:
            found = part
    if found is None:
        return "its forward pass"
    return f"layer {names[id(found)]!r} ({type(found).__name__})"


def _described(inputs: Any) -> str:
    if isinstance(inputs, Tensor):
        return f"{tuple(inputs.shape)} {str(inputs.dtype).removeprefix('torch.')}"
    if isinstance(inputs, Mapping):
        return "; ".join(f"{key} {_described(value)}" for key, value in inputs.items())
    return type(inputs).__name__
