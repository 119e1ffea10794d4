"""One network in eval mode with labelled data, and its outputs in the order of the data's classes.

Networks number their classes as they were trained; answers of several can be compared only class by class. So the
classes of the data come first, in their own order, and the other classes of a network follow by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from likewise._base.hashing import fingerprint
from likewise.data import Data, as_data
from likewise.errors import InputError, brief
from likewise.measures.representation import Representation
from likewise.networks.class_names import class_names, output_indices, output_labels
from likewise.networks.forward import checked_logits, device_of, eval_mode, transform_for
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.names import expanded, named_networks, network_and_name
from likewise.networks.unknown_normalisation import check_normalisation
from likewise.views.randomness import repeatable, run_from_seed

_LOCKS: WeakKeyDictionary[nn.Module, RLock] = WeakKeyDictionary()
_CREATING = RLock()
AT_ONCE = 256  # inputs in one forward pass
ATTACK = "know what an attack leads away from"
NOT_HERE = ("layers", "head", "reduce", "dtype")  # fields of `Show`: networks answer as a whole


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network in eval mode, with data transformed for it.

    `columns` are its outputs in the order of the data's classes, `indices` the outputs of these classes alone (None if
    they are in order), `shape` is that of one input.
    """

    name: str
    net: nn.Module
    data: Data
    indices: list[int] | None
    columns: list[int]
    shape: tuple[int, ...]
    device: Any

    def check_normalisation(self) -> None:
        """Say once where nothing is known of how its images are normalised."""
        check_normalisation(self.net, self.data, repr(self.name), self.device)

    def logits(self, inputs: Any) -> Tensor:
        """Logits of a batch, one row per input, one column per class in the order of the data."""
        logits = checked_logits(self.net, inputs)
        if logits.ndim != 2 or not logits.is_floating_point() or logits.shape[1] != len(self.columns):
            raise InputError(_no_logits(self.name, logits))
        if not bool(logits.isfinite().all()):
            raise InputError(
                f"{self.name!r} answers with numbers that are not finite. Repair its weights, or leave it out."
            )
        return logits[:, self.columns]

    def classes(self, images: Tensor) -> Tensor:
        """The predicted class of each image, numbered as in the data; `AT_ONCE` images per forward pass."""
        starts = range(0, len(images), AT_ONCE)
        with torch.no_grad():
            return torch.cat([self.logits(images[start : start + AT_ONCE]).argmax(dim=1) for start in starts])

    def images(self, rows: Tensor) -> Tensor:
        """Some images of the data as the network is shown them, on its device."""
        batches = [inputs for inputs, _ in self.data[rows].batches(AT_ONCE, device=self.device)]
        if not all(isinstance(batch, Tensor) and batch.is_floating_point() for batch in batches):
            raise InputError(
                f"{self.name!r} is shown more than pixels, so there are no images between two of its own. Leave it out."
            )
        return torch.cat(batches)

    def network_labels(self, labels: Tensor) -> Tensor:
        """Labels of the data as the network numbers its outputs."""
        return output_labels(labels, self.indices)

    def identity(self) -> dict[str, Any]:
        """What its answers depend on."""
        in_order = self.columns == list(range(len(self.columns)))
        return {
            "fingerprint": fingerprint(self.net),
            "probe": self.data.probe,
            "transform": getattr(self.data.inputs, "recipe", ""),
            "columns": None if in_order else self.columns,
        }


@contextmanager
def classifier(name: str, network: Any, data: Data, device: Any = None) -> Iterator[Classifier]:
    """A module or the network of an address, in eval mode on a device, locked for this thread."""
    module, _ = network_and_name(network, name, data=data, device=device)
    with _lock_of(module), eval_mode(module, device) as net:
        device, inputs = device_of(net), transform_for(module, data, repr(name))
        first, _ = next(iter(inputs.batches(1, device=device)))
        with run_from_seed(0, device):  # it may draw
            logits = checked_logits(net, first)
        if logits.ndim != 2 or not logits.is_floating_point():
            raise InputError(_no_logits(name, logits))
        count = logits.shape[1]
        indices = output_indices(data, module, count, repr(name))
        shape = tuple(first.shape[1:]) if isinstance(first, Tensor) else ()
        with repeatable(lambda: [checked_logits(net, first).detach()], net, device, repr(name)):
            yield Classifier(name, net, inputs, indices, _columns(module, count, indices), shape, device)


@contextmanager
def viewed_classifier(rep: Representation, data: Data) -> Iterator[Classifier]:
    """The network that a view was extracted from, with this data, on the device where its weights are."""
    network = viewed_network(rep)
    with classifier(rep.view.name, network, data, device_of(network)) as net:
        yield net


def viewed_network(rep: Representation) -> nn.Module:
    """The network that a view was extracted from, refused where a transform stood before it."""
    if rep.subject.transform is not None:
        raise InputError(
            f"{rep.name} is shown what a transform gives, and here networks are shown pixels between 0 and 1. Give "
            "mean and std, or add ',transform=FILE.py:function' to its address."
        )
    network: nn.Module = rep.subject.network
    return network


def _lock_of(module: nn.Module) -> RLock:
    """The lock of a module: pairs are scored by several threads, and one module may stand under two names."""
    with _CREATING:
        return _LOCKS.setdefault(unwrapped(module), RLock())


def labelled(data: Any, to: str = ATTACK) -> Data:
    """Data with labels, or an error that says what needs them."""
    inputs = as_data(data)
    if isinstance(inputs, TensorDataset):
        inputs = _images_of(inputs)
    if not isinstance(inputs, Data):
        raise InputError(
            f"the data is {brief(inputs)}, which has no labels, and they are needed to {to}. Give an address, "
            "(images, labels), or likewise.data.Data(name, domain, inputs, labels, classes)."
        )
    if not len(inputs):
        raise InputError(f"{inputs.name!r} has no inputs. Give at least one.")
    inputs.need_labels(to)
    return inputs


def _images_of(pairs: TensorDataset) -> Any:
    """Tensors of images and of their labels as data; others as they are."""
    images, *rest = pairs.tensors
    if images.ndim != 4 or len(rest) != 1 or rest[0].ndim != 1 or rest[0].is_floating_point() or not len(images):
        return pairs
    return Data("images", "image", images, rest[0].long(), tuple(map(str, range(int(rest[0].max()) + 1))))


def labelled_images(rep: Representation, to: str) -> Data:
    """The labelled images a network was shown, or an error that says what needs them."""
    data = labelled(rep.subject.data, to)
    if data.domain != "image":
        raise InputError(f"{data.name!r} holds {data.domain} inputs, and images are needed to {to}. Give images.")
    return data


def original_pixels(data: Data, rows: Tensor) -> Tensor:
    """Some images as they are in the data, before any network's transform."""
    return torch.cat([inputs for inputs, _ in data[rows].batches(AT_ONCE)])


def by_name(networks: Any) -> dict[str, Any]:
    """Networks under their names, from a mapping, a list or one address, as `compare` names them."""
    several = networks if isinstance(networks, (Mapping, list, tuple)) else [networks]
    for network in several.values() if isinstance(several, Mapping) else several:
        if not isinstance(network, (str, nn.Module)):
            raise InputError(f"{brief(network)} is not a network. Give an address or a module.")
    if isinstance(several, Mapping):
        return {str(name): network for name, network in several.items()}
    return named_networks(expanded(several))


def networks_and_data(verb: str, networks: Any, other: Any, data: Any, to: str = ATTACK) -> tuple[dict[str, Any], Data]:
    """Networks by name and labelled data, from `verb(networks, data)` or `verb(a, b, data)`."""
    if data is None and not isinstance(other, nn.Module):
        other, data = None, other
    if data is None:
        raise InputError(f"{verb} needs labelled data to show networks. Pass data=, like data='cifar10:test[:500]'.")
    if other is None:
        return by_name(networks), labelled(data, to)
    if isinstance(networks, (Mapping, list, tuple)):
        raise InputError(
            f"{verb} takes {verb}(networks, data) or {verb}(a, b, data), and got several networks and {brief(other)} "
            "beside them. Put all networks into one list or mapping."
        )
    return by_name([networks, other]), labelled(data, to)


def check_same_classes(counts: Mapping[str, int]) -> None:
    """Refuse networks that answer with different numbers of classes."""
    (first, expected), *others = counts.items()
    for name, count in others:
        if count != expected:
            raise InputError(
                f"{name!r} answers with {count} classes and {first!r} with {expected}. Give networks of the same "
                "classes."
            )


def _columns(net: nn.Module, count: int, indices: list[int] | None) -> list[int]:
    """Outputs in the order of the data's classes; others follow by name, then those without one."""
    if indices is None:
        return list(range(count))
    names = class_names(net, count)
    ids = [] if names is None else [str(id or name) for id, name in zip(names.ids, names.names, strict=True)]
    rest = sorted(set(range(count)) - set(indices), key=lambda i: (i >= len(ids), ids[i] if i < len(ids) else "", i))
    return [*indices, *rest]


def _no_logits(name: str, logits: Any) -> str:
    shape = f"{tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
    kind = str(logits.dtype).removeprefix("torch.") if isinstance(logits, Tensor) else ""
    return f"{name!r} answers with {kind} of shape {shape}, not with logits (inputs, classes). Give a classifier."
