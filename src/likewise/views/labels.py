"""Labels beside a network's answers: kept where data and network have the same classes.

Where they have not, there are no labels, and what needs them says why: the reason travels with the
view, as do the names of the network's classes, so that answers of two networks are compared class by
class and not column by column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise._base.arrays import labels_fault
from likewise._base.warnings import warn
from likewise.errors import InputError
from likewise.networks.class_names import (
    class_names,
    declared_classes,
    output_indices,
    output_labels,
)
from likewise.views.activations import CLASSES, UNLABELLED

_MOST, _LONGEST = 2000, 1500  # names, and letters of a reason, in the header of a file


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
        classes = known.written() if known is not None and named else ""
        return {UNLABELLED: reason[:_LONGEST], CLASSES: classes}


def room(network: nn.Module) -> dict[str, str]:
    """Facts as long as those of a network's answers can become: a header cannot grow afterwards."""
    known = declared_classes(network)
    fits = known is not None and len(known) <= _MOST
    return {UNLABELLED: " " * _LONGEST, CLASSES: known.written() if known and fits else " " * 16}
