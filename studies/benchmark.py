"""The benchmark on real data: `LIKEWISE_DATA=... python -m studies.benchmark`.

Runs lie in `studies/runs/benchmark`, one folder per data set, network and repetition, and are resumed. One argument
like `cora-gcn-0` makes that run alone, `cora-gcn-0-labels` one of the variants beside it, and `page` writes
docs/benchmark-study.md from the runs that are complete.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from likewise.benchmark import Results, check_claims, compare_with_paper, ranks, run, sweep, table
from likewise.benchmark.accuracies import plot_accuracies
from likewise.benchmark.plan import chosen
from likewise.benchmark.results import label
from likewise.measures.registry import MEASURES, RESI
from studies.cora_variants import VARIANTS
from studies.tables import markdown

RUNS = Path(__file__).parent / "runs" / "benchmark"
DOCS = Path(__file__).parent.parent / "docs"
PICTURES = DOCS / "benchmark-study"
# minilm in fewer steps than `small` has: 22 networks of 22 million weights have to fit on two cores
_FEW: dict[str, Any] = {"base": "small", "train": 400, "probe": 400, "seeds": 4, "group": 3, "layered": 3}
_STEPS = {"epochs": 4, "lr": 2e-4, "batch_size": 16}
GRAPH = {f"cora-{network}": ("graph", "cora", network, "paper") for network in ("gcn", "sage", "gat")}
VISION = {
    f"{data}-{network}": ("vision", data, network, "small")
    for data in ("fashion-mnist", "cifar10")
    for network in ("mlp", "lenet", "conv-mlp")
}
LANGUAGE = {"sst2-minilm": ("language", "sst2", "minilm", {**_FEW, "training": _STEPS})}
CASES = GRAPH | VISION | LANGUAGE
REPETITIONS = {"cora": 3}
WORDS = """\
On Cora, with the paper's numbers of networks and settings, our figures lie beside its own: over the measures the
mean difference is 0.03 for random labels and 0.03 for layers, 0.14 for augmentation and 0.17 for shortcuts,
averaged over three architectures. Each architecture took 50 trainings. What the differences come from:

- **Every network sees its own graph** in the shortcut test of the reference, whose code shows it: the neighbours of
  a test node keep the shortcuts of that network's training. With one graph for all, GCN's figures are 0.29 away, so
  0.20; GraphSAGE's are 0.08.
- **Shortcuts with GCN and GAT remain 0.20 and 0.22 away**, always to the same side: ours tell groups apart better.
  A plain training loop of a few lines, written after the reference's description and with nothing of this package
  but the measures, gives the same (0.23 for GCN), so it is not how we train. In the paper networks of one seed and
  different shortcuts come out nearly as alike as networks can be (0.33 is what a measure gets that puts these first
  and all others right); in ours they do not. The reason was not found: with words as 0 and 1 instead of rows of sum
  1 shortcuts are not used at all (all measures at chance), so it is not that.
- **Dropout and dropped edges come from one stream** of random numbers in the reference, so that networks with
  dropped edges draw other dropout than standard ones of the same seed; here too.
- Groups by augmentation do not behave differently enough to be called valid on Cora, in our runs: the table marks
  them."""
SLOW = ("rtd", "riemann", "ridge-predictivity")  # seconds per pair
SWEPT = ["jaccard[k=2,5,10,20,50]", "gulp[ridge=0,0.01,1]", "cka-rbf[bandwidth=0.25,0.5,1,2]"]


def folders() -> list[str]:
    """The names of all runs, the first repetitions first."""
    most = max(REPETITIONS.values())
    return [
        f"{name}-{seed}" for seed in range(most) for name in CASES if seed < REPETITIONS.get(name.partition("-")[0], 1)
    ]


def make(name: str, engine: str | None = None) -> None:
    """One run: the paper's 23 measures as its code has them, and ours but for the slowest."""
    plain, _, variant = name.rpartition("-")
    if variant in VARIANTS:
        make_variant(plain, variant)
        return
    case, _, seed = name.rpartition("-")
    domain, data, network, preset = CASES[case]
    how = {"preset": preset, "seed": int(seed), "engine": engine, "progress": False}
    ours = [m for m in chosen("all") if m.info.on == "representation" and m.name not in SLOW]
    run(domain, data, network, measures=["resi", *ours], out=RUNS / name, **how)


def make_variant(name: str, variant: str) -> None:
    """A variant of a run on Cora, by one grounding and the paper's measures."""
    case, _, seed = name.rpartition("-")
    domain, grounding = VARIANTS[variant]
    how: dict[str, Any] = {"preset": "paper", "seed": int(seed), "groundings": [grounding], "progress": False}
    run(domain, CASES[case][1], CASES[case][2], measures="resi", out=RUNS / f"{name}-{variant}", **how)


def complete(cases: Iterable[str]) -> list[Path]:
    """The runs of some cases that are there."""
    found = (RUNS / name for name in folders() if name.rpartition("-")[0] in set(cases))
    return [path for path in found if (path / "results.csv").is_file()]


def beside_the_paper(results: Results) -> str:
    """Every cell of Cora beside the paper's column."""
    found = compare_with_paper(results)
    means = markdown(found.by_grounding())
    cells = found.cells.drop(columns=["domain", "data"])
    parts = [f"```\n{found}\n```", f"Over the networks:\n\n{means}"]
    for grounding, metric in (
        ("labels", "auprc"),
        ("shortcut", "auprc"),
        ("augmentation", "auprc"),
        ("layers", "spearman"),
    ):
        rows = found.rows[(found.rows["grounding"] == grounding) & (found.rows["metric"] == metric)]
        text = rows.assign(cell=[_both(*pair) for pair in zip(rows["ours"], rows["paper"], strict=True)])
        wide = text.pivot(index="label", columns="network", values="cell").reindex(
            index=list(dict.fromkeys(text["label"])), columns=list(dict.fromkeys(cells["network"]))
        )
        parts.append(f"### {grounding}: ours (the paper's)\n\n{markdown(wide.reset_index().fillna('–'))}")
    return "\n\n".join(parts)


def _both(ours: float, paper: float) -> str:
    return f"{ours:.2f}" + ("" if np.isnan(paper) else f" ({paper:.2f})")


def beyond(results: Results, draws: int = 2000) -> str:
    """Which measures beat all 23 of the paper, per domain and grounding, with intervals over cells."""
    frame = results.form("published").main().frame
    frame = frame[(frame["measure_variant"] == "published") & frame["valid"]]
    known = {MEASURES.get(alias).name for alias in RESI}
    rows = []
    for (domain, grounding), part in frame.groupby(["domain", "grounding"], sort=False):
        keys = ["data", "network", "seed", "metric"]
        wide = part.pivot_table(index=keys, columns="measure", values="value")
        paper, ours = wide[[m for m in wide if m in known]], wide[[m for m in wide if m not in known]]
        if not len(wide) or not ours.shape[1]:
            continue
        best = paper.mean().idxmax()
        gains = ours.sub(paper[best], axis=0).dropna(axis=1)
        if not gains.shape[1]:
            continue
        drawn = np.random.default_rng(0).integers(0, len(gains), (draws, len(gains)))
        for name in gains.mean().sort_values(ascending=False).index[:3]:
            low, high = np.quantile(gains[name].to_numpy()[drawn].mean(1), [0.025, 0.975])
            rows.append(
                {
                    "domain": domain,
                    "grounding": grounding,
                    "cells": len(gains),
                    "best of the 23": f"{label(best)} {paper[best].mean():.2f}",
                    "ours": f"{name} {ours[name].mean():.2f}",
                    "gain": f"{gains[name].mean():+.2f} [{low:+.2f}, {high:+.2f}]",
                    "beats it": "yes" if low > 0 else "cannot tell" if high > 0 else "no",
                }
            )
    return markdown(pd.DataFrame(rows))


def swept(folder: Path) -> str:
    """Options of three measures over the views of one run."""
    found = sweep(folder, SWEPT, progress=False).form("published").main().frame
    wide = found.pivot_table(index="measure", columns="grounding", values="value", sort=False)
    return markdown(wide.reset_index())


def form_of(results: Results) -> str:
    """Our form of the measures where there is one, else the reference's."""
    return "published" if "published" in set(results.frame["measure_variant"]) else "resi"


def picture(results: Results, name: str) -> str:
    """Accuracies by group as a picture."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    plot_accuracies(results, PICTURES / f"{name}-accuracies.png")
    return f"![accuracies by group](benchmark-study/{name}-accuracies.png)"


def page() -> None:
    """Write docs/benchmark-study.md."""
    parts = [
        "# The benchmark on real data",
        "Made by `python -m studies.benchmark page` from runs on two cores.",
        WORDS,
    ]
    whole = []
    for title, cases in (("Cora, preset `paper`", GRAPH), ("Images, preset `small`", VISION), ("SST-2", LANGUAGE)):
        there = complete(cases)
        if not there:
            continue
        results = Results.load(*map(str, there))
        whole.append(results)
        name = next(iter(cases)).partition("-")[0]
        parts += [f"## {title}", f"Runs: {', '.join(path.name for path in there)}.", picture(results, name)]
        parts += [table(results.main(), measure_variant=form_of(results)).to_markdown()]
        if cases is GRAPH:
            parts += ["### Beside the paper", beside_the_paper(results)]
            parts += ["### Options, on " + there[0].name, swept(there[0])]
    every = Results.joined(whole)
    ranks(every, measure_variant=form_of(every)).plot(PICTURES / "ranks.png")
    if form_of(every) == "published":
        parts += ["## Beyond the 23", beyond(every)]
    parts += ["![ranks of measures](benchmark-study/ranks.png)"]
    lines = [f"| {v.says} | {v.verdict} | {v.figures} |" for v in check_claims(every)]
    parts += [
        "## The paper's claims on these runs",
        "\n".join(["| claim | here | behind it |", "|---|---|---|", *lines]),
    ]
    (DOCS / "benchmark-study.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Some runs, the page, or everything."""
    torch.set_num_threads(1)
    for name in [name for name in names or folders() if name != "page"]:
        start, cpu = time.perf_counter(), time.process_time()
        make(name)
        spent = f"{time.perf_counter() - start:.0f} s, {time.process_time() - cpu:.0f} s of CPU"
        sys.stdout.write(f"{name} done in {spent}\n")
        sys.stdout.flush()
    if not names or "page" in names:
        page()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
