"""DBI and the Amalgam Metric: values from outside, bounds, what is refused, intervals that hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import davies_bouldin_score

from likewise.errors import InputError, UndefinedError
from likewise.zeroshot import Metric, amalgam, davies_bouldin, dbi
from likewise.zeroshot.soft_labels import soft_labels
from tests.conftest import ROOT
from tests.helpers import sentence

GOLDEN: dict[str, Any] = json.loads((ROOT / "tests/golden/zeroshot/expected.json").read_text())
CLOSE = {"rel": 1e-9, "abs": 1e-12}
DBI_READINGS = {
    "rms": "rms_euclid (Eq.3)",
    "mean": "mean_euclid",
    "columns": "rms_elementwise",
    "ddof1": "rms_ddof1",
    "l1": "mean_l1",
}
EQUATION_4 = "AM (Eq.4: per-sample norm, sums, /(n-1))"
AM_READINGS: dict[str, dict[str, Any]] = {
    EQUATION_4: {},
    "AM_hist_norm": {"scaling": "histogram"},
    "AM_no_norm": {"scaling": "none"},
    "AM_mean_histograms_/(n-1)": {"means": True},
    "AM_no_n-1_division": {"divide": False},
    "AM_mean_histograms_no_n-1": {"means": True, "divide": False},
}


def by_name(cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {case["name"]: case for case in cases}


@pytest.mark.parametrize("reading", DBI_READINGS)
@pytest.mark.parametrize("case", GOLDEN["DBI"], ids=by_name(GOLDEN["DBI"]))
def test_dbi_has_the_golden_value_in_every_reading(case: dict[str, Any], reading: Any) -> None:
    kind = "lengths" if "lengths" in case["name"] else "probabilities"
    found = dbi(np.array(case["e"]), answers=kind, reading=reading)
    assert float(found) == pytest.approx(case["values"][DBI_READINGS[reading]], **CLOSE)


def test_dbi_over_classes_has_the_golden_mean_and_deviations() -> None:
    expected = GOLDEN["DBI_aggregate"]
    cases = by_name(GOLDEN["DBI"])
    found = dbi({name: cases[name]["e"] for name in expected["unknown_classes"]}, answers="lengths")
    assert list(found.per_class.values()) == pytest.approx(expected["per_class"], **CLOSE)
    assert found.mean == pytest.approx(expected["mean"], **CLOSE)
    assert found.std() == pytest.approx(expected["std_ddof0"], **CLOSE)
    assert found.std(ddof=1) == pytest.approx(expected["std_ddof1"], **CLOSE)
    assert repr(found) == "DBI 0.4289 ± 0.0560 over 2 classes"


@pytest.mark.parametrize("reading", AM_READINGS)
@pytest.mark.parametrize("case", GOLDEN["AM"], ids=by_name(GOLDEN["AM"]))
def test_amalgam_has_the_golden_value_in_every_reading(case: dict[str, Any], reading: str) -> None:
    found = amalgam(case["full"], case["part"], **AM_READINGS[reading])
    assert found.mean == pytest.approx(case["values"][reading], **CLOSE)


@pytest.mark.parametrize("case", GOLDEN["AM"], ids=by_name(GOLDEN["AM"]))
def test_amalgam_has_the_golden_histograms_and_deviations(case: dict[str, Any]) -> None:
    found = amalgam(case["full"], case["part"])
    assert found.std() == pytest.approx(case["values"]["AM_std_ddof0"], **CLOSE)
    assert found.std(ddof=1) == pytest.approx(case["values"]["AM_std_ddof1"], **CLOSE)
    for expected, both in zip(case["values"]["per_class"], found.samples[0], strict=True):
        assert both[:, 0].sum(axis=0) == pytest.approx(expected["h_prime_per_sample_norm"], **CLOSE)
        assert both[:, 1].sum(axis=0) == pytest.approx(expected["h"], **CLOSE)
        assert len(both) == expected["n_e"]


def test_a_class_with_all_the_probability_is_taken_out_of_logits_exactly() -> None:
    edge = GOLDEN["AM_edge_logits"]
    found = soft_labels(np.array(edge["logits"]), "logits", without=edge["removed"])
    np.testing.assert_allclose(found, edge["softmax_over_remaining"], rtol=1e-12)
    assert (found[0] == found[1]).all()


def test_where_nothing_is_left_of_probabilities_a_warning_says_uniform() -> None:
    edge = GOLDEN["AM_edge"]
    with pytest.warns(UserWarning, match="nothing left") as caught:
        found = soft_labels(np.array(edge["full_class0"]), "probabilities", without=0)
    np.testing.assert_allclose(found, [edge["expected_first"], [0.5, 0.5]], rtol=1e-9)
    assert str(caught[0].message) == (
        "1 of 2 soft labels have nothing left without the class and are taken as uniform. Give logits, of which "
        "nothing is lost."
    )


def rows(n: int, k: int) -> st.SearchStrategy[np.ndarray]:
    """Soft labels that sum to one."""
    weights = arrays(np.float64, (n, k), elements=st.floats(0.0, 50.0))
    return weights.map(lambda w: (w + 1e-9) / (w + 1e-9).sum(axis=1, keepdims=True))


@given(st.integers(2, 9).flatmap(lambda k: rows(6, k)), st.sampled_from(sorted(DBI_READINGS)))
@settings(max_examples=50, deadline=None)
def test_dbi_lies_between_0_and_its_bound(e: np.ndarray, reading: Any) -> None:
    found, k = dbi(e, reading=reading), e.shape[1]
    assert 0 <= found.normalised_mean <= 1
    if reading == "rms":
        assert float(found) <= (1 - 1 / k) ** 0.5 + 1e-12
        assert found.normalised_mean == pytest.approx(float(found) / (1 - 1 / k) ** 0.5, abs=1e-12)


@given(st.integers(3, 5).flatmap(lambda n: st.tuples(rows(2 * n, n), rows(2 * n, n - 1))))
@settings(max_examples=50, deadline=None)
def test_amalgam_lies_between_0_and_its_bound(both: tuple[np.ndarray, np.ndarray]) -> None:
    n = both[0].shape[1]
    found = amalgam(*(list(each.reshape(n, 2, -1)) for each in both))
    for value, share in zip(found.values[0], found.normalised[0], strict=True):
        assert 0 <= value <= 2 * 2 / (n - 1) + 1e-9
        assert share == pytest.approx(value * (n - 1) / (2 * 2), abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 9, 99])
def test_one_hot_soft_labels_of_every_class_reach_the_bound_of_dbi(k: int) -> None:
    found = dbi(np.eye(k))
    assert float(found) == pytest.approx(GOLDEN["bounds"]["DBI_max_softmax_uniform_onehot_over_K"][str(k)], rel=1e-12)
    assert found.normalised_mean == pytest.approx(1)


def test_the_elementwise_reading_has_the_golden_bound() -> None:
    assert float(dbi(np.eye(9), reading="columns")) == pytest.approx(GOLDEN["bounds"]["DBI_elementwise_max_K9"])


@pytest.mark.parametrize("n_e", [1000, 5000, 6000])
def test_opposite_soft_labels_reach_the_bound_of_amalgam(n_e: int) -> None:
    full, part = np.zeros((n_e, 10)), np.zeros((n_e, 9))
    full[:, 8], full[:, 9], part[:, 0] = 0.5, 0.5, 1.0
    whole = [np.roll(full, i, axis=1) for i in range(10)]  # for class i the outputs i - 2 and i - 1 share all
    rest = [np.eye(9)[[(i + 3) % 9] * n_e] for i in range(10)]
    found = amalgam(whole, rest)
    assert found.mean == pytest.approx(GOLDEN["bounds"]["AM_max (2*n_e/(n-1))"][f"n_e={n_e},n=10"])
    assert found.normalised_mean == pytest.approx(1)


def test_lengths_are_taken_as_they_are_and_never_through_a_softmax() -> None:
    e = np.array([[0.1, 0.92, 0.05], [0.3, 0.4, 0.2], [0.05, 0.15, 0.85]])
    shares = e / e.sum(axis=1, keepdims=True)
    raw, scaled = dbi(e, answers="lengths"), dbi(e, answers="lengths", normalise_both=True)
    assert float(raw) == pytest.approx(np.sqrt(e.var(axis=0).sum()))
    assert float(scaled) == pytest.approx(np.sqrt(shares.var(axis=0).sum()))
    assert raw.normalised_mean == scaled.normalised_mean == pytest.approx(float(scaled) / (2 / 3) ** 0.5)


def test_amalgam_of_lengths_scales_the_reference_and_with_normalise_both_the_other_too() -> None:
    full = [[[0.5, 0.6, 0.2]], [[0.1, 0.9, 0.3]], [[0.2, 0.2, 0.7]]]
    part = [[[0.9, 0.3]], [[0.3, 0.9]], [[0.4, 0.4]]]
    # e' is (3/4, 1/4), (1/4, 3/4), (1/2, 1/2), which e has too once it is scaled
    raw = amalgam(full, part, answers="lengths")
    assert raw.values[0] == pytest.approx([(0.15 + 0.05) / 2, (0.05 + 0.15) / 2, (0.1 + 0.1) / 2])
    assert amalgam(full, part, answers="lengths", normalise_both=True).mean == pytest.approx(0)
    assert raw.normalised_mean == pytest.approx(0)


def test_logits_and_probabilities_of_the_same_networks_give_the_same() -> None:
    draw = np.random.default_rng(0)
    full, part = [draw.normal(size=(7, 4)) for _ in range(4)], [draw.normal(size=(7, 3)) for _ in range(4)]
    probable = [[torch.tensor(one).softmax(dim=1) for one in each] for each in (full, part)]
    assert amalgam(full, part, answers="logits").mean == pytest.approx(amalgam(*probable).mean, rel=1e-12)
    assert dbi(part, answers="logits").mean == pytest.approx(dbi(probable[1]).mean, rel=1e-12)


def test_several_seeds_have_a_deviation_of_their_own() -> None:
    from likewise.zeroshot.metrics import stacked

    def metric(values: list[float]) -> Metric:
        return Metric("DBI", ("a", "b"), np.array([values]), np.array([values]), [[]], np.sum)

    both = stacked([metric([0.2, 0.4]), metric([0.4, 0.8])])
    assert (both.mean, both.per_class) == (pytest.approx(0.45), {"a": pytest.approx(0.3), "b": pytest.approx(0.6)})
    assert both.std() == pytest.approx(0.15)  # of 0.3 and 0.6
    assert both.seed_std() == pytest.approx(0.15 * 2**0.5)  # of 0.3 and 0.6, with ddof 1
    assert np.isnan(metric([0.2, 0.4]).seed_std())
    assert repr(both) == "DBI 0.4500 ± 0.1500 over 2 classes, 2 seeds"


@pytest.mark.parametrize("name", ["DBI", "AM"])
def test_nine_of_ten_intervals_hold_the_value_of_many_samples(name: str) -> None:
    draw = np.random.default_rng(0)

    def sampled(n: int) -> Metric:
        part = [draw.dirichlet([3.0, 1.0], size=n), draw.dirichlet([1.0, 1.0], size=n), draw.dirichlet([1, 2], size=n)]
        full = [draw.dirichlet([4, 2, 1], size=n), draw.dirichlet([1, 4, 1], size=n), draw.dirichlet([1, 3, 5], size=n)]
        return dbi(part) if name == "DBI" else amalgam(full, part, means=True)

    truth = sampled(50_000).mean
    held = 0
    for _ in range(50):
        row = sampled(60).interval(level=0.9, resamples=120).loc["mean"]
        held += row["low"] <= truth <= row["high"]
    assert 39 <= held <= 49  # 45 of 50 expected


def test_an_interval_names_every_class_and_the_mean() -> None:
    draw = np.random.default_rng(1)
    found = dbi({"cat": draw.dirichlet(np.ones(3), 50), "dog": draw.dirichlet(np.ones(3), 40)})
    frame = found.interval(resamples=100)
    assert list(frame.index) == ["cat", "dog", "mean"]
    assert ((frame["low"] < frame["value"]) & (frame["value"] < frame["high"])).all()
    assert frame.equals(found.interval(resamples=100))
    assert sentence(InputError, found.interval, level=95) == "level is 95. Give a share between 0 and 1."


def test_davies_bouldin_is_scikit_learns() -> None:
    draw = np.random.default_rng(0)
    clusters = {name: draw.dirichlet(draw.uniform(0.5, 4, size=5), size=20 + 5 * i) for i, name in enumerate("abcd")}
    labels = np.repeat(np.arange(4), [len(rows) for rows in clusters.values()])
    expected = davies_bouldin_score(np.concatenate(list(clusters.values())), labels)
    assert davies_bouldin(clusters) == pytest.approx(expected, rel=1e-12)


def test_davies_bouldin_of_one_centroid_twice_is_undefined() -> None:
    same = [[0.5, 0.5], [0.25, 0.75]]
    assert sentence(UndefinedError, davies_bouldin, {"a": same, "b": same}) == (
        "the index is undefined: classes 'a' and 'b' have the same centroid. Leave one of them out."
    )
    assert sentence(InputError, davies_bouldin, {"a": same}) == (
        "clusters are compared with each other, and there is one class. Give two or more."
    )
    assert sentence(InputError, davies_bouldin, {"a": same, "b": [[0.5, 0.25, 0.25]]}) == (
        "soft labels differ in their columns. Give those of one network that saw none of the classes."
    )


FULL = [[[0.8, 0.1, 0.1]], [[0.1, 0.8, 0.1]], [[0.1, 0.1, 0.8]]]
PART = [[[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.5]]]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[0.5, np.nan]], "have NaN or infinite entries. Drop or repair them."),
        ([[np.inf, 0.0]], "have NaN or infinite entries. Drop or repair them."),
        ([[1.5, -0.5]], "have negative entries, which probabilities have not. If they are logits, say so."),
        (
            [[0.5, 0.5], [0.5, 0.25]],
            "do not sum to one: one row misses it by 0.25. Say answers='lengths', or 'logits', or scale them.",
        ),
        (np.empty((0, 2)), "are none: there is no sample. Give at least one, or leave the class out."),
        ([[1.0]], "are (1, 1), not (samples, classes) of two classes or more. Give one row each."),
    ],
)
def test_soft_labels_that_cannot_be_are_refused(values: Any, reason: str) -> None:
    assert sentence(InputError, dbi, {"cat": values}) == f"the soft labels of class 'cat' {reason}"
    part = [np.asarray(values), *PART[1:]]
    whose = "the soft labels of class '0' by the network without it"
    assert sentence(InputError, amalgam, FULL, part) == f"{whose} {reason}"


def test_lengths_below_zero_are_refused() -> None:
    assert sentence(InputError, dbi, [[0.5, -0.1]], answers="lengths") == (
        "the soft labels of class '0' have negative entries, which lengths have not. If they are logits, say so."
    )


def test_soft_labels_of_both_networks_match_in_count_and_columns() -> None:
    assert sentence(InputError, amalgam, FULL, [[[0.5, 0.5]] * 2, *PART[1:]]) == (
        "for class '0' there are 1 soft labels by the full network and 2 by the one without it. Show both the same "
        "samples in the same order."
    )
    assert sentence(InputError, amalgam, FULL, [*PART[:2], FULL[2]]) == (
        "for class '2' the full network answers with 3 classes and the one without it with 3. Of 3 classes these are 3 "
        "and 2."
    )
    assert sentence(InputError, amalgam, FULL, PART[:2]) == (
        "full is of the classes '0', '1', '2' and held_out of '0', '1'. Give both of the same classes, in the order of "
        "the outputs."
    )


def test_unknown_readings_are_refused_with_the_known_ones() -> None:
    assert sentence(InputError, dbi, PART, reading="rmse") == (
        "DBI has no reading 'rmse'. Did you mean 'rms'? Give 'rms', 'mean', 'columns', 'ddof1' or 'l1'."
    )
    assert sentence(InputError, amalgam, FULL, PART, scaling="sample") == (
        "AM has no scaling 'sample'. Did you mean 'samples'? Give 'samples', 'histogram' or 'none'."
    )
    assert sentence(UndefinedError, dbi, [[0.5, 0.5]], reading="ddof1") == (
        "a spread with ddof 1 needs two samples per class. Give more, or another reading."
    )


def test_classes_may_be_named_beside_a_list() -> None:
    assert dbi(PART, classes=["a", "b", "c"]).classes == ("a", "b", "c")
    assert dbi(np.array(PART)).classes == ("0", "1", "2")
    assert sentence(InputError, dbi, PART, classes=["a"]) == (
        "1 classes and soft labels of 3 are given. Give one array per class."
    )
    assert sentence(InputError, dbi, {"a": PART[0]}, classes=["b"]) == (
        "soft labels have no class 'b'. Give one array per class."
    )
    assert sentence(InputError, dbi, []) == "soft labels are of no class. Give one array per class."
