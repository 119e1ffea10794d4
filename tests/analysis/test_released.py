"""The released 69 x 69 matrix of attack transferability: families, keywords and components as published."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise import analysis
from tests.conftest import data_root

SAT = "golden/sat/sat_matrix_69.csv"


@cache
def released() -> likewise.SimilarityMatrix:
    frame = pd.read_csv(data_root("..", SAT), index_col=0)
    return likewise.SimilarityMatrix(list(frame.columns), frame.to_numpy(), measure="sat", larger_is="more alike")


@cache
def families() -> analysis.Clusters:
    return analysis.clusters(released(), 10, method="spectral")


@cache
def published() -> pd.Series:
    return pd.read_csv(data_root("..", "golden/sat_model_cards.csv"), index_col=0)["cluster"]


@cache
def components() -> pd.DataFrame:
    return pd.read_csv(data_root("..", "golden/sat/model_features_69.csv"))


def test_the_mean_over_pairs_is_that_of_the_released_matrix() -> None:
    values = released().values
    assert round(float(values[~np.eye(69, dtype=bool)].mean()), 4) == 2.6649


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ten_families_are_those_of_the_paper(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    found = analysis.clusters(released(), 10, method="spectral", seed=seed)
    assert metrics.adjusted_rand_score(published()[list(found.names)], found.labels) >= 0.90
    assert 0.7 < found.stability < 0.9  # with a fifth of the networks left out
    assert found.p < 0.01


def test_keywords_of_two_families_are_those_of_the_paper() -> None:
    words = dict(zip(map(family_of, families().groups()), analysis.keywords(families(), components()), strict=True))
    values = {family: {word.partition("=")[2] for word in words[family]} for family in (6, 10)}
    assert values[6] == {"7s2", "ReLU", "Yes", "CNN", "BN"}
    assert values[10] == {"Leaky ReLU", "256 x 256", "7s2", "CNN", "Yes"}


def family_of(group: list[str]) -> int:
    """The number most of a group have in the paper."""
    return int(published()[group].mode()[0])


def test_the_base_architecture_matters_most_and_then_the_stem() -> None:
    found = analysis.component_importance(released(), components())
    assert list(found.all_pairs)[:2] == ["Base architecture", "Stem layer"]
    assert found.r2 == pytest.approx(0.793, abs=0.01)
    assert found.r2_held_out < found.r2


def test_a_network_left_out_mostly_finds_its_family_again() -> None:
    matrix, found, hits = released(), families(), 0
    for name, label in zip(found.names, found.labels, strict=True):
        rest = found.without(name)
        hits += rest.assign({other: matrix[name, other] for other in rest.names}) == label
    assert hits / 69 == pytest.approx(0.83, abs=0.03)
