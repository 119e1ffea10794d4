"""A slice of every long job, in this process and on an engine; prints which results are equal. A script of its own.

Arguments: the name of an engine, or "dask-cluster" for one of two workers that is reached by its address; a folder.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise import classes, networks, transfer

DATA, NETWORK, TRAINING = "digits:test[:40]", "zoo:mlp,size=8,channels=1", "digits:train[:100]"


def jobs(folder: Path, addresses: list[str], engine: Any) -> dict[str, Any]:
    """The results of each job, by its name."""
    on = {"engine": engine, "progress": False}
    views = likewise.extract(addresses, DATA, store=folder / "extract", **on)
    matrix = likewise.compare(addresses, "jaccard", data=DATA, store=folder / "compare", **on)
    attacked = transfer.sat(addresses, DATA, iterations=2, store=folder / "sat", **on)
    layers = likewise.layerwise(*addresses[:2], DATA, **on)
    change = likewise.diff(*addresses[:2], DATA, **on)
    training = networks.train(NETWORK, TRAINING, out=folder / "train", epochs=2, keep_epochs=True, **on)
    inspected = classes.inspect(folder / "train", DATA, out=folder / "inspect", **on)
    return {
        "extract": [np.asarray(view) for view in views.values()],
        "compare": [matrix.values],
        "sat": [attacked.values],
        "layerwise": [layers.values],
        "diff": str(change),
        "train": [
            {name: value for name, value in record.items() if "second" not in name} for record in training.history
        ],
        "inspect": sorted(inspected.records.reports),
    }


def equal(a: Any, b: Any) -> bool:
    """Whether two results are the same, to the last bit."""
    if isinstance(a, list) and isinstance(a[0], np.ndarray):
        return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def main(engine: str, folder: Path) -> None:
    """Print the jobs whose results are the same, and those that are not."""
    warnings.simplefilter("ignore")
    addresses = []
    for seed in range(3):
        out = folder / f"weights {seed}"
        networks.train(NETWORK, TRAINING, out=out, epochs=1, seed=seed, progress=False)
        addresses.append(f"{NETWORK}@{out}/weights.safetensors")
    here = jobs(folder / "here", addresses, None)
    if engine == "dask-cluster":
        from distributed import LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            there = jobs(folder / "there", addresses, f"dask:{cluster.scheduler_address}")
    else:
        there = jobs(folder / "there", addresses, engine)
    same = [name for name in here if equal(here[name], there[name])]
    print("same:", *same)
    print("other:", *(name for name in here if name not in same))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
