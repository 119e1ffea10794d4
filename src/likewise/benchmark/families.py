"""Families of architectures: the standard networks of several runs on one data set, each run a family.

The grounding `family` of one run tells kinds of training apart. Over runs of several architectures it asks whether a
measure finds networks of one architecture more alike than those of different ones. Nothing is trained for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.benchmark.planning import chosen
from likewise.benchmark.runs import BenchmarkRun
from likewise.benchmark.trials import Bench, Trial, evaluate, with_settings
from likewise.errors import InputError
from likewise.views import Activations

if TYPE_CHECKING:
    import pandas as pd


def across(
    runs: Sequence[BenchmarkRun | str | Path],
    measures: Any = "resi",
    *,
    store: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Do measures tell the architectures of several runs apart: rows of the grounding `family`, one group per run."""
    done = [run if isinstance(run, BenchmarkRun) else BenchmarkRun.load(run) for run in runs]
    if len(done) < 2:
        raise InputError(f"families of architectures need two runs or more, and there are {len(done)}. Give more.")
    views: dict[str, Activations] = {}
    groups: list[str] = []
    for run in done:
        for name in ("domain", "data", "preset"):
            if run.settings[name] != done[0].settings[name]:
                raise InputError(
                    f"{run.out} is a run with another {name} than {done[0].out} ({run.settings[name]!r} and "
                    f"{done[0].settings[name]!r}). Give runs that differ in their network alone."
                )
        found = {f"{run.settings['network']} {name}": view for name, view in _standard(run).items()}
        views |= found
        groups += [str(run.settings["network"])] * len(found)
    trial = Trial("family", views, tuple(groups))
    rows = evaluate([trial], Bench(chosen(measures), None if store is None else Path(store), progress=progress))
    return with_settings(rows, {**done[0].settings, "network": "+".join(dict.fromkeys(groups))})


def _standard(run: BenchmarkRun) -> dict[str, Activations]:
    """The networks of a run that differ by their seed alone."""
    trials = run.trials(["accuracy", "outputs"])
    if not trials:
        raise InputError(f"{run.out} has no networks that differ by their seed alone. Run its grounding 'accuracy'.")
    return dict(trials[0].views)
