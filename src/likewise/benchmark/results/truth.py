"""Figure 1 of ReSi for any run: the true groups beside what each measure says of the same pairs.

One panel per measure, the best first. Colours are ranks of pairs within a panel, bright for alike, so that measures of
any scale compare; the diagonal is left out, since no metric reads it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise.benchmark.evaluation import Evidence
from likewise.benchmark.results.frame import label, main_metrics
from likewise.benchmark.runs import BenchmarkRun
from likewise.benchmark.trials import Evaluator, Trial, select_measures
from likewise.errors import InputError, quoted_list
from likewise.matrices.heatmap import GREY, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS, SIDE = 6, 1.9  # panels per row, and inches of one


@dataclass(frozen=True)
class _Panel:
    title: str
    values: Array  # how alike pairs are, NaN where undefined
    quality: float = np.nan


def plot_truth(
    run: BenchmarkRun | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    grounding: str | None = None,
    measures: Any = "resi",
    data: str | None = None,
    progress: bool = False,
) -> Figure:
    """Draw what is true of the networks of a run beside what each measure says of them (figure 1 of ReSi).

    True are the groups; by prediction, how far networks are apart in their answers; by layer, how far layers are apart,
    shown for the first network.

    Args:
        run: A run, or its folder, whose scores are used and added to.
        path: Where the figure is saved, if given.
        grounding: Which; by default the first that has groups, else the first.
        measures: A name, a set like "resi" or "all", or a list of them.
        data: The address of its data, where it is not built in and the run is given by its folder.
        progress: Whether progress is shown.

    Raises:
        InputError: The run has no such grounding.
    """
    loaded = run if isinstance(run, BenchmarkRun) else BenchmarkRun.load(os.fspath(run), data=data)
    trial = _select(loaded.trials(), grounding, loaded.out)
    said = Evaluator(select_measures(measures), Path(loaded.out) / "store", progress=progress).evidence(trial)
    panels = [_panel(name, evidence, trial) for name, evidence in said.items()]
    panels.sort(key=lambda panel: (np.isnan(panel.quality), -panel.quality))
    return finish(_draw([_true(trial, next(iter(said.values()))), *panels], _names(trial)), path)


def _select(trials: Sequence[Trial], grounding: str | None, folder: Path) -> Trial:
    names = [trial.grounding for trial in trials]
    if grounding is not None and grounding not in names:
        raise InputError(f"{folder} has no grounding {grounding!r}. It has {quoted_list(names)}.")
    of_groups = [trial for trial in trials if trial.rule.kind == "groups"]
    return trials[names.index(grounding)] if grounding is not None else (of_groups or list(trials))[0]


def _true(trial: Trial, evidence: Evidence) -> _Panel:
    if trial.layers:
        layers = np.arange(evidence.values.shape[-1])
        return _Panel("true: layers apart", -np.abs(np.subtract.outer(layers, layers)).astype(float))
    if trial.rule.kind == "groups":
        groups = np.array(trial.groups)
        return _Panel("true: groups", (groups[:, None] == groups).astype(float))
    name, truth = next(iter(evidence.truths.items()))
    return _Panel(f"true: {name}", -np.asarray(truth, dtype=np.float64))


def _panel(name: str, evidence: Evidence, trial: Trial) -> _Panel:
    metric = main_metrics(trial.grounding)
    qualities = [one for one in trial.rule.evaluate(evidence) if one.variant == "published" and one.metric in metric]
    apart = evidence.apart[0] if trial.layers else evidence.apart
    quality = qualities[0].value if qualities else np.nan
    return _Panel(f"{label(name)} {quality:.2f}", -(apart + apart.T) / 2, quality)


def _names(trial: Trial) -> list[tuple[int, str]]:
    """Where each group begins, and its name; layers and networks without groups have none."""
    groups = trial.groups if trial.rule.kind == "groups" else ()
    return [(at, name) for at, name in enumerate(groups) if at == 0 or groups[at - 1] != name]


def _draw(panels: Sequence[_Panel], groups: Sequence[tuple[int, str]]) -> Figure:
    from matplotlib.figure import Figure

    rows = -(-len(panels) // ACROSS)
    columns = min(ACROSS, len(panels))
    figure = Figure(figsize=(SIDE * columns + 1.2, (SIDE + 0.25) * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.axis("off")
    for number, (axis, panel) in enumerate(zip(axes, panels, strict=False)):
        axis.imshow(_ranks(panel.values), cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
        axis.set_facecolor(GREY)
        axis.set_title(panel.title, fontsize=8, fontweight="bold" if number == 0 else None)
        for at, _ in groups[1:]:
            axis.axhline(at - 0.5, color="white", linewidth=1)
            axis.axvline(at - 0.5, color="white", linewidth=1)
        axis.set_xticks([])
        named = groups if number % ACROSS == 0 else []
        axis.set_yticks([at for at, _ in named], [name for _, name in named], va="top")
        axis.tick_params(labelsize=7, length=0)
    figure.supxlabel("ranks of pairs, bright is alike; grey is undefined; the best measure first", fontsize=8)
    return figure


def _ranks(values: Array) -> Array:
    """Pairs by rank, from 0 to 1; the diagonal is NaN."""
    from scipy.stats import rankdata

    values = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    ranks, defined = np.full(values.shape, np.nan), ~np.isnan(values)
    if defined.any():
        ranked = rankdata(values[defined])
        ranks[defined] = (ranked - ranked.min()) / max(1.0, float(np.ptp(ranked)))
    return ranks
