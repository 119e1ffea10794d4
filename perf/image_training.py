"""Training from image files with 0, 1 and 2 decoding processes, beside the same training from memory.

`memory` has all images decoded before its clock starts. `files` decodes them in the first epoch and keeps them, where
there are no workers; the memory of workers ends with their epoch. `uncached` has no room for decoded images, as a large
data set has none, so every epoch decodes all of them. `estimate_s` is training from memory plus decoding, divided by
two where workers take a second core; decoding is timed with making tensors, so it is too high by that.
`killed` is ended by SIGKILL after its first epoch and resumed in
another process; its time is that of the second. Every training runs in a process of its own, and `weights` is a hash of
what it learned: one value for all rows.

    python -m perf.image_training FOLDER            (one folder per class below it)

CPU seconds are those of the training and of its workers: on a machine that others use, only they can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import likewise
from likewise._base.hashing import digest
from perf.common import apart, write

NETWORK = "zoo:lenet,mean=0.45,std=0.27"  # else taken from more images where they are in memory
CASES = [*((source, workers) for source in ("files", "uncached") for workers in (0, 1, 2)), ("killed", 2)]


def train(folder: str, source: str, workers: int, epochs: int, limit: int, out: str) -> dict[str, Any]:
    """One training: seconds on the clock and of all its processes, and a hash of the weights."""
    data = likewise.dataset(f"imagefolder:{folder}")
    data = data[: limit or None]
    assert data.inputs.shape[1:]  # headers are read before the clock starts
    decoding = 0.0
    if source == "memory":
        start = time.process_time()
        pixels = torch.cat([(images * 255).round().byte() for images, _ in data.batches(1000, num_workers=0)])
        decoding = time.process_time() - start
        data = replace(data, inputs=pixels)
    if source == "uncached":
        data.inputs._decoded.room = 0
    before, start = _cpu(), time.perf_counter()
    options = {"epochs": epochs, "lr": 0.01, "batch_size": 128, "num_workers": workers, "progress": False}
    net = likewise.networks.train(NETWORK, data, out=out or None, **options).net
    return {
        "source": source,
        "workers": workers,
        "images": len(data),
        "epochs": epochs,
        "wall_s": time.perf_counter() - start,
        "cpu_s": _cpu() - before,
        "decoding_s": decoding,
        "weights": digest([value.contiguous() for value in net.state_dict().values()])[:16],
    }


def _cpu() -> float:
    """CPU seconds of this process and of the workers that are over."""
    return sum(os.times()[:4])


def killed(*arguments: Any) -> dict[str, Any]:
    """A training that is killed after its first epoch, resumed from its folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "perf.image_training", *map(str, arguments), "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and not list(out.glob("*.safetensors")):  # the first epoch is saved
            time.sleep(0.05)
        assert process.poll() is None, "the training was over before it could be killed: give it more epochs"
        process.send_signal(signal.SIGKILL)
        process.wait()
        row = apart("perf.image_training", *arguments, "--out", out)
    return {**row, "source": "killed"}


def rows(folder: str, epochs: int, limit: int) -> Any:
    """All cases, beside the one from memory."""
    common = [folder, "--epochs", epochs, "--limit", limit, "--case"]
    memory = apart("perf.image_training", *common, "memory", 0)
    yield {**memory, "ratio": 1.0}
    for source, workers in CASES:
        case = [*common, "files" if source == "killed" else source, workers]
        row = killed(*case) if source == "killed" else apart("perf.image_training", *case)
        assert row["weights"] == memory["weights"], f"{source} with {workers} workers has other weights"
        row["ratio"] = row["cpu_s"] / memory["cpu_s"]
        if source != "killed":
            passes = epochs if source == "uncached" or workers else 1
            row["estimate_s"] = (memory["cpu_s"] + passes * memory["decoding_s"]) / min(2, 1 + workers)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--case", nargs=2)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.case:
        source, workers = options.case
        row = train(options.folder, source, int(workers), options.epochs, options.limit, options.out)
        print(json.dumps(row))
    else:
        write("image_training", rows(options.folder, options.epochs, options.limit))


if __name__ == "__main__":
    main()
