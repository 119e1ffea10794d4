"""What the words of a command stand for: measures, networks, arrays and labels."""

from __future__ import annotations

import re
from typing import Any


def split(word: str) -> list[str]:
    """Measures between commas that are not inside brackets.

    >>> split("cka,gulp[resi, ridge=0.1],rsa")
    ['cka', 'gulp[resi, ridge=0.1]', 'rsa']
    """
    return re.split(r",(?![^\[]*\])", word)


def views(files: list[str], data: str | None, memory: str | None) -> dict[str, Any]:
    """Arrays from files, or networks under short names."""
    from likewise.comparison.networks import named_networks
    from likewise.errors import InputError
    from likewise.measures.workspace import parse_memory
    from likewise.networks.address import is_network
    from likewise.views.array_files import read_arrays

    if data is not None:
        return named_networks(files)
    for file in files:
        if is_network(file):
            raise InputError(f"{file} is a network: say what to show it, as in --data 'cifar10:test[:1000]'.")
    return read_arrays(files, memory=None if memory is None else parse_memory(memory))


def groups(within_classes: bool, labels: str | None, data: str | None) -> Any:
    """The classes inputs are shuffled within, if they are."""
    from likewise.errors import InputError
    from likewise.views.array_files import read_arrays

    if not within_classes:
        return None
    if labels is not None:
        return next(iter(read_arrays([labels]).values()))
    if data is None:
        raise InputError(
            "--within-classes needs the class of every input. Pass --labels FILE, an array of one per row."
        )
    return "labels"
