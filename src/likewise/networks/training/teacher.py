"""Hard distillation: a trained network says what each input of a batch is, and the student learns from that too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from likewise._base.hashing import fingerprint, weights_digest
from likewise._base.warnings import warn
from likewise.data import Data
from likewise.errors import InputError
from likewise.networks.address import is_untrained
from likewise.networks.class_names import output_indices
from likewise.networks.forward import KINDS, at_rest, checked_logits, takes
from likewise.networks.load import network, recipe
from likewise.networks.normalise import unwrapped
from likewise.networks.preprocessing import fitted
from likewise.networks.training.checkpoints import WEIGHTS, epoch_file


@dataclass(frozen=True, eq=False)
class Teacher:
    """A network at rest; `places` are the outputs that stand for the classes of the data, None for all in order."""

    net: nn.Module
    places: list[int] | None
    fingerprint: str

    def __call__(self, inputs: Any) -> Tensor:
        """The class of the data that the teacher sees in each input, which is brought to the teacher's size."""
        answers = _answers(self.net, inputs)
        return (answers if self.places is None else answers[:, self.places]).argmax(dim=1)


def prepare(given: nn.Module | str, student: nn.Module, data: Data, folder: Path | None, device: Any) -> Teacher:
    """The teacher, or a sentence on why it cannot teach this student these classes."""
    net = network(given, data=data) if isinstance(given, str) else given
    label = f"the teacher {given if isinstance(given, str) else type(unwrapped(net)).__name__}"
    if isinstance(given, str) and ".py:" not in given and is_untrained(given):
        warn(f"{label} has random weights. Name trained ones, as in '{given}@weights.safetensors'.")
    kind = takes(net)
    if kind is not None and kind != data.domain:
        held = KINDS[data.domain]
        raise InputError(
            f"{label} takes {KINDS[kind]}, and {data.name!r} holds {held}. Choose a teacher that takes {held}."
        )
    _refuse_the_student(net, student, folder)
    if device is not None:
        net.to(device)
    inputs, _ = next(iter(data.batches(2, device=device)))
    places = output_indices(data, net, _answers(net, inputs).shape[1], label)
    return Teacher(net, places, fingerprint(unwrapped(net, keep_normalisation=True)))


def _answers(net: nn.Module, inputs: Any) -> Tensor:
    with at_rest(net) as resting:
        return checked_logits(resting, fitted(resting, inputs))


def _refuse_the_student(teacher: nn.Module, student: nn.Module, folder: Path | None) -> None:
    """A student learns nothing from its own answers, be it the same object, the same weights or the same training."""
    made = recipe(teacher)
    why = None
    if {id(weight) for weight in teacher.parameters()} & {id(weight) for weight in student.parameters()}:
        why = "both share their weights"
    elif weights_digest(unwrapped(teacher)) == weights_digest(unwrapped(student)):
        why = "both have the same weights"
    elif folder is not None and made is not None and made.weights is not None:
        path, own = Path(made.weights).expanduser().resolve(), folder.resolve()
        if path == own / WEIGHTS or path.parent == epoch_file(own, 0).parent:
            why = f"{made.weights} is written by this training"
    if why is not None:
        raise InputError(f"the student is its own teacher: {why}. Give another network as the teacher.")
