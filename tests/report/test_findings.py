"""Findings: stated where the evidence supports them, else said to lack data."""

from __future__ import annotations

import numpy as np
import pytest

import likewise
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.families import silhouette_p
from likewise.report.page import contents
from likewise.report.runs import Runs
from tests.report.helpers import arrays


def runs_of(*matrices: SimilarityMatrix) -> Runs:
    return Runs(matrices=list(matrices))


def blocks(sizes: tuple[int, ...], *, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    """A matrix of families: 0.9 within, 0.1 between, with noise."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    draw = np.random.default_rng(seed).normal(scale=noise, size=(len(labels), len(labels)))
    return np.where(labels[:, None] == labels, 0.9, 0.1) + (draw + draw.T) / 2


def test_families_that_are_there_are_told() -> None:
    names = [f"n{i}" for i in range(9)]
    found = contents(runs_of(SimilarityMatrix(names, blocks((4, 3, 2)), measure="made", larger_is="more alike")))
    first = next(finding for finding in found.findings if finding.panel == "map")
    assert first.significant
    assert first.text == "There are 3 families by made: n0, n1, n2, n3; n4, n5, n6; n7, n8."
    assert first.evidence.startswith("p = 0.01 compared with the same scores in random places; ")


def test_families_of_noise_are_not_told() -> None:
    shares = []
    for seed in range(20):
        draw = np.random.default_rng(seed).random((8, 8))
        shares.append(silhouette_p(SimilarityMatrix([str(i) for i in range(8)], (draw + draw.T) / 2), shuffles=99))
    assert np.mean(np.array(shares) <= 0.05) <= 0.15  # 5 % of 20 draws, and what is drawn on top
    assert np.mean(shares) == pytest.approx(0.5, abs=0.2)


def test_the_most_alike_pair_comes_with_chance_and_interval() -> None:
    matrix = likewise.compare(arrays(4), "cka", calibrate=99, intervals=True, progress=False)
    found = contents(runs_of(matrix)).findings
    first = next(finding for finding in found if finding.text.startswith("The most alike pair"))
    values = np.array(matrix.values)
    np.fill_diagonal(values, -1)
    i, j = np.unravel_index(values.argmax(), values.shape)
    low, high = matrix.extra["low"][i, j], matrix.extra["high"][i, j]
    assert f"cka {values[i, j]:.3g} [{low:.3g}, {high:.3g}], more alike than chance" in first.text
    assert first.significant


def test_without_a_null_the_report_says_that_it_cannot_tell() -> None:
    matrix = likewise.compare(arrays(2), "cka", progress=False)
    matrix = matrix if isinstance(matrix, SimilarityMatrix) else matrix["cka"]
    (found,) = contents(runs_of(matrix)).findings
    assert not found.significant
    value = matrix["net-0", "net-1"]
    assert found.text == f"net-0 and net-1: cka {value:.3g}. Whether that is more than chance was not tested."
    assert found.evidence == "No null was recorded: likewise compare --calibrate adds it."


def with_intervals(values: np.ndarray, measure: str, reach: float) -> SimilarityMatrix:
    names = [f"n{i}" for i in range(len(values))]
    extra = {"low": values - reach, "high": values + reach}
    return SimilarityMatrix(names, values, measure=measure, larger_is="more alike", extra=extra)


@pytest.mark.parametrize(("reach", "significant"), [(0.001, True), (0.5, False)])
def test_views_disagree_only_where_intervals_lie_apart(reach: float, significant: bool) -> None:
    one = blocks((3, 3), noise=0.05)
    two = one.copy()
    two[0, 1] = two[1, 0] = -1.0  # alike by representations, not by answers
    made = contents(runs_of(with_intervals(one, "cka", reach), with_intervals(two, "disagreement", reach)))
    gap = next(finding for finding in made.findings if finding.panel == "disagreement")
    assert gap.significant is significant
    assert "n0 and n1" in gap.text or "n1 and n0" in gap.text
    assert gap.text.startswith(
        "The views disagree most on"
        if significant
        else "Not enough data to say whether the views disagree on any pair."
    )


def test_the_odd_one_out_needs_views_that_agree() -> None:
    alike = np.full((8, 8), 0.8) + np.random.default_rng(0).normal(scale=0.01, size=(8, 8))
    alike = (alike + alike.T) / 2
    alike[5] = alike[:, 5] = 0.1
    four = [with_intervals(alike, name, 0.01) for name in ("cka", "disagreement", "sat", "class-alignment")]
    four[1] = SimilarityMatrix(four[1].names, 1 - alike, measure="disagreement", larger_is="less alike")
    told = next(f for f in contents(runs_of(*four)).findings if "outlier" in f.text)
    assert told.significant
    assert told.text == "n5 is the outlier: 4 of 4 views and 4 of 4 measures find it least like the others."
    # 8 networks, 4 views that pick at random: 8 (1 / 8)^4 = 0.00195
    assert told.evidence == "Views that pick any of 8 networks at random would agree so with p = 0.002."
    alone = next(f for f in contents(runs_of(four[0])).findings if "outlier" in f.text)
    assert not alone.significant
