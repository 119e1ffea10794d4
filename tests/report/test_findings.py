"""Findings: stated where the evidence supports them, else said to lack data."""

from __future__ import annotations

import numpy as np
import pytest

import likewise
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.page import contents
from likewise.report.runs import Runs
from likewise.transfer import Answers
from likewise.transfer.matrix import TransferMatrix
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
    assert first.evidence == (
        "p = 0.002 compared with scores of networks without families; families agree to 1.00 with networks left out "
        "(adjusted Rand index, chance 0)."
    )


def test_families_of_noise_are_not_told() -> None:
    draw = np.random.default_rng(1).random((8, 8))
    page = contents(
        runs_of(
            SimilarityMatrix([str(i) for i in range(8)], (draw + draw.T) / 2, measure="made", larger_is="more alike")
        )
    )
    told = next(finding for finding in page.findings if finding.panel == "map")
    assert not told.significant
    assert told.text == "Not enough data to say that the 8 networks are of several families by made."
    assert page.data()["families"] == []


def test_one_fact_is_told_once() -> None:
    """A family of one is the outlier: no second finding says so."""
    alike = blocks((5, 4, 1))
    others = [
        SimilarityMatrix([f"n{i}" for i in range(10)], alike, measure=name, larger_is="more alike")
        for name in ("cka", "jsd", "sat")
    ]
    found = contents(runs_of(*others)).findings
    assert next(finding.text for finding in found if finding.panel == "map") == (
        "There are 2 families by cka: n0, n1, n2, n3, n4; n5, n6, n7, n8. Alone: n9."
    )
    assert not any("outlier" in finding.text for finding in found)


def attacked(accuracies: list[float], n: int = 400) -> TransferMatrix:
    """Networks fooled by their own examples on half of the inputs, by others' on a tenth; the last by everyone's."""
    draw = np.random.default_rng(0)
    labels, m = draw.integers(0, 5, n), len(accuracies)
    logits = np.zeros((m, n, 5))
    for i, accuracy in enumerate(accuracies):
        right = draw.random(n) < accuracy
        logits[i, np.arange(n), np.where(right, labels, (labels + 1) % 5)] = 1 + draw.random(n)
    share = np.full((m, m), 0.1) + 0.4 * np.eye(m)
    share[0, 1], share[1, 0], share[:, -1] = 0.6, 0.4, 0.9
    fooled = draw.random((m, m, n)) < share[:, :, None]
    return TransferMatrix.of(
        Answers([f"n{i}" for i in range(m)], logits, labels), np.where(fooled, (labels + 2) % 5, labels)
    )


def test_a_network_of_another_accuracy_is_in_no_finding_on_attacks() -> None:
    matrix = attacked([0.95, 0.95, 0.94, 0.96, 0.95, 0.2])
    page = contents(Runs(matrices=[matrix], transfers=[matrix]))
    assert page.networks.outside == {"n5"}
    on_attacks = [finding for finding in page.findings if finding.panel in ("attacks", "disagreement")]
    assert on_attacks
    assert not any("n5" in finding.text for finding in on_attacks)
    warnings = [warning for panel in page.panels for warning in panel.warnings]
    assert any(warning.endswith("points away: n5.") for warning in warnings)
    assert contents(Runs(matrices=[matrix], transfers=[attacked([0.95] * 6)])).networks.outside == frozenset()


def test_accuracies_of_a_comparison_are_those_of_the_report() -> None:
    about = {"n": 400, "accuracies": {"n0": 0.95, "n1": 0.94, "n2": 0.5}}
    matrix = SimilarityMatrix(["n0", "n1", "n2"], np.eye(3), measure="cka", larger_is="more alike", about=about)
    networks = contents(runs_of(matrix)).networks
    assert networks.accuracies == about["accuracies"]
    assert networks.outside == {"n2"}


def test_few_inputs_leave_no_network_out() -> None:
    matrix = attacked([0.95, 0.95, 0.94, 0.96, 0.95, 0.85], n=40)
    assert contents(Runs(matrices=[matrix], transfers=[matrix])).networks.outside == frozenset()


def test_both_directions_of_an_attack_are_told() -> None:
    matrix = attacked([0.95] * 6).reordered([f"n{i}" for i in range(5)])
    page = contents(Runs(matrices=[matrix], transfers=[matrix]))
    told = next(finding.text for finding in page.findings if "same attacks" in finding.text)
    a, b = sorted(("n0", "n1"), key=page.networks.names.index)
    i, j = (matrix.names.index(name) for name in (a, b))
    assert f"what is made from {a} fools {b} on {matrix.rates[i, j]:.0%} [" in told
    assert f"and the other way round on {matrix.rates[j, i]:.0%} [" in told
    assert {round(10 * float(matrix.rates[0, 1])), round(10 * float(matrix.rates[1, 0]))} == {6, 4}


def test_a_report_has_one_set_of_families() -> None:
    """The teacher's family is that of the map, also where attacks would group networks otherwise."""
    transfer = attacked([0.95] * 8)
    alike = SimilarityMatrix(transfer.names, blocks((4, 4)), measure="cka-debiased", larger_is="more alike")
    page = contents(Runs(matrices=[alike, transfer], transfers=[transfer]))
    rows = next(panel for panel in page.panels if panel.id == "attacks").data["teacher"]
    family = {name: page.networks.family(name) for name in page.networks.names}
    assert set(family.values()) == {0, 1}
    assert all((row[2] == "yes") == (family[row[0]] == family[rows["student"]]) for row in rows["rows"])
    assert "families as found by cka-debiased" in rows["reasons"]


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
    alike = np.full((4, 4), 0.8) + np.random.default_rng(0).normal(scale=0.01, size=(4, 4))  # too few for families
    alike = (alike + alike.T) / 2
    alike[2] = alike[:, 2] = 0.1
    four = [with_intervals(alike, name, 0.01) for name in ("cka", "disagreement", "sat", "class-alignment")]
    four[1] = SimilarityMatrix(four[1].names, 1 - alike, measure="disagreement", larger_is="less alike")
    told = next(f for f in contents(runs_of(*four)).findings if "outlier" in f.text)
    assert told.significant
    assert told.text == "n2 is the outlier: 4 of 4 views and 4 of 4 measures find it least like the others."
    # 4 networks, 4 views that pick at random: 4 (1 / 4)^4 = 0.0156
    assert told.evidence == "Views that pick any of 4 networks at random would agree so with p = 0.016."
    alone = next(f for f in contents(runs_of(four[0])).findings if "outlier" in f.text)
    assert not alone.significant
