"""The networks of a report: one order, one family and one accuracy for each, the same in every panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.component_analysis import keywords
from likewise.analysis.families import Clusters, clusters
from likewise.errors import InputError, MissingDependencyError
from likewise.matrices.labelled import UNTRAINED
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.runs import Runs

FIRST = "cka-debiased"  # families are found by this measure, where results have it
SHUFFLES, MOST, DRAWS, SHARE = 199, 10, 20, 0.8


@dataclass(frozen=True)
class Families:
    """Families by one matrix; stability is the mean adjusted Rand index with the families of 80 % of the networks."""

    clusters: Clusters
    stability: float
    p: float  # share of matrices with the same scores in random places whose families are as far apart
    keywords: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class ReportNetworks:
    """All networks of a report, in the order of their families."""

    names: tuple[str, ...]
    main: SimilarityMatrix | None
    families: Families | None
    accuracies: Mapping[str, float]
    untrained: frozenset[str]
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
    if main is not None and len(main) > 3:
        try:
            families = _families(main, runs, seed)
        except MissingDependencyError as error:
            note = f"Families are left out: {error}"
    order = names if main is None else main.order()
    if families is not None:
        labels = dict(zip(families.clusters.names, families.clusters.labels, strict=True))
        order = sorted(order, key=lambda name: labels[name])  # stable: alike networks stay side by side
    untrained = {name for matrix in matrices for name in str(matrix.about.get(UNTRAINED, "")).split(", ") if name}
    return ReportNetworks(
        tuple(order), main, families, _accuracies(runs), frozenset(untrained), _components(runs), note
    )


def _accuracies(runs: Runs) -> dict[str, float]:
    accuracies: dict[str, float] = {}
    for influence in runs.inputs:
        labelled = influence.labels >= 0
        if labelled.any() and (influence.predictions >= 0).all():
            shares = (influence.predictions[:, labelled] == influence.labels[labelled]).mean(axis=1)
            accuracies |= dict(zip(influence.names, shares.tolist(), strict=True))
    for matrix in runs.transfers:
        accuracies |= dict(zip(matrix.names, matrix.accuracies.tolist(), strict=True))
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
    return Families(families, _stability(families, seed), silhouette_p(matrix, seed=seed), words)


def _stability(families: Clusters, seed: int) -> float:
    """How well the families of some of the networks agree with those of all."""
    from sklearn.metrics import adjusted_rand_score

    draw, names, scores = np.random.default_rng(seed), families.names, []
    size = min(max(families.k + 1, 3, round(SHARE * len(names))), len(names) - 1)
    if size <= families.k:
        return float("nan")
    for _ in range(DRAWS):
        rows = np.sort(draw.permutation(len(names))[:size])
        matrix = families.matrix.reordered([names[i] for i in rows])
        again = clusters(matrix, families.k, seed=seed, starts=10, seeds=1)
        scores.append(adjusted_rand_score([families.labels[i] for i in rows], again.labels))
    return float(np.mean(scores))


def silhouette_p(matrix: SimilarityMatrix, *, shuffles: int = SHUFFLES, seed: int = 0) -> float:
    """The share of matrices with the same scores in random places whose families are as far apart, by silhouette.

    Families are those of average linkage here, in every matrix the 2 to 10 with the best silhouette.
    """
    distances = matrix.distances()
    upper = np.triu_indices(len(distances), 1)
    observed, draw, as_far = _best_silhouette(distances), np.random.default_rng(seed), 1
    for _ in range(shuffles):
        shuffled = np.zeros_like(distances)
        shuffled[upper] = draw.permutation(distances[upper])
        as_far += _best_silhouette(shuffled + shuffled.T) >= observed - 1e-12
    return as_far / (shuffles + 1)


def _best_silhouette(distances: Array) -> float:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(distances, checks=False), "average")
    most = min(MOST, len(distances) - 1)
    return max(_silhouette(distances, fcluster(tree, k, "maxclust")) for k in range(2, most + 1))


def _silhouette(distances: Array, labels: Array) -> float:
    """The mean over networks of (b - a) / max(a, b): a to its own family, b to the nearest other; 0 if alone."""
    families = np.unique(labels, return_inverse=True)[1]
    member = np.eye(families.max() + 1)[families]
    if member.shape[1] < 2:
        return -1.0
    sums, sizes = distances @ member, member.sum(axis=0)
    within = sums[np.arange(len(families)), families] / np.maximum(sizes[families] - 1, 1)
    nearest = np.where(member > 0, np.inf, sums / sizes).min(axis=1)
    score = (nearest - within) / np.maximum(np.maximum(within, nearest), 1e-12)
    return float(np.where(sizes[families] > 1, score, 0.0).mean())
