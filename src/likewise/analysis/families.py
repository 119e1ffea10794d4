"""Families of networks by spectral clustering, and maps of all networks.

The affinities A, with a diagonal of 0, are scaled to D^-1/2 A D^-1/2, D the sums of their rows. Its eigenvectors
of the largest eigenvalues after the first, which only says how alike a network is to all others, are the features
of the networks, and k-means finds the families in them. Real matrices have little structure and many local
minima: k-means starts a hundred times. Families of two networks are too small to be distinguished from noise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise._base.names import short_names
from likewise._base.optional import Library
from likewise.errors import InputError
from likewise.matrices.heatmap import draw_heatmap, finish
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARTS, SEEDS, MOST = 100, 5, 10  # of k-means; for the stability; families that "auto" tries
NAMED = 40  # networks up to which a map has room for their names
Map = Literal["tsne", "mds", "spectral"]


@dataclass(frozen=True)
class Clusters:
    """Families of networks.

    Attributes:
        names: The networks.
        labels: The family of each network, numbered from 0, the largest first.
        features: The spectral features that families were found in, (networks, k).
        stability: How far other starts of k-means agree, as mean adjusted Rand index: 1 if always the same, 0 if no
            more than chance.
        matrix: The matrix that families were found in.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]
    features: Array = field(repr=False)
    stability: float
    matrix: SimilarityMatrix = field(repr=False)

    @property
    def k(self) -> int:
        """How many families there are."""
        return max(self.labels) + 1

    def groups(self) -> list[list[str]]:
        """The names of each family.

        Example:
            >>> alike = np.kron(np.eye(2), np.ones((3, 3)))
            >>> clusters(SimilarityMatrix(list("abcdef"), alike), 2).groups()
            [['a', 'b', 'c'], ['d', 'e', 'f']]
        """
        return [[n for n, label in zip(self.names, self.labels, strict=True) if label == g] for g in range(self.k)]

    def spread(self, label: int) -> dict[str, float | None]:
        """The mean scores of a family.

        Args:
            label: The family.

        Returns:
            The mean score `within` it, None for one network alone, and `to_others`.
        """
        values = symmetric_scores(self.matrix.reordered(self.names))
        members = np.array(self.labels) == label
        inner = pairs(values[np.ix_(members, members)])
        outer = values[np.ix_(members, ~members)]
        return {"within": float(inner.mean()) if inner.size else None, "to_others": float(outer.mean())}

    def without(self, name: str) -> Clusters:
        """The same families without one network.

        Args:
            name: The network to leave out.
        """
        rows = [i for i, other in enumerate(self.names) if other != name]
        kept, labels = tuple(self.names[i] for i in rows), tuple(self.labels[i] for i in rows)
        return replace(self, names=kept, labels=labels, features=self.features[rows])

    def assign(self, row: Mapping[str, float]) -> int:
        """Find the family of a new network: where it is most alike on average.

        Args:
            row: Its score with each of these networks, by name.
        """
        missing = [name for name in self.names if name not in row]
        if missing:
            raise InputError(
                f"the row has no score for {missing[0]!r}. Give one for each of {len(self.names)} networks."
            )
        sign = 1 if self.matrix.larger_is == "more alike" else -1
        means = {g: sign * float(np.mean([row[n] for n in group])) for g, group in enumerate(self.groups()) if group}
        return max(means, key=means.__getitem__)


def clusters(
    matrix: SimilarityMatrix,
    k: int | Literal["auto"] = "auto",
    *,
    seed: int = 0,
    starts: int = STARTS,
    seeds: int = SEEDS,
) -> Clusters:
    """Find families of alike networks.

    Args:
        matrix: Any similarity matrix of three networks or more.
        k: How many families; "auto" takes the number that separates them best (by silhouette, up to 10).
        seed: Draws the starts of k-means.
        starts: How often k-means starts.
        seeds: How many seeds the stability is measured over.
    """
    values = affinities(matrix)
    most = len(values) - 1
    if k != "auto" and not 2 <= k <= most:
        raise InputError(f"{len(values)} networks cannot be put into {k} families. Choose 2 to {most}.")
    labels = _best(values, matrix, seed, starts) if k == "auto" else _labels(values, k, seed, starts)
    others = [labels, *(_labels(values, max(labels) + 1, seed + i, starts) for i in range(1, seeds))]
    rand = sklearn("metrics").adjusted_rand_score
    stability = float(np.mean([rand(a, b) for a, b in combinations(others, 2)])) if seeds > 1 else float("nan")
    features = spectral(values, max(labels) + 1)
    return Clusters(tuple(matrix.names), tuple(labels), features, stability, matrix)


def family_labels(families: Clusters | Mapping[str, Any], names: Sequence[str]) -> Array:
    """The family of each network as a number, from families that were found or a mapping by name."""
    by_name = families if isinstance(families, Mapping) else dict(zip(families.names, families.labels, strict=True))
    missing = [name for name in names if name not in by_name]
    if missing:
        raise InputError(f"no family is given for {missing[0]!r}. Give one for each of {len(names)} networks.")
    return np.unique([str(by_name[name]) for name in names], return_inverse=True)[1]


def spectral(values: Array, k: int) -> Array:
    """The k eigenvectors after the first of the scaled affinities, one row per network."""
    sums = values.sum(axis=1).clip(min=1e-12)
    first = np.sqrt(sums / sums.sum())  # known, and put last: of unconnected families it would be any mixture
    _, vectors = np.linalg.eigh(values / np.sqrt(sums[:, None] * sums) - 2 * np.outer(first, first))
    features = vectors[:, ::-1][:, :k]
    return features * np.where(features[np.abs(features).argmax(axis=0), range(features.shape[1])] < 0, -1, 1)


def embed(matrix: SimilarityMatrix, how: Map = "tsne", *, seed: int = 0) -> Array:
    """Place networks on a map, alike networks near each other.

    Args:
        matrix: Any similarity matrix.
        how: "tsne", "mds" (classical scaling) or "spectral".
        seed: Draws the start of t-SNE.

    Returns:
        Two coordinates per network, (networks, 2).
    """
    values = affinities(matrix)
    if how == "spectral":
        return spectral(values, 2)
    if how == "mds":
        return _classical(matrix.distances())
    if how == "tsne":
        near = min(30.0, (len(values) - 1) / 3)
        options = {"metric": "precomputed", "init": "random", "perplexity": near, "random_state": seed}
        return np.asarray(sklearn("manifold").TSNE(**options).fit_transform(matrix.distances()), dtype=np.float64)
    raise InputError(f"no map named {how!r}. Choose 'tsne', 'mds' or 'spectral'.")


def _classical(apart: Array) -> Array:
    """Classical scaling: the two coordinates whose distances come nearest to those given."""
    squares = apart**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    sizes, vectors = np.linalg.eigh(-centred / 2)
    return np.asarray(vectors[:, :-3:-1] * np.sqrt(sizes[:-3:-1].clip(min=0)))


def _labels(values: Array, k: int, seed: int, starts: int = STARTS) -> list[int]:
    """k-means in the spectral features; families in the order of their size, then of their first network."""
    means = sklearn("cluster").KMeans(k, n_init=starts, random_state=seed)
    labels = means.fit_predict(spectral(values, k)).tolist()
    order = sorted(set(labels), key=lambda label: (-labels.count(label), labels.index(label)))
    return [order.index(label) for label in labels]


def _best(values: Array, matrix: SimilarityMatrix, seed: int, starts: int) -> list[int]:
    apart = matrix.distances()
    tried = [_labels(values, k, seed, starts) for k in range(2, min(MOST, len(values) - 1) + 1)]
    quality = [sklearn("metrics").silhouette_score(apart, labels, metric="precomputed") for labels in tried]
    return tried[int(np.argmax(quality))]


def plot_families(
    families: Clusters, path: str | os.PathLike[str] | None = None, *, how: Map = "tsne", seed: int = 0
) -> Figure:
    """Draw the matrix sorted by family beside a map on which alike networks are near.

    Args:
        families: The families.
        path: Where to save the figure.
        how: The map, as in `embed`.
        seed: Draws the start of t-SNE.
    """
    from matplotlib.figure import Figure

    groups = families.groups()
    matrix = families.matrix.reordered([name for group in groups for name in group])
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    borders = [(starts[i], starts[i + 1], f"family {i}") for i in range(len(groups))]
    off = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix.values)  # the diagonal would take all the colours
    heatmap = replace(matrix.heatmap(), values=off, groups=borders, notes=matrix.legend(), bounds=(None, None))
    width, height = heatmap.size
    figure = Figure(figsize=(width + 1.1 * height, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[width, 1.1 * height])
    draw_heatmap(figure, left, heatmap)
    points = dict(zip(families.matrix.names, embed(families.matrix, how, seed=seed), strict=True))
    for i, group in enumerate(groups):
        x, y = np.array([points[name] for name in group]).T
        right.scatter(x, y, color=f"C{i % 10}", marker="osD^v"[i // 10 % 5], label=f"family {i}", s=30)
        names = short_names(group) if len(points) <= NAMED else []
        for name, *point in zip(names, x, y, strict=False):
            right.annotate(name, point, fontsize=6, xytext=(3, 3), textcoords="offset points")
    right.set_title(f"map ({how}), stability {families.stability:.2f}", fontsize=10)
    right.set(xticks=[], yticks=[])
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return finish(figure, path)


def affinities(matrix: SimilarityMatrix) -> Array:
    """How alike each two networks are, at least 0, symmetric; the diagonal, which says little, is 0.

    Negative scores are shifted to start at 0; a distance counts by how far below the largest it is.
    """
    values = symmetric_scores(matrix)
    away = ~np.eye(len(values), dtype=bool)
    if matrix.larger_is == "less alike":
        values = values[away].max() - values
    else:
        values = values - min(0.0, float(values[away].min()))
    return np.where(away, values, 0.0)


def pairs(values: Array) -> Array:
    """The values above the diagonal, one per pair."""
    return values[np.triu_indices(len(values), 1)]


def symmetric_scores(matrix: SimilarityMatrix) -> Array:
    """The values, symmetric; a matrix with too few networks or with pairs without a finite score is refused."""
    values = np.asarray(matrix.values, dtype=np.float64)
    if len(values) < 3:
        raise InputError(f"{matrix!r} has {len(values)} networks, too few to compare pairs. Give three or more.")
    undefined = np.argwhere(~np.isfinite(values) & ~np.eye(len(values), dtype=bool))
    if len(undefined):
        i, j = undefined[0]
        raise InputError(
            f"{matrix!r} has no score for {matrix.names[i]!r} and {matrix.names[j]!r}. Leave one of them "
            "out: matrix.reordered([...]) with the names to keep."
        )
    return (values + values.T) / 2


def sklearn(module: str) -> Any:
    """A module of scikit-learn, or how to install it."""
    return Library(f"sklearn.{module}", extra="analysis", to="analyse a matrix").load()
