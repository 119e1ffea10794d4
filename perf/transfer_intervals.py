"""How often intervals of SAT hold the score of all inputs: `python -m perf.transfer_intervals`, half a minute.

Whether the example of an input fools is drawn for both directions, each by a rate of its own; the two depend on each
other as far as both follow from how easily the input is changed (a normal variable with the given correlation). The
score of all inputs is ln of the mean of both rates. Beside the interval of `TransferMatrix.interval` stands the
bootstrap over inputs that it had before.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.stats import norm

from likewise.matrices.shares import mean_of_two
from perf.common import write_table

RATES = (
    (0.001, 0.001),
    (0.003, 0.003),
    (0.01, 0.01),
    (0.03, 0.03),
    (0.002, 0.06),
    (0.1, 0.3),
    (0.3, 0.3),
    (0.97, 0.97),
)
COUNTS, CORRELATIONS = (30, 100, 300, 1000), (0.0, 0.3, 0.6, 0.9)
TRIALS, BOOTSTRAPPED, DRAWS = 2000, 200, 300


def draw(rates: tuple[float, float], correlation: float, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Which inputs either direction fools on, (trials, n) each."""
    ease = rng.standard_normal((TRIALS, n)) * correlation**0.5
    return [ease + rng.standard_normal((TRIALS, n)) * (1 - correlation) ** 0.5 < norm.ppf(rate) for rate in rates]


def bootstrap(one: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The ends of percentile intervals of the first trials, (2, trials)."""
    n = one.shape[1]
    draws = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS) / n
    means = ((one[:BOOTSTRAPPED].astype(float) + other[:BOOTSTRAPPED]) / 2) @ draws.T
    return np.quantile(means, [0.025, 0.975], axis=1)


def main() -> None:
    """Simulate every cell and write `perf/results/transfer_intervals.csv`."""
    rng, rows = np.random.default_rng(0), []
    for rates, n, correlation in product(RATES, COUNTS, CORRELATIONS):
        one, other = draw(rates, correlation, n, rng)
        low, high = mean_of_two(one.sum(axis=1), other.sum(axis=1), (one & other).sum(axis=1), n)
        before, truth = bootstrap(one, other, rng), sum(rates) / 2
        rows.append(
            {
                "rate": rates[0],
                "other_rate": rates[1],
                "inputs": n,
                "correlation": correlation,
                "coverage": f"{np.mean((low <= truth) & (truth <= high)):.3f}",
                "width_percent": f"{100 * np.mean(high - low):.2f}",
                "coverage_bootstrap": f"{np.mean((before[0] <= truth) & (truth <= before[1])):.3f}",
            }
        )
    write_table("transfer_intervals", rows)


if __name__ == "__main__":
    main()
