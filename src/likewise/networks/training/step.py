"""What happens to one batch: in training how it becomes a loss, else how it is scored.

In adversarial training every batch is attacked before the network learns from it. Attacks live in a later room, which
adds itself to the registry `ADVERSARIES`; its path is loaded when a training asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from likewise._base.registry import Registry
from likewise.data import Data
from likewise.errors import InputError
from likewise.networks.class_names import output_indices, output_labels
from likewise.networks.forward import checked_logits, device_of, eval_mode, explained, transform_for
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.training.augment import mix, select
from likewise.networks.training.loss import batch_loss, output_of, summed_loss
from likewise.networks.training.settings import Settings
from likewise.networks.training.teacher import Teacher

Batch = tuple[Any, Tensor]
Step = Callable[[nn.Module, Batch], tuple[Tensor, Tensor, Tensor]]


class Adversary(Protocol):
    """What makes a batch harder; `record` holds the options that decide how, as plain values."""

    @property
    def record(self) -> dict[str, Any]:
        """The attack and its options."""

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        """The images of a batch, changed to mislead the network as it is now."""


ADVERSARIES: Registry[Callable[[Mapping[str, Any]], Adversary]] = Registry(
    "adversary", group="likewise.adversaries", modules=("likewise.attacks.training",)
)


class Classify:
    """The usual step: augment, mix or attack, forward pass, and a loss.

    The loss is cross-entropy, unless the network brings its own (`likewise.networks.training.loss`). With a teacher
    it is half of that to the labels and half to what the teacher answers to the inputs before they are attacked.
    """

    def __init__(self, settings: Settings, data: Data, teacher: Teacher | None = None) -> None:
        self.settings, self.data, self.teacher = settings, data, teacher
        self.augments = select(settings.augment)
        options = cast("Mapping[str, Any] | None", settings.adversarial)  # a text was read by the settings
        self.adversary = None if options is None else ADVERSARIES.get("attack")(options)
        if data.domain != "image" and (settings.mixup or settings.cutmix):
            raise InputError(f"{data.domain} inputs cannot be mixed. Leave out mixup and cutmix.")
        if data.domain != "image" and self.adversary is not None:
            raise InputError(f"{data.domain} inputs cannot be attacked. Leave out adversarial.")
        if data.domain != "image" and any(isinstance(name, str) for name in settings.augment):
            raise InputError(
                f"{data.domain} inputs have no augmentations by name. Give a function of the batch "
                "and a torch.Generator."
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What the settings do not say of it in full: the attack with all that decides, and the teacher."""
        attacked = {} if self.adversary is None else {"adversarial": self.adversary.record}
        return attacked if self.teacher is None else attacked | {"teacher": self.teacher.fingerprint}

    def __call__(self, net: nn.Module, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        inputs, labels = batch
        generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        for augment in self.augments:
            inputs = augment(inputs, generator)
        targets = labels
        if self.settings.mixup or self.settings.cutmix:
            alphas = {"mixup": self.settings.mixup, "cutmix": self.settings.cutmix}
            inputs, targets = mix(inputs, labels, len(self.data.classes), generator, **alphas)
        taught = None if self.teacher is None else self.teacher(inputs)
        if self.adversary is not None:
            inputs = self._attacked(net, inputs, labels, generator)
        logits, asked = output_of(net, inputs)
        self._check(logits)
        loss = batch_loss(net, logits, targets, asked, self.settings.label_smoothing)
        if taught is not None:
            loss = (loss + batch_loss(net, logits, taught, asked)) / 2
        return loss, logits, labels

    def _attacked(self, net: nn.Module, inputs: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        assert self.adversary is not None
        try:
            with explained(net, inputs):
                return self.adversary(net, inputs, labels, generator)
        except InputError:
            with eval_mode(net) as eval_net:
                logits = checked_logits(eval_net, inputs)
            self._check(logits)
            if not bool(logits.isfinite().all()):
                raise InputError("the network's answers are not finite any more. Lower lr or give warmup.") from None
            raise

    def _check(self, logits: Tensor) -> None:
        classes = len(self.data.classes)
        if logits.shape[1] < classes:
            raise InputError(
                f"the network answers with {logits.shape[1]} classes and {self.data.name!r} has "
                f"{classes}. Build it with classes={classes}."
            )


def evaluate(
    net: nn.Module,
    data: Data,
    *,
    batch_size: int = 256,
    device: Any = None,
    num_workers: int | None = None,
    on_batch: Callable[[Any, Tensor, Tensor], None] | None = None,
) -> tuple[float, float]:
    """Mean loss and accuracy on labelled data; the network's mode is restored.

    The loss is the one it is trained by: its own where it brings one, else cross-entropy. Labels are carried over to
    the network's classes where both are known by name.

    Args:
        net: A network that classifies.
        data: Labelled data.
        batch_size: Inputs in one batch.
        device: Where inputs go, where the network has no weights that say so.
        num_workers: How many processes decode image files ahead of the network.
        on_batch: Receives the inputs, the logits and the labels of every batch.
    """
    if not len(data):
        raise InputError(f"{data.name!r} has no inputs to be scored on. Give at least one.")
    data.need_labels("score a network")
    indices, losses, rights = None, [], []  # tensors: to ask for a number is to wait for the device
    label = type(unwrapped(net)).__name__
    with eval_mode(net):
        batches = transform_for(net, data, label).batches(
            batch_size, device=device_of(net, device), num_workers=num_workers
        )
        for number, (inputs, data_labels) in enumerate(batches):
            logits, asked = output_of(net, inputs)
            if number == 0:
                indices = output_indices(data, net, logits.shape[1], label)
            labels = output_labels(data_labels, indices)
            losses.append(summed_loss(net, logits, labels, asked))
            rights.append((logits.argmax(dim=1) == labels).sum())
            if on_batch is not None:
                on_batch(inputs, logits, labels)
    return sum(torch.stack(losses).tolist()) / len(data), int(torch.stack(rights).sum()) / len(data)
