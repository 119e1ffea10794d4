"""Gains over the paper's measures, by hand and against SciPy's own interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from likewise.benchmark import gains
from likewise.errors import InputError
from tests.benchmark.frames import results, row


def places(cka: list[float], mutual: list[float], **changes: object) -> list[dict[str, object]]:
    pairs = [("cka", cka), ("rsa", [0.1] * len(cka)), ("mutual-knn", mutual)]
    return [
        row(measure=name, value=value, network=f"net{number}", **changes)
        for name, values in pairs
        for number, value in enumerate(values)
    ]


def test_a_gain_is_over_the_best_of_the_paper_with_students_interval() -> None:
    found = gains(results(places([0.5, 0.6, 0.7], [0.7, 0.75, 0.95]))).iloc[0]
    assert (found["best of the 23"], found["measure"], found["places"]) == ("CKA", "mutual-knn", 3)
    differences = np.array([0.2, 0.15, 0.25])
    low, high = stats.t.interval(0.95, 2, differences.mean(), stats.sem(differences))
    assert found["gain"] == pytest.approx(0.2)
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert found["beats"]


def test_repetitions_are_no_new_places() -> None:
    rows = places([0.5], [0.9], seed=0) + places([0.7], [0.9], seed=1)
    found = gains(results(rows)).iloc[0]
    assert (found["places"], found["gain"]) == (1, pytest.approx(0.3))
    assert np.isnan(found["low"])
    assert found["beats"] is None


def test_domains_stand_alone_and_together() -> None:
    rows = places([0.5, 0.6], [0.4, 0.5]) + places([0.5, 0.6], [0.9, 1.0], domain="vision", data="digits")
    found = gains(results(rows)).set_index("domain")
    assert found["gain"].to_dict() == {
        "graph": pytest.approx(-0.1),
        "vision": pytest.approx(0.4),
        "all": pytest.approx(0.15),
    }
    assert found["beats"].tolist() == [False, True, False]


def test_what_is_not_valid_is_left_out() -> None:
    rows = places([0.5, 0.6], [0.9, 0.9]) + places([0.5], [0.1], data="flickr", valid=False)
    found = gains(results(rows))
    assert found["measure"].tolist() == ["mutual-knn"]
    assert found["places"].tolist() == [2]


def test_what_is_undefined_in_a_place_is_judged_on_the_others_and_comes_later() -> None:
    rows = places([0.5, 0.6], [0.9, 0.9])
    rows += [row(measure="pnka", value=1.0, network="net0"), row(measure="eos", value=0.8, network="net0")]
    found = gains(results(rows))
    assert found["measure"].tolist() == ["mutual-knn", "pnka"]
    assert found["places"].tolist() == [2, 1]
    assert found["best of the 23"].tolist() == ["CKA", "EOS"]  # the latter knows net0 alone
    assert found["gain"].tolist() == [pytest.approx(0.35), pytest.approx(0.2)]


def test_results_without_a_valid_cell_are_refused() -> None:
    with pytest.raises(InputError) as error:
        gains(results(places([0.5], [0.9], valid=False)))
    assert str(error.value) == "no valid cell holds measures in this form. Run the benchmark with --measures all."
