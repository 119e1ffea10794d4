"""One pass of a network over data: rows of its layers into sinks, and the labels that fit its answers.

Labels are kept beside the answers where data and network have the same classes. Where they have not, the reason is
kept with the view, as are the names of the network's classes: answers of two networks are compared class by class, not
column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from likewise._base.arrays import labels_fault
from likewise._base.hashing import InputsHash
from likewise._base.progress import Progress, warn
from likewise.data import Data
from likewise.errors import InputError
from likewise.networks.class_names import class_names, declared_classes, output_indices, output_labels
from likewise.views.activations import (
    CLASSES,
    HALF,
    OUTPUTS,
    UNLABELLED,
    Activations,
    Outputs,
    Views,
    check_width,
    output_facts,
    stored_dtype,
)
from likewise.views.batches import batches, known_length
from likewise.views.hooks import CallFacts
from likewise.views.recorder import BatchRows, Recorder

_MOST, _LONGEST = 2000, 1500  # names, and letters of a reason, in the header of a file


class Sink(Protocol):
    """Where the rows of one layer go."""

    n: int

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch."""

    def abort(self) -> None:
        """Drop what was taken."""


@dataclass(frozen=True)
class OutputClasses:
    """The classes of a network's outputs: which labels of the data fit them, and what they are called."""

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
        """What is recorded of the outputs: why they have no labels, what their columns are called."""
        names = class_names(self.network, count)
        text = names.to_text() if names is not None and len(names) == count <= _MOST else ""
        return {UNLABELLED: reason[:_LONGEST], CLASSES: text}


class Tally:
    """Counts how often one network is right, batch by batch, where its answers and the labels fit together."""

    def __init__(self, network: nn.Module, data: Any, label: str) -> None:
        self._classes, self._right, self._n, self._fits = OutputClasses(network, data, label), 0, 0, True

    def add(self, answer: Tensor | None, labels: Any) -> None:
        """Count one batch."""
        if answer is None or answer.ndim != 2 or labels is None or not self._fits:
            self._fits = False
            return
        truth, _ = self._classes.labels(torch.as_tensor(labels).cpu(), *answer.shape)
        self._fits = truth is not None
        self._right += 0 if truth is None else int((answer.argmax(dim=1).cpu() == truth).sum())
        self._n += len(answer)

    @property
    def share(self) -> float | None:
        """The share of inputs it is right on, None where that is not known."""
        return self._right / self._n if self._fits and self._n else None


def longest_facts(network: nn.Module) -> dict[str, str]:
    """Facts as long as those of a network's outputs can become: a header cannot grow afterwards."""
    names = declared_classes(network)
    return {UNLABELLED: " " * _LONGEST, CLASSES: names.to_text() if names and len(names) <= _MOST else " " * 16}


@dataclass
class Pass:
    """What one pass over the data gave."""

    sinks: dict[str, Any]
    labels: Tensor | None
    n: int
    probe: str
    calls: Mapping[str, CallFacts]
    classes: OutputClasses
    counts: Mapping[str, list[Tensor]]  # of layers whose rows are tokens or positions, rows per input by batch

    def labelled(self, n: int, count: int) -> tuple[Tensor | None, dict[str, str]]:
        """The labels that fit the network's `count` outputs, and what is recorded of them."""
        labels, reason = self.classes.labels(self.labels, n, count)
        return labels, self.classes.facts(count, reason)

    def clusters(self, layer: str) -> Tensor | None:
        """Which input every row of a layer is of; None where every row is an input."""
        if layer not in self.counts or self.sinks[layer].n == self.n:
            return None
        return torch.repeat_interleave(torch.cat(self.counts[layer]))

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
    counts: dict[str, list[Tensor]] = {}
    hashed, n, infinite = InputsHash(), 0, False
    total = -(-(known_length(data) or 0) // batch_size)
    try:
        with recorder, Progress(total, recorder.label, show=progress) as bar:
            options: dict[str, Any] = {"device": recorder.input_device, "num_workers": recorder.show.num_workers}
            for number, batch in enumerate(batches(data, batch_size, **options), start=1):
                for recorded in recorder.ordered_chunks(recorder.prepare(batch), number):
                    if recorded.answer is not None and not bool(recorded.answer.isfinite().all()):
                        recorded.answer, infinite = None, True
                    _append(recorded, sinks, new_sink, outputs or _are_classes(batch.labels))
                    for layer, rows_per_input in recorded.counts.items():
                        counts.setdefault(layer, []).append(rows_per_input)
                if not isinstance(data, Data):
                    hashed.update(batch.inputs)
                labels.append(batch.labels)
                n += batch.size
                bar.advance()
        if not n:
            generator = ": a generator can be read once only. Pass a list of its batches"
            raise InputError(
                f"the data gave no inputs{generator if isinstance(data, Iterator) else '. Pass at least two'}."
            )
    except BaseException:
        for sink in sinks.values():
            sink.abort()
        raise
    if infinite:
        warn(f"{recorder.label} answers with numbers that are not finite. Its rows are kept without outputs.")
    if OUTPUTS in sinks and sinks[OUTPUTS].n != n:  # not every batch had one row per input
        sinks.pop(OUTPUTS).abort()
    probe = data.probe if isinstance(data, Data) else hashed.hexdigest()
    classes = OutputClasses(recorder.network, data, recorder.label)
    return Pass(sinks, _joined(labels), n, probe, recorder.plan.calls if recorder.plan else {}, classes, counts)


def _are_classes(labels: Any) -> bool:
    """Whether a batch has one class per input, which tells how often the network is right."""
    return isinstance(labels, Tensor) and labels.ndim == 1 and not labels.is_floating_point()


def _append(recorded: BatchRows, sinks: dict[str, Sink], new_sink: Callable[[str], Sink], outputs: bool) -> None:
    answer = {OUTPUTS: recorded.answer} if outputs and recorded.answer is not None else {}
    for layer, rows in (recorded.rows | answer).items():
        if layer not in sinks:
            sinks[layer] = new_sink(layer)
        sinks[layer].append(rows)


def _joined(batch_labels: list[Tensor | None]) -> Tensor | None:
    labels = [torch.as_tensor(values).cpu() for values in batch_labels if values is not None]
    of_one_kind = len({values.shape[1:] for values in labels if values.ndim}) == 1
    return torch.cat(labels) if of_one_kind and len(labels) == len(batch_labels) else None


class MemorySink:
    """Rows in memory, in one piece from the start: a second copy is never made."""

    def __init__(self, label: str, n: int | None) -> None:
        self.label = label
        self._expected = n
        self._values: Tensor | None = None
        self.n = 0

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch."""
        end = self.n + len(rows)
        if self._values is None:
            size = max(end, self._expected or 0)
            self._values = torch.empty(size, rows.shape[1], dtype=stored_dtype(rows))
        check_width(self.label, self._values.shape[1], rows)
        if end > len(self._values):
            grown = self._values.new_empty(max(end, 2 * self.n), rows.shape[1])
            grown[: self.n] = self._values[: self.n]
            self._values = grown
        self._values[self.n : end] = rows
        self.n = end

    def finish(self) -> Tensor:
        """All rows as one tensor."""
        assert self._values is not None  # a pass without batches was refused before
        return self._values if self.n == len(self._values) else self._values[: self.n].clone()

    def abort(self) -> None:
        """Drop what was taken."""
        self._values = None


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
            about = self._facts | done.facts(layer) | output_facts(answered)
            views[layer] = Activations(
                sink.finish(),
                clusters=done.clusters(layer),
                name=self._title(layer),
                probe=about["probe"],
                outputs=outputs if sink.n == done.n else None,
                about=about,
            )
        return Views({layer: partial(views.__getitem__, layer) for layer in views})
