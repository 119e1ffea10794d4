"""Which components of networks go with how alike they are: importance over pairs, and keywords of families.

A table of components has one row per network and one column per component (base architecture, stem, activation, …),
with words or numbers as values.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.analysis.affinity import Array, affinities, pairs, sklearn
from likewise.analysis.clusters import Clusters
from likewise.errors import InputError, did_you_mean
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    import pandas as pd

FOREST = {"n_estimators": 500, "max_depth": 12, "learning_rate": 0.02, "min_samples_split": 4}
REPEATS, HELD_OUT = 10, 0.1


@dataclass(frozen=True)
class Importance:
    """By how much R² falls if one component is shuffled over pairs, the most important first.

    `all_pairs` is asked of the pairs the model has learned from, as in the paper; `held_out` of a tenth of the
    pairs it has not seen, with `r2` and `r2_held_out` how well the model does on either. Where the two orders
    differ, that on held-out pairs is the safer one.
    """

    all_pairs: dict[str, float]
    held_out: dict[str, float]
    r2: float
    r2_held_out: float


def component_importance(matrix: SimilarityMatrix, components: pd.DataFrame, *, seed: int = 0) -> Importance:
    """How much of the similarity of pairs goes with each component being the same or not.

    Boosted trees learn the score of a pair from one bit per component: do the two networks share it?
    """
    table = _rows(components, matrix.names)
    first, second = np.triu_indices(len(table), 1)
    values = table.to_numpy(dtype=str)
    shared = (values[first] == values[second]).astype(float)
    scores = pairs(affinities(matrix))
    whole, r2 = _permuted(shared, scores, shared, scores, seed)
    held = np.random.default_rng(seed).permutation(len(scores)) < max(1, round(HELD_OUT * len(scores)))
    apart, r2_apart = _permuted(shared[~held], scores[~held], shared[held], scores[held], seed)
    names = [str(name) for name in table.columns]
    return Importance(_ordered(names, whole), _ordered(names, apart), r2, r2_apart)


def keywords(found: Clusters, components: pd.DataFrame, *, most: int = 5) -> list[list[str]]:
    """The components each family has more often than others, as "component=value", the most telling first.

    Each network is a document of its components; a word counts ln((1 + N) / (1 + df)) + 1, df the networks that
    have it among N, averaged over the networks of the family.
    """
    table = _rows(components, found.names)
    documents = [[f"{name}={value}" for name, value in row.items()] for row in table.astype(str).to_dict("records")]
    have = Counter(word for document in documents for word in set(document))
    weight = {word: math.log((1 + len(documents)) / (1 + count)) + 1 for word, count in have.items()}
    places = {name: place for place, name in enumerate(found.names)}
    result = []
    for group in found.groups():
        counts = Counter(word for name in group for word in documents[places[name]])
        ranked = sorted(counts, key=lambda word: (-counts[word] * weight[word], word))
        result.append(ranked[:most])
    return result


def _rows(components: pd.DataFrame, names: Any) -> pd.DataFrame:
    """The rows of these networks, by the index of the table or its first column."""
    table = components if set(names) & set(components.index) else components.set_index(components.columns[0])
    missing = [name for name in names if name not in table.index]
    if missing:
        hint = did_you_mean(missing[0], [str(name) for name in table.index])
        raise InputError(f"the table of components has no row for {missing[0]!r}.{hint} Give one per network.")
    if table.index.has_duplicates:
        raise InputError("the table of components has two rows for one network. Keep one.")
    return table.loc[list(names)]


def _permuted(x: Array, y: Array, x_asked: Array, y_asked: Array, seed: int) -> tuple[Array, float]:
    model = sklearn("ensemble").GradientBoostingRegressor(random_state=seed, **FOREST).fit(x, y)
    asked = sklearn("inspection").permutation_importance(model, x_asked, y_asked, n_repeats=REPEATS, random_state=seed)
    return np.asarray(asked.importances_mean), float(model.score(x_asked, y_asked))


def _ordered(names: list[str], values: Array) -> dict[str, float]:
    return {names[i]: float(values[i]) for i in np.argsort(-values, kind="stable")}
