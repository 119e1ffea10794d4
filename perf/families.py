"""How often families are right: `python -m perf.families`.

Planted zoos have scores of 3.3 within families and 2.2 between, and noise of 0.3 per pair. Unrelated zoos have none:
normal, heavy-tailed or skewed noise; rows that differ, so that some networks are less alike to all others; points of a
normal cloud in 20, 5 or 2 dimensions, which networks along a continuum are like; CKA of random activations of
8 to 200 neurons, which the widths decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.analysis import Clusters, clusters
from likewise.analysis.family_evidence import rand_index
from likewise.matrices.similarity import SimilarityMatrix
from perf.common import write_table

ZOOS = ((2, 1), (2, 2), (3, 1), (4, 1), (3, 2), (3, 3), (4, 4), (11, 1), (6, 5, 1), (8, 7, 5), (20, 20, 10))
LARGE = (30, 20, 10, 5, 2, 1, 1, 1)
SPECTRAL = 10  # zoos of each kind for k-means, which takes longer
Draw = np.random.Generator


def _symmetric(scores: np.ndarray) -> np.ndarray:
    upper = np.triu(scores, 1)
    return upper + upper.T


def _cloud(dimensions: int) -> Callable[[Draw, int], np.ndarray]:
    def points(draw: Draw, m: int) -> np.ndarray:
        places = draw.normal(size=(m, dimensions))
        return -np.linalg.norm(places[:, None] - places, axis=2)

    return points


def _rows(draw: Draw, m: int) -> np.ndarray:
    level = draw.normal(scale=0.3, size=m)
    return level[:, None] + level + _symmetric(draw.normal(scale=0.1, size=(m, m)))


def _widths(draw: Draw, m: int) -> np.ndarray:
    grams = []
    for width in draw.integers(8, 200, m):
        values = draw.normal(size=(100, width))
        values -= values.mean(axis=0)
        grams.append((values @ values.T).ravel() / np.linalg.norm(values @ values.T))
    return np.array(grams) @ np.array(grams).T


UNRELATED: dict[str, Callable[[Draw, int], np.ndarray]] = {
    "normal noise": lambda draw, m: 2.5 + _symmetric(draw.normal(scale=0.3, size=(m, m))),
    "t(3) noise": lambda draw, m: _symmetric(draw.standard_t(3, size=(m, m))),
    "exponential noise": lambda draw, m: _symmetric(draw.exponential(size=(m, m))),
    "rows differ": _rows,
    "cloud, 20 dimensions": _cloud(20),
    "cloud, 5 dimensions": _cloud(5),
    "cloud, 2 dimensions": _cloud(2),
    "CKA, widths 8 to 200": _widths,
}


def planted(draw: Draw, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Scores of networks in families, and the family of each."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    noise = _symmetric(draw.normal(scale=0.3, size=(len(labels), len(labels))))
    return np.where(labels[:, None] == labels, 3.3, 2.2) + noise, labels


def _found(scores: np.ndarray, k: int | str = "auto", method: str = "average") -> Clusters:
    matrix = SimilarityMatrix([str(i) for i in range(len(scores))], scores)
    return clusters(matrix, k, method=method, starts=10)  # type: ignore[arg-type]


def main() -> None:
    """Print two tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoos", type=int, default=100, help="how many zoos of each kind")
    count = parser.parse_args().zoos
    rows: list[dict[str, Any]] = []
    for sizes in (*ZOOS, LARGE):
        indices: dict[str, list[float]] = {"at true k": [], "auto": [], "spectral at true k": []}
        for seed in range(count if sum(sizes) < 40 else count // 5):
            scores, labels = planted(np.random.default_rng(seed), sizes)
            found = {"at true k": _found(scores, len(sizes)), "auto": _found(scores)}
            if seed < SPECTRAL:
                found["spectral at true k"] = _found(scores, len(sizes), "spectral")
            for name, families in found.items():
                indices[name].append(rand_index(labels, np.array(families.labels)))
        row = {name: round(float(np.mean(values)), 2) for name, values in indices.items()}
        rows.append({"kind": "planted", "zoo": " + ".join(map(str, sizes)), **row})
        print(rows[-1], flush=True)
    for name, make in UNRELATED.items():
        row = {}
        for m in (5, 12, 30):
            zoos = range(count if m < 20 else count // 2)
            ones = [_found(make(np.random.default_rng(1000 + seed), m)).k == 1 for seed in zoos]
            row[f"one family of {m}"] = round(float(np.mean(ones)), 2)
        rows.append({"kind": "unrelated", "zoo": name, **row})
        print(rows[-1], flush=True)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    write_table("families", [{column: row.get(column, "") for column in columns} for row in rows])


if __name__ == "__main__":
    main()
