"""What happens to one batch: in training how it becomes a loss, else how it is scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.data import Data
from likewise.errors import InputError
from likewise.networks.class_names import output_indices, output_labels
from likewise.networks.forward import at_rest, checked_logits
from likewise.networks.normalise import unwrapped
from likewise.networks.preprocessing import shown_to
from likewise.networks.training.augment import mix, select
from likewise.networks.training.settings import Settings

Batch = tuple[Any, Tensor]
Step = Callable[[nn.Module, Batch], tuple[Tensor, Tensor, Tensor]]


class Classify:
    """The usual step: augment, mix, forward pass, and a loss.

    The loss is cross-entropy, unless the network has a method `loss(logits, targets)`: targets are the shares of
    the classes in every input `(n, classes)`, 1 and 0 where inputs are not mixed.
    """

    def __init__(self, settings: Settings, data: Data) -> None:
        self.settings, self.data = settings, data
        self.augments = select(settings.augment)
        if data.domain != "image" and (settings.mixup or settings.cutmix):
            raise InputError(f"{data.domain} inputs cannot be mixed. Leave out mixup and cutmix.")
        if data.domain != "image" and any(isinstance(name, str) for name in settings.augment):
            raise InputError(
                f"{data.domain} inputs have no augmentations by name. Give a function of the batch "
                "and a torch.Generator."
            )

    def __call__(self, net: nn.Module, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        inputs, labels = batch
        generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        for augment in self.augments:
            inputs = augment(inputs, generator)
        targets = labels
        classes = len(self.data.classes)
        if self.settings.mixup or self.settings.cutmix:
            how = {"mixup": self.settings.mixup, "cutmix": self.settings.cutmix}
            inputs, targets = mix(inputs, labels, classes, generator, **how)
        logits = checked_logits(net, inputs)
        if logits.shape[1] < classes:
            raise InputError(
                f"the network answers with {logits.shape[1]} classes and {self.data.name!r} has "
                f"{classes}. Build it with classes={classes}."
            )
        return self._loss(net, logits, targets), logits, labels

    def _loss(self, net: nn.Module, logits: Tensor, targets: Tensor) -> Tensor:
        own = getattr(unwrapped(net), "loss", None)
        if callable(own):
            if targets.ndim == 1:
                targets = functional.one_hot(targets, logits.shape[1]).to(logits.dtype)
            return cast(Tensor, own(logits, targets))
        return functional.cross_entropy(logits, targets, label_smoothing=self.settings.label_smoothing)


def evaluate(
    net: nn.Module,
    data: Data,
    *,
    batch_size: int = 256,
    device: Any = None,
    on_batch: Callable[[Any, Tensor, Tensor], None] | None = None,
) -> tuple[float, float]:
    """Mean cross-entropy and accuracy on labelled data; the network's mode is restored.

    Labels are carried over to the network's classes where both are known by name; data of other
    classes is refused. `on_batch` is handed the inputs, the logits and the labels of every batch.
    """
    if not len(data):
        raise InputError(f"{data.name!r} has no inputs to be scored on. Give at least one.")
    data.need_labels("score a network")
    total, right, places = 0.0, 0, None
    label = type(unwrapped(net)).__name__
    with at_rest(net):
        shown = shown_to(net, data, label)
        for number, (inputs, given) in enumerate(shown.batches(batch_size, device=device)):
            logits = checked_logits(net, inputs)
            if number == 0:
                places = output_indices(data, net, logits.shape[1], label)
            labels = output_labels(given, places)
            total += float(functional.cross_entropy(logits, labels, reduction="sum"))
            right += int((logits.argmax(dim=1) == labels).sum())
            if on_batch is not None:
                on_batch(inputs, logits, labels)
    return total / len(data), right / len(data)
