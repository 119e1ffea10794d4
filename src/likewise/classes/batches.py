"""What is read of the batches of an epoch: the features that reach the classifier, and sums over all batches.

A `Tap` records the input of the classifier during the pass of a training, so that no second pass is needed. Which layer
classifies is for `networks/anatomy/classifier.py` to say: the layer that was named or that the network declares, else
the one whose output is the answer in the first batch. Loops that call modules of a network rather than the network
itself (a step of Lightning may) pass the answer when they take the features.

`Counts` stay on the device they came from and are moved once per epoch, so that watching costs a training next to
nothing. With several processes they are added over all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from likewise._base.arrays import check_labels, plain_tensor
from likewise._base.machine import has_float64
from likewise._base.progress import warn
from likewise.errors import InputError, LikewiseError
from likewise.networks.anatomy.calls import same_numbers
from likewise.networks.anatomy.classifier import declared_head, find_call
from likewise.networks.anatomy.layers import watch, weighted_layers
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import eval_mode
from likewise.networks.inputs.normalisation import unwrapped

_INPUT = "input of "


class Counts:
    """The running sums of one split: its confusion matrix and the features of each class.

    Numpy and torch batches may be mixed.
    """

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.left_out = 0
        self._confusion: Any = 0
        self._sums: Tensor | None = None
        self._samples: Any = 0

    def add(self, logits: Any, labels: Any, features: Any = None) -> None:
        """One batch: logits `(n, c)` or predictions `(n,)`, true labels `(n,)`, features `(n, d)`."""
        answers, truth = plain_tensor(logits, "the matrix of logits"), plain_tensor(labels, "the list of labels")
        values = None if features is None else plain_tensor(features, "the matrix of features")
        self._check(answers, truth)
        if values is not None:
            self._check_features(values, len(truth))
        truth = truth.to(answers.device)
        mask = None
        if answers.ndim == 2:
            mask = self._defined(answers)
            answers = answers.argmax(dim=1)
        if mask is not None:
            answers, truth = answers[mask], truth[mask]
        c = self.classes
        cells = truth.long() * c + answers.long()
        self._confusion = self._confusion + torch.bincount(cells, minlength=c * c)
        if values is not None:
            values = values.to(truth.device)
            self._add_features(values if mask is None else values[mask], truth)

    def _add_features(self, values: Tensor, truth: Tensor) -> None:
        precise = torch.float64 if has_float64(values.device) else torch.float32
        if self._sums is None:
            self._sums = torch.zeros((self.classes, values.shape[1]), dtype=precise, device=values.device)
        self._sums.index_add_(0, truth.long(), values.to(precise))
        self._samples = self._samples + torch.bincount(truth.long(), minlength=self.classes)

    def _check(self, answers: Tensor, truth: Tensor) -> None:
        c = self.classes
        fits = truth.ndim == 1 and len(answers) == len(truth)
        if not fits or (answers.ndim, *answers.shape[1:]) not in ((1,), (2, c)):
            raise InputError(
                f"a batch is logits (n, {c}) or predictions (n,) with labels (n,), got "
                f"{tuple(answers.shape)} and {tuple(truth.shape)}."
            )
        check_labels(truth, len(truth), c)
        if answers.ndim == 1:
            check_labels(answers, len(truth), c, what="predictions")

    def _check_features(self, values: Tensor, count: int) -> None:
        if values.ndim != 2 or len(values) != count:
            raise InputError(
                f"features must be (inputs, width) with one row per label, got {tuple(values.shape)} for "
                f"{count} labels."
            )
        if self._sums is not None and values.shape[1] != self._sums.shape[1]:
            raise InputError(
                f"features are {values.shape[1]} wide, and those of the batches before {self._sums.shape[1]}. "
                "Give those of one layer."
            )

    def _defined(self, logits: Tensor) -> Tensor | None:
        """Which rows can be judged; None for all of them, the usual case."""
        if bool(torch.isfinite(logits.sum())):
            return None
        rows = ~torch.isnan(logits).any(dim=1)
        bad = int((~rows).sum())
        if not bad:  # infinite logits have a largest one all the same
            return None
        self.left_out += bad
        warn(f"{bad} of {len(rows)} outputs of a batch are NaN: they are left out of this epoch.")
        return rows

    def table(self) -> np.ndarray:
        """The confusion matrix `(c, c)`, over all processes."""
        c = self.classes
        return _over_processes(self._confusion, (c * c,)).reshape(c, c)

    def means(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Feature sums `(c, d)` and samples `(c,)`, over all processes; None where none were given."""
        width = 0 if self._sums is None else self._sums.shape[1]
        if in_parallel():  # a process that saw none takes part in the sums
            widest = _exchangeable(torch.tensor(width))
            distributed.all_reduce(widest, op=distributed.ReduceOp.MAX)
            width = int(widest)
        if not width:
            return None
        sums = 0 if self._sums is None else self._sums
        samples = _over_processes(self._samples, (self.classes,))
        return _over_processes(sums, (self.classes, width), floating=True), samples


def in_parallel() -> bool:
    """Whether several processes train together."""
    return distributed.is_available() and distributed.is_initialized()


def _exchangeable(values: Tensor) -> Tensor:
    """A copy on the device where the processes can exchange it."""
    gpu = distributed.get_backend() == "nccl"
    return values.cuda() if gpu and not values.is_cuda else values.clone()


def sum_over_processes(numbers: list[int]) -> list[int]:
    """Numbers added over all processes that train together."""
    return [int(n) for n in _over_processes(torch.tensor(numbers), (len(numbers),))]


def _over_processes(values: Any, shape: tuple[int, ...], floating: bool = False) -> np.ndarray:
    dtype = torch.float64 if floating else torch.int64
    total = torch.zeros(shape, dtype=dtype) if isinstance(values, int) else values
    if in_parallel():
        total = _exchangeable(total)
        distributed.all_reduce(total)
    return total.cpu().numpy()


class Tap:
    """Keeps the last input of the classifier; gives none for a network without one.

    `layer` is the name of the classifier as soon as it is known. Where the loop may use what the network returns for
    something else than the answer, `trusts_network` is False, and only logits given to `take` count.
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
            declared = declared_head(net, head)
        except LikewiseError:
            if head is not None:
                raise
            return  # it declares that it has none
        if declared is None:
            self._learn()
        else:
            self._listen(declared, calls=1)

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
        layers = weighted_layers(self._net)
        inputs_of = {f"{_INPUT}{name}": layer for name, layer in layers.items()}
        self._new_pass = self._hooks.enter_context(watch(layers, self._record, inputs_of))
        before = self._net.register_forward_pre_hook(lambda _net, _args: self.start())
        after = self._net.register_forward_hook(self._after_pass, with_kwargs=True)
        self._hooks.callback(before.remove)
        self._hooks.callback(after.remove)

    def _record(self, name: str, _layer: nn.Module, value: Any) -> None:
        if name.startswith(_INPUT):
            self._inputs[name.removeprefix(_INPUT)] = _features(value)
        else:
            self._outputs[name] = first_tensor(value)

    def _after_pass(self, net: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        ask = partial(_answer_again, net, args, kwargs)
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
            answering = find_call(self._net, outputs, answer, ask)
        except LikewiseError:
            answering = None
        if answering is None:
            self.start()
            return
        self.close()
        name, _, number = answering.partition("#")
        calls = [value for call, value in inputs.items() if call.partition("#")[0] == name]
        self._call = int(number or 1)
        self._listen(name, calls=len(calls))
        self._last.extend(calls)

    def _listen(self, name: str, *, calls: int) -> None:
        """Keep the inputs of this layer in its last calls, as many as there are in one pass."""
        self.layer = name
        self._last = deque(maxlen=calls)
        inputs_of = {name: self._net.get_submodule(name)}
        self._hooks.enter_context(
            watch({}, lambda _call, _layer, value: self._last.append(_features(value)), inputs_of)
        )


def _features(value: Any) -> Tensor | None:
    """The input of a layer, one row per input; None where it is no such thing."""
    features = first_tensor(value)
    if features is not None and features.ndim == 4:  # a 1 x 1 convolution on maps
        features = features.mean(dim=(2, 3))
    return features.detach() if features is not None and features.ndim == 2 else None


def _answer_again(net: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """The answer to the same inputs again, in evaluation mode and without a trace."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices), eval_mode(net):
        return net(*args, **kwargs)
