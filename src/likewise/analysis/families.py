"""Families of networks, how sure they are, and maps of all networks.

Families are cut from the tree of average linkage, which is right from two networks on; `family_evidence` says
whether there are any. The paper on attack transfer clusters in spectral features: the affinities A, with a diagonal
of 0, are scaled to D^-1/2 A D^-1/2, D the sums of their rows, and k-means finds families in its eigenvectors of the
largest eigenvalues after the first. That needs many networks: of three it separates the alike pair.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise._base.names import short_names, visible
from likewise._base.optional import Library
from likewise.analysis.family_evidence import (
    DRAWS,
    LEAST,
    cut,
    drawn_again,
    family_p,
    grouped,
    level,
    pairs,
    rand_index,
    separation,
)
from likewise.errors import InputError, brief, check_count, check_seed
from likewise.matrices.heatmap import draw_heatmap, finish
from likewise.matrices.notebook import as_html
from likewise.matrices.score import LEVEL
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARTS = 100  # of k-means: real matrices have little structure and many local minima
SHARE = 0.8  # of the networks, left for stability
NAMED = 40  # networks up to which a map has room for their names
Map = Literal["tsne", "mds", "spectral"]
Method = Literal["average", "spectral"]


@dataclass(frozen=True, repr=False)
class Clusters:
    """Families of networks.

    Attributes:
        names: The networks.
        labels: The family of each network, numbered from 0, the largest first.
        features: The spectral features of the networks, (networks, k).
        stability: How far the families of some of the networks agree with these, as mean adjusted Rand index: 1 if
            they are always the same, 0 if no more than chance; NaN for one family and where too few networks are left.
        input_stability: The same for scores of inputs drawn anew, where the matrix holds what each input gave, or
            intervals; else NaN.
        p: The share of zoos without families that separate as well; NaN for fewer than five networks.
        matrix: The matrix that families were found in.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]
    features: Array
    stability: float
    input_stability: float
    p: float
    matrix: SimilarityMatrix

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

    def __repr__(self) -> str:
        count = f"{self.k} families" if self.k > 1 else "one family"
        return f"Clusters({count} of {len(self.names)} networks by {self.matrix.measure!r}, p = {self.p:.2g})"

    def __str__(self) -> str:
        groups = [f"{self.title(g)}: {', '.join(names)}" for g, names in enumerate(self.groups())]
        return "\n".join(map(visible, [self.verdict, *groups]))

    def _repr_html_(self) -> str:
        import pandas as pd

        spreads = [{"members": ", ".join(group), **self.spread(g)} for g, group in enumerate(self.groups())]
        frame = pd.DataFrame(spreads, index=pd.Index([self.title(g) for g in range(self.k)], name="family"))
        frame = frame.rename(columns={"within": "mean within", "to_others": "mean to others"})
        numbers = frame.map(lambda cell: cell if isinstance(cell, str) else "" if pd.isna(cell) else f"{cell:.3g}")
        return as_html(repr(self), numbers, [self.verdict])

    @property
    def verdict(self) -> str:
        """How many families there are and how sure they are, in a sentence."""
        measure = f"{self.matrix.measure} (larger is {self.matrix.larger_is})"
        count = f"{self.k} families" if self.k > 1 else "one family"
        words = [f"{count} of {len(self.names)} networks by {measure}"]
        if self.p != self.p:
            words.append(f"fewer than {LEAST} networks are too few to tell whether there are several families")
        else:
            most = level(len(self.matrix))
            few = f"; for so few networks up to {most:.2g} counts" if most > LEVEL else ""
            more = "more" if self.p <= most else "not more"
            words.append(f"scores are {more} grouped than without families (p = {self.p:.2g}{few})")
        agree = {"networks left out": self.stability, "inputs drawn anew": self.input_stability}
        shares = [f"{share:.2f} with {change}" for change, share in agree.items() if share == share]
        words += [f"families agree to {', '.join(shares)} (adjusted Rand index)"] if shares else []
        return "; ".join(words)

    def title(self, label: int) -> str:
        """What a group of networks is called: a family only if its members are more alike than to others.

        Args:
            label: The family.
        """
        if self.labels.count(label) == 1:
            return f"family {label}, alone"
        alike = _alike(self.matrix.reordered(self.names), 1)
        named = grouped(alike, np.array(self.labels) == label)
        return f"family {label}" if named else "no family, no more alike than to others"

    def spread(self, label: int) -> dict[str, float | None]:
        """The mean scores of a family.

        Args:
            label: The family.

        Returns:
            The mean score `within` it, None for one network alone, and `to_others`, None if there are none.
        """
        values = symmetric_scores(self.matrix.reordered(self.names), 1)
        members = np.array(self.labels) == label
        inner, outer = pairs(values[np.ix_(members, members)]), values[np.ix_(members, ~members)]
        means = {"within": inner, "to_others": outer}
        return {name: float(scores.mean()) if scores.size else None for name, scores in means.items()}

    def without(self, name: str) -> Clusters:
        """The same families without one network.

        Args:
            name: The network to leave out.
        """
        rows = [i for i, other in enumerate(self.names) if other != name]
        kept, labels = tuple(self.names[i] for i in rows), tuple(self.labels[i] for i in rows)
        return replace(self, names=kept, labels=labels, features=self.features[rows])

    def distances(self) -> SimilarityMatrix:
        """The distances of the spectral features of all networks, those of a family side by side.

        Figures 4, 5 and D.2 of the paper: `clusters(matrix, method="spectral").distances().plot("distances.png")`.
        """
        order = [name for group in self.groups() for name in group]
        rows = self.features[[self.names.index(name) for name in order]]
        apart = np.linalg.norm(rows[:, None] - rows, axis=2)
        return SimilarityMatrix(order, apart, measure="spectral-distance", larger_is="less alike", bounds=(0, None))

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
    method: Method = "average",
    seed: int = 0,
    starts: int = STARTS,
) -> Clusters:
    """Find families of alike networks.

    Args:
        matrix: Any similarity matrix of two networks or more.
        k: How many families. "auto" takes the number that separates best where scores are more grouped than in zoos
            without families (p of at most 0.05; 0.08, 0.07 and 0.06 for five, six and seven networks), and else finds
            one family, as it does of fewer than five networks.
        method: "average" linkage, or "spectral" clustering with the settings of the paper on attack transfer, for many
            networks in even families.
        seed: Draws the null, what is left out, and the starts of k-means.
        starts: How often k-means starts.

    Raises:
        InputError: A pair has no score, or there are fewer networks than families.

    Example:
        >>> alike = [[1, 0.7, 0.1], [0.7, 1, 0.2], [0.1, 0.2, 1]]
        >>> clusters(SimilarityMatrix(list("abc"), alike), 2).groups()
        [['a', 'b'], ['c']]
    """
    alike = _alike(matrix)
    few, most = (1, len(alike)) if method == "average" else (2, len(alike) - 1)
    if method not in ("average", "spectral"):
        raise InputError(f"no method named {method!r}. Choose 'average' or 'spectral'.")
    if k != "auto":
        check_count("k", k, 0)
    if k != "auto" and not few <= k <= most:
        raise InputError(f"{len(alike)} networks cannot be put into {k} families. Choose {few} to {most}.")
    check_seed(seed)
    finder = _Finder(method, seed, starts)
    p = family_p(alike, seed=seed)
    labels = finder.best(alike, p) if k == "auto" else finder.labels(alike, k)
    features = spectral(affinities(matrix, 1), max(labels) + 1)
    finder = replace(finder, starts=min(starts, 10))
    left_out, again = finder.without_networks(alike, labels), finder.other_inputs(matrix, labels)
    if np.ptp(pairs(alike)) == 0:  # equal scores are cut by the order of networks, which nothing changes
        left_out = again = np.nan
    return Clusters(tuple(matrix.names), tuple(labels), features, left_out, again, p, matrix)


@dataclass(frozen=True)
class _Finder:
    """Finds families by one method, and again with something left out."""

    method: Method
    seed: int
    starts: int

    def labels(self, alike: Array, k: int) -> list[int]:
        """The family of each network, in the order of their size, then of their first network."""
        if self.method == "average":
            labels = cut(separation(alike)[0], k)
        else:
            means = sklearn("cluster").KMeans(k, n_init=self.starts, random_state=self.seed)
            labels = means.fit_predict(spectral(_from_zero(alike), k)).tolist()
        order = sorted(set(labels), key=lambda label: (-labels.count(label), labels.index(label)))
        return [order.index(label) for label in labels]

    def best(self, alike: Array, p: float) -> list[int]:
        """The families that separate best, all of them more alike within than to others; one without evidence."""
        one = [0] * len(alike)
        if not p <= level(len(alike)):
            return one
        separations = separation(alike)[1]
        tried = (self.labels(alike, k) for k in (2 + np.argsort(-separations, kind="stable")).tolist())
        labels = next((labels for labels in tried if _all_grouped(alike, labels)), one)
        return self._finer(alike, labels) if self.method == "average" else labels

    def _finer(self, alike: Array, labels: list[int]) -> list[int]:
        """Cut further where a family has families of its own, which a network far from all others would hide."""
        large = [label for label in set(labels) if labels.count(label) >= LEAST and max(labels) > 0]
        for label in large:
            rows = np.flatnonzero(np.array(labels) == label)
            inner = alike[np.ix_(rows, rows)]
            if len(large) * family_p(inner, seed=self.seed) > LEVEL:
                continue
            inside = 2 + int(separation(inner)[1].argmax())
            finer = self.labels(alike, max(labels) + inside)
            if len({finer[row] for row in rows}) == inside and _all_grouped(alike, finer):
                return self._finer(alike, finer)
        return labels

    def without_networks(self, alike: Array, labels: Sequence[int]) -> float:
        """How far families of fewer networks agree: each left out in turn, or a fifth of them twenty times."""
        m, draw = len(alike), np.random.default_rng(self.seed)
        size = min(m - 1, round(SHARE * m))
        rows = [np.delete(np.arange(m), i) for i in range(m)]
        if size < m - 1:
            rows = [np.sort(draw.permutation(m)[:size]) for _ in range(DRAWS)]
        return self._agreement([(alike[np.ix_(row, row)], np.array(labels)[row]) for row in rows])

    def other_inputs(self, matrix: SimilarityMatrix, labels: Sequence[int]) -> float:
        """How far families agree over inputs drawn anew; NaN where the matrix says nothing of them."""
        return self._agreement([(again, np.array(labels)) for again in drawn_again(matrix, self.seed)])

    def _agreement(self, changed: Sequence[tuple[Array, Array]]) -> float:
        scores = []
        for alike, labels in changed:
            k = len(set(labels.tolist()))
            if 1 < k < len(labels) and np.isfinite(pairs(alike)).all():
                scores.append(rand_index(labels, np.array(self.labels(alike, k))))
        return float(np.mean(scores)) if scores else float("nan")


def _all_grouped(alike: Array, labels: Sequence[int]) -> bool:
    return all(grouped(alike, np.array(labels) == label) for label in set(labels))


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
        how: "tsne", "mds" (classical scaling) or "spectral"; classical scaling also serves where t-SNE has fewer than
            four networks.
        seed: Draws the start of t-SNE.

    Returns:
        Two coordinates per network, (networks, 2).
    """
    check_seed(seed)
    values = affinities(matrix, 2)
    if how == "spectral":
        return spectral(values, 2)
    if how == "mds" or (how == "tsne" and len(values) < 4):
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


def plot_families(
    families: Clusters | SimilarityMatrix,
    path: str | os.PathLike[str] | None = None,
    *,
    how: Map = "tsne",
    seed: int = 0,
) -> Figure:
    """Draw the matrix sorted by family beside a map on which alike networks are near.

    Args:
        families: The families, or a matrix to find them in.
        path: Where to save the figure.
        how: The map, as in `embed`.
        seed: Draws the start of t-SNE.
    """
    from matplotlib.figure import Figure

    families = clusters(families, seed=seed) if isinstance(families, SimilarityMatrix) else families
    groups = families.groups()
    matrix = families.matrix.reordered([name for group in groups for name in group])
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    borders = [(starts[i], starts[i + 1], families.title(i)) for i in range(len(groups))]
    off = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix.values)  # the diagonal would take all the colours
    heatmap = replace(matrix.heatmap(), values=off, groups=borders, notes=matrix.legend(), bounds=(None, None))
    width, height = heatmap.size
    figure = Figure(figsize=(width + 1.1 * height, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[width, 1.1 * height])
    draw_heatmap(figure, left, heatmap)
    points = dict(zip(families.matrix.names, embed(families.matrix, how, seed=seed), strict=True))
    for i, group in enumerate(groups):
        x, y = np.array([points[name] for name in group]).T
        right.scatter(x, y, color=f"C{i % 10}", marker="osD^v"[i // 10 % 5], label=families.title(i), s=30)
        names = short_names(group) if len(points) <= NAMED else []
        for name, *point in zip(names, x, y, strict=False):
            right.annotate(name, point, fontsize=6, xytext=(3, 3), textcoords="offset points")
    stable = "" if families.stability != families.stability else f", stability {families.stability:.2f}"
    right.set_title(f"map ({how}){stable}", fontsize=10)
    right.set(xticks=[], yticks=[])
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return finish(figure, path)


def affinities(matrix: SimilarityMatrix, least: int = 3) -> Array:
    """How alike each two networks are, at least 0, symmetric; the diagonal, which says little, is 0.

    Negative scores are shifted to start at 0; a distance counts by how far below the largest it is.
    """
    return _from_zero(_alike(matrix, least))


def _alike(matrix: SimilarityMatrix, least: int = 2) -> Array:
    """The scores, symmetric, larger for more alike networks."""
    return symmetric_scores(matrix, least) * (1 if matrix.larger_is == "more alike" else -1)


def _from_zero(alike: Array) -> Array:
    """Scores with a diagonal of 0, shifted to start at 0 where one is negative."""
    return np.where(np.eye(len(alike), dtype=bool), 0.0, alike - pairs(alike).min(initial=0.0))


def symmetric_scores(matrix: SimilarityMatrix, least: int = 3) -> Array:
    """The values, symmetric; a matrix with too few networks or with pairs without a finite score is refused."""
    if not isinstance(matrix, SimilarityMatrix):
        raise InputError(
            f"a similarity matrix is needed, and {brief(matrix)} was given. Give that of one measure "
            "(comparison['cka']), or likewise.SimilarityMatrix(names, values)."
        )
    values = np.asarray(matrix.values, dtype=np.float64)
    if len(values) < least:
        words, needed = f"{len(values)} network{'s' * (len(values) != 1)}", ("one", "two", "three")[least - 1]
        raise InputError(f"{matrix!r} has {words}, too few to compare pairs. Give {needed} or more.")
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
