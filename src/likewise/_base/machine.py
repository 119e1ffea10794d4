"""How many threads a computation takes, how much memory is free, and which devices have double precision.

Small matrices lose more to waking threads than they gain: one comparison of them runs on one thread, and several
comparisons run side by side.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

from likewise.errors import InputError, LikewiseError

SMALL = 5e9  # multiplications; below, one thread is as fast as several
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory", "alloc_failed")  # cuBLAS and cuDNN: the last


@contextmanager
def one_thread(*, for_inputs: tuple[Any, ...] = ()) -> Iterator[None]:
    """Keep torch to one thread inside; if inputs are named, only where they are small."""
    threads = torch.get_num_threads()
    if threads == 1 or any(_multiplications(values) > SMALL for values in for_inputs):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def single_threaded(libraries: ThreadpoolController | None = None) -> Iterator[None]:
    """Keep torch and every BLAS to one thread inside: pairs run side by side, not threads within one.

    Looking up the libraries takes a while: whoever enters often passes the controller that has them.
    """
    with one_thread(), (libraries or ThreadpoolController()).limit(limits=1, user_api="blas"):
        yield


def _multiplications(values: Any) -> float:
    """Those of an n x n matrix of inner products."""
    shape: tuple[int, ...] = getattr(getattr(values, "values", values), "shape", ())
    return float(shape[0]) * float(math.prod(shape)) if len(shape) > 1 else 0.0


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the memory of a GPU or of this machine was too small: by the error's type, else in the words of torch.

    >>> is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    True
    """
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    is_foreign = isinstance(error, RuntimeError) and not isinstance(error, LikewiseError)
    return is_foreign and any(words in str(error).lower() for words in _NO_MEMORY)


def free_memory() -> int:
    """Bytes of memory that can be had now, as far as the system tells."""
    try:
        with Path("/proc/meminfo").open() as lines:
            for line in lines:
                if line.startswith("MemAvailable"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES")) // 2
    except (ValueError, OSError, AttributeError):
        return 4 * 10**9


def accelerator() -> torch.device | None:
    """The GPU, or whatever torch computes on beside the CPU here; None where there is nothing of the kind."""
    if hasattr(torch, "accelerator"):
        return torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cuda") if torch.cuda.is_available() else None  # torch before 2.6


def check_device(device: Any) -> None:
    """Refuse a device that torch does not have here."""
    try:
        usable = torch.empty(0, device=device).device.type != "meta"  # it would lose the weights
    except (RuntimeError, AssertionError, NotImplementedError):
        usable = False
    if not usable:
        raise InputError(
            f"device {str(device)!r} cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
        )


@functools.cache
def has_float64(device: torch.device) -> bool:
    """Whether a device computes in double precision; those of Apple do not."""
    if device.type in ("cpu", "cuda"):
        return True
    try:
        torch.zeros(1, dtype=torch.float64, device=device)
    except (TypeError, RuntimeError, NotImplementedError):
        return False
    return True


def on_precise_device(values: torch.Tensor) -> torch.Tensor:
    """The tensor where it can become double: on its device, else on the CPU."""
    return values if has_float64(values.device) else values.cpu()
