"""Many networks: all pairs of one measure, beside the few numpy lines that debiased CKA takes, and the planned cost.

Every job runs in a process of its own, so that peaks of memory do not mix: `python -m perf.many` runs those up to 1,000
networks, `python -m perf.many 10000` adds a row of that many, which takes minutes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import likewise
from perf.common import about, apart, cost, write

N, D = 500, 64
JOBS = [  # networks, measure, memory
    (50, "cka-debiased", ""),
    (200, "cka-debiased", ""),
    (1000, "cka-debiased", ""),
    (1000, "cka-debiased", "200MB"),
    (200, "cka", ""),
    (200, "distance-correlation", ""),
    (200, "rsa", ""),
    (50, "procrustes", ""),
    (200, "mutual-knn", ""),
    (300, "magnitude-difference", ""),
]
COLUMNS = ("numpy", "likewise")


def networks(m: int) -> dict[str, np.ndarray]:
    """Activations in single precision: relu of what networks share and what is their own."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(N, D)).astype(np.float32)
    views = {}
    for i in range(m):
        turned = shared @ rng.normal(size=(D, D)).astype(np.float32) / D**0.5
        views[f"network-{i}"] = np.maximum(turned + 0.5 * rng.normal(size=(N, D)).astype(np.float32), 0)
    return views


def numpy_lines(views: dict[str, np.ndarray]) -> np.ndarray:
    """Debiased CKA of all pairs: half of every centred Gram matrix is a row, and one product has all pairs."""
    upper = np.triu_indices(N, 1)
    rows = np.empty((len(views), len(upper[0])), dtype=np.float32)
    for k, view in enumerate(views.values()):
        x = view - view.mean(axis=0)
        gram = x @ x.T
        np.fill_diagonal(gram, 0)
        sums = gram.sum(axis=0)
        gram -= (sums[:, None] + sums) / (N - 2) - sums.sum() / (N - 1) / (N - 2)
        rows[k] = gram[upper]
    products = rows @ rows.T
    sizes = np.sqrt(products.diagonal())
    return products / sizes[:, None] / sizes


def one(by: str, m: int, measure: str, memory: str = "") -> dict[str, Any]:
    """One job in this process: CPU seconds, and the peak of memory beside the views."""
    views = networks(m)
    if by == "numpy":
        taken = cost(lambda: numpy_lines(views), enough=10)
        return {"cpu_seconds": taken.seconds, "peak_mb": taken.first_mb, "value": float(taken.value[0, 1])}
    limits = {"memory": memory} if memory else {}
    few = dict(list(views.items())[:3])
    likewise.compare(few, measure, progress=False)  # libraries are loaded here
    planned = likewise.measures.cost(measure, m, N, D, **limits)
    taken = cost(lambda: likewise.compare(views, measure, progress=False, **limits), enough=10)
    return {
        "cpu_seconds": taken.seconds,
        "peak_mb": taken.first_mb,
        "value": float(taken.value.values[0, 1]),
        "planned_seconds": planned.seconds,
        "planned_mb": planned.memory / 2**20,
    }


def rows(jobs: list[tuple[int, str, str]]) -> Iterator[dict[str, Any]]:
    for m, measure, memory in jobs:
        row: dict[str, Any] = {"networks": m, "measure": measure, "n": N, "d": D, "memory": memory}
        ours = apart("perf.many", "likewise", m, measure, memory)
        pairs = m * (m - 1) // 2
        row |= {key: ours[key] for key in ("cpu_seconds", "peak_mb", "planned_seconds", "planned_mb")}
        row |= {"us_per_pair": 1e6 * ours["cpu_seconds"] / pairs, "half_matrices_mb": m * N * (N - 1) / 2 * 4 / 2**20}
        if measure == "cka-debiased":
            theirs = apart("perf.many", "numpy", m, measure)
            row |= {"numpy_seconds": theirs["cpu_seconds"], "numpy_peak_mb": theirs["peak_mb"]}
            row |= {"times_numpy": ours["cpu_seconds"] / theirs["cpu_seconds"]}
            row |= {"difference": abs(ours["value"] - theirs["value"]), "met": row["times_numpy"] <= 1.5}
        yield row


def main(*arguments: str) -> None:
    if arguments and arguments[0] in COLUMNS:
        by, m, *rest = arguments
        print(json.dumps(one(by, int(m), *rest)))
        return
    more = [(int(m), "cka-debiased", "") for m in arguments]
    about()
    write("many", rows(JOBS + more))


if __name__ == "__main__":
    main(*sys.argv[1:])
