"""Write how far each measure stands above chance at n inputs into the package.

    python scripts/measure_power.py

Pairs of made-up networks share 8 directions of what they see, which are a sixth of the variance of each (debiased CKA
is about 0.2 where inputs are many), and are compared with pairs that share nothing. `power` is the share of alike
pairs that score beyond 95 % of the unrelated ones, `gap` how many standard deviations of the unrelated ones lie between
the means. A measure that does not look at inputs one by one cannot tell and has a power of about 0.05.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise import measures
from likewise.benchmark.results.frame import EVIDENCE
from likewise.errors import UndefinedError

N, D, PAIRS = (20, 50, 100, 200, 400), 128, 20
TOO_LONG = {"rtd"}  # seconds per pair
SHARED, NOISE = 8, 2.2


def pair(n: int, draw: np.random.Generator, alike: bool) -> tuple[Any, Any]:
    """Activations of two networks on n inputs: relu of what they see and of noise of their own."""
    seen = draw.normal(size=(2, n, SHARED))
    seen[1] = seen[0] if alike else seen[1]
    weights, noise = draw.normal(size=(2, SHARED, D)) / np.sqrt(SHARED), draw.normal(size=(2, n, D))
    x, y = (np.maximum(one @ w + NOISE * e, 0) for one, w, e in zip(seen, weights, noise, strict=True))
    return x, y


def scores(measure: measures.Measure, n: int, alike: bool) -> Any:
    """What a measure says of the pairs, larger as more alike; the same pairs for every measure."""
    draw = np.random.default_rng([n, int(alike)])
    sign = 1 if measure.info.larger_is == "more alike" else -1
    scores = []
    for _ in range(PAIRS):
        x, y = pair(n, draw, alike)
        try:
            scores.append(sign * float(measure(x, y)))
        except UndefinedError:
            scores.append(np.nan)
    return np.array(scores)


def _quick(measure: measures.Measure) -> bool:
    return measure.info.on == "representation" and not measure.missing_options and measure.name not in TOO_LONG


def rows() -> Iterator[dict[str, Any]]:
    every = (measures.get(name) for name in measures.names())
    for measure in (m for m in every if _quick(m)):
        for n in N:
            alike, unrelated = scores(measure, n, True), scores(measure, n, False)
            if np.isnan(alike).any() or np.isnan(unrelated).any():
                continue  # undefined at this size
            spread = unrelated.std()
            limit = np.quantile(unrelated, 0.95)
            gap = (alike.mean() - unrelated.mean()) / spread if spread > 1e-9 * abs(unrelated.mean()) else 0.0
            power = float((alike > limit + 1e-9 * abs(limit)).mean())
            row = {"measure": measure.name, "n": n, "d": D, "power": f"{power:.3g}", "gap": f"{gap:.3g}"}
            print(row, flush=True)
            yield row


if __name__ == "__main__":
    table_rows = list(rows())
    with (EVIDENCE / "power.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(table_rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(table_rows)
