"""The classifier of a network: the rows of its weights, and what it is given, recorded as it passes.

No second forward pass is needed for the features. Which layer classifies is what `networks/anatomy/classifier.py`
says: the layer that was named or that the network declares, else the one whose output is the answer in the
first batch. Loops that call parts of a network rather than the network itself (a step of Lightning may) say
what the answer was when they take the features.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise.data import Data, as_data
from likewise.errors import InputError, LikewiseError, NoClassifierError
from likewise.networks import network as load_network
from likewise.networks.anatomy.classifier import answering_call, declared_head, find_call
from likewise.networks.anatomy.classifier import head as find_head
from likewise.networks.anatomy.layers import watch, weighted_layers
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.anatomy.passes import same_numbers
from likewise.networks.class_names import class_rows
from likewise.networks.forward import call, eval_mode
from likewise.networks.inputs.normalisation import unwrapped
from likewise.views.activations import Activations
from likewise.views.extract import extract
from likewise.views.hooks import is_pattern
from likewise.wordnet import ClassNames, match

_INPUT = "input of "


def classifier_rows(
    network: str | nn.Module, head: str | None, inputs: Any, count: int | None
) -> tuple[Tensor, ClassNames | None, dict[str, Any]]:
    """The classifier's weights `(classes, width)`, its classes where the network knows them, and where they come from.

    Outputs that are no classes are left out, unless as many classes as outputs were named. With `inputs`,
    one batch, the network is asked which layer answers.
    """
    net = load_network(network)
    if head is None and inputs is not None:
        with eval_mode(net) as resting:
            head = answering_call(net, lambda: call(resting, inputs)).partition("#")[0]
    try:
        found = find_head(net, layer=head, classes=count)
    except NoClassifierError as error:
        remedy = "Or take class means: from_features(net, data), on the command line --data."
        raise NoClassifierError(f"{error} {remedy}") from error
    about: dict[str, Any] = {"layer": found.layer_name}
    rows, names = class_rows(net, len(found.weight))
    left_out = len(found.weight) - len(rows)
    if not left_out or count == len(found.weight):
        return found.weight, None if left_out else names, about
    return found.weight[rows], names, about | {"left_out": left_out}


def class_features(
    network: str | nn.Module,
    data: Any,
    *,
    layers: str | None,
    reduce: str | None,
    head: str | None,
    batch_size: int | None,
    device: Any,
    progress: bool,
) -> tuple[Activations, Data]:
    """What one layer of a network gives on labelled data, and the data."""
    shown = as_data(data)
    if not isinstance(shown, Data):
        raise InputError(
            f"class means are of data whose classes have names, got {type(data).__name__}. Give likewise.data.Data or "
            "an address, such as 'imagefolder:PATH', or features and labels."
        )
    shown.need_labels("know which inputs are of one class")
    if is_pattern(layers):
        raise InputError(f"layers is {layers!r}, and class means are of one layer. Name one, or leave it out.")
    how: dict[str, Any] = {"head": head, "batch_size": batch_size, "device": device, "progress": progress}
    view = extract(network, shown, layers, reduce, **how)
    if len(view) != len(shown):
        raise InputError(
            f"{layers or 'the layer'} of {view.name!r} gives {len(view)} rows for {len(shown)} inputs. Choose a "
            "reduction that gives one row per input: reduce='mean', 'cls' or 'last'."
        )
    return view, shown


def row_order(classes: Sequence[str], names: ClassNames) -> list[int] | None:
    """The rows of the named classes, where the network has all of them and counts them otherwise."""
    if len(classes) != len(names):
        return None
    places = [place for place in match(ClassNames(tuple(map(str, classes))), names) if place is not None]
    return None if len(places) < len(names) or places == sorted(places) else places


class Tap:
    """Keeps the last input of the classifier; gives none for a network without one.

    `layer` is the name of the classifier as soon as it is known. Where the loop may use what the network
    returns for something else than the answer, `trusts_network` is False, and only logits given to `take`
    count.
    """

    def __init__(self, net: nn.Module, head: str | None = None, *, trusts_network: bool = True) -> None:
        self.layer: str | None = None
        self._net, self._trusts, self._learns = unwrapped(net), trusts_network, False
        self._hooks = ExitStack()
        self._new_pass: Callable[[], None] = lambda: None
        self._outputs: dict[str, Tensor | None] = {}
        self._inputs: dict[str, Tensor | None] = {}
        self._returned: tuple[Any, Callable[[], Any]] | None = None
        self._call, self._last = 1, deque[Tensor | None](maxlen=1)
        try:
            named = declared_head(net, head)
        except LikewiseError:
            if head is not None:
                raise
            return  # it says itself that it has none
        if named is None:
            self._learn()
        else:
            self._listen(named, calls=1)

    def start(self) -> None:
        """Forget the pass so far: another begins."""
        self._outputs, self._inputs, self._returned = {}, {}, None
        self._last.clear()
        self._new_pass()

    def take(self, logits: Any = None) -> Tensor | None:
        """The features of the last batch, once; `logits` are what the network answered to it."""
        if self._learns and isinstance(logits, Tensor):
            returned, ask = self._returned or (None, None)
            is_answer = same_numbers(first_tensor(returned), logits)
            self._settle(logits, ask if is_answer else None)
        whole = len(self._last) == self._last.maxlen
        features = self._last[self._call - 1] if whole else None
        self.start()
        return features

    def close(self) -> None:
        """Leave the network as it was."""
        self._hooks.close()
        self._learns = False

    def _learn(self) -> None:
        """Record every layer with weights until the answer of a pass is known."""
        self._learns = True
        parts = weighted_layers(self._net)
        inputs_of = {f"{_INPUT}{name}": part for name, part in parts.items()}
        self._new_pass = self._hooks.enter_context(watch(parts, self._record, inputs_of))
        before = self._net.register_forward_pre_hook(lambda _net, _args: self.start())
        after = self._net.register_forward_hook(self._after_pass, with_kwargs=True)
        self._hooks.callback(before.remove)
        self._hooks.callback(after.remove)

    def _record(self, name: str, _part: nn.Module, value: Any) -> None:
        if name.startswith(_INPUT):
            self._inputs[name.removeprefix(_INPUT)] = _features(value)
        else:
            self._outputs[name] = first_tensor(value)

    def _after_pass(self, net: nn.Module, args: Any, words: dict[str, Any], output: Any) -> None:
        ask = partial(_answer_again, net, args, words)
        if self._trusts:
            self._settle(output, ask)
        else:
            self._returned = output, ask

    def _settle(self, answer: Any, ask: Callable[[], Any] | None) -> None:
        """Find the call that answered, and listen to no other layer from now on."""
        outputs, inputs = self._outputs, self._inputs
        if not outputs:
            return
        if ask is not None:
            self.close()  # asked again, the network would be recorded again
        try:
            found = find_call(self._net, outputs, answer, ask)
        except LikewiseError:
            found = None
        if found is None:
            self.start()
            return
        self.close()
        name, _, number = found.partition("#")
        calls = [value for call, value in inputs.items() if call.partition("#")[0] == name]
        self._call = int(number or 1)
        self._listen(name, calls=len(calls))
        self._last.extend(calls)

    def _listen(self, name: str, *, calls: int) -> None:
        """Keep what this layer is given in its last calls, as many as there are in one pass."""
        self.layer = name
        self._last = deque(maxlen=calls)
        inputs_of = {name: self._net.get_submodule(name)}
        self._hooks.enter_context(watch({}, lambda _call, _part, given: self._last.append(_features(given)), inputs_of))


def _features(given: Any) -> Tensor | None:
    """What a layer is given, one row per input; None where it is no such thing."""
    value = first_tensor(given)
    if value is not None and value.ndim == 4:  # a 1 x 1 convolution on maps
        value = value.mean(dim=(2, 3))
    return value.detach() if value is not None and value.ndim == 2 else None


def _answer_again(net: nn.Module, args: Any, words: dict[str, Any]) -> Any:
    """The answer to the same inputs again, in evaluation mode and without a trace."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices), eval_mode(net):
        return net(*args, **words)
