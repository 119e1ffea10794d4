"""What the processes of a job hand to one another: measures, and what was computed of a network.

Measures of ours go by name, functions of the user's as they are. Of what follows from one network alone, only
what takes longer to compute than to write and read goes into the shared folder. A file appears whole or not
at all, and holds arrays and numbers.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.files import whole_file
from likewise._base.hashing import digest
from likewise.errors import InputError, WorkerError
from likewise.measures.facts import Measure
from likewise.measures.registry import get

SPEED = 2e8  # bytes a second that writing and reading together are sure to reach
LEAST = 1e-3  # seconds below which nothing is worth a file
_NUMBERS = {"float": float, "int": int, "bool": bool}


def pack(measures: Iterable[Measure]) -> bytes:
    """Measures as bytes. With cloudpickle (Dask brings it) also lambdas and what a script defines."""
    if find_spec("cloudpickle") is not None:
        from cloudpickle import dumps
    else:
        from pickle import dumps
    entries = []
    for measure in measures:
        named = (measure.name, measure.info.variant, dict(measure.options))
        entry = named if measure.built_in else replace(measure, variants={})
        try:
            dumps(entry)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"{measure.key} cannot be sent to other processes: {error}. Define it by `def` at the "
                "top of a module, or leave the engine out."
            ) from error
        entries.append(entry)
    return bytes(dumps(entries))


def unpack(content: bytes) -> list[Measure]:
    """What `pack` wrote in the process that started this one."""
    try:
        entries: list[Any] = pickle.loads(content)
    except Exception as error:
        raise WorkerError(
            f"a worker cannot load the measures it was sent: {type(error).__name__}: {error}. Install "
            "there what is installed here, or define them in a module that workers can import."
        ) from error
    return [entry if isinstance(entry, Measure) else get(entry[0], entry[1], **entry[2]) for entry in entries]


class SharedFolder:
    """Values by network and name. `names` says which network an owner in this process is."""

    def __init__(self, folder: Path, room: int) -> None:
        self._folder, self._room = folder, room
        self.names: dict[int, str] = {}

    def get(self, key: tuple[int, Any], compute: Callable[[], Any]) -> Any:
        """The value from the folder, or computed and, if that took long, put there."""
        path = self._path(key)
        if path is None:
            return compute()
        try:
            return _read(path)
        except FileNotFoundError:
            pass
        start = time.thread_time()
        value = compute()
        self._offer(path, value, time.thread_time() - start)
        return value

    def _path(self, key: tuple[int, Any]) -> Path | None:
        owner, name = key
        words = repr(name)
        if owner not in self.names or "0x" in words:  # a place in memory means nothing elsewhere
            return None
        return self._folder / f"{self.names[owner]}-{digest([words])[:24]}"

    def _offer(self, path: Path, value: Any, seconds: float) -> None:
        parts = value if isinstance(value, tuple) else (value,)
        kinds = [_kind(part) for part in parts]
        size = sum(part.numel() * part.element_size() for part in parts if isinstance(part, Tensor))
        if not all(kinds) or seconds < LEAST + size / SPEED or size > self._room:
            return
        self._room -= size
        # no room, or no such folder here: others compute it for themselves
        with suppress(OSError), whole_file(path) as new, new.open("wb") as file:
            file.write(json.dumps([isinstance(value, tuple), kinds]).encode() + b"\n")
            for part in parts:
                np.save(file, part.numpy() if isinstance(part, Tensor) else np.array(part))


def _kind(part: Any) -> str:
    """How a part comes back; empty where it cannot be written."""
    if isinstance(part, Tensor):
        return "tensor" if part.device.type == "cpu" and part.layout == torch.strided else ""
    return type(part).__name__ if type(part).__name__ in _NUMBERS else ""


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        several, kinds = json.loads(file.readline())
        arrays = [np.load(file, allow_pickle=False) for _ in kinds]
    parts = tuple(
        torch.from_numpy(array) if kind == "tensor" else _NUMBERS[kind](array)
        for kind, array in zip(kinds, arrays, strict=True)
    )
    return parts if several else parts[0]
