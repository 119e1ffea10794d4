"""How the cost of a pair grows with n and d, and that of a matrix with m: fitted exponents.

Sizes are modest, so the exponents are those of everyday use, where lower-order terms still count:
a measure declared n²·d shows less than 2 in n as long as the work on n x d matters. Over m
networks, work that is shared grows like m and work on pairs like m².
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import likewise
from likewise import measures
from perf.common import cost, networks, write
from perf.matrix import every

N = (500, 1000, 2000)  # at d = 128
D = (64, 128, 256)  # at n = 1000
M = (2, 4, 8)  # at n = 500, d = 128
SLOW = {"rtd", "riemann"}  # grow in batch, or cubed in d: smaller sizes tell as much
FAMILIES = ("rsm", "cca", "alignment", "neighbors", "topology", "statistics")


def rows() -> Iterator[dict[str, Any]]:
    for measure in every():
        yield _fitted(measure.name, "n", N, [_pair(measure, n, 128) for n in N], measure.info.cost)
        yield _fitted(measure.name, "d", D, [_pair(measure, 1000, d) for d in D], measure.info.cost)
    for family in FAMILIES:
        yield _fitted(family, "m", M, [_matrix(family, m) for m in M], "shared m, pairs m²")


def _pair(measure: measures.Measure, n: int, d: int) -> float:
    x, y = networks(n, d).values()
    return cost(lambda: measure(x, y), enough=0.5).seconds


def _matrix(family: str, m: int) -> float:
    views = networks(500, 128, m)
    measures_of_family = [m_ for m_ in every() if m_.info.family == family and m_.name not in SLOW]
    return cost(lambda: likewise.compare(views, measures_of_family, progress=False), enough=1.0).seconds


def _fitted(what: str, axis: str, sizes: Sequence[int], seconds: list[float], declared: str) -> Any:
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return {
        "what": what,
        "in": axis,
        "exponent": exponent,
        "declared": declared,
        "sizes": " ".join(map(str, sizes)),
        "cpu_seconds": " ".join(f"{value:.3g}" for value in seconds),
    }


def main() -> None:
    write("growth", rows())


if __name__ == "__main__":
    main()
