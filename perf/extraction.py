"""What extraction costs beside the forward pass it rides on: time and resident memory.

All blocks of a ResNet-56 on the CIFAR-10 test images, streamed to a store, for each reduction. The
bare forward pass over a batch and the extraction from the same batch take turns within one run, so
that whatever else the machine does falls on both alike. `ratio` is the time of extraction to that
of the bare passes; `growth_mb` the peak resident memory above that before the first batch.

    LIKEWISE_DATA=... python -m perf.extraction --weights resnet56.safetensors

Each row is appended to perf/results/extraction.csv with machine and versions.
"""

from __future__ import annotations

import argparse
import copy
import csv
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch
from torch import Tensor, nn

import likewise
from perf.common import RESULTS


class Peak:
    """The highest resident memory of this process, looked at a hundred times a second."""

    def __enter__(self) -> Peak:
        self.start = self.highest = psutil.Process().memory_info().rss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._stop.wait(0.01):
            self.highest = max(self.highest, process.memory_info().rss)


class TakingTurns:
    """Batches, each shown to the bare network and timed just before it is yielded."""

    def __init__(self, network: nn.Module, data: likewise.data.Data, batch_size: int) -> None:
        self.network = copy.deepcopy(network).eval()
        self.data, self.batch_size = data, batch_size
        self.bare = 0.0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in self.data.batches(self.batch_size):
            start = time.perf_counter()
            with torch.no_grad():
                self.network(images)
            self.bare += time.perf_counter() - start
            yield images, labels


def measure(network: nn.Module, data: likewise.data.Data, reduce: str, batch_size: int) -> dict:
    store = tempfile.mkdtemp()
    turns = TakingTurns(network, data, batch_size)
    try:
        with Peak() as peak:
            start = time.perf_counter()
            views = likewise.extract(network, turns, layers="blocks", reduce=reduce, store=store)
            extraction = time.perf_counter() - start - turns.bare
        stored = sum(path.stat().st_size for path in Path(store).rglob("*.safetensors"))
    finally:
        shutil.rmtree(store)
    return {
        "reduce": reduce,
        "layers": len(views),
        "inputs": len(data),
        "batch_size": batch_size,
        "bare_s": round(turns.bare, 2),
        "extraction_s": round(extraction, 2),
        "ratio": round(extraction / turns.bare, 3),
        "growth_mb": round((peak.highest - peak.start) / 2**20),
        "stored_mb": round(stored / 2**20),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", help="weights of the ResNet-56; random without")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--reduce", nargs="+", default=["mean", "pool7", "flatten"])
    parser.add_argument("--out", type=Path, default=RESULTS / "extraction.csv")
    options = parser.parse_args()
    network = likewise.network("zoo:resnet56" + (f"@{options.weights}" if options.weights else ""))
    data = likewise.dataset(f"cifar10:test[:{options.inputs}]")
    # warmed up, so that what is set up once (thread pools, allocator) is not counted as growth
    measure(network, data[: options.batch_size], "mean", options.batch_size)
    machine = {
        "machine": platform.machine(),
        "cores": psutil.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "likewise": likewise.__version__,
    }
    for reduce in options.reduce:
        row = measure(network, data, reduce, options.batch_size) | machine
        new = not options.out.exists()
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)
        sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
