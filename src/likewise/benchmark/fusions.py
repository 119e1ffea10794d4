"""Fusions of measures, evaluated as measures are: from the scores that a run keeps, without training anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likewise._base.arrays import Array
from likewise.benchmark.evaluation import Evidence
from likewise.benchmark.results.frame import REPETITION, Results
from likewise.benchmark.runs import BenchmarkRun
from likewise.benchmark.trials import Evaluator, Trial, select_measures, with_settings
from likewise.errors import InputError, did_you_mean
from likewise.matrices.fusion import fuse_values


@dataclass(frozen=True)
class Fusion:
    """A fusion of measures.

    Attributes:
        how: "ranks" or "snf".
        weights: A weight per measure that takes part; by default all alike. For "snf" they name its members.
    """

    how: str = "ranks"
    weights: Mapping[str, float] = field(default_factory=dict)


def evaluate_fusions(
    run: BenchmarkRun | str | os.PathLike[str],
    fusions: Mapping[str, Fusion],
    measures: Any = "resi",
    *,
    data: str | None = None,
    progress: bool = True,
) -> Results:
    """Evaluate measures and fusions of them on the networks of a run, side by side.

    Args:
        run: A run, or its folder.
        fusions: What is fused, by name.
        measures: A name, a set like "resi" or "all", or a list of them: what may be fused.
        data: The address of its data, where it is not built in and the run is given by its folder.
        progress: Whether progress is shown.

    Raises:
        InputError: A fusion weighs a measure that is not among them.
    """
    loaded = run if isinstance(run, BenchmarkRun) else BenchmarkRun.load(os.fspath(run), data=data)
    selected = select_measures(measures)
    names = [measure.name for measure in selected]
    for name, fusion in fusions.items():
        unknown = [other for other in fusion.weights if other not in names]
        if unknown:
            raise InputError(
                f"the fusion {name!r} weighs {unknown[0]!r}, which is not among the measures."
                f"{did_you_mean(unknown[0], names)} Name it among them too."
            )
    evaluator = Evaluator(selected, Path(loaded.out) / "store", progress=progress)
    rows = [row for trial in loaded.trials() for row in _rows(trial, evaluator, fusions)]
    settings = {name: loaded.settings[name] for name in REPETITION}
    return Results.from_frame(with_settings(pd.DataFrame(rows), settings), str(loaded.out))


def _rows(trial: Trial, evaluator: Evaluator, fusions: Mapping[str, Fusion]) -> list[dict[str, Any]]:
    evidence = evaluator.evidence(trial)
    for name, fusion in fusions.items():
        evidence[name] = _fused(name, fusion, evidence)
    forms = {measure.name: measure.info.variant or "published" for measure in evaluator.measures}
    shared = {"grounding": trial.grounding, "networks": trial.networks, "n": trial.first_views[0].n}
    shared |= {"valid": trial.validity.valid, "seconds": np.nan}
    return [
        shared | {"measure": name, "measure_variant": forms.get(name, "published")} | vars(quality)
        for name, said in evidence.items()
        for quality in trial.rule.evaluate(said)
    ]


def _fused(name: str, fusion: Fusion, evidence: Mapping[str, Evidence]) -> Evidence:
    """What a fusion says, from what its measures do; of layers within each network."""
    weights = dict(fusion.weights) or dict.fromkeys(evidence, 1.0)
    members = [evidence[other] for other in weights if other in evidence]
    shares = [weights[other] for other in weights if other in evidence]
    first = members[0]

    def fuse(apart: list[Array]) -> Array:
        return fuse_values(apart, fusion.how, shares)

    apart = [said.apart for said in members]
    layers = first.values.ndim == 3
    values = np.stack([fuse([said[i] for said in apart]) for i in range(len(first.values))]) if layers else fuse(apart)
    return replace(first, measure=name, larger_is="more alike", symmetric=True, values=values)
