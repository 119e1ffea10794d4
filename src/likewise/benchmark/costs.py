"""What a training costs, from a step or two of it that leave nothing behind.

Time is that of this machine's CPU. For a machine with GPUs, which may be another, floating-point operations of matrix
products and convolutions are counted, forward and backward, and divided by a rate that is assumed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.flop_counter import FlopCounterMode

from likewise.benchmark.training import Task
from likewise.networks import Settings, train

GPU_TFLOPS = 10.0  # what a GPU of a data centre sustains in single precision, roughly: an assumption
_TIMED = 3  # batches, or epochs over a graph, by which a training is timed
_FEW = 2  # inputs by which operations are counted, and a training is timed that is slow
_PATIENCE = 5.0  # seconds from which on it is slow


@dataclass(frozen=True)
class TrainingCost:
    """One training: CPU seconds here, floating-point operations anywhere, and the bytes of its weights."""

    seconds: float
    operations: float
    size: int

    def gpu_hours(self, tflops: float) -> float:
        """Hours on a GPU that sustains so many trillion operations per second."""
        return self.operations / (tflops * 1e12 * 3600)


def estimate(task: Task) -> TrainingCost:
    """The cost of a training; published weights are not fetched for it."""
    domain, spec = task.domain, task.spec
    settings, data = domain.settings(spec), domain.train_data(spec)
    net: Any = domain.build(replace(spec, options={**spec.options, "pretrained": False}), data)
    whole = data.domain == "graph"  # one step sees all nodes
    few, passes = (data, settings.epochs) if whole else (data[:_FEW], settings.epochs * len(data))
    short = replace(settings, epochs=1, evaluate_every=None, keep_best=False, warmup=0.0)
    with FlopCounterMode(display=False) as counter:  # also the first step of a process, which is slow
        train(net, few, short, progress=False)
    units = 1 if whole else len(few)
    seconds = _seconds(net, few, short) / units
    steps = _TIMED if whole else min(len(data), _TIMED * settings.batch_size)
    if steps * seconds < _PATIENCE:
        seconds = _seconds(net, data if whole else data[:steps], replace(short, epochs=_TIMED if whole else 1)) / steps
    size = sum(value.numel() * value.element_size() for value in (*net.parameters(), *net.buffers()))
    return TrainingCost(seconds * passes, counter.get_total_flops() / units * passes, size)


def _seconds(net: Any, data: Any, settings: Settings) -> float:
    start = time.process_time()
    train(net, data, settings, progress=False)
    return time.process_time() - start
