"""Components of networks: read from them, and which of them explain how alike pairs are and what families share.

A table of components has one row per network and one column per component (base architecture, stem, activation, …),
with words or numbers as values: a data frame or a CSV file, whose index or first column names the networks, or a
mapping of networks to their components. `component_table` reads one from networks. An empty cell is unknown, and
shared with no other network.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from torch import nn

from likewise._base.arrays import Array
from likewise._base.files import reading
from likewise._base.folders import read_at
from likewise._base.formats.tables import table
from likewise._base.optional import require
from likewise.analysis.architecture import READERS
from likewise.analysis.families import Clusters, affinities, sklearn
from likewise.analysis.family_evidence import pairs
from likewise.analysis.structure import layers
from likewise.analysis.trace import record_pass
from likewise.errors import ForwardError, InputError, brief, check_seed, did_you_mean
from likewise.matrices.similarity import SimilarityMatrix
from likewise.networks.inputs.normalisation import unwrapped
from likewise.transfer.classifiers import by_name
from likewise.views.layers import on_two_inputs, own_sizes

if TYPE_CHECKING:
    import pandas as pd

Table = Any  # a data frame, the path of a CSV file, or {network: {component: value}}
FOREST = {"n_estimators": 500, "max_depth": 12, "learning_rate": 0.02, "min_samples_split": 4}
REPEATS, HELD_OUT = 10, 0.1

# classes whose design came from a search, which no pass shows
SEARCHED = ("EfficientNet", "MNASNet", "MobileNetV3", "NASNetALarge", "PNASNet5Large", "RegNet", "RexNet")


def components(network: str | nn.Module, data: Any = None) -> dict[str, str | None]:
    """Read the thirteen components of a network from one pass over two inputs. Published weights are not fetched.

    Args:
        network: An address or a module.
        data: What it is shown, by default zeros of a size it takes.

    Returns:
        The components by name, None where the pass does not show one.

    Raises:
        InputError: The network takes none of the inputs that were tried, or has no layer with weights.

    Example:
        >>> parts = components(nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()))
        >>> parts["base_architecture"], parts["stem"], parts["normalization"], parts["input_resolution"]
        ('CNN', '3s2', 'BN', None)
    """
    try:
        module, trace = on_two_inputs(network, data, record_pass)
    except ForwardError as error:
        raise InputError(f"the components cannot be read: {error}") from error
    called = repr(network) if isinstance(network, str) else type(unwrapped(module)).__name__
    if trace is None:
        raise InputError(
            f"{called} takes none of the inputs that were tried, so its components cannot be read. Pass data= that it "
            "takes, or give a table of components."
        )
    if not layers(trace):
        raise InputError(f"{called} shows no layer with weights in its pass. Give a table of components instead.")
    values = {read.__name__: read(trace) for read in READERS}
    if values["base_architecture"] == "CNN" and type(unwrapped(module)).__name__ in SEARCHED:
        values["base_architecture"] = "NAS (CNN)"
    if data is None and trace.shape not in own_sizes(module):
        values["input_resolution"] = None  # of zeros that were tried
    return values


def component_table(networks: Any, data: Any = None) -> pd.DataFrame:
    """Read the components of many networks.

    Args:
        networks: Addresses or modules, a list or a mapping by name.
        data: What they are shown, by default zeros of a size they take.
    """
    pandas = require("pandas", extra="analysis", to="make a table of components")
    rows = {name: components(network, data) for name, network in by_name(networks).items()}
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("network")


@dataclass(frozen=True)
class Importance:
    """By how much R² falls if one component is shuffled over pairs, the most important first.

    Where the two orders differ, that on held-out pairs is the safer one.

    Attributes:
        all_pairs: On the pairs the model was fitted to, as in the paper.
        held_out: On a tenth of the pairs, which the model has not seen.
        r2: R² of the model on the pairs it was fitted to.
        r2_held_out: R² on held-out pairs.
    """

    all_pairs: dict[str, float]
    held_out: dict[str, float]
    r2: float
    r2_held_out: float


def component_importance(matrix: SimilarityMatrix, components: Table, *, seed: int = 0) -> Importance:
    """Measure how much of the similarity of pairs each component explains.

    Boosted trees learn the score of a pair from one bit per component: do the two networks share it?

    Args:
        matrix: How alike the networks are, by any measure.
        components: A data frame, the path of a CSV file, or {network: {component: value}}.
        seed: Draws trees, shuffles and the held-out pairs.
    """
    table = _rows(components, matrix.names)
    first, second = np.triu_indices(len(table), 1)
    values, filled = table.to_numpy(dtype=str), table.notna().to_numpy()
    shared = ((values[first] == values[second]) & filled[first] & filled[second]).astype(float)
    scores = pairs(affinities(matrix))
    check_seed(seed)
    whole, r2 = _permuted(shared, scores, shared, scores, seed)
    held = np.random.default_rng(seed).permutation(len(scores)) < max(1, round(HELD_OUT * len(scores)))
    apart, r2_apart = _permuted(shared[~held], scores[~held], shared[held], scores[held], seed)
    names = [str(name) for name in table.columns]
    return Importance(_ordered(names, whole), _ordered(names, apart), r2, r2_apart)


def keywords(families: Clusters, components: Table, *, most: int = 5) -> list[list[str]]:
    """Name the components each family has more often than others, the most typical first.

    Each network is a document of its components; a word counts ln((1 + N) / (1 + df)) + 1, df the networks that
    have it among N, averaged over the networks of the family.

    Args:
        families: The families.
        components: A data frame, the path of a CSV file, or {network: {component: value}}.
        most: How many components per family.

    Returns:
        One list per family, of entries "component=value".
    """
    table = _rows(components, families.names)
    documents = [[f"{name}={value}" for name, value in row.dropna().items()] for _, row in table.iterrows()]
    have = Counter(word for document in documents for word in set(document))
    weight = {word: math.log((1 + len(documents)) / (1 + count)) + 1 for word, count in have.items()}
    by_name = dict(zip(families.names, documents, strict=True))
    result = []
    for group in families.groups():
        counts = Counter(word for name in group for word in by_name[name])
        ranked = sorted(counts, key=lambda word: (-counts[word] * weight[word], word))
        result.append(ranked[:most])
    return result


def _rows(components: Table, names: Any) -> pd.DataFrame:
    """The rows of these networks, by the index of the table or its first column; None where a cell is empty."""
    frame = as_frame(components)
    by_index = bool(set(names) & set(frame.index)) or not len(frame.columns)
    table = frame if by_index else frame.set_index(frame.columns[0])
    missing = [name for name in names if name not in table.index]
    if missing:
        hint = did_you_mean(missing[0], [str(name) for name in table.index])
        raise InputError(f"the table of components has no row for {missing[0]!r}.{hint} Give one per network.")
    if table.index.has_duplicates:
        raise InputError("the table of components has two rows for one network. Keep one.")
    return table.loc[list(names)].replace("", None)


def as_frame(components: Table) -> pd.DataFrame:
    """A table of components as a data frame, from whatever holds it."""
    pandas = require("pandas", extra="analysis", to="read a table of components")
    if isinstance(components, (str, os.PathLike)):
        sentence = (
            f"{os.fspath(components)} is no table of components ({{reason}}). Give a CSV file, one row per network."
        )
        with reading(components, sentence):
            return table(read_at(components), dtype=str, keep_default_na=False)
    if isinstance(components, Mapping) and all(isinstance(row, Mapping) for row in components.values()):
        return cast("pd.DataFrame", pandas.DataFrame.from_dict(components, orient="index"))
    if isinstance(components, pandas.DataFrame):
        return cast("pd.DataFrame", components)
    raise InputError(
        f"{brief(components)} is no table of components. Give a data frame, a CSV file, or {{network: {{component: "
        "value}}."
    )


def _permuted(x: Array, y: Array, x_asked: Array, y_asked: Array, seed: int) -> tuple[Array, float]:
    model = sklearn("ensemble").GradientBoostingRegressor(random_state=seed, **FOREST).fit(x, y)
    asked = sklearn("inspection").permutation_importance(model, x_asked, y_asked, n_repeats=REPEATS, random_state=seed)
    return np.asarray(asked.importances_mean), float(model.score(x_asked, y_asked))


def _ordered(names: list[str], values: Array) -> dict[str, float]:
    return {names[i]: float(values[i]) for i in np.argsort(-values, kind="stable")}
