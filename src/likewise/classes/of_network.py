"""From a network to the rows of its classifier, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from likewise.networks.class_names import class_names
from likewise.networks.forward import at_rest, call
from likewise.networks.heads import head as find
from likewise.views.penultimate import answering_call
from likewise.wordnet import ClassNames, match


def classifier_rows(
    net: nn.Module, head: str | None, inputs: Any, count: int | None
) -> tuple[Tensor, ClassNames | None]:
    """The classifier's weights `(classes, width)`, and its classes where the network knows them.

    With `inputs`, one batch, the network is asked which layer answers.
    """
    if head is None and inputs is not None:
        with at_rest(net) as resting:
            head = answering_call(net, lambda: call(resting, inputs)).partition("#")[0]
    weight = find(net, layer=head, classes=count).weight
    known = class_names(net, len(weight))
    return weight, known if known is not None and len(known) == len(weight) else None


def row_order(classes: Sequence[str], known: ClassNames) -> list[int] | None:
    """The rows of the named classes, where the network has all of them and counts them otherwise."""
    if len(classes) != len(known):
        return None
    places = match(ClassNames(tuple(map(str, classes))), known)
    found = [place for place in places if place is not None]
    return None if len(found) < len(known) or found == sorted(found) else found
