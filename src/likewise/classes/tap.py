"""What the classifier is given, taken as it passes: no second forward pass for the features.

Which layer that is shows in the first batch, unless it was named or the network declares it: the layer
whose output is the answer (`likewise.views.penultimate`). Loops that call parts of a network rather
than the network itself (a step of Lightning may) tell the answer when they take the features.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import LikewiseError
from likewise.networks.forward import at_rest, first_tensor
from likewise.networks.heads import weighted_parts
from likewise.networks.normalise import unwrapped
from likewise.views.penultimate import answering, same, stated_head


class Tap:
    """Keeps the last input of the classifier; gives none for a network without one.

    `layer` is the name of the classifier as soon as it is known. Where the loop may use what the
    network returns for something else than the answer, `trusts_network` is False, and only the
    logits that are told count.
    """

    def __init__(self, net: nn.Module, head: str | None = None, *, trusts_network: bool = True) -> None:
        self.layer: str | None = None
        self._net = unwrapped(net)
        self._hooks: list[Any] = []
        self._seen: deque[Tensor | None] = deque(maxlen=1)
        self._call = 1
        self._outputs: dict[str, Tensor | None] = {}
        self._inputs: dict[str, Tensor | None] = {}
        self._learns, self._trusts = False, trusts_network
        self._returned: tuple[Any, Callable[[], Any]] | None = None
        try:
            stated = stated_head(net, head)
        except LikewiseError:
            if head is not None:
                raise
            return  # it says itself that it has none
        if stated is None:
            self._learn()
        else:
            self._tap(stated, [None])

    def start(self) -> None:
        """Forget the pass so far: another begins."""
        self._outputs, self._inputs, self._returned = {}, {}, None
        self._seen.clear()

    def take(self, logits: Any = None) -> Tensor | None:
        """The features of the last batch, once; `logits` are what the network answered to it."""
        if self._learns and isinstance(logits, Tensor):
            returned, ask = self._returned or (None, None)
            is_answer = same(first_tensor(returned), logits)
            self._settle(logits, ask if is_answer else None)
        whole = len(self._seen) == self._seen.maxlen
        features = self._seen[self._call - 1] if whole else None
        self.start()
        return features

    def close(self) -> None:
        """Leave the network as it was."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._learns = [], False

    def _learn(self) -> None:
        """Record every layer with weights until the answer of a pass is known."""
        self._learns = True
        for name, part in weighted_parts(self._net).items():
            hook = partial(self._record, name)
            self._hooks.append(part.register_forward_hook(hook, with_kwargs=True))
        root = self._net.register_forward_pre_hook(lambda _net, _given: self.start())
        after = self._net.register_forward_hook(self._answered, with_kwargs=True)
        self._hooks += [root, after]

    def _record(self, name: str, _part: nn.Module, args: Any, words: dict[str, Any], output: Any) -> None:
        number = 1 + sum(call.partition("#")[0] == name for call in self._outputs)
        call = name if number == 1 else f"{name}#{number}"
        self._outputs[call] = first_tensor(output)
        self._inputs[call] = _features(args or words)

    def _answered(self, net: nn.Module, args: Any, words: dict[str, Any], output: Any) -> None:
        ask = partial(_asked, net, args, words)
        if self._trusts:
            self._settle(output, ask)
        else:
            self._returned = output, ask

    def _settle(self, answer: Any, ask: Callable[[], Any] | None) -> None:
        """Find the layer that answered, and listen to no other from now on."""
        outputs, inputs = self._outputs, self._inputs
        if not outputs:
            return
        if ask is not None:
            self.close()  # asked again, the network would be recorded again
        try:
            found = answering(self._net, outputs, answer, ask)
        except LikewiseError:
            found = None
        if found is None:
            self.start()
            return
        self.close()
        name, _, number = found.partition("#")
        calls = [call for call in inputs if call.partition("#")[0] == name]
        self._call = int(number or 1)
        self._tap(name, [inputs[call] for call in calls])

    def _tap(self, name: str, seen: list[Tensor | None]) -> None:
        self.layer = name
        self._seen = deque(seen, maxlen=len(seen))
        if seen == [None]:
            self._seen.clear()
        layer = self._net.get_submodule(name)
        self._hooks.append(layer.register_forward_pre_hook(self._keep, with_kwargs=True))

    def _keep(self, _layer: nn.Module, args: Any, words: dict[str, Any]) -> None:
        self._seen.append(_features(args or words))


def _features(given: Any) -> Tensor | None:
    """What a layer is given, one row per input; None where it is no such thing."""
    value = first_tensor(given)
    if value is not None and value.ndim == 4:  # a 1 x 1 convolution on maps
        value = value.mean(dim=(2, 3))
    return value.detach() if value is not None and value.ndim == 2 else None


def _asked(net: nn.Module, args: Any, words: dict[str, Any]) -> Any:
    """The answer to the same inputs again, in evaluation mode and without a trace."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices), at_rest(net):
        return net(*args, **words)
