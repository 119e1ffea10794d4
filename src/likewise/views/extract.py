"""`extract`: from a network and data to views of its layers, in one pass.

Without a store rows are kept in memory; with one they stream to a file per layer, so that the memory
needed does not grow with the number of inputs, and the same request is answered from the files the
next time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import likewise
from likewise._base.arrays import refuse_meta
from likewise._base.hashing import InputsHash, facts_digest, fingerprint
from likewise.data import Data, dataset
from likewise.data.graphs import nodes_of
from likewise.errors import InputError
from likewise.networks import network as load_network
from likewise.networks import recipe, unwrapped
from likewise.views.batches import known_length
from likewise.views.cache import InFolder, InMemory
from likewise.views.forward_pass import room, run
from likewise.views.selection import is_pattern
from likewise.views.watcher import Watcher


def extract(
    network: str | nn.Module,
    data: Any,
    layers: str | Sequence[str] = "penultimate",
    reduce: str | None = None,
    store: str | os.PathLike[str] | None = None,
    *,
    batch_size: int = 256,
    device: Any = None,
    name: str | None = None,
    head: str | None = None,
    progress: bool = True,
) -> Any:
    """What layers of a network give on data: one `Activations`, or `Views` of several by layer.

    `network` is an address or a module; `data` an address, data, an array `(n, ...)`, a dataset or
    any iterable of batches. `layers` is a name (`layer1.0`), a glob (`layer*.conv1`), a list of
    those, `all`, `blocks`, `penultimate` (what the classifier is given) or `logits`; a single name
    gives a single view. `head` names the classifier where it cannot be found. Maps and tokens need
    a `reduce` (see `likewise.views.reduced`). With a folder as `store`, rows stream to disk and are
    mapped back. What the network answered comes along as `outputs`.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> extract(net, torch.rand(10, 4), layers="1", name="tiny")
    Activations('tiny', n=10, d=3)
    >>> extract(net, torch.rand(10, 4), layers="blocks")
    Views(['0', '2'])
    """
    refuse_meta()
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}. Give at least 1.")
    module, called = network_and_name(network, name)
    shown = as_data(data)
    several = is_pattern(layers)
    facts = {
        "network": called,
        "reduction": reduce or "none",
        "data": data_name(shown),
        "likewise": likewise.__version__,
        "torch": torch.__version__,
    }
    if head is not None:
        facts["head"] = head

    def title(layer: str) -> str:
        return f"{called}/{layer}" if several else called

    def watch(sink: Any) -> Any:
        watcher = Watcher(module, layers, reduce, label=repr(called), device=device, head=head)
        return run(watcher, shown, sink, batch_size=batch_size, progress=progress)

    if store is None:
        memory = InMemory(facts, title, known_length(shown))
        views = memory.finish(watch(memory.sink))
    else:
        facts["fingerprint"] = fingerprint(module)
        folder = InFolder(store, facts, title, room(module))
        request = _request(facts, layers, shown, module)
        files = None if request is None else folder.find(request)
        if files is None:
            files = folder.finish(watch(folder.sink))
            if request is not None:
                folder.note(request, files)
        views = folder.open(files)
    return views if several else views[next(iter(views))]


def network_and_name(network: str | nn.Module, name: str | None = None) -> tuple[nn.Module, str]:
    """The network an address means, and what it is called."""
    module = load_network(network)
    return module, name or (network if isinstance(network, str) else _called(module))


def _called(module: nn.Module) -> str:
    """A network that came from an address by that address, any other by its class."""
    made = recipe(module)
    if made is None:
        return type(unwrapped(module)).__name__
    return made.network if made.weights is None else f"{made.network}@{made.weights}"


def as_data(data: Any) -> Any:
    """Data for an address or a bare graph; anything else as it is."""
    if isinstance(data, str):
        return dataset(data)
    if hasattr(data, "edge_index") and hasattr(data, "x"):
        split = "test" if getattr(data, "test_mask", None) is not None else "all"
        return nodes_of(data, split, name="graph")
    return data


def data_name(data: Any) -> str:
    """What data is called in the record of a view."""
    return data.name if isinstance(data, Data) else type(data).__name__


def _request(facts: dict[str, str], layers: Any, data: Any, network: nn.Module) -> dict[str, Any] | None:
    """What a request depends on; None where the inputs show only as they are read."""
    if isinstance(data, Data):
        labels = {"labels": data.labels.tolist(), "classes": data.classes, "wnids": data.wnids}
        probe = f"{data.probe} {facts_digest(labels | {'outputs': room(network)})}"
    elif isinstance(data, Tensor):
        whole = InputsHash()
        whole.update(data)
        probe = whole.hexdigest()
    else:
        return None
    asked = layers if isinstance(layers, str) else list(layers)
    kinds = ("fingerprint", "reduction", "head")
    known = {str(key): facts[key] for key in kinds if key in facts}
    return {**known, "layers": asked, "probe": probe}
