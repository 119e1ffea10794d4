"""How often families are right: `python -m perf.families`.

Planted zoos have scores of 3.3 within families and 2.2 between, and noise of 0.3 per pair. Unrelated zoos have none:
normal, heavy-tailed or skewed noise; rows that differ, so that some networks are less alike to all others; points of a
normal cloud in 20, 5 or 2 dimensions, which networks along a continuum are like; CKA of random activations of
8 to 200 neurons, which the widths decide. `FEW` and `BLUR` of `likewise.analysis.family_evidence` were set so that each
of the first four kinds of 5, 6 and 7 networks, with rows that differ more or less, is one family in at least 90 %.

Three and four networks are too few: a threshold that at most 10 % of each of these kinds pass is passed by few planted
zoos too ("beyond chance").
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.analysis import Clusters, clusters
from likewise.analysis.family_evidence import LEAST, rand_index, separation
from likewise.matrices.similarity import SimilarityMatrix
from perf.common import write_table

SMALL = ((2, 1), (2, 2), (3, 1), (4, 1), (3, 2), (5, 1), (3, 3), (6, 1), (4, 3), (4, 4))
LARGE = ((11, 1), (6, 5, 1), (8, 7, 5), (20, 20, 10), (30, 20, 10, 5, 2, 1, 1, 1))
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


def _rows(noise: float) -> Callable[[Draw, int], np.ndarray]:
    def scores(draw: Draw, m: int) -> np.ndarray:
        level = draw.normal(scale=0.3, size=m)
        return level[:, None] + level + _symmetric(draw.normal(scale=noise, size=(m, m)))

    return scores


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
    "rows differ": _rows(0.1),
    "rows differ, more noise": _rows(0.2),
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


def _count(count: int, m: int) -> int:
    """How many zoos of m networks: fewer of the larger ones, which take longer."""
    return count if m < 8 else max(count // 4, 10) if m < 40 else max(count // 20, 10)


def _beyond_chance(sizes: tuple[int, ...], count: int = 4000) -> float:
    """The share of planted zoos that separate better than 90 % of zoos of every one of the first kinds."""

    def separations(make: Callable[[Draw], np.ndarray]) -> list[float]:
        return [float(separation(make(np.random.default_rng(seed)))[1].max()) for seed in range(count)]

    kinds = list(UNRELATED.values())[:5]
    threshold = max(np.quantile(separations(lambda draw, make=make: make(draw, sum(sizes))), 0.9) for make in kinds)
    return float(np.mean(np.array(separations(lambda draw: planted(draw, sizes)[0])) > threshold))


def main() -> None:
    """Print two tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoos", type=int, default=400, help="how many zoos of each kind with up to 7 networks")
    count = parser.parse_args().zoos
    rows: list[dict[str, Any]] = []
    for sizes in (*SMALL, *LARGE):
        indices: dict[str, list[float]] = {"at true k": [], "auto": [], "spectral at true k": []}
        for seed in range(_count(count, sum(sizes))):
            scores, labels = planted(np.random.default_rng(seed), sizes)
            found = {"at true k": _found(scores, len(sizes)), "auto": _found(scores)}
            if seed < SPECTRAL:
                found["spectral at true k"] = _found(scores, len(sizes), "spectral")
            for name, families in found.items():
                indices[name].append(rand_index(labels, np.array(families.labels)))
        row = {name: round(float(np.mean(values)), 3) for name, values in indices.items()}
        if sum(sizes) < LEAST:
            row["beyond chance"] = round(_beyond_chance(sizes), 3)
        rows.append({"kind": "planted", "zoo": " + ".join(map(str, sizes)), **row})
        print(rows[-1], flush=True)
    for name, make in UNRELATED.items():
        row = {}
        for m in (5, 6, 7, 12, 20, 30):
            zoos = range(_count(count, m))
            ones = [_found(make(np.random.default_rng(1000 + seed), m)).k == 1 for seed in zoos]
            row[f"one family of {m}"] = round(float(np.mean(ones)), 3)
        rows.append({"kind": "unrelated", "zoo": name, **row})
        print(rows[-1], flush=True)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    write_table("families", [{column: row.get(column, "") for column in columns} for row in rows])


if __name__ == "__main__":
    main()
