"""Where work runs: this process, this machine's cores, or a cluster.

Small matrices lose more to waking threads than they gain, so one comparison runs on one thread, and several
run beside each other. Bigger than one machine is the business of Dask and Ray: whatever looks like
`concurrent.futures.Executor` can be an engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


SMALL = 5e9  # multiplications; below, one thread is as fast as several


@contextmanager
def one_thread(*, for_inputs: tuple[Any, ...] = ()) -> Iterator[None]:
    """Keep torch to one thread inside; if inputs are named, only where they are small."""
    threads = torch.get_num_threads()
    if threads == 1 or any(_work(values) > SMALL for values in for_inputs):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _work(values: Any) -> float:
    """Multiplications of an n x n matrix of inner products."""
    shape = getattr(getattr(values, "values", values), "shape", ())
    return float(shape[0]) * float(math.prod(shape)) if len(shape) > 1 else 0.0
