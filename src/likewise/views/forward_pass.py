"""One pass of a watched network over data, into sinks: a sink per layer, and one for its answers.

Labels are kept beside the answers where data and network have the same classes. Where they have not, there are no
labels, and what needs them says why: the reason travels with the view, as do the names of the network's classes, so
that answers of two networks are compared class by class and not column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from likewise._base.arrays import labels_fault
from likewise._base.hashing import InputsHash
from likewise._base.progress import Progress
from likewise._base.warnings import warn
from likewise.data import Data
from likewise.errors import InputError
from likewise.networks.class_names import class_names, declared_classes, output_indices, output_labels
from likewise.views.activations import CLASSES, HALF, UNLABELLED
from likewise.views.batches import batches, known_length
from likewise.views.cache import OUTPUTS
from likewise.views.watcher import CallFacts, Seen, Watcher

_MOST, _LONGEST = 2000, 1500  # names, and letters of a reason, in the header of a file


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
            return None, ""
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
        return facts | {"dtype": call.dtype} if call and call.dtype in HALF else facts


def run(
    watcher: Watcher,
    data: Any,
    new_sink: Callable[[str], Sink],
    *,
    batch_size: int,
    progress: bool,
) -> Pass:
    """Show the data to the network; whatever goes wrong, no sink is left half full."""
    sinks: dict[str, Sink] = {}
    labels: list[Tensor | None] = []
    hashed, n, infinite = InputsHash(), 0, False
    total = -(-(known_length(data) or 0) // batch_size)
    try:
        with watcher, Progress(total, watcher.label, shown=progress) as bar:
            steps = batches(data, batch_size, device=watcher.place)
            for number, batch in enumerate(steps, start=1):
                seen = watcher.see(batch, number)
                if seen.answer is not None and not bool(seen.answer.isfinite().all()):
                    seen.answer, infinite = None, True
                _take_in(seen, sinks, new_sink)
                if not isinstance(data, Data):
                    hashed.update(batch.inputs)
                labels.append(batch.labels)
                n += batch.size
                bar.advance()
        if not n:
            raise InputError("the data gave no inputs. Pass at least two.")
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
