"""Measures on their way to other processes: ours by name, functions of the user's as they are."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from likewise.errors import InputError, WorkerError
from likewise.measures.facts import Measure
from likewise.measures.registry import get


def packed(measures: Iterable[Measure]) -> bytes:
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


def unpacked(content: bytes) -> list[Measure]:
    """What `packed` wrote in the process that started this one."""
    try:
        entries: list[Any] = pickle.loads(content)
    except Exception as error:
        raise WorkerError(
            f"a worker cannot load the measures it was sent: {type(error).__name__}: {error}. Install "
            "there what is installed here, or define them in a module that workers can import."
        ) from error
    return [entry if isinstance(entry, Measure) else get(entry[0], entry[1], **entry[2]) for entry in entries]
