"""Batches of image files, decoded ahead of the network by the worker processes of torch's `DataLoader`.

Which inputs make a batch is decided before: workers change when an image is decoded, never what a batch holds or in
which order batches come, and they draw no random numbers. So a training is the same to the last bit with any number.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from likewise.data.image_files import ImageFiles
from likewise.errors import InputError, LikewiseError, brief

_MOST = 8  # workers by default
_SHARED = Path("/dev/shm")  # where workers leave batches
_ROOM = 2**29  # bytes of it; small containers have less, and a batch that does not fit ends a worker

Rows = slice | list[int]


class _Batches(Dataset[Any]):
    """One item per batch; an error of ours is an item too, since `DataLoader` would bury its sentence."""

    def __init__(self, inputs: Any, take: Callable[[Any, Rows], Any]) -> None:
        self.inputs, self.take = inputs, take

    def __getitem__(self, index: Any) -> Any:
        try:
            return self.take(self.inputs, index)
        except LikewiseError as error:
            return error


def read_ahead(
    inputs: Any, rows: Sequence[Rows], take: Callable[[Any, Rows], Any], workers: int | None, device: Any = None
) -> Iterator[Any]:
    """The inputs of every batch, in order; `workers` is chosen here where it is None."""
    if workers is not None and not (isinstance(workers, int) and workers >= 0):
        raise InputError(f"num_workers is {brief(workers)}. Give 0 or more.")
    count = automatic(inputs, device) if workers is None else workers
    if not count or len(rows) < 2:
        yield from (take(inputs, index) for index in rows)
        return
    batches: Any = _Batches(inputs, take)
    # a generator of its own: the random numbers of a training are not touched
    loader = DataLoader(
        batches,
        sampler=rows,
        batch_size=None,
        num_workers=min(count, len(rows)),
        collate_fn=_as_it_is,
        generator=torch.Generator(),
        multiprocessing_context="fork" if "fork" in multiprocessing.get_all_start_methods() else None,
    )
    for batch in loader:
        if isinstance(batch, LikewiseError):
            raise batch
        yield batch


def _as_it_is(batch: Any) -> Any:
    return batch


def automatic(inputs: Any, device: Any) -> int:
    """No workers where images are decoded already or soon will be, for good; else one per core."""
    files = getattr(inputs, "images", inputs)
    if not isinstance(files, ImageFiles) or "fork" not in multiprocessing.get_all_start_methods():
        return 0
    waits = device is not None and torch.device(device).type != "cpu"
    if files.decoded() or (files.fit_in_memory() and not waits):
        return 0
    if not _SHARED.is_dir() or shutil.disk_usage(_SHARED).free < _ROOM:
        return 0
    return min(_MOST, os.cpu_count() or 1)
