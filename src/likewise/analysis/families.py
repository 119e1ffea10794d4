"""Families of networks by spectral clustering, and maps of all networks.

The affinities A, with a diagonal of 0, are scaled to D^-1/2 A D^-1/2, D the sums of their rows. Its eigenvectors
of the largest eigenvalues after the first, which only says how alike a network is to all others, are the features
of the networks, and k-means finds the families in them. Real matrices have little structure and many local
minima: k-means starts a hundred times. Families of two networks are too small to be told from noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.affinity import affinities, checked, pairs, sklearn
from likewise.errors import InputError
from likewise.matrices.similarity import SimilarityMatrix

STARTS, SEEDS, MOST = 100, 5, 10  # of k-means; for the stability; families that "auto" tries
Map = Literal["tsne", "mds", "spectral"]


@dataclass(frozen=True)
class Clusters:
    """Families of networks: `labels` gives each network's, counted from 0, the largest first.

    `features` (networks, k) are the spectral features they were found in. `stability` is how far other starts of
    k-means agree, as mean adjusted Rand index: 1 if always the same, 0 if no more than chance.
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

        >>> alike = np.kron(np.eye(2), np.ones((3, 3)))
        >>> clusters(SimilarityMatrix(list("abcdef"), alike), 2).groups()
        [['a', 'b', 'c'], ['d', 'e', 'f']]
        """
        return [[n for n, label in zip(self.names, self.labels, strict=True) if label == g] for g in range(self.k)]

    def spread(self, label: int) -> dict[str, float | None]:
        """The mean score of a family: `within` it, None for one network alone, and `to_others`."""
        values = checked(self.matrix.reordered(self.names))
        own = np.array(self.labels) == label
        inner = pairs(values[np.ix_(own, own)])
        outer = values[np.ix_(own, ~own)]
        return {"within": float(inner.mean()) if inner.size else None, "to_others": float(outer.mean())}

    def without(self, name: str) -> Clusters:
        """The same families of all networks but one."""
        rows = [i for i, other in enumerate(self.names) if other != name]
        kept, labels = tuple(self.names[i] for i in rows), tuple(self.labels[i] for i in rows)
        return replace(self, names=kept, labels=labels, features=self.features[rows])

    def assign(self, row: Mapping[str, float]) -> int:
        """The family of a new network, from its scores with these: where it is most alike on average."""
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
    """Families of alike networks; with "auto" as many as stand apart best (by silhouette, up to 10).

    k-means starts `starts` times, and again for each of so many `seeds`, which tell the stability.
    """
    values = affinities(matrix)
    most = len(values) - 1
    if k != "auto" and not 2 <= k <= most:
        raise InputError(f"{len(values)} networks cannot be put into {k} families. Choose 2 to {most}.")
    found = _best(values, matrix, seed, starts) if k == "auto" else _labels(values, k, seed, starts)
    others = [found, *(_labels(values, max(found) + 1, seed + i, starts) for i in range(1, seeds))]
    rand = sklearn("metrics").adjusted_rand_score
    stability = float(np.mean([rand(a, b) for a, b in combinations(others, 2)])) if seeds > 1 else float("nan")
    features = spectral(values, max(found) + 1)
    return Clusters(tuple(matrix.names), tuple(found), features, stability, matrix)


def family_labels(families: Clusters | Mapping[str, Any], names: Sequence[str]) -> Array:
    """The family of each network as a number, from families that were found or a mapping by name."""
    known = families if isinstance(families, Mapping) else dict(zip(families.names, families.labels, strict=True))
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(f"no family is given for {missing[0]!r}. Give one for each of {len(names)} networks.")
    return np.unique([str(known[name]) for name in names], return_inverse=True)[1]


def spectral(values: Array, k: int) -> Array:
    """The k eigenvectors after the first of the scaled affinities, one row per network."""
    sums = values.sum(axis=1).clip(min=1e-12)
    first = np.sqrt(sums / sums.sum())  # known, and put last: of unconnected families it would be any mixture
    _, vectors = np.linalg.eigh(values / np.sqrt(sums[:, None] * sums) - 2 * np.outer(first, first))
    features = vectors[:, ::-1][:, :k]
    return features * np.where(features[np.abs(features).argmax(axis=0), range(features.shape[1])] < 0, -1, 1)


def embed(matrix: SimilarityMatrix, how: Map = "tsne", *, seed: int = 0) -> Array:
    """A map: two coordinates per network, alike networks near each other."""
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
    found = means.fit_predict(spectral(values, k)).tolist()
    order = sorted(set(found), key=lambda label: (-found.count(label), found.index(label)))
    return [order.index(label) for label in found]


def _best(values: Array, matrix: SimilarityMatrix, seed: int, starts: int) -> list[int]:
    apart = matrix.distances()
    tried = [_labels(values, k, seed, starts) for k in range(2, min(MOST, len(values) - 1) + 1)]
    quality = [sklearn("metrics").silhouette_score(apart, labels, metric="precomputed") for labels in tried]
    return tried[int(np.argmax(quality))]
