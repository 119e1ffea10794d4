"""What a weights file may say of its network: a header is data, and its author may be a stranger.

It may name a network of a source that allows it (the zoo, timm, torchvision, transformers), with the options
that the source declares for headers: sizes, mostly. Whatever could run code, download or read another file (a
Python file, a hub's address, a checkpoint, remote code) has to be typed by the person at the keyboard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.networks.sources.base import PYTHON_FILE, NetworkAddress

_LARGEST, _DEEPEST = 10**6, 1000
_COUNTS = {"depth", "depths", "num_hidden_layers", "heads", "num_heads", "num_attention_heads", "class_tokens"}
_WORD = re.compile(r"[A-Za-z0-9_-]{0,40}")


def network_name(header: Mapping[str, Any], path: Path) -> str:
    """The address that a header names its network by."""
    name = header["network"]
    if not isinstance(name, str) or len(name) > 1000:
        raise _broken(path)
    return name


def check_network(address: NetworkAddress, name: str, path: Path, *, allowed: bool) -> None:
    """Refuse a network that a header may not name: `allowed` says whether its source has any that it may."""
    if not allowed:
        python = address.source.prefix == PYTHON_FILE
        what = f"{address.name!r} of a Python file, which is run" if python else f"{str(address)!r}, which is built"
        raise InputError(f"{path} belongs to {what} only where you type it. Where you trust it: '{address}@{path}'.")
    if address.source.is_elsewhere(address.name):
        raise InputError(
            f"{path} belongs to a network that is kept elsewhere ({name!r}), and a file may not "
            f"choose what is fetched or read. Where you trust it: '{name}@{path}'."
        )
    if address.options or address.weights:
        raise _broken(path)


def declared_options(
    address: NetworkAddress, header: Mapping[str, Any], path: str | Path, typed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The options a header gives a network, or the first that has to be typed instead.

    What is typed counts, whatever the file says. A source that declares no options for headers (a Python file) is
    given numbers, never words.
    """
    stated = header.get("options", {})
    if not isinstance(stated, Mapping) or len(stated) > 100:
        raise _broken(path)
    options = {name: value for name, value in stated.items() if name not in (typed or {})}
    for name, value in options.items():
        declared = address.source.header_options(address.name)
        allowed = not _is_word(value) if declared is None else name in declared
        if not allowed or not _is_plain(name, value):
            text = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}…"
            raise InputError(
                f"{path} asks for the option {name}={text}, which a file may not choose. Where "
                f"you trust it, type it: '{address},{name}=VALUE@{path}'."
            )
    return options


def declared_normalisation(header: Mapping[str, Any], path: str | Path) -> tuple[Any, Any]:
    """Mean and deviation a header gives, None where it gives none."""
    mean, std = header.get("mean"), header.get("std")
    if mean is None or std is None:
        return None, None
    for name, values in (("mean", mean), ("std", std)):
        numbers = isinstance(values, list) and all(_is_number(value) for value in values)
        positive = numbers and (name == "mean" or min(values, default=0) > 0)
        if not positive or not 1 <= len(values) <= 4096 or len(values) != len(mean):
            raise InputError(f"{path} gives no usable {name} to normalise images by. Fetch the file again.")
    return mean, std


def _broken(path: str | Path) -> InputError:
    return InputError(
        f"the header of {path} is damaged: it does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'."
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and any(map(_is_word, value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**63


def _is_plain(name: str, value: Any) -> bool:
    """Whether a value is a truth value, a number of sensible size, a word, or a few of these."""
    if isinstance(value, list):
        return len(value) <= 64 and all(_is_plain(name, entry) for entry in value)
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return _is_number(value) and abs(value) <= (_DEEPEST if name in _COUNTS else _LARGEST)
