"""One network with labelled data as it is shown, and its outputs in the order of the data's classes.

Networks count their classes as they were trained; answers of several can be compared only class by class. So the
classes of the data come first, in their own order, and what else a network knows follows by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from likewise._base.hashing import fingerprint
from likewise.data import Data, as_data
from likewise.errors import InputError, brief
from likewise.networks.class_names import class_names, output_indices, output_labels
from likewise.networks.forward import at_rest, checked_logits, shown_to
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.names import expanded, named_networks, network_and_name

_LOCKS: WeakKeyDictionary[nn.Module, RLock] = WeakKeyDictionary()
_MAKING = RLock()


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network at rest, with data as it is shown.

    `columns` are its outputs in the order of the data's classes, `shape` is that of one input.
    """

    name: str
    net: nn.Module
    data: Data
    places: list[int] | None
    columns: list[int]
    shape: tuple[int, ...]
    device: Any

    def logits(self, inputs: Any) -> Tensor:
        """What it answers to a batch, one row per input, one column per class as the data counts them."""
        return self._checked(checked_logits(self.net, inputs))[:, self.columns]

    def _checked(self, logits: Tensor) -> Tensor:
        if logits.ndim != 2 or not logits.is_floating_point() or logits.shape[1] != len(self.columns):
            raise InputError(_no_logits(self.name, logits))
        if not bool(logits.isfinite().all()):
            raise InputError(
                f"{self.name!r} answers with numbers that are not finite. Repair its weights, or leave it out."
            )
        return logits

    def own_labels(self, labels: Tensor) -> Tensor:
        """Labels of the data as the network counts its outputs."""
        return output_labels(labels, self.places)

    def identity(self) -> dict[str, Any]:
        """What its answers depend on."""
        recipe = getattr(self.data.inputs, "recipe", "")
        known = {"fingerprint": fingerprint(self.net), "probe": self.data.probe, "transform": recipe}
        return known | {"columns": None if self.columns == list(range(len(self.columns))) else self.columns}


@contextmanager
def classifier(name: str, network: Any, data: Data, device: Any = None) -> Iterator[Classifier]:
    """The network of an address, or a module, at rest on a device, for this thread alone."""
    module, _ = network_and_name(network, name, data=data)
    with _alone(module), at_rest(module, device) as net:
        shown = shown_to(module, data, repr(name))
        first, _ = next(iter(shown.batches(1, device=device)))
        logits = checked_logits(net, first)
        if logits.ndim != 2 or not logits.is_floating_point():
            raise InputError(_no_logits(name, logits))
        count = logits.shape[1]
        places = output_indices(data, module, count, repr(name))
        shape = tuple(first.shape[1:]) if isinstance(first, Tensor) else ()
        yield Classifier(name, net, shown, places, _columns(module, count, places), shape, device)


def _alone(module: nn.Module) -> RLock:
    """The lock of a module: pairs are scored by several threads, and one module may stand under two names."""
    with _MAKING:
        return _LOCKS.setdefault(unwrapped(module), RLock())


def labelled(data: Any, to: str) -> Data:
    """Data with labels, or a sentence that says what needs them."""
    found = as_data(data)
    if not isinstance(found, Data):
        raise InputError(
            f"the data is {brief(found)}, which has no labels, and they are needed to {to}. Give an address, or "
            "likewise.data.Data(name, domain, inputs, labels, classes)."
        )
    if not len(found):
        raise InputError(f"{found.name!r} has no inputs. Give at least one.")
    found.need_labels(to)
    return found


def by_name(networks: Any) -> dict[str, Any]:
    """Networks under their names, from a mapping, a list or one address, as `compare` names them."""
    if isinstance(networks, Mapping):
        return {str(name): network for name, network in networks.items()}
    several = list(networks) if isinstance(networks, (list, tuple)) else [networks]
    for network in several:
        if not isinstance(network, (str, nn.Module)):
            raise InputError(f"{brief(network)} is not a network. Give an address or a module.")
    return named_networks(expanded(several))


def check_same_classes(counts: Mapping[str, int]) -> None:
    """Refuse networks that answer with different numbers of classes."""
    (first, expected), *others = counts.items()
    for name, count in others:
        if count != expected:
            raise InputError(
                f"{name!r} answers with {count} classes and {first!r} with {expected}. Give networks of the same "
                "classes."
            )


def _columns(net: nn.Module, count: int, places: list[int] | None) -> list[int]:
    """Outputs in the order of the data's classes; others follow by name, then those without one."""
    if places is None:
        return list(range(count))
    own = class_names(net, count)
    ids = [str(known or name) for known, name in zip(own.ids, own.names, strict=True)] if own is not None else []
    rest = sorted(set(range(count)) - set(places), key=lambda i: (i >= len(ids), ids[i] if i < len(ids) else "", i))
    return [*places, *rest]


def _no_logits(name: str, logits: Any) -> str:
    shape = f"{tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
    kind = str(logits.dtype).removeprefix("torch.") if isinstance(logits, Tensor) else ""
    return f"{name!r} answers with {kind} of shape {shape}, not with logits (inputs, classes). Give a classifier."
