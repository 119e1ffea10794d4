"""How often unrelated networks are called alike: `python -m perf.false_positives`.

Two networks see inputs of their own, so nothing ties a row of one to the same row of the other. 19 shuffles give
p <= 0.05 to one pair in twenty, fewer where scores tie. All measures see the same shuffles, as
`likewise.calibrate` would make them. The last rows are pairs that are related through a confounder only.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

import likewise
from likewise.comparison.pairs import attempt, representations
from likewise.comparison.significance import calibration_grids
from likewise.comparison.units import units_of
from likewise.measures import Measure, get
from likewise.measures.pair import Pair
from likewise.measures.registry import select
from likewise.measures.resampling import Permuted
from likewise.views import Activations, Outputs
from perf.common import write_table
from perf.parts import Arrays, load_parts, run_parts

SHUFFLES = 19
SIZES = (50, 200)
SLOW = {"rtd": 50, "ridge-predictivity": 200}  # pairs of 50 inputs they are tried on
WIDTH, CLASSES = 20, 5
CONFOUNDERS = (2, 3, 5, 10, 20)  # features of the confounder


def unrelated(n: int, number: int) -> list[Activations]:
    """Two networks on inputs of their own, with answers that are."""
    rng = np.random.default_rng([n, number])
    labels = rng.integers(0, CLASSES, size=n)
    views = []
    for _ in range(2):
        seen = rng.normal(size=(n, 6)) @ rng.normal(size=(6, WIDTH)) + rng.normal(size=(n, WIDTH))
        logits = rng.normal(size=(n, CLASSES))
        views.append(Activations(np.maximum(seen, 0), outputs=Outputs(logits, labels)))
    return views


def measures(n: int, number: int) -> list[Measure]:
    paired = [m for m in select("all", on=("representation", "outputs")) if m.info.paired]
    return [m for m in paired if m.name not in SLOW or (n == SIZES[0] and number < SLOW[m.name])]


def p_values(n: int, number: int) -> dict[str, float]:
    """p of every measure for one pair."""
    tried = measures(n, number)
    a, b = representations(unrelated(n, number), 10**9)
    values = [attempt(m, Pair(a, b))[0] for m in tried]
    nulls = np.empty((SHUFFLES, len(tried)))
    for by_label in (False, True):
        chosen_now = [(i, m) for i, m in enumerate(tried) if m.info.by_label == by_label]
        units = units_of([a.view, b.view], chosen_now[0][1])
        for k, order in enumerate(units.orders(SHUFFLES, number)):
            pair = Pair(a, Permuted(b, torch.from_numpy(order)))
            for i, measure in chosen_now:
                nulls[k, i] = attempt(measure, pair)[0]
    return {m.name: _p(m, value, null) for m, value, null in zip(tried, values, nulls.T, strict=True)}


def _p(measure: Measure, value: float, null: np.ndarray) -> float:
    """As in a table of two networks."""
    values, nulls = np.full((2, 2), value), np.repeat(null, 4).reshape(-1, 2, 2)
    return float(calibration_grids(values, nulls, measure)["p"][0, 1])


def confounded_p(width: int, number: int, n: int = 100) -> float:
    """p of cka-deconfounded for two networks that share a confounder and nothing else."""
    rng = np.random.default_rng([width, number, n])
    inputs = rng.normal(size=(n, width))
    x, y = (np.tanh(inputs @ rng.normal(size=(width, WIDTH))) + rng.normal(size=(n, WIDTH)) for _ in range(2))
    measure = get("cka-deconfounded", confounder=inputs)
    result = likewise.calibrate(x, y, measure, permutations=SHUFFLES, seed=number, progress=False)
    return float(result.p)


def _pairs(n: int, numbers: range) -> Arrays:
    by_measure: dict[str, list[float]] = {}
    for number in numbers:
        for name, p in p_values(n, number).items():
            by_measure.setdefault(name, []).append(p)
    return {name: np.array(values) for name, values in by_measure.items()}


def _confounded(width: int, numbers: range) -> Arrays:
    return {"cka-deconfounded": np.array([confounded_p(width, number) for number in numbers])}


def table(folder: Path) -> list[dict[str, object]]:
    parts = [(f"unrelated, n = {n}", f"n{n}") for n in SIZES]
    parts += [(f"confounder of {w} features, n = 100", f"confounded{w}") for w in CONFOUNDERS]
    rows = []
    for networks, name in parts:
        for measure, p in load_parts(folder, name).items():
            defined = p[~np.isnan(p)]
            rows.append(
                {
                    "measure": measure,
                    "networks": networks,
                    "pairs": len(defined),
                    "false_positives": f"{np.mean(defined <= 0.05):.3f}",
                    "mean_p": f"{defined.mean():.3f}",
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=200, help="unrelated ones; a hundred times as many confounded")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "likewise-nulls")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for width in CONFOUNDERS:
        work = lambda number, width=width: _confounded(width, number)  # noqa: E731
        run_parts(options.folder, f"confounded{width}", 100 * options.pairs, work)
    for n in SIZES:
        run_parts(options.folder, f"n{n}", options.pairs, lambda number, n=n: _pairs(n, number))
    write_table("false_positives", table(options.folder))


if __name__ == "__main__":
    main()
