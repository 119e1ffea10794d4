"""The networks of a report: one order, one family and one accuracy for each, the same in every panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.component_analysis import keywords
from likewise.analysis.families import Clusters, clusters
from likewise.analysis.family_evidence import LEAST
from likewise.errors import InputError, MissingDependencyError
from likewise.matrices.labelled import ACCURACIES, UNTRAINED
from likewise.matrices.shares import comparable
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.runs import Runs
from likewise.transfer.matrix import CLOSE

FIRST = "cka-debiased"  # families are found by this measure, where results have it


@dataclass(frozen=True)
class Families:
    """Families by one matrix, and the components they share."""

    clusters: Clusters
    keywords: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class ReportNetworks:
    """All networks of a report, in the order of their families.

    Accuracies of those `outside` are too far from the others' for attacks to say how alike they are.
    """

    names: tuple[str, ...]
    main: SimilarityMatrix | None
    families: Families | None
    accuracies: Mapping[str, float]
    counts: Mapping[str, int]  # the inputs that an accuracy is of
    untrained: frozenset[str]
    outside: frozenset[str] = frozenset()
    components: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    note: str = ""

    def family(self, name: str) -> int:
        """The family of a network, -1 for none."""
        clusters = None if self.families is None else self.families.clusters
        return -1 if clusters is None or name not in clusters.names else clusters.labels[clusters.names.index(name)]

    def align(self, matrix: SimilarityMatrix, grid: Any = None) -> Array:
        """A grid of a matrix over all networks of the report in their order, NaN where it has none."""
        values = np.full((len(self.names), len(self.names)), np.nan)
        rows = [self.names.index(name) for name in matrix.names]
        values[np.ix_(rows, rows)] = matrix.values if grid is None else grid
        return values


def report_networks(runs: Runs, *, seed: int = 0) -> ReportNetworks:
    """The networks of all matrices, ordered by the families of the first matrix that has all pairs."""
    matrices = [matrix for matrix in runs.matrices if len(matrix) > 1]
    names = list(dict.fromkeys(name for matrix in matrices for name in matrix.names))
    pairs = ~np.eye(len(names), dtype=bool)
    whole = [matrix for matrix in matrices if len(matrix) == len(names) and np.isfinite(matrix.values[pairs]).all()]
    main = next((matrix for matrix in whole if matrix.measure == FIRST), whole[0] if whole else None)
    families, note = None, ""
    if main is not None and len(main) >= LEAST:
        try:
            families = _families(main, runs, seed)
        except MissingDependencyError as error:
            note = f"Families are left out: {error}"
    order = names if main is None else main.order()
    if families is not None:
        labels = dict(zip(families.clusters.names, families.clusters.labels, strict=True))
        runs_of_one = 1 + sum(labels[a] != labels[b] for a, b in pairwise(order))
        if runs_of_one > families.clusters.k:  # families that are no branches of the tree
            order = sorted(order, key=lambda name: labels[name])  # stable: alike networks stay side by side
    untrained = {name for matrix in matrices for name in str(matrix.about.get(UNTRAINED, "")).split(", ") if name}
    shares = _accuracies(runs)
    like = comparable([share for share, _ in shares.values()], np.array([count for _, count in shares.values()]), CLOSE)
    return ReportNetworks(
        tuple(order),
        main,
        families,
        {name: share for name, (share, _) in shares.items()},
        {name: count for name, (_, count) in shares.items()},
        frozenset(untrained),
        frozenset(name for name, fair in zip(shares, like, strict=True) if not fair),
        _components(runs),
        note,
    )


def _accuracies(runs: Runs) -> dict[str, tuple[float, int]]:
    """The accuracy of networks, and of how many inputs."""
    accuracies: dict[str, tuple[float, int]] = {}
    for matrix in runs.matrices:
        shares = matrix.about.get(ACCURACIES) or {}
        accuracies |= {name: (share, int(matrix.about.get("n", 0) or 1)) for name, share in shares.items()}
    for influence in runs.inputs:
        labelled = influence.labels >= 0
        if labelled.any() and (influence.predictions >= 0).all():
            shares = (influence.predictions[:, labelled] == influence.labels[labelled]).mean(axis=1)
            accuracies |= {
                name: (share, int(labelled.sum())) for name, share in zip(influence.names, shares, strict=True)
            }
    for matrix in runs.transfers:
        accuracies |= {
            name: (share, len(matrix.labels)) for name, share in zip(matrix.names, matrix.accuracies, strict=True)
        }
    return accuracies


def _components(runs: Runs) -> dict[str, dict[str, str]]:
    if runs.components is None:
        return {}
    rows = runs.components.fillna("").astype(str).to_dict(orient="index")
    return {str(name): {str(key): str(value) for key, value in row.items()} for name, row in rows.items()}


def _families(matrix: SimilarityMatrix, runs: Runs, seed: int) -> Families:
    families = clusters(matrix, seed=seed)
    words: Sequence[Sequence[str]] = ()
    if runs.components is not None:
        try:
            words = keywords(families, runs.components)
        except InputError:  # a table of other networks
            words = ()
    return Families(families, words)
