"""Networks of a measure that looks at them: at rest with some of the data as they are shown it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from likewise.data import Data
from likewise.errors import InputError
from likewise.measures.representation import Representation
from likewise.transfer.classifiers import Classifier, classifier, labelled

AT_ONCE = 256  # inputs in one forward pass


def images_of(rep: Representation, to: str) -> Data:
    """The labelled images a network was shown, or a sentence that says what needs them."""
    data = labelled(rep.subject.data, to)
    if data.domain != "image":
        raise InputError(f"{data.name!r} holds {data.domain} inputs, and images are needed to {to}. Give images.")
    return data


def pixels_of(data: Data, rows: Tensor) -> Tensor:
    """Some images as the data has them, whichever network is shown them."""
    return torch.cat([inputs for inputs, _ in data[rows].batches(AT_ONCE)])


@contextmanager
def resting(rep: Representation, data: Data) -> Iterator[Classifier]:
    """The network of a view, at rest, with this data as it is shown; for this thread alone."""
    network = rep.subject.network
    home = next((weight.device for weight in network.parameters()), None)
    with classifier(rep.view.name, network, data, home) as net:
        yield net


def shown(net: Classifier, rows: Tensor) -> Tensor:
    """Some images of a network's data as it is shown them, on its device."""
    parts = [inputs for inputs, _ in net.data[rows].batches(AT_ONCE, device=net.device)]
    if not all(isinstance(part, Tensor) and part.is_floating_point() for part in parts):
        raise InputError(
            f"{net.name!r} is shown more than pixels, so there are no images between two of its own. Leave it out."
        )
    return torch.cat(parts)


def predictions(net: Classifier, images: Tensor) -> Tensor:
    """The class of each image, as the data counts them; some at a time."""
    starts = range(0, len(images), AT_ONCE)
    with torch.no_grad():
        return torch.cat([net.logits(images[start : start + AT_ONCE]).argmax(dim=1) for start in starts])
