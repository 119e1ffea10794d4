"""The loss a network is trained and validated by: its own where it brings one, else cross-entropy.

A network brings its own as a method `loss(logits, targets)`; targets are the shares of the classes in every input
`(n, classes)`. Further parameters are asked for by their names: `inputs` are the inputs as the network was shown them
(augmented, before its own normalisation), `hidden` is what the layer gave that the network names as `loss_layer`. So
a reconstruction is part of a loss, nothing is computed twice, and nothing is kept on the network between the two.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from torch import Tensor, nn
from torch.nn import functional

from likewise.errors import InputError
from likewise.networks.anatomy.outputs import output_kind
from likewise.networks.forward import checked_logits
from likewise.networks.inputs.normalisation import unwrapped

_SMALLEST = 1e-12  # probability whose logarithm is still taken


def output_of(net: nn.Module, inputs: Any) -> tuple[Tensor, dict[str, Any]]:
    """The answers to one batch, and what else a loss of the network's own asks for, by name."""
    names = _asked_for(net)
    with _recorded(net, "hidden" in names) as seen:
        logits = checked_logits(net, inputs)
    if "hidden" in names and len(seen) != 1:
        raise InputError(
            f"{type(unwrapped(net)).__name__}.loss asks for what its loss_layer gives, and in one forward pass that "
            f"layer ran {len(seen)} times. Name a layer that runs once."
        )
    values = {"inputs": inputs, "hidden": seen[0] if seen else None}
    return logits, {name: values[name] for name in names}


def batch_loss(
    net: nn.Module, logits: Tensor, targets: Tensor, asked: Mapping[str, Any], smoothing: float = 0.0
) -> Tensor:
    """The mean loss of a batch; targets are classes `(n,)` or their shares `(n, classes)`."""
    loss = _loss_of(net)
    if loss is None:
        return functional.cross_entropy(_as_logits(net, logits), targets, label_smoothing=smoothing)
    if targets.ndim == 1:
        targets = functional.one_hot(targets, logits.shape[1]).to(logits.dtype)
    return cast(Tensor, loss(logits, targets, **asked))


def summed_loss(net: nn.Module, logits: Tensor, labels: Tensor, asked: Mapping[str, Any]) -> Tensor:
    """The loss of a batch summed over its inputs."""
    if _loss_of(net) is None:
        return functional.cross_entropy(_as_logits(net, logits), labels, reduction="sum")
    return batch_loss(net, logits, labels, asked).detach() * len(labels)


def _as_logits(net: nn.Module, answers: Tensor) -> Tensor:
    return answers.clamp(min=_SMALLEST).log() if output_kind(net) == "probabilities" else answers


def _loss_of(net: nn.Module) -> Callable[..., Any] | None:
    loss = getattr(unwrapped(net), "loss", None)
    return loss if callable(loss) else None


def _asked_for(net: nn.Module) -> list[str]:
    """Which of `inputs` and `hidden` the network's own loss has parameters for, after the first two."""
    loss = _loss_of(net)
    if loss is None:
        return []
    parameters = list(inspect.signature(loss).parameters)[2:]
    return [name for name in ("inputs", "hidden") if name in parameters]


@contextmanager
def _recorded(net: nn.Module, is_asked_for: bool) -> Iterator[list[Any]]:
    """What the network's `loss_layer` gives in the forward passes inside."""
    seen: list[Any] = []
    if not is_asked_for:
        yield seen
        return
    inside: Any = unwrapped(net)
    layer = getattr(inside, "loss_layer", None)
    if layer not in dict(inside.named_modules()):
        raise InputError(
            f"{type(inside).__name__}.loss asks for hidden values, and its loss_layer is {layer!r}, which is none of "
            "its layers. Set loss_layer to the name of one."
        )
    handle = inside.get_submodule(layer).register_forward_hook(lambda _, __, output: seen.append(output))
    try:
        yield seen
    finally:
        handle.remove()
