"""`extract`: from a network and data to views of its layers, in one pass.

Without a store rows are kept in memory; with one they stream to a file per layer, so that the memory
needed does not grow with the number of inputs, and the same request is answered from the files the
next time. Labels are kept beside the answers where data and network have the same classes. Where they
have not, there are no labels, and what needs them says why: the reason travels with the view, as do the
names of the network's classes, so that answers of two networks are compared class by class and not
column by column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

import likewise
from likewise._base.arrays import labels_fault, refuse_meta
from likewise._base.hashing import InputsHash, facts_digest, fingerprint
from likewise._base.progress import Progress
from likewise._base.warnings import warn
from likewise.data import Data, as_data
from likewise.data.inputs import domain_of
from likewise.errors import InputError
from likewise.networks import recipe, unwrapped
from likewise.networks.class_names import class_names, declared_classes, output_indices, output_labels
from likewise.networks.forward import transform_for
from likewise.networks.names import network_and_name
from likewise.views.activations import (
    CLASSES,
    HALF,
    OUTPUTS,
    UNLABELLED,
    Activations,
    MemorySink,
    Outputs,
    Views,
    known_of_answers,
)
from likewise.views.batches import batches, check_batch_size, known_length, read_at_once
from likewise.views.cache import InFolder
from likewise.views.hooks import CallFacts, Layers, is_pattern
from likewise.views.watcher import Seen, Watcher

_MOST, _LONGEST = 2000, 1500  # names, and letters of a reason, in the header of a file


def extract(
    network: str | nn.Module,
    data: Any,
    layers: Layers = None,
    reduce: str | None = None,
    store: str | os.PathLike[str] | None = None,
    *,
    batch_size: int | None = None,
    device: Any = None,
    dtype: str | None = None,
    name: str | None = None,
    head: str | None = None,
    transform: Any = None,
    progress: bool = True,
) -> Any:
    """What layers of a network give on data: one `Activations`, or `Views` of several by layer.

    `network` is an address or a module; `data` an address, data, an array `(n, ...)`, a dataset or
    any iterable of batches. `layers` is a name (`layer1.0`), a glob (`layer*.conv1`), a list of
    those, `all`, `blocks`, `penultimate` (what the classifier is given), `embedding` (what a network
    without one gives to whoever uses it) or `logits`; a single name gives a single view. Without
    `layers` it is `penultimate` where there is a classifier, else `embedding`. `head` names the
    classifier where it cannot be found. Maps and tokens need a `reduce` (see `likewise.views.reduced`).
    With a folder as `store`, rows stream to disk and are mapped back. What the network answered comes
    along as `outputs`. Without a `batch_size` as many inputs are shown at once as fit; rows depend on it by
    rounding only. `dtype` is the precision the network runs in where it is not that of its weights:
    "float32", or by autocast "float16" or "bfloat16". Images are shown by the transform of the network's makers
    where it has one, else as the data has them; `transform`, a function from a PIL image to the tensor that the
    network takes (normalised, if it wants that), goes before both.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> extract(net, torch.rand(10, 4), layers="1", name="tiny")
    Activations('tiny', n=10, d=3)
    >>> extract(net, torch.rand(10, 4), layers="blocks")
    Views(['0', '2'])
    """
    how: dict[str, Any] = {"device": device, "dtype": dtype, "name": name, "head": head, "progress": progress}
    how |= {"batch_size": batch_size, "transform": transform}
    found = extract_without_note(network, data, layers, reduce, store, **how)
    if layers is None:
        note_embeddings([found])
    return found


def note_embeddings(views: Iterable[Any]) -> None:
    """Say which views are embeddings that nobody asked for: their networks have no classifier."""
    names = [f"{view.about['network']} ({view.about['embedding']})" for view in views if "embedding" in view.about]
    if names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        warn(f"no classifier was found in {shown}, so the embedding is taken. Pass layers='embedding' to say so.")


def extract_without_note(
    network: str | nn.Module,
    data: Any,
    layers: Layers,
    reduce: str | None,
    store: str | os.PathLike[str] | None,
    *,
    batch_size: int | None,
    device: Any,
    dtype: str | None,
    name: str | None,
    head: str | None,
    transform: Any,
    progress: bool,
    outputs: bool = True,
) -> Any:
    """`extract`, which leaves it to the caller to say what was chosen; without `outputs`, views have none."""
    refuse_meta()
    check_batch_size(batch_size)
    shown = as_data(data)
    module, called = network_and_name(network, name, domain=domain_of(shown))
    shown = transform_for(module, shown, repr(called), transform)
    module = module if transform is None else unwrapped(module)  # past a normalisation of its own
    several = is_pattern(layers)
    facts = {
        "network": called,
        "reduction": reduce or "none",
        "data": data_name(shown),
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        **_origin(module),
    }
    known = {"head": head, "precision": dtype, "transform": getattr(getattr(shown, "inputs", None), "recipe", None)}
    facts |= {key: value for key, value in known.items() if value}

    def title(layer: str) -> str:
        return f"{called}/{layer}" if several else called

    def watch(sink: Any) -> Any:
        how: dict[str, Any] = {"device": device, "head": head, "dtype": dtype, "automatic": batch_size is None}
        watcher = Watcher(module, layers, reduce, label=repr(called), **how)
        read = batch_size or read_at_once(shown)
        return run(watcher, shown, sink, batch_size=read, progress=progress, outputs=outputs)

    if store is None:
        memory = InMemory(facts, title, known_length(shown))
        views = memory.finish(watch(memory.sink))
    else:
        facts["fingerprint"] = fingerprint(module)
        folder = InFolder(store, facts, title, room(module))
        views = folder.views(_request(facts, layers, shown, module), watch)
    return views if several else views[next(iter(views))]


def _origin(module: nn.Module) -> dict[str, str]:
    """What is recorded of where a network came from: the commit of its repository, and the part that is looked at."""
    made = recipe(module)
    known = {} if made is None else {"commit": made.commit, "part": made.options.get("part")}
    return {name: str(value) for name, value in known.items() if value is not None}


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
    known = {str(key): facts[key] for key in kinds if key in facts}
    return {**known, "layers": asked, "probe": probe}


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

    def labels(self, given: Tensor | None, n: int, count: int) -> tuple[Tensor | None, str]:
        """The labels as the network counts its `count` outputs, or None and the reason."""
        if given is None:
            return None, f"{self.data.name!r} has no labels." if isinstance(self.data, Data) else ""
        what = f"the labels for {self.label}"
        fault = labels_fault(given, n, None, what)
        if not fault:
            try:
                places = output_indices(self.data, self.network, count, self.label)
            except InputError as error:
                return None, str(error)
            fault = labels_fault(given, n, count if places is None else len(places), what)
        if not fault:
            return output_labels(given, places), ""
        warn(f"{fault}. Its outputs are kept without labels.")
        return None, f"{fault}."

    def facts(self, count: int, reason: str) -> dict[str, str]:
        """What is recorded of the answers: why they have no labels, what their columns are called."""
        known = class_names(self.network, count)
        named = known is not None and len(known) == count <= _MOST
        classes = known.to_text() if known is not None and named else ""
        return {UNLABELLED: reason[:_LONGEST], CLASSES: classes}


def room(network: nn.Module) -> dict[str, str]:
    """Facts as long as those of a network's answers can become: a header cannot grow afterwards."""
    known = declared_classes(network)
    fits = known is not None and len(known) <= _MOST
    return {UNLABELLED: " " * _LONGEST, CLASSES: known.to_text() if known and fits else " " * 16}


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
    watcher: Watcher,
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
        with watcher, Progress(total, watcher.label) if progress else nullcontext() as bar:
            steps = batches(data, batch_size, device=watcher.place)
            for number, batch in enumerate(steps, start=1):
                seen = watcher.see(batch, number)
                if seen.answer is not None and not bool(seen.answer.isfinite().all()):
                    seen.answer, infinite = None, True
                seen.answer = seen.answer if outputs else None
                _take_in(seen, sinks, new_sink)
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
            f"{watcher.label} answers with numbers that are not finite. Its rows are kept without outputs.",
        )
    if OUTPUTS in sinks and sinks[OUTPUTS].n != n:  # not every batch had a row per input
        sinks.pop(OUTPUTS).abort()
    probe = data.probe if isinstance(data, Data) else hashed.hexdigest()
    answers = Answers(watcher.network, data, watcher.label)
    return Pass(sinks, _joined(labels), n, probe, watcher.settled.calls if watcher.settled else {}, answers)


def _take_in(seen: Seen, sinks: dict[str, Sink], new_sink: Callable[[str], Sink]) -> None:
    answer = {} if seen.answer is None else {OUTPUTS: seen.answer}
    for layer, rows in (seen.rows | answer).items():
        if layer not in sinks:
            sinks[layer] = new_sink(layer)
        sinks[layer].append(rows)


def _joined(labels: list[Tensor | None]) -> Tensor | None:
    known = [torch.as_tensor(part).cpu() for part in labels if part is not None]
    of_one_kind = len({part.shape[1:] for part in known if part.ndim}) == 1
    return torch.cat(known) if of_one_kind and len(known) == len(labels) else None


class InMemory:
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
