"""Hard distillation: a trained network says what each input of a batch is, and the student learns from that too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from likewise._base.hashing import fingerprint, weights_digest
from likewise._base.progress import warn
from likewise.data import Data
from likewise.errors import InputError, brief
from likewise.networks.address import is_untrained, network, recipe
from likewise.networks.class_names import output_indices
from likewise.networks.forward import KINDS, checked_logits, device_of, eval_mode, input_kind
from likewise.networks.inputs.normalisation import transform_of, unwrapped
from likewise.networks.inputs.transforms import resized
from likewise.networks.training.checkpoints import WEIGHTS, epoch_file
from likewise.networks.unknown_normalisation import check_normalisation
from likewise.networks.zoo.registry import ImageNetwork


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained network; `indices` are its outputs for the classes of the data, None for all in order."""

    net: nn.Module
    label: str
    indices: list[int] | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides what it answers."""
        return fingerprint(unwrapped(self.net, keep_normalisation=True))

    def __call__(self, inputs: Any) -> Tensor:
        """The class of the data that the teacher sees in each input."""
        answers = self.logits(inputs)
        return (answers if self.indices is None else answers[:, self.indices]).argmax(dim=1)

    def logits(self, inputs: Any) -> Tensor:
        """What it answers to inputs at its own size."""
        with eval_mode(self.net) as eval_net:
            answers = checked_logits(eval_net, resize_for(eval_net, inputs))
        if answers.ndim != 2:
            raise InputError(
                f"{self.label} answers with numbers of shape {tuple(answers.shape)}, not (inputs, classes). "
                "Give a classifier."
            )
        if not bool(answers.isfinite().all()):
            raise InputError(f"{self.label} answers with numbers that are not finite. Give another network.")
        return answers


def prepare(source: nn.Module | str | Path, student: nn.Module, data: Data, folder: Path | None) -> Teacher:
    """The teacher, or a sentence on why it cannot teach this student these classes."""
    if not isinstance(source, (nn.Module, str, Path)):
        raise InputError(f"the teacher is {brief(source)}. Give an address or a module.")
    address = None if isinstance(source, nn.Module) else str(source)
    net = network(address, data=data) if address is not None else cast(nn.Module, source)
    label = f"the teacher {address or type(unwrapped(net)).__name__}"
    if address is not None and ".py:" not in address and is_untrained(address):
        warn(f"{label} has random weights. Name trained ones, as in '{address}@weights.safetensors'.")
    kind = input_kind(net)
    if kind is not None and kind != data.domain:
        held = KINDS[data.domain]
        raise InputError(
            f"{label} takes {KINDS[kind]}, and {data.name!r} holds {held}. Choose a teacher that takes {held}."
        )
    _refuse_the_student(net, student, folder)
    device = device_of(student)
    if device is not None:
        net.to(device)
    teacher = Teacher(net, label)
    inputs, _ = next(iter(data.batches(2, device=device)))
    indices = output_indices(data, net, teacher.logits(inputs).shape[1], label)
    check_normalisation(net, data, label, device, lambda images: resize_for(net, images))
    return replace(teacher, indices=indices)


def _refuse_the_student(teacher: nn.Module, student: nn.Module, folder: Path | None) -> None:
    """Refuse a student as its own teacher: the same object, the same weights or the same training."""
    origin = recipe(teacher)
    why = None
    if {id(weight) for weight in teacher.parameters()} & {id(weight) for weight in student.parameters()}:
        why = "both share their weights"
    elif weights_digest(unwrapped(teacher)) == weights_digest(unwrapped(student)):
        why = "both have the same weights"
    elif folder is not None and origin is not None and origin.weights is not None:
        path, output = Path(origin.weights).expanduser().resolve(), folder.resolve()
        if path == output / WEIGHTS or path.parent == epoch_file(output, 0).parent:
            why = f"{origin.weights} is written by this training"
    if why is not None:
        raise InputError(f"the student is its own teacher: {why}. Give another network as the teacher.")


def resize_for(net: nn.Module, inputs: Any) -> Any:
    """A batch of images in [0, 1], made for another network, as this one takes it: at its size, in its channels.

    The whole image is kept: it is resized (bilinear, antialiased), not cropped. Inputs that are no images, and images
    for a network that takes any size, stay as they are.
    """
    if not isinstance(inputs, Tensor) or inputs.ndim != 4 or not inputs.is_floating_point():
        return inputs
    transform, size = transform_of(net), input_size(net)
    if transform is not None and transform.whole:
        return transform(inputs)
    inputs = inputs if size is None else resized(inputs, size)
    return inputs if transform is None else transform.sized(inputs)


def input_size(net: nn.Module) -> tuple[int, int] | None:
    """The height and width of the images a network takes, None where it takes any or nothing says so."""
    transform, origin, inside = transform_of(net), recipe(net), unwrapped(net)
    if transform is not None and transform.resizes and transform.size is not None:
        return transform.size
    declared = None if origin is None else origin.options.get("size")
    side = inside.size if isinstance(inside, ImageNetwork) else declared
    return (side, side) if isinstance(side, int) else None
