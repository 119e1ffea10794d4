"""What is known of a network beside what it computes, kept on the network itself.

A copy of a network (`copy.deepcopy`) keeps its notes, which a table of networks beside them would lose. They are no
part of its fingerprint or its state dict, and are left out where it is pickled.
"""

from __future__ import annotations

from typing import Any

from torch import nn

NOTES = "_likewise_notes"


class Notes(dict[str, Any]):
    """Notes by name."""

    def __deepcopy__(self, memo: Any) -> Notes:
        return Notes(self)

    def __reduce__(self) -> Any:
        return Notes, ()


def note(net: nn.Module, name: str, value: Any) -> None:
    """Keep a note on a network; None removes it."""
    notes = vars(net).setdefault(NOTES, Notes())
    notes.pop(name, None)
    if value is not None:
        notes[name] = value


def noted(net: nn.Module, name: str) -> Any:
    """A note, None where there is none.

    >>> import copy
    >>> net = nn.Linear(2, 2)
    >>> note(net, "transform", "as it is")
    >>> noted(copy.deepcopy(net), "transform")
    'as it is'
    """
    return vars(net).get(NOTES, {}).get(name)
