"""Scores that say nothing, and scores beyond chance, are marked wherever a matrix is shown."""

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise.comparison.significance import false_discovery

REASON = (
    "64 neurons can express anything on 40 inputs, so any network with as many that are "
    "independent gets this score. Show the networks more inputs."
)
CHANCE = "* more alike than chance: q <= 0.05 over 6 pairs, from 99 shuffles of the inputs"
NEEDED = "; one pair alone would need calibrate=119"  # 6 pairs x 1 of 120 is 5 %


def views():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(40, 5))
    widths = {"wide": 64, "a": 12, "b": 8}
    made = {name: hidden @ rng.normal(size=(5, d)) + rng.normal(size=(40, d)) / 2 for name, d in widths.items()}
    return {**made, "noise": rng.normal(size=(40, 9))}


def test_a_saturated_pair_is_marked_in_print_notebook_frame_and_file(tmp_path):
    matrix = likewise.compare(views(), "mean-cca")
    assert set(matrix.saturated) == {(x, y) for x in matrix for y in matrix if x != y and "wide" in (x, y)}
    assert set(matrix.saturated.values()) == {REASON}
    lines = str(matrix).splitlines()
    assert lines[2].split() == ["wide", "1", "1†", "1†", "1†"]
    assert "†" not in "".join(lines[3].split()[2:])
    assert lines[-1] == f"† saturated: {REASON}"
    assert "<td>1†</td>" in matrix._repr_html_()
    assert REASON in matrix._repr_html_()
    frame = matrix.to_frame(long=True).set_index(["a", "b"])
    assert frame.saturated["wide", "a"] == REASON
    assert frame.saturated["a", "b"] == frame.saturated["wide", "wide"] == ""
    matrix.to_frame(long=True).to_csv(tmp_path / "scores.csv", index=False)
    assert (pd.read_csv(tmp_path / "scores.csv").saturated == REASON).sum() == 6
    loaded = likewise.SimilarityMatrix.load(matrix.save(tmp_path / "m"))
    assert loaded.saturated == matrix.saturated
    assert str(loaded) == str(matrix)


def test_the_second_network_of_a_regression_saturates_it():
    matrix = likewise.compare(views(), "linear-regression")
    assert set(matrix.saturated) == {("a", "wide"), ("b", "wide"), ("noise", "wide")}


def test_a_picture_marks_saturated_pairs():
    matrix = likewise.compare(views(), "mean-cca")
    axis = matrix.plot().axes[0]
    assert sum(text.get_text() == "1.00†" for text in axis.texts) == 6
    assert axis.get_xlabel().replace("\n", " ") == f"† saturated: {REASON}"
    many = {f"n{i}": np.random.default_rng(i).normal(size=(12, 4)) for i in range(15)}
    many["wide"] = np.random.default_rng(99).normal(size=(12, 30))
    axis = likewise.compare(many, "mean-cca").plot().axes[0]
    assert len(axis.collections[0].get_offsets()) == 30
    both = likewise.compare(views(), ["mean-cca", "cka"]).plot()
    assert sum(text.get_text().endswith("†") for text in both.axes[0].texts) == 6
    assert not any(text.get_text().endswith("†") for text in both.axes[1].texts)


def test_marks_follow_the_networks_when_they_are_sorted():
    matrix = likewise.compare(views(), "mean-cca", calibrate=9)
    turned = matrix.reordered(["noise", "b", "a", "wide"])
    assert turned["b", "wide"] == matrix["b", "wide"]
    assert turned.extra["p"][1, 3] == matrix.extra["p"][2, 0]
    assert turned.saturated == matrix.saturated


def test_pairs_beyond_chance_are_marked_by_their_false_discovery_rate():
    comparison = likewise.compare(views(), ["cka", "procrustes"], calibrate=99)
    matrix = comparison["cka"]
    related = [(x, y) for x in matrix for y in matrix if x != y and "noise" not in (x, y)]
    frame = matrix.to_frame(long=True).set_index(["a", "b"])
    assert (frame.q[related] == 0.02).all()  # 0.01 for three of six pairs
    assert (frame.q[[("wide", "noise"), ("a", "noise")]] > 0.05).all()
    lines = str(matrix).splitlines()
    assert [word.endswith("*") for word in lines[2].split()[1:]] == [False, True, True, False]
    assert lines[-1] == CHANCE + NEEDED
    shown = str(comparison).splitlines()
    assert shown[-1] == CHANCE + NEEDED
    assert shown[1].split()[0] == "pair"
    assert shown[3].split()[0] == "cka"
    assert [word.endswith("*") for word in shown[3].split()[1:]] == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]
    page = comparison._repr_html_()
    assert "<th>procrustes</th>" in page
    assert "Comparison(2 measures, 4 networks)" in page


def test_the_legend_says_when_classes_were_kept():
    labels = np.repeat(np.arange(4), 10)
    matrix = likewise.compare(views(), "cka", calibrate=99, within=labels)
    assert str(matrix).splitlines()[-1] == CHANCE + " within 4 classes" + NEEDED
    enough = likewise.compare(views(), "cka", calibrate=119)
    assert "need" not in str(enough)


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_false_discovery_rate_is_that_of_benjamini_and_hochberg(symmetric):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(5, 5)) ** 2
    p = (p + p.T) / 2 if symmetric else p
    p[0, 1] = p[1, 0] = np.nan
    np.fill_diagonal(p, np.nan)
    q = false_discovery(p, symmetric=symmetric)
    i, j = np.nonzero(~np.isnan(p) & (np.triu(np.ones((5, 5)), 1) > 0 if symmetric else True))
    order = np.argsort(p[i, j])
    scaled = p[i, j][order] * len(i) / np.arange(1, len(i) + 1)
    expected = [min(1, min(scaled[k:])) for k in range(len(i))]  # from the largest p down
    assert q[i[order], j[order]] == pytest.approx(expected)
    if symmetric:
        assert np.array_equal(q, q.T, equal_nan=True)


def test_no_star_is_given_to_strangers_but_by_chance():
    rng = np.random.default_rng(3)
    matrix = likewise.compare({str(i): rng.normal(size=(30, 4)) for i in range(8)}, "cka", calibrate=99)
    assert (matrix.extra["p"] <= 0.05).sum() / 2 >= 1  # some of 28 by chance
    assert not (matrix.extra["q"] <= 0.05).any()


def test_calibrations_and_intervals_can_be_read_in_a_notebook():
    x, y = views()["a"], views()["b"]
    calibration, interval = likewise.calibrate(x, y, "cka", 19), likewise.bootstrap(x, y, "cka", 20)
    assert repr(calibration).startswith("Calibration(cka = ")
    assert repr(interval).startswith("Interval(cka = ")
    assert f"{calibration.null_mean:.4g}" in calibration._repr_html_()
    assert f"{interval.low:.4g}" in interval._repr_html_()
    several = likewise.calibrate(views(), "cka", 19)
    assert repr(several) == "Calibration('cka', 4 networks)"
    assert len(str(several).splitlines()) == 14
    assert several._repr_html_().count("<tr>") == 12


def test_numbers_of_a_measure_that_is_not_symmetric_are_listed_both_ways():
    frame = likewise.compare(views(), ["cka", "linear-regression"], calibrate=9).numbers()
    assert (frame.measure == "cka").sum() == 6
    assert (frame.measure == "linear-regression").sum() == 12
    assert list(frame.columns)[:4] == ["a", "b", "measure", "value"]
