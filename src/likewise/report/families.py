"""The networks of a report: one order, one family and one number for each, the same in every panel."""

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

FIRST = "cka-debiased"  # the measure families are found by, where it is there
SHUFFLES, MOST, DRAWS, SHARE = 199, 10, 20, 0.8


@dataclass(frozen=True)
class Families:
    """Families by one matrix, with how often parts of the networks give the same ones and what chance gives.

    stability   mean adjusted Rand index of the families of 20 draws of 80 % of the networks with these: 1 if always
                the same, 0 for chance
    p           share of matrices with the same scores in random places whose families stand as far apart
    """

    found: Clusters
    stability: float
    p: float
    keywords: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Zoo:
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
        if self.families is None or name not in self.families.found.names:
            return -1
        return self.families.found.labels[self.families.found.names.index(name)]

    def spread_out(self, matrix: SimilarityMatrix, grid: Any = None) -> Array:
        """A grid of a matrix over all networks of the report in their order, NaN where it has none."""
        values = np.full((len(self.names), len(self.names)), np.nan)
        places = [self.names.index(name) for name in matrix.names]
        values[np.ix_(places, places)] = matrix.values if grid is None else grid
        return values


def zoo_of(runs: Runs, *, seed: int = 0) -> Zoo:
    """The networks of all matrices, ordered by the families of the first that is whole."""
    matrices = [matrix for matrix in runs.matrices if len(matrix) > 1]
    names = list(dict.fromkeys(name for matrix in matrices for name in matrix.names))
    whole = [matrix for matrix in matrices if len(matrix) == len(names) and np.isfinite(_pairs(matrix.values)).all()]
    main = next((matrix for matrix in whole if matrix.measure == FIRST), whole[0] if whole else None)
    families, note = None, ""
    if main is not None and len(main) > 3:
        try:
            families = _families(main, runs, seed)
        except MissingDependencyError as error:
            note = f"Families are left out: {error}"
    order = names if main is None else main.order()
    if families is not None:
        labels = dict(zip(families.found.names, families.found.labels, strict=True))
        order = sorted(order, key=lambda name: labels[name])  # stable: alike networks stay side by side
    untrained = {name for matrix in matrices for name in str(matrix.about.get(UNTRAINED, "")).split(", ") if name}
    return Zoo(tuple(order), main, families, _accuracies(runs), frozenset(untrained), _components(runs), note)


def _pairs(values: Array) -> Array:
    return values[~np.eye(len(values), dtype=bool)]


def _accuracies(runs: Runs) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in runs.inputs:
        known = one.labels >= 0
        if known.any() and (one.predictions >= 0).all():
            shares = (one.predictions[:, known] == one.labels[known]).mean(axis=1)
            found |= dict(zip(one.names, shares.tolist(), strict=True))
    for matrix in runs.transfers:
        found |= dict(zip(matrix.names, matrix.accuracies.tolist(), strict=True))
    return found


def _components(runs: Runs) -> dict[str, dict[str, str]]:
    if runs.components is None:
        return {}
    rows = runs.components.fillna("").astype(str).to_dict(orient="index")
    return {str(name): {str(key): str(value) for key, value in row.items()} for name, row in rows.items()}


def _families(matrix: SimilarityMatrix, runs: Runs, seed: int) -> Families:
    found = clusters(matrix, seed=seed)
    words: Sequence[Sequence[str]] = ()
    if runs.components is not None:
        try:
            words = keywords(found, runs.components)
        except InputError:  # a table of other networks
            words = ()
    return Families(found, _stability(found, seed), apart_by_chance(matrix, seed=seed), words)


def _stability(found: Clusters, seed: int) -> float:
    """How far the families of parts of the networks agree with those of all."""
    from sklearn.metrics import adjusted_rand_score

    draw, names, scores = np.random.default_rng(seed), found.names, []
    size = max(found.k + 1, 3, round(SHARE * len(names)))
    if size >= len(names):
        size = len(names) - 1
    if size <= found.k:
        return float("nan")
    for _ in range(DRAWS):
        some = np.sort(draw.permutation(len(names))[:size])
        part = clusters(found.matrix.reordered([names[i] for i in some]), found.k, seed=seed, starts=10, seeds=1)
        scores.append(adjusted_rand_score([found.labels[i] for i in some], part.labels))
    return float(np.mean(scores))


def apart_by_chance(matrix: SimilarityMatrix, *, shuffles: int = SHUFFLES, seed: int = 0) -> float:
    """The share of matrices with the same scores in random places whose families stand as far apart, by silhouette.

    Families are those of average linkage here, 2 to 10 of them, whichever stand apart best, for all alike.
    """
    apart = matrix.distances()
    upper = np.triu_indices(len(apart), 1)
    own, draw, as_far = _best_silhouette(apart), np.random.default_rng(seed), 1
    for _ in range(shuffles):
        again = np.zeros_like(apart)
        again[upper] = draw.permutation(apart[upper])
        as_far += _best_silhouette(again + again.T) >= own - 1e-12
    return as_far / (shuffles + 1)


def _best_silhouette(apart: Array) -> float:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(apart, checks=False), "average")
    most = min(MOST, len(apart) - 1)
    return max(_silhouette(apart, fcluster(tree, k, "maxclust")) for k in range(2, most + 1))


def _silhouette(apart: Array, labels: Array) -> float:
    """The mean over networks of (b - a) / max(a, b): a to its own family, b to the nearest other; 0 if alone."""
    kinds = np.unique(labels, return_inverse=True)[1]
    member = np.eye(kinds.max() + 1)[kinds]
    if member.shape[1] < 2:
        return -1.0
    sums, sizes = apart @ member, member.sum(axis=0)
    own = sums[np.arange(len(kinds)), kinds] / np.maximum(sizes[kinds] - 1, 1)
    others = np.where(member > 0, np.inf, sums / sizes).min(axis=1)
    score = (others - own) / np.maximum(np.maximum(own, others), 1e-12)
    return float(np.where(sizes[kinds] > 1, score, 0.0).mean())
