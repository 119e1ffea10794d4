"""The cache of what was computed, inside a memory limit, and the quantities that live in it.

Least recently used tensors move to a scratch folder when the limit is reached and are read back when
needed; nothing is computed twice. A workspace also says whether n x n matrices may be kept at all: where
they may not, they are computed a few rows at a time and never as a whole.
"""

from __future__ import annotations

import functools
import itertools
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from likewise._base.machine import free_memory
from likewise.errors import InputError, brief

T = TypeVar("T")
LEAST = 10**7  # the smallest limit there may be
SLICE = 2**25
CACHED = 2**22  # what of a kept matrix is worked on at a time, so that a chain of operations stays in the cache
SMALL = 256  # inputs whose n x n matrices are no burden: half a megabyte each
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_memory(memory: str | int | float | None) -> int:
    """Bytes of '4GB', of a number, by default two thirds of what is free.

    >>> parse_memory("1.5GB")
    1500000000
    """
    if memory is None:
        return max(free_memory() * 2 // 3, 10**9)
    if isinstance(memory, (int, float)) and not isinstance(memory, bool):
        amount = int(memory)
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?B?)\s*", str(memory).upper())
        unit = match[2].replace("I", "") if match else ""
        if match is None or (unit and unit not in _UNITS and unit + "B" not in _UNITS):
            raise InputError(f"memory={brief(memory)} is not a size. Write it like '4GB' or '500MB'.")
        amount = int(float(match[1]) * _UNITS.get(unit, _UNITS.get(unit + "B", 1)))
    if amount < LEAST:
        raise InputError(f"memory={memory!r} is less than 10 MB, too little for any comparison.")
    return amount


class Workspace:
    """What representations and pairs have computed so far.

    Args:
        limit: How many bytes may be held; by default two thirds of what is free.
        networks: How many networks share it.
        once: Rows of a network's n x n matrices are read in a single pass, so that none is worth keeping.
        resampled: Inputs will be shuffled or left out, so that whole matrices are worth keeping.
        distances: Those of every network will be read.
    """

    def __init__(
        self,
        limit: int | None = None,
        *,
        networks: int = 2,
        once: bool = False,
        resampled: bool = False,
        distances: bool = False,
    ) -> None:
        self._limit = limit
        self.networks = networks
        self.once = once
        self.resampled = resampled
        self.distances = distances
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        self._on_disk: dict[Hashable, list[tuple[Path, str]]] = {}
        self._files = itertools.count()
        self._lock = threading.RLock()
        self._owner_locks: dict[int, threading.RLock] = {}
        self._bytes = 0
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def limit(self) -> int:
        """How many bytes may be held."""
        if self._limit is None:
            self._limit = parse_memory(None)
        return self._limit

    @property
    def shares_squares(self) -> bool:
        """Whether a network's distances and cosines are read more than once."""
        return self.networks > 2 or self.resampled

    def reads_once(self, n: int) -> bool:
        """Whether rows of n x n matrices are read in a single pass, and the matrices are large enough to matter."""
        return self.once and n > SMALL

    def keeps_squares(self, n: int) -> bool:
        """Whether three n x n matrices per network fit beside the rest."""
        needed = 3 * self.networks * n * n * 8
        return needed <= LEAST * 7 // 10 or needed <= self.room  # without asking for what is free

    @property
    def room(self) -> int:
        """What may be held; the rest of the limit is for work in progress."""
        return self.limit * 7 // 10

    def block(self, n: int, copies: int = 1) -> int:
        """How many rows of n x n matrices to make at a time, with `copies` of them alive.

        Few enough to stay in the processor's cache where they come from a kept matrix; more where a
        product makes them. A quarter at most: of a symmetric matrix, little is then made twice.
        Small matrices are made at once, since calls cost more there than numbers.
        """
        if n <= SMALL:
            return n
        row = 8 * n * max(copies, 1)
        if self.keeps_squares(n) and not self.once:
            return max(32, CACHED // row)
        room = min(self.limit // 8, SLICE if self.keeps_squares(n) else 8 * SLICE)
        return max(1, min(-(-n // 4), room // row))

    def get(self, key: tuple[int, Any], compute: Callable[[], Any]) -> Any:
        """The value under `key` (owner, name), computed at most once, by whichever thread is first."""
        if key in self._held:
            try:
                value = self._held[key]
                self._held.move_to_end(key)
                return value
            except KeyError:  # just moved to disk by another thread
                pass
        lock = self._owner_locks.get(key[0]) or self._owner_locks.setdefault(key[0], threading.RLock())
        with lock:
            if key in self._held:
                return self._held[key]
            value = self._reload(key) if key in self._on_disk else compute()
            self._held[key] = value
            if size := _size(value):
                self._count(key, size)
            return value

    def _count(self, key: tuple[int, Any], size: int) -> None:
        with self._lock:
            self._bytes += size
            if self._bytes > SLICE and self._bytes > self.room:
                self._spill(down_to=self.room, keep=key)

    def find(self, key: tuple[int, Any]) -> Any:
        """The value under `key` if it was computed, else None."""
        return self.get(key, lambda: None) if key in self._held or key in self._on_disk else None

    def reserve(self, size: int) -> None:
        """Make room for something large that is about to be computed."""
        with self._lock:
            self._spill(down_to=max(0, self.limit * 9 // 10 - size), keep=None)

    def _spill(self, down_to: int, keep: Hashable) -> None:
        for key, value in list(self._held.items()):
            if self._bytes <= down_to:
                return
            if key != keep and _size(value):
                if key not in self._on_disk:
                    self._on_disk[key] = self._write(value)
                del self._held[key]
                self._bytes -= _size(value)

    def _write(self, value: Any) -> list[tuple[Path, str]]:
        """One npy file per tensor: written without a copy in memory, unlike safetensors."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True)
        written = []
        for tensor in _tensors(value):
            path = Path(self._scratch.name) / f"{next(self._files)}.npy"
            np.save(path, tensor.detach().cpu().numpy())
            written.append((path, str(tensor.device)))
        if not isinstance(value, tuple):
            return written
        return [*written, (Path(), "")]  # marks a tuple

    def _reload(self, key: Hashable) -> Any:
        written = self._on_disk[key]
        tensors = tuple(
            torch.from_numpy(np.load(path, allow_pickle=False)).to(device) for path, device in written if device
        )
        return tensors if written[-1][1] == "" else tensors[0]


def _tensors(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _size(value: Any) -> int:
    """Bytes of a tensor or of a tuple of tensors; other things are small and stay."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size() if value.numel() > 10_000 else 0
    if isinstance(value, tuple) and value and all(isinstance(v, Tensor) for v in value):
        return sum(v.nbytes for v in value)
    return 0


Key = tuple[Any, ...]  # a quantity and its options
Derivation = Literal["same", "rows", "both"] | Callable[[Any, Any, Tensor], Any]
Swap = Literal["transposed", "reversed"]


class Quantity(Generic[T]):
    """A value computed at most once per owner: an attribute in the class of its owner, elsewhere a function of it.

    Args:
        compute: A function of the owner and perhaps options.
        permuted: How it follows for the rows in another order: "same"; "rows", one entry per row; "both", rows and
            columns of an n x n matrix; or a function of owner, value and order, None where it has to be computed again.
            What is not declared is computed again.
        subset: How it follows for some of the rows, in the same words.
        swapped: How it follows for the swapped pair: "transposed", or a tuple "reversed".
        eager: Computed for all rows even where only another order of them is needed.
    """

    def __init__(
        self,
        compute: Callable[..., T],
        *,
        permuted: Derivation | None = None,
        subset: Derivation | None = None,
        swapped: Swap | None = None,
        eager: bool = False,
    ) -> None:
        functools.update_wrapper(self, compute)
        self.compute = compute
        self.permuted, self.subset, self.swapped, self.eager = permuted, subset, swapped, eager
        self.key = (self,)
        self._defaults = compute.__defaults__ or ()
        self._options = compute.__code__.co_argcount - 1

    def __repr__(self) -> str:
        return f"{self.compute.__module__}.{self.compute.__qualname__}"

    @overload
    def __get__(self, owner: None, kind: type) -> Quantity[T]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else owner.memo(self.key, lambda: self.compute(owner))

    def __call__(self, owner: Any, *options: Any) -> T:
        if len(options) < self._options:
            options += self._defaults[len(options) - self._options :]
        value: T = owner.memo((self, *options), lambda: self.compute(owner, *options))
        return value


@overload
def quantity(compute: Callable[..., T]) -> Quantity[T]: ...
@overload
def quantity(
    *,
    permuted: Derivation | None = None,
    subset: Derivation | None = None,
    swapped: Swap | None = None,
    eager: bool = False,
) -> Callable[[Callable[..., T]], Quantity[T]]: ...
def quantity(compute: Callable[..., T] | None = None, **behaviour: Any) -> Any:
    """Declare a quantity of a network or a pair, and how it behaves: see `Quantity`."""
    return Quantity(compute) if compute is not None else functools.partial(Quantity, **behaviour)


def derive(rule: Derivation | None, owner: Any, value: Any, index: Tensor) -> Any:
    """The value for the rows of `index`, by what was declared; None where it has to be computed again."""
    if rule is None or value is None or rule == "same":
        return None if rule is None else value
    if rule == "both":
        return value[index][:, index]
    if callable(rule):
        return rule(owner, value, index)
    rows = [item[index] if isinstance(item, Tensor) and item.numel() else item for item in _tensors(value)]
    return tuple(rows) if isinstance(value, tuple) else rows[0]


def swap(rule: Swap, value: Any) -> Any:
    """The value for the pair with its sides swapped."""
    return value.T if rule == "transposed" else value[::-1]
