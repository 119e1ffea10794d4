"""The matrix of attack transfer: saved, ordered, with intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise.errors import StoreError, UnknownNameError
from likewise.transfer import Answers, TransferMatrix, load, sat
from likewise.transfer.matrix import warn_of_accuracies
from tests.conftest import refused
from tests.transfer.helpers import QUICK, digits, zoo


@cache
def matrix() -> TransferMatrix:
    return sat(zoo(), digits(), **QUICK)


def test_a_run_is_saved_as_a_folder_and_loaded_whole(tmp_path: Path) -> None:
    assert matrix().save_run(tmp_path / "run") == tmp_path / "run"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "answers.safetensors",
        "likewise.manifest",
        "sat.csv",
        "sat.safetensors",
    ]
    again = load(tmp_path / "run")
    for name in (
        "values",
        "rates",
        "counts",
        "percent",
        "same_mistakes",
        "accuracies",
        "predictions",
        "right",
        "labels",
    ):
        np.testing.assert_array_equal(getattr(again, name), getattr(matrix(), name))
    assert (again.names, again.about, repr(again)) == (matrix().names, matrix().about, repr(matrix()))
    assert again.answers is not None
    np.testing.assert_array_equal(again.answers.logits, matrix().answers.logits)
    frame = pd.read_csv(tmp_path / "run" / "sat.csv")
    assert list(frame)[:8] == ["a", "b", "measure", "value", "percent", "rates", "counts", "same_mistakes"]
    assert frame["counts"].tolist() == matrix().counts.flatten().tolist()


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
def test_a_matrix_alone_has_everything_but_the_logits(tmp_path: Path, kind: str) -> None:
    path = matrix().save(tmp_path / f"sat.{kind}")
    again = TransferMatrix.load(path)
    assert again.answers is None
    assert again.interval("a", "b") == matrix().interval("a", "b")
    plain = likewise.SimilarityMatrix.load(path)
    assert type(plain) is likewise.SimilarityMatrix
    np.testing.assert_array_equal(plain.values, matrix().values)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    assert (
        refused(lambda: load(tmp_path / "none"))
        == f"there is no folder {tmp_path / 'none'}. Give one that likewise transfer --out wrote."
    )
    assert (
        refused(lambda: load(tmp_path), StoreError)
        == f"there is no file {tmp_path / 'sat.safetensors'}. Check the path."
    )
    likewise.SimilarityMatrix(["a", "b"], np.eye(2)).save(tmp_path / "sat.safetensors")
    assert refused(lambda: load(tmp_path), StoreError) == (
        f"{tmp_path / 'sat.safetensors'} holds no similarity matrix. Give a file that TransferMatrix.save wrote."
    )


def test_another_order_and_fewer_networks_keep_all_parts_together() -> None:
    turned = matrix().reordered(["c", "a"])
    assert turned.names == ("c", "a")
    assert turned["c", "a"] == matrix()["c", "a"]
    np.testing.assert_array_equal(turned.rates, matrix().rates[np.ix_([2, 0], [2, 0])])
    np.testing.assert_array_equal(turned.predictions[0, 1], matrix().predictions[2, 0])
    np.testing.assert_array_equal(turned.accuracies, matrix().accuracies[[2, 0]])
    assert turned.answers.names == ("c", "a")
    assert turned.interval("a", "c") == matrix().interval("a", "c")
    assert set(matrix().sorted().names) == {"a", "b", "c"}


def test_intervals_hold_the_score_and_shrink_with_the_inputs() -> None:
    found = matrix().intervals()
    assert found.names == ("a", "b", "c")
    assert ((found.low <= matrix().values) & (matrix().values <= found.high)).all()
    one = matrix().interval("a", "c")
    assert (one.low, one.high) == (found.low[0, 2], found.high[0, 2])
    assert one.method == "intervals of the two rates (Jeffreys), by their correlation over inputs"
    answers = matrix().answers
    four = Answers(answers.names, np.tile(answers.logits, (1, 4, 1)), np.tile(answers.labels, 4))
    longer = TransferMatrix.of(four, np.tile(matrix().predictions, (1, 1, 4)))
    np.testing.assert_allclose(longer.values, matrix().values)
    more = longer.intervals()
    clear = found.low > 0  # not a draw without any success, whose score is ln 0.01
    assert clear.sum() >= 5
    np.testing.assert_allclose(
        ((found.high - found.low) / (more.high - more.low))[clear], 2, rtol=0.35
    )  # the root of 4


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    # networks that fool each other on every input with probability 0.3: the truth is ln 30
    rng, inside = np.random.default_rng(0), 0
    logits = np.tile([1.0, 0.0], (2, 200, 1))
    for _ in range(200):
        predictions = (rng.random((2, 2, 200)) < 0.3).astype(int)
        found = TransferMatrix.of(Answers("ab", logits, np.zeros(200, dtype=int)), predictions)
        one = found.interval("a", "b")
        inside += one.low <= math.log(30) <= one.high
    assert 0.89 <= inside / 200 <= 0.99


def of_hits(n: int, there: list[int], back: list[int], **options: bool) -> TransferMatrix:
    """Two networks that know all of n inputs; which inputs the examples of either fool the other on."""
    predictions = np.zeros((2, 2, n), dtype=int)
    predictions[0, 1, there] = predictions[1, 0, back] = 1
    logits = np.tile([1.0, 0.0], (2, n, 1))
    return TransferMatrix.of(Answers("ab", logits, np.zeros(n, dtype=int)), predictions, options, **options)


def test_no_hit_and_all_hits_have_intervals_of_some_width() -> None:
    none = of_hits(55, [], []).interval("a", "b")
    # Jeffreys: the 97.5 % quantile of Beta(0.5, 55.5) is 0.0444; the two directions may depend on each other
    assert (none.value, none.low) == (pytest.approx(math.log(0.01)), pytest.approx(math.log(0.01)))
    assert none.high == pytest.approx(math.log(4.44), abs=0.01)
    every = of_hits(55, list(range(55)), list(range(55))).interval("a", "b")
    assert (every.value, every.high) == (pytest.approx(math.log(100)), pytest.approx(math.log(100)))
    assert every.low == pytest.approx(math.log(100 - 4.44), abs=0.001)


def test_directions_that_fool_on_the_same_inputs_say_less_than_on_others() -> None:
    alike, apart = (of_hits(100, list(range(10)), list(range(start, start + 10))) for start in (0, 50))
    assert alike["a", "b"] == apart["a", "b"] == pytest.approx(math.log(10))
    widths = [one.interval("a", "b").high - one.interval("a", "b").low for one in (alike, apart)]
    assert widths[0] / widths[1] == pytest.approx(2**0.5, rel=0.05)


def test_a_pair_without_a_hit_is_noted_and_smoothed_scores_count_half_a_hit() -> None:
    few = of_hits(55, [], [])
    assert few.notes()[2:] == [
        "no hit in 1 of 1 pairs, such as a and b: then the score is ln 0.01, though 55 inputs allow up to 4.4 % hits "
        "(show more, or take smoothed scores)"
    ]
    smoothed = of_hits(55, [], [], smoothed=True)
    assert smoothed["a", "b"] == pytest.approx(math.log(100 * 0.5 / 111))
    assert len(smoothed.notes()) == 2
    assert smoothed.interval("a", "b").low <= smoothed["a", "b"] <= smoothed.interval("a", "b").high
    assert smoothed.rates[0, 1] == 0


def test_accuracies_of_few_inputs_decide_nothing_and_of_many_do() -> None:
    def matrix_of(wrong: int, n: int) -> TransferMatrix:
        logits = np.tile([1.0, 0.0], (2, n, 1))
        logits[1, :wrong] = [0.0, 1.0]
        return TransferMatrix.of(Answers("ab", logits, np.zeros(n, dtype=int)), np.ones((2, 2, n), dtype=int))

    few, many = matrix_of(4, 64), matrix_of(400, 6400)  # 6.2 points apart
    assert few.notes() == [
        "64 inputs, clean accuracies from 93.8 % [85, 98] to 100.0 % [94, 100]",
        "accuracies differ by 6.2 points, too few inputs to tell whether by more than 4, where SAT partly measures "
        "accuracy",
        "accuracy: a 100.0 %, b 93.8 %",
    ]
    assert many.notes() == [
        "6400 inputs, clean accuracies from 93.8 % [93, 94] to 100.0 % [100, 100]",
        "accuracy: a 100.0 %, b 93.8 %",
    ]
    warn_of_accuracies(few.answers)  # nothing is said
    with pytest.warns(UserWarning, match="differ") as told:
        warn_of_accuracies(many.answers)
    assert str(told[0].message) == (
        "clean accuracies differ by 6.2 points [6, 7], from 93.8 % of 'b' to 100.0 % of 'a': with more than 4, SAT "
        "partly measures accuracy. Compare networks of like accuracy."
    )


def test_an_interval_of_no_level_and_of_no_network_is_refused() -> None:
    assert (
        refused(lambda: matrix().interval("a", "b", level=95))
        == "level is 95. Give a share between 0 and 1, like 0.95."
    )
    with pytest.raises(UnknownNameError):
        matrix().interval("a", "d")


def test_arrays_that_do_not_fit_the_names_are_refused() -> None:
    assert refused(lambda: replace(matrix(), right=matrix().right[:2])) == (
        "3 networks and 40 labels need predictions (3, 3, 40) and right (3, 40), got (3, 3, 40) and (2, 40). Make the "
        "matrix with TransferMatrix.of."
    )


def test_a_matrix_says_how_many_inputs_and_which_accuracies() -> None:
    assert matrix().notes() == [
        "40 inputs, clean accuracies from 97.5 % [87, 100] to 97.5 % [87, 100]",
        "accuracy: a 97.5 %, b 97.5 %, c 97.5 %",
    ]
    assert str(matrix()).startswith("TransferMatrix('sat', 3 networks), larger is more alike\n")


def test_colours_reach_as_far_as_the_scores() -> None:
    values = matrix().values
    assert matrix().plot().axes[0].images[0].get_clim() == (values.min(), values.max())
