"""`extract`: from a network and data to views of its layers, in one pass.

Without a store rows are kept in memory; with one they stream to a file per layer, so that the memory
needed does not grow with the number of inputs, and the same request is answered from the files the
next time. Labels are kept beside the answers where data and network have the same classes. Where they
have not, there are no labels, and what needs them says why: the reason travels with the view, as do the
names of the network's classes, so that answers of two networks are compared class by class and not
column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Unpack

import torch
from torch import Tensor, nn

import likewise
from likewise._base.arrays import labels_fault, refuse_meta
from likewise._base.hashing import InputsHash, facts_digest, fingerprint
from likewise._base.progress import Progress, warn
from likewise.data import Data, as_data
from likewise.data.inputs import domain_of
from likewise.data.objects import read_once
from likewise.errors import InputError, brief
from likewise.networks import recipe, unwrapped
from likewise.networks.class_names import class_names, declared_classes, output_indices, output_labels
from likewise.networks.forward import transform_for
from likewise.networks.names import address_of, expanded, named_networks, network_and_name
from likewise.views.activations import (
    CLASSES,
    HALF,
    OUTPUTS,
    UNLABELLED,
    Activations,
    MemorySink,
    Outputs,
    Subject,
    Views,
    known_of_answers,
)
from likewise.views.batches import batches, known_length, read_at_once
from likewise.views.cache import FolderViews
from likewise.views.hooks import CallFacts, Layers, is_pattern
from likewise.views.recorder import BatchRows, Recorder
from likewise.views.show import Show, ShowOptions

_MOST, _LONGEST = 2000, 1500  # names, and letters of a reason, in the header of a file


def extract(
    networks: Any,
    data: Any = None,
    layers: Layers = None,
    *,
    name: str | None = None,
    **show: Unpack[ShowOptions],
) -> Any:
    """What layers of a network give on data, and what it answered, as views.

    Args:
        networks: An address or a module; a list or a mapping of several.
        data: What they are shown: an address, data, an array `(n, ...)`, a dataset, or any iterable of batches.
        layers: A name ("layer1.0"), a glob, a list of those, "all", "blocks", "penultimate", "embedding" or "logits";
            see `Show`. A single name gives a single view.
        name: What the network is called, if not by its address or class.
        **show: How networks are shown; see `Show`. With a folder as `store`, rows stream to disk and are mapped back.

    Returns:
        One `Activations`, or `Views` of several by layer; of several networks a dict of those by name.

    Raises:
        InputError: There is no data, or something other than networks was passed.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> extract(net, torch.rand(10, 4), layers="1", name="tiny")
        Activations('tiny', n=10, d=3)
        >>> extract(net, torch.rand(10, 4), layers="blocks")
        Views(['0', '2'])
    """
    options = Show.only("extract", show, data=data, layers=layers)
    if not isinstance(networks, (Mapping, list, tuple)):
        view = extract_network(_check_network(networks, options), options, name)
        warn_embedding_used([view] if layers is None else [])
        return view
    if name is not None:
        raise InputError("name is what one network is called. Pass a mapping of names to networks.")
    if not networks:
        raise InputError("extract was given no network. Pass an address, a module, or several.")
    named = networks if isinstance(networks, Mapping) else named_networks(expanded(networks))
    for network in named.values():
        _check_network(network, options)
    return extract_networks(named, options)


def _check_network(network: Any, show: Show) -> Any:
    """The network; refuse what is none, and a network without data."""
    if not isinstance(network, (str, nn.Module)):
        raise InputError(f"extract takes networks, and was given {brief(network)}. Pass addresses or modules.")
    show.check_data("extract", address_of(network))
    return network


def warn_embedding_used(views: Iterable[Any]) -> None:
    """Say which views are embeddings that nobody asked for: their networks have no classifier."""
    names = [f"{view.about['network']} ({view.about['embedding']})" for view in views if "embedding" in view.about]
    if names:
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        warn(f"no classifier was found in {listed}, so the embedding is taken. Pass layers='embedding' to say so.")


def extract_networks(
    networks: Mapping[str, Any],
    show: Show,
    *,
    own_names: bool = False,
    outputs: bool = True,
    keep_networks: bool = False,
) -> dict[str, Any]:
    """Networks as their views of the data; what is no network stays as it is.

    Args:
        networks: Addresses and modules, and anything else, by name.
        show: How they are shown.
        own_names: Whether views are called by addresses and classes instead of the names here.
        outputs: Whether the answers of networks are kept.
        keep_networks: Whether views bring their network and the data along, for measures that look at networks.

    Returns:
        Views by name.
    """
    data = as_data(show.data)
    if isinstance(data, Iterator) and len(networks) > 1:
        data = read_once(data)
    named = named_networks(networks.values()) if own_names else networks
    choices = dict(zip(networks, replace(show, data=data).per_network(named).values(), strict=True))
    views = {}
    for key, network in networks.items():
        if not isinstance(network, (str, nn.Module)):
            views[key] = network
            continue
        called = (network if isinstance(network, str) else None) if own_names else key
        module = network_and_name(network, data=data)[0]
        views[key] = extract_network(module, choices[key], called, outputs=outputs)
        if keep_networks:
            folder = getattr(show.store, "path", None)
            subject = Subject(module, data, show.device, choices[key].transform, folder)
            views[key] = views[key].of(subject)
    warn_embedding_used(
        views[key]
        for key, network in networks.items()
        if choices[key].layers is None and isinstance(network, (str, nn.Module))
    )
    return views


def extract_network(network: str | nn.Module, show: Show, name: str | None, *, outputs: bool = True) -> Any:
    """The views of one network; without `outputs`, its answers are not kept."""
    refuse_meta()
    inputs = as_data(show.data)
    module, called = network_and_name(network, name, domain=domain_of(inputs))
    inputs = transform_for(module, inputs, repr(called), show.transform)
    module = module if show.transform is None else unwrapped(module)  # past a normalisation of its own
    layers: Any = show.layers
    several = is_pattern(layers)
    facts = {
        "network": called,
        "reduction": show.reduce or "none",
        "data": data_name(inputs),
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        **_origin(module),
    }
    transform = getattr(getattr(inputs, "inputs", None), "recipe", None)
    optional = {"head": show.head, "precision": show.dtype, "transform": transform}
    facts |= {key: value for key, value in optional.items() if value}

    def title(layer: str) -> str:
        return f"{called}/{layer}" if several else called

    def record(sink: Any) -> Any:
        recorder = show.recorder(module, called, automatic=show.batch_size is None)
        size = show.batch_size or read_at_once(inputs)
        return run(recorder, inputs, sink, batch_size=size, progress=show.progress, outputs=outputs)

    if show.store is None:
        memory = MemoryViews(facts, title, known_length(inputs))
        views = memory.finish(record(memory.sink))
    else:
        facts["fingerprint"] = fingerprint(module)
        folder = FolderViews(show.store, facts, title, room(module))
        views = folder.views(_request(facts, layers, inputs, module), record)
    return views if several else views[next(iter(views))]


def _origin(module: nn.Module) -> dict[str, str]:
    """What is recorded of where a network came from: the commit of its repository, and the part that is looked at."""
    origin = recipe(module)
    facts = {} if origin is None else {"commit": origin.commit, "part": origin.options.get("part")}
    return {name: str(value) for name, value in facts.items() if value is not None}


def data_name(data: Any) -> str:
    """What data is called in the record of a view."""
    return data.name if isinstance(data, Data) else type(data).__name__


def _request(facts: dict[str, str], layers: Any, data: Any, network: nn.Module) -> dict[str, Any] | None:
    """What a request depends on; None where the inputs show only as they are read."""
    if isinstance(data, Data):
        truth = None if data.labels is None else data.labels.tolist()
        labels = {"labels": truth, "classes": data.classes, "wnids": data.wnids}
        probe = f"{data.probe} {facts_digest(labels | {'outputs': room(network)})}"
    elif isinstance(data, Tensor):
        whole = InputsHash()
        whole.update(data)
        probe = whole.hexdigest()
    else:
        return None
    asked = list(layers) if is_pattern(layers) and not isinstance(layers, str) else layers
    kinds = ("fingerprint", "reduction", "head", "precision", "transform", "commit")
    relevant = {str(key): facts[key] for key in kinds if key in facts}
    return {**relevant, "layers": asked, "probe": probe}


class Sink(Protocol):
    """Where the rows of one layer go."""

    n: int

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch."""

    def abort(self) -> None:
        """Drop what was taken."""


@dataclass(frozen=True)
class Answers:
    """A network's answers to data: which labels fit them, and what their columns are called."""

    network: nn.Module
    data: Any
    label: str

    def labels(self, labels: Tensor | None, n: int, count: int) -> tuple[Tensor | None, str]:
        """The labels as the network counts its `count` outputs, or None and the reason."""
        if labels is None:
            return None, f"{self.data.name!r} has no labels." if isinstance(self.data, Data) else ""
        what = f"the labels for {self.label}"
        fault = labels_fault(labels, n, None, what)
        if not fault:
            try:
                indices = output_indices(self.data, self.network, count, self.label)
            except InputError as error:
                return None, str(error)
            fault = labels_fault(labels, n, count if indices is None else len(indices), what)
        if not fault:
            return output_labels(labels, indices), ""
        warn(f"{fault}. Its outputs are kept without labels.")
        return None, f"{fault}."

    def facts(self, count: int, reason: str) -> dict[str, str]:
        """What is recorded of the answers: why they have no labels, what their columns are called."""
        names = class_names(self.network, count)
        named = names is not None and len(names) == count <= _MOST
        classes = names.to_text() if names is not None and named else ""
        return {UNLABELLED: reason[:_LONGEST], CLASSES: classes}


def room(network: nn.Module) -> dict[str, str]:
    """Facts as long as those of a network's answers can become: a header cannot grow afterwards."""
    names = declared_classes(network)
    fits = names is not None and len(names) <= _MOST
    return {UNLABELLED: " " * _LONGEST, CLASSES: names.to_text() if names and fits else " " * 16}


@dataclass
class Pass:
    """What one pass over the data gave."""

    sinks: dict[str, Any]
    labels: Tensor | None
    n: int
    probe: str
    calls: Mapping[str, CallFacts]
    answers: Answers

    def labelled(self, n: int, count: int) -> tuple[Tensor | None, dict[str, str]]:
        """The labels that fit the network's `count` outputs, and what is recorded of them."""
        labels, reason = self.answers.labels(self.labels, n, count)
        return labels, self.answers.facts(count, reason)

    def facts(self, layer: str) -> dict[str, str]:
        """What is known of a layer's view once the pass is over."""
        rows = self.sinks[layer].n
        # rows that are positions must never be compared with rows that are inputs
        probe = self.probe if rows == self.n else f"{self.probe}:{rows} positions"
        call = self.calls.get(layer)  # none for the answers
        facts = {"layer": layer, "kind": call.kind if call else "", "probe": probe}
        if call and call.source:
            facts["embedding"] = call.source
        return facts | {"dtype": call.dtype} if call and call.dtype in HALF else facts


def run(
    recorder: Recorder,
    data: Any,
    new_sink: Callable[[str], Sink],
    *,
    batch_size: int,
    progress: bool,
    outputs: bool = True,
) -> Pass:
    """Show the data to the network; whatever goes wrong, no sink is left half full."""
    sinks: dict[str, Sink] = {}
    labels: list[Tensor | None] = []
    hashed, n, infinite = InputsHash(), 0, False
    total = -(-(known_length(data) or 0) // batch_size)
    try:
        with recorder, Progress(total, recorder.label) if progress else nullcontext() as bar:
            steps = batches(data, batch_size, device=recorder.input_device)
            for number, batch in enumerate(steps, start=1):
                recorded = recorder.forward(batch, number)
                if recorded.answer is not None and not bool(recorded.answer.isfinite().all()):
                    recorded.answer, infinite = None, True
                recorded.answer = recorded.answer if outputs else None
                _append(recorded, sinks, new_sink)
                if not isinstance(data, Data):
                    hashed.update(batch.inputs)
                labels.append(batch.labels)
                n += batch.size
                if bar is not None:
                    bar.advance()
        if not n:
            used = (
                ": a generator can be read once only. Pass a list of its batches" if isinstance(data, Iterator) else ""
            )
            raise InputError(f"the data gave no inputs{used or '. Pass at least two'}.")
    except BaseException:
        for sink in sinks.values():
            sink.abort()
        raise
    if infinite:
        warn(
            f"{recorder.label} answers with numbers that are not finite. Its rows are kept without outputs.",
        )
    if OUTPUTS in sinks and sinks[OUTPUTS].n != n:  # not every batch had a row per input
        sinks.pop(OUTPUTS).abort()
    probe = data.probe if isinstance(data, Data) else hashed.hexdigest()
    answers = Answers(recorder.network, data, recorder.label)
    return Pass(sinks, _joined(labels), n, probe, recorder.plan.calls if recorder.plan else {}, answers)


def _append(recorded: BatchRows, sinks: dict[str, Sink], new_sink: Callable[[str], Sink]) -> None:
    answer = {} if recorded.answer is None else {OUTPUTS: recorded.answer}
    for layer, rows in (recorded.rows | answer).items():
        if layer not in sinks:
            sinks[layer] = new_sink(layer)
        sinks[layer].append(rows)


def _joined(labels: list[Tensor | None]) -> Tensor | None:
    chunks = [torch.as_tensor(chunk).cpu() for chunk in labels if chunk is not None]
    of_one_kind = len({chunk.shape[1:] for chunk in chunks if chunk.ndim}) == 1
    return torch.cat(chunks) if of_one_kind and len(chunks) == len(labels) else None


class MemoryViews:
    """Views in memory, checked when the pass is over."""

    def __init__(self, facts: Mapping[str, str], title: Callable[[str], str], n: int | None) -> None:
        self._facts, self._title, self._n = dict(facts), title, n

    def sink(self, layer: str) -> MemorySink:
        """Where the rows of a layer go."""
        return MemorySink(f"{layer!r} of {self._facts['network']!r}", self._n)

    def finish(self, done: Pass) -> Views:
        """The views of a finished pass."""
        outputs: Outputs | None = None
        answered: Mapping[str, str] = {}
        if OUTPUTS in done.sinks:
            logits = done.sinks.pop(OUTPUTS).finish()
            labels, answered = done.labelled(len(logits), logits.shape[1])
            outputs = Outputs(logits, labels)
        views = {}
        for layer, sink in done.sinks.items():
            about = self._facts | done.facts(layer) | known_of_answers(answered)
            views[layer] = Activations(
                sink.finish(),
                name=self._title(layer),
                probe=about["probe"],
                outputs=outputs if sink.n == done.n else None,
                about=about,
            )
        return Views({layer: partial(views.__getitem__, layer) for layer in views})
