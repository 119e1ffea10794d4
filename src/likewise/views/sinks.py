"""Where rows go as they come: into memory, or into a file that grows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.work.artifacts import Stream

OUTPUTS = "(outputs)"  # the layer whose rows are what the network answers


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


class FileSink:
    """Rows in a file that grows, appended by a writer thread."""

    def __init__(self, label: str, stream: Stream) -> None:
        self.label = label
        self.n = self.width = 0
        self._stream = stream
        self._dtype = torch.float32

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch; a thread writes them."""
        if not self.width:
            self.width = rows.shape[1]
            self._dtype = stored_dtype(rows)
        check_width(self.label, self.width, rows)
        self._stream.append("values", rows.to(self._dtype))
        self.n += len(rows)

    def finish(self, path: Path, facts: Mapping[str, str], labels: Tensor | None = None) -> None:
        """Give the file its name, with labels and facts that were not known at the start."""
        if labels is not None:
            # 4 bytes each: behind float32 values, wider numbers would not lie on their own boundary
            self._stream.append("labels", labels.int())
        self._stream.finish(path, facts)

    def abort(self) -> None:
        """Drop what was taken and its file."""
        self._stream.abort()


def stored_dtype(rows: Tensor) -> torch.dtype:
    """What rows are stored in: half precision holds too few digits for sums over many inputs."""
    return torch.float64 if rows.dtype == torch.float64 else torch.float32


def check_width(label: str, width: int, rows: Tensor) -> None:
    """Refuse rows of another width than those before."""
    if rows.shape[1] != width:
        raise InputError(
            f"{label} has {width} columns in the first batch and {rows.shape[1]} in a later one. "
            "Give inputs of one size, or choose reduce='mean', 'cls' or 'last'."
        )
