"""How often intervals hold what they should: `python -m perf.coverage`.

Two networks with fixed weights see fresh inputs in every trial. The truth is the mean score over many fresh draws of
as many inputs. One trial leaves out the same groups for all measures, so that what they share is computed once;
its intervals are those of `likewise.bootstrap` with the trial for a seed. Trials are kept in a folder and the
command resumes. What measures declare about their intervals was chosen by networks of the first
design; the second played no part in it.

smooth     relu of six normal causes that both networks share and of noise of their own, and logits of the same causes
clustered  inputs of five classes with heavy tails; one network of tanh, one of linear units with scales far apart
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from likewise.comparison.intervals import GROUPS, Groups, interval_of, no_interval
from likewise.comparison.pairs import attempt, representations
from likewise.comparison.units import Units
from likewise.measures import Measure, get
from likewise.measures.pair import Pair
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.measures.resampling import Subset, measure_of_subset
from likewise.views import Activations, Outputs
from perf.common import write_table
from perf.parts import load_parts, run_parts

CELLS = ((100, 20), (100, 60), (50, 20), (50, 30), (400, 20), (400, 240))
SLOW = {"rtd": (40, ((100, 20),)), "ridge-predictivity": (100, ((100, 20), (100, 60)))}
HIDDEN, CLASSES = 6, 5


Seen = tuple[list[Activations], np.ndarray]  # both networks, and a confounder


def smooth(n: int, d: int, fixed: np.random.Generator, rng: np.random.Generator) -> Seen:
    weights, readout = fixed.normal(size=(2, HIDDEN, d)), fixed.normal(size=(HIDDEN, CLASSES))
    hidden = rng.normal(size=(n, HIDDEN))
    labels = (hidden @ readout + 0.5 * rng.normal(size=(n, CLASSES))).argmax(axis=1)
    views = []
    for mix in weights:
        values = np.maximum(hidden @ mix + 2 * rng.normal(size=(n, d)), 0)
        logits = hidden @ readout + 1.5 * rng.normal(size=(n, CLASSES))
        views.append(Activations(values, outputs=Outputs(logits, labels)))
    return views, hidden + rng.normal(size=hidden.shape)


def clustered(n: int, d: int, fixed: np.random.Generator, rng: np.random.Generator) -> Seen:
    centres, weights = 2 * fixed.normal(size=(CLASSES, HIDDEN)), fixed.normal(size=(2, HIDDEN, d))
    scales = fixed.lognormal(size=d)
    labels = rng.integers(0, CLASSES, size=n)
    hidden = centres[labels] + rng.standard_t(5, size=(n, HIDDEN))
    noise = rng.standard_t(5, size=(2, n, d))
    values = np.tanh(hidden @ weights[0] / 3 + noise[0]), (hidden @ weights[1] + 3 * noise[1]) * scales
    logits = [-((hidden[:, None] - centres) ** 2).sum(axis=2) / 8 + rng.normal(size=(n, CLASSES)) for _ in range(2)]
    views = [Activations(seen, outputs=Outputs(out, labels)) for seen, out in zip(values, logits, strict=True)]
    return views, hidden + rng.normal(size=hidden.shape)


DESIGNS = {"smooth": smooth, "clustered": clustered}


@dataclass(frozen=True)
class Cell:
    """How many inputs and neurons, and what kind of networks."""

    n: int
    d: int
    design: str = "smooth"

    @property
    def name(self) -> str:
        return f"{self.n}x{self.d}"

    def inputs(self, seed: int) -> Seen:
        """Both networks on fresh inputs, and a confounder; their weights are the same for all seeds."""
        fixed, rng = (np.random.default_rng(seeds) for seeds in ([self.n, self.d], [self.n, self.d, seed]))
        return DESIGNS[self.design](self.n, self.d, fixed, rng)

    def measures(self, trial: int) -> list[Measure]:
        """Those that are tried in this trial; slow ones in some cells and trials only."""
        paired = [m for m in select("all", on=("representation", "outputs")) if m.info.paired]
        fast = [m for m in paired if m.name not in SLOW]
        slow = [m for m in paired if m.name in SLOW and trial < SLOW[m.name][0] and (self.n, self.d) in SLOW[m.name][1]]
        return [*fast, get("cka-deconfounded"), *slow]


def scores(measures: list[Measure], pair: Pair, confounder: np.ndarray) -> list[float]:
    return [attempt(_with(m, confounder), pair)[0] for m in measures]


def _with(measure: Measure, confounder: np.ndarray) -> Measure:
    return measure.bind(confounder=confounder) if "confounder" in measure.missing_options else measure


def fresh_scores(cell: Cell, draw: int) -> dict[str, float]:
    """Scores of all measures on inputs of their own."""
    views, confounder = cell.inputs(10**6 + draw)
    measures = cell.measures(draw // 5)
    pair = Pair(*representations(views, 10**9))
    return dict(zip((m.name for m in measures), scores(measures, pair, confounder), strict=True))


def trial_rows(cell: Cell, trial: int) -> Iterator[tuple[str, float, np.ndarray, str]]:
    """Of every measure its name, score, scores where groups are left out, and why it has no interval."""
    views, confounder = cell.inputs(trial)
    reps = representations(views, 10**9)
    pair, measures = Pair(*reps), cell.measures(trial)
    split = Groups.of(Units.single(cell.n), GROUPS, trial)
    values = scores(measures, pair, confounder)
    draws = np.array([_left(measures, reps, kept, confounder) for kept in split.remaining()])
    for i, measure in enumerate(measures):
        bound = _with(measure, confounder)
        yield (
            measure.name,
            values[i],
            draws[:, i],
            no_interval(pair, bound, values[i], draws[:, i], split),
        )


def _left(measures: list[Measure], reps: list[Representation], kept: np.ndarray, confounder: np.ndarray) -> list[float]:
    index = torch.from_numpy(kept)
    pair = Pair(*(Subset(rep, index) for rep in reps))
    return [attempt(measure_of_subset(_with(m, confounder), index), pair)[0] for m in measures]


def run(cell: Cell, trials: int, fresh: int, folder: Path) -> None:
    """Do what is missing of a cell."""
    run_parts(folder, f"{cell.name}-fresh", fresh, lambda number: _fresh_part(cell, number))
    run_parts(folder, f"{cell.name}-trials", trials, lambda number: _trial_part(cell, number))


def _fresh_part(cell: Cell, numbers: range) -> dict[str, np.ndarray]:
    by_measure: dict[str, list[float]] = {}
    for draw in numbers:
        for name, value in fresh_scores(cell, draw).items():
            by_measure.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in by_measure.items()}


def _trial_part(cell: Cell, numbers: range) -> dict[str, np.ndarray]:
    """(trials, 1 + scores) of each measure: whether it is refused is in the first place of each."""
    by_measure: dict[str, list[np.ndarray]] = {}
    for trial in numbers:
        for name, value, draws, refused in trial_rows(cell, trial):
            by_measure.setdefault(name, []).append(np.array([bool(refused), value, *draws]))
    return {name: np.array(rows) for name, rows in by_measure.items()}


def table(cell: Cell, folder: Path, level: float = 0.95) -> list[dict[str, object]]:
    """One row per measure: share of intervals that hold the truth, and width against the ideal."""
    fresh, trials = (load_parts(folder, f"{cell.name}-{kind}") for kind in ("fresh", "trials"))
    split = Groups.of(Units.single(cell.n), GROUPS, 0)
    rows = []
    for name, kept in trials.items():
        refused = kept[:, 0] > 0
        values, draws = kept[~refused, 1], kept[~refused, 2:].T
        low, high = interval_of(get(name).info, values, draws, split, level)
        truth, spread = np.nanmean(fresh[name]), np.nanstd(fresh[name])
        held = (low <= truth) & (truth <= high)
        rows.append(
            {
                "measure": name,
                "n": cell.n,
                "d": cell.d,
                "trials": len(kept),
                "refused": int(refused.sum()),
                "coverage": f"{held.mean():.3f}" if held.size else "",
                "width": f"{np.mean(high - low) / (3.92 * spread):.2f}" if held.size else "",
                "mean_score": f"{truth:.4g}",
                "fresh_draws": len(fresh[name]),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--fresh", type=int, default=400)
    parser.add_argument("--cells", nargs="*", default=[f"{n}x{d}" for n, d in CELLS])
    parser.add_argument("--design", choices=list(DESIGNS), default="smooth")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "likewise-coverage")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder, result = options.folder / options.design, "coverage"
    if options.design != "smooth":
        result += f"-{options.design}"
    cells = [Cell(n, d, options.design) for n, d in CELLS]
    for cell in cells:
        if cell.name in options.cells:
            run(cell, options.trials, options.fresh, folder)
            rows = [row for cell in cells for row in table(cell, folder)]
            write_table(result, rows)
            print(f"{cell.name}: {len(rows)} rows", flush=True)


if __name__ == "__main__":
    main()
