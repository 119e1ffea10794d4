"""A measure that wins? `LIKEWISE_DATA=... python -m studies.fusion [RUNS]`; with `page` it prints what there is.

Small runs of the benchmark lie in RUNS, one folder per place (a data set with a network), and are resumed. Fusions of
the 23 measures are chosen by the figures that the paper prints and, for their form, by the places on its data; they
are judged on all other places.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from likewise import benchmark, measures
from likewise.benchmark.fusions import Fusion, evaluate_fusions
from likewise.measures.registry import MEASURES, RESI

RUNS = Path(__file__).parent / "runs" / "fusion"
GROUNDINGS = ["accuracy", "outputs", "labels", "shortcut", "augmentation", "layers"]
CHOSEN_ON = "cora"
PLACES = (
    ("vision", "digits", "mlp"),
    ("graph", "cora", "gcn"),
    ("graph", "digits-graph", "sage"),
    ("vision", "digits", "lenet"),
    ("vision", "digits", "conv-mlp"),
    ("graph", "cora", "sage"),
    ("graph", "cora", "gat"),
    ("vision", "fashion-mnist", "mlp"),
    ("language", "sentences", "bert-tiny"),
    ("graph", "citeseer", "gcn"),
    ("graph", "digits-graph", "gcn"),
    ("vision", "fashion-mnist", "lenet"),
)
OF_PAPER = sorted({MEASURES.get(alias).name for alias in RESI})
CELL = ["domain", "data", "network", "grounding", "metric"]
DRAWS = 2000
POWERS = (0.75, 0.5, 0.25)


def _spectral(power: float) -> Any:
    """CKA of activations whose singular values are raised to a power: 1 is CKA, 0 counts all directions alike."""

    def measure(x: Any, y: Any) -> float:
        bases, weights = [], []
        for activations in (x, y):
            centred = activations - activations.mean(axis=0)
            left, sizes, _ = np.linalg.svd(np.asarray(centred, dtype=np.float64), full_matrices=False)
            keep = sizes > 1e-9 * sizes[0]
            bases.append(left[:, keep])
            weights.append((sizes[keep] / sizes[0]) ** (2 * power))
        overlap = (bases[0].T @ bases[1]) ** 2
        return float(weights[0] @ overlap @ weights[1] / np.prod([np.linalg.norm(w) for w in weights]))

    return measure


SPECTRAL = [f"cka-power-{100 * power:.0f}" for power in POWERS]


def fusions(domain: str) -> dict[str, Fusion]:
    """The candidates, from ranks over the cells of the paper alone."""
    ranked = benchmark.ranks(benchmark.paper_results(), variant="resi")
    summary = ranked.summary()
    means = summary[summary["domain"] == "overall"].set_index("measure")["mean"].sort_values()
    of_domain = summary[summary["domain"] == domain].set_index("measure")["mean"].sort_values()
    skill = {name: 12 - rank for name, rank in means.items() if rank < 12}
    cover = _cover(
        ranked.frame.pivot_table(index=["data", "network", "grounding", "metric"], columns="measure", values="rank")
    )
    return {
        "ranks of all 23": Fusion(),
        "ranks, best 3": Fusion("ranks", dict.fromkeys(means.index[:3], 1.0)),
        "ranks, best 5": Fusion("ranks", dict.fromkeys(means.index[:5], 1.0)),
        "ranks, best 8": Fusion("ranks", dict.fromkeys(means.index[:8], 1.0)),
        "ranks, best 5 of the domain": Fusion("ranks", dict.fromkeys(of_domain.index[:5], 1.0)),
        "ranks, weighed by skill": Fusion("ranks", skill),
        "ranks, 5 that cover": Fusion("ranks", dict.fromkeys(cover, 1.0)),
        "network fusion of all 23": Fusion("snf"),
        "network fusion, best 5": Fusion("snf", dict.fromkeys(means.index[:5], 1.0)),
    }


def _cover(ranks: pd.DataFrame, count: int = 5) -> list[str]:
    """Measures chosen one by one so that the best rank among them, mean over the paper's cells, is lowest."""
    chosen: list[str] = []
    while len(chosen) < count:
        rest = [name for name in ranks if name not in chosen]
        chosen.append(min(rest, key=lambda name: ranks[[*chosen, name]].min(axis=1).mean()))
    return chosen


def evaluate(runs: Path) -> None:
    """Make the runs, and evaluate fusions on each that is complete."""
    for power, name in zip(POWERS, SPECTRAL, strict=True):
        measures.register(name=name, larger_is="more alike", symmetric=True)(_spectral(power))
    for domain, data, network in PLACES:
        folder = runs / f"{data}-{network}"
        path = runs / f"{data}-{network}.csv"
        if path.is_file():
            continue
        start = time.process_time()
        options: dict[str, Any] = {"groundings": GROUNDINGS, "measures": OF_PAPER, "preset": "small"}
        made = benchmark.run(domain, data, network, out=folder, progress=False, **options)
        plain = {
            name: fusion if fusion.weights else Fusion(fusion.how, dict.fromkeys(OF_PAPER, 1.0))
            for name, fusion in fusions(domain).items()
        }
        results = evaluate_fusions(made, plain, [*OF_PAPER, *SPECTRAL], progress=False)
        results.frame.to_csv(path, index=False)
        _say(f"{data} {network}: {time.process_time() - start:.0f} s")


def ranks_against_23(runs: Path) -> pd.DataFrame:
    """Cells by measures: the rank of each of the 23 among themselves, of every candidate among the 23 and itself."""
    frames = [pd.read_csv(path) for path in sorted(runs.glob("*.csv"))]
    frame = pd.concat(frames, ignore_index=True)
    frame = frame[(frame["variant"] == "published") & frame["valid"].ne(False)]
    main = [
        metric in benchmark.results.frame.main_metrics(name)
        for name, metric in zip(frame["grounding"], frame["metric"], strict=True)
    ]
    values = frame[main].pivot_table(index=CELL, columns="measure", values="value", dropna=False).dropna(how="all")
    values = values[values[OF_PAPER].notna().mean(axis=1) >= 0.5]
    values = values[values[OF_PAPER].std(axis=1) > 0]
    filled = values.fillna(-2.0)
    ranked = filled[OF_PAPER].rank(axis=1, ascending=False)
    for name in [name for name in values if name not in OF_PAPER]:
        ranked[name] = filled[[*OF_PAPER, name]].rank(axis=1, ascending=False)[name]
    return ranked


def summary(ranked: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Per measure the median rank and the worst, with 95 % intervals by drawing cells with replacement."""
    draw = np.random.default_rng(seed)
    rows = {}
    drawn = draw.integers(len(ranked), size=(DRAWS, len(ranked)))
    for name in ranked:
        values = ranked[name].to_numpy()
        medians, means = np.median(values[drawn], axis=1), values[drawn].mean(axis=1)
        rows[name] = {
            "median": np.median(values),
            "median low": np.quantile(medians, 0.025),
            "median high": np.quantile(medians, 0.975),
            "mean": values.mean(),
            "mean low": np.quantile(means, 0.025),
            "mean high": np.quantile(means, 0.975),
            "worst": values.max(),
            "worst low": np.quantile(values[drawn].max(axis=1), 0.025),
        }
    return pd.DataFrame(rows).T.sort_values(["median", "mean"])


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M')} {text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Evaluate, and print what there is."""
    torch.set_num_threads(1)
    folders = [Path(word) for word in arguments if word != "page"]
    runs = folders[0] if folders else RUNS
    if "page" not in arguments:
        evaluate(runs)
    ranked = ranks_against_23(runs)
    on_cora = ranked.index.get_level_values("data") == CHOSEN_ON
    for name, cells in (("Cora", ranked[on_cora]), ("others", ranked[~on_cora])):
        _say(f"{name}: {len(cells)} cells\n{summary(cells).round(2).to_string()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
