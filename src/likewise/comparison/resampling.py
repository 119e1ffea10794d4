"""Scores of networks that are looked at again and again: what nulls, intervals and layers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from likewise.comparison.arguments import as_views, seeded
from likewise.comparison.schedule import attempt, score_items
from likewise.errors import InputError, brief
from likewise.measures.facts import Measure
from likewise.measures.families.functional import labelled
from likewise.measures.kernels import InnerProducts, Kernel
from likewise.measures.pair import Pair
from likewise.measures.registry import get
from likewise.measures.representation import Representation
from likewise.measures.resampling import Subset
from likewise.measures.workspace import Workspace
from likewise.views import Activations


def prepare(x: Any, y: Any, measure: Any, seed: int) -> tuple[list[Activations], Measure, bool]:
    """Views, the measure with its options, and whether it was a single pair that was asked for."""
    single = not isinstance(x, Mapping)
    if single and y is None:
        raise InputError("two arrays are needed, or a mapping of names to arrays.")
    if not single and y is not None:  # calibrate(views, "cka")
        measure = y
    bound = seeded(get(measure), seed)
    views = as_views({"x": x, "y": y} if single else x, None, [bound], keep_names=single)
    labels = bound.options.get("labels")
    if labels is not None:  # shuffled together with the side they belong to
        bound = replace(bound, options={k: v for k, v in bound.options.items() if k != "labels"})
        return labelled(list(views.values()), labels), bound, single
    return list(views.values()), bound, single


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {brief(value)}.")


def representations(views: list[Activations], limit: int) -> list[Representation]:
    """The networks in one workspace that keeps what shuffles and draws take by index."""
    workspace = Workspace(limit, networks=len(views), resampled=True)
    return [Representation(view, workspace) for view in views]


def score_table(
    measure: Measure,
    left: Sequence[Representation],
    right: Sequence[Representation],
    tables: dict[Kernel, InnerProducts],
) -> np.ndarray:
    """Scores of all pairs of different networks; the diagonal is the network with itself."""
    m, both = len(left), not measure.info.symmetric
    values = np.full((m, m), np.nan)
    items = [(0, i, j) for i in range(m) for j in range(m) if i < j or (both and i > j)]
    for (_, i, j), result in score_items(items, [measure], left, right, tables):
        values[i, j] = result.value
        if not both:
            values[j, i] = result.value
    if measure.info.identity is not None:
        np.fill_diagonal(values, measure.info.identity)
    return values


def reason(views: list[Activations], measure: Measure, index: torch.Tensor | None = None) -> str:
    """Why two networks have no score, or none on some of the inputs."""
    workspace = Workspace()
    a, b = (Representation(view, workspace) for view in views)
    if index is not None:
        a, b, measure = Subset(a, index), Subset(b, index), measure_of_subset(measure, index)
    return attempt(measure, Pair(a, b))[1]


def measure_of_subset(measure: Measure, index: torch.Tensor) -> Measure:
    """The measure for some of the inputs: its confounder at these."""
    confounder = measure.options.get("confounder")
    if confounder is None:
        return measure
    return measure.bind(confounder=np.asarray(confounder)[index.cpu().numpy()])
