"""The table of architectures, and the rank correlation of metrics with robustness."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from likewise.errors import InputError
from likewise.zeroshot import architectures, paper_table, rank_correlations
from tests.helpers import sentence
from tests.zeroshot.helpers import drawn


def attacked(fooled: tuple[int, int, int, int], generations: int = 1, images: int = 10) -> pd.DataFrame:
    rows = [("pixel", 1), ("pixel", 3), ("threshold", 1), ("threshold", 3)]
    table = pd.DataFrame(rows, columns=["attack", "threshold"])
    return table.assign(generations=generations, images=images, fooled=fooled, wrong_before=2)


def test_the_tables_of_the_paper_give_the_correlations_we_print_beside_ours() -> None:
    found = rank_correlations(paper_table(), against=["attacks", "L0", "Linf"]).set_index(["of", "against"])
    # by hand: ranks of attacks 1 2 3 4 5, of DBI 1 5 4 3 2 (Σd² = 20), of AM 2 1 5 4 3 (Σd² = 10); 1 - 6 Σd² / 120
    assert found["correlation"].round(9).tolist() == [0.0] * 3 + [0.5] * 3
    assert found["networks"].unique().tolist() == [5]
    assert paper_table()["attacks"].to_dict() == {
        "CapsNet": 383,
        "AllConv": 403,
        "ResNet": 485,
        "NIN": 528,
        "LeNet": 677,
    }


def test_correlations_are_those_of_scipy_with_ties_too() -> None:
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"DBI": draw.integers(5, size=9), "attacks": draw.integers(5, size=9)})
    (row,) = rank_correlations(table, of=["DBI"]).itertuples()
    assert row.correlation == pytest.approx(spearmanr(table["DBI"], table["attacks"]).statistic)


def test_intervals_are_fishers_with_the_variance_of_bonett_and_wright() -> None:
    table = pd.DataFrame({"DBI": range(8), "attacks": [1, 0, 3, 2, 5, 4, 7, 6]})
    (row,) = rank_correlations(table, of=["DBI"]).itertuples()
    # r = 1 - 6 · 8 / 504 = 19/21, and the variance (1 + r²/2) / 5
    r = 19 / 21
    reach = 1.959964 * ((1 + r**2 / 2) / 5) ** 0.5
    assert row.correlation == pytest.approx(r)
    assert (row.low, row.high) == pytest.approx((np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)))


@pytest.mark.parametrize(("sign", "low", "high"), [(1, 0.68, 1.0), (-1, -1.0, -0.68)])
def test_a_perfect_order_of_few_networks_is_not_taken_for_certain(sign: int, low: float, high: float) -> None:
    table = pd.DataFrame({"DBI": range(7), "attacks": [sign * i for i in range(7)]})
    (row,) = rank_correlations(table, of=["DBI"]).itertuples()
    assert row.correlation == sign
    assert (row.low, row.high) == pytest.approx((low, high), abs=0.01)
    assert row.p == pytest.approx(2 / 5040)  # this order and its reverse


def test_five_networks_in_perfect_order_still_have_an_interval_that_holds_0() -> None:
    (row,) = rank_correlations(pd.DataFrame({"DBI": range(5), "attacks": range(5)}), of=["DBI"]).itertuples()
    assert row.low < 0 < row.high == 1


def test_a_metric_that_never_differs_has_no_correlation() -> None:
    table = pd.DataFrame({"DBI": [1.0] * 5, "attacks": range(5)})
    (row,) = rank_correlations(table, of=["DBI"]).itertuples()
    assert np.isnan([row.correlation, row.low, row.high, row.p]).all()


def test_attacks_are_counted_by_norm_and_among_correctly_classified_images() -> None:
    results = [drawn("one"), drawn("two")]
    table = architectures(results, {"one": attacked((2, 4, 3, 5)), "two": attacked((9, 9, 9, 9))})
    assert table.loc["one", ["L0", "Linf", "attacks", "attacks of"]].tolist() == [6, 8, 14, 40]
    assert table.loc["one", "rate"] == pytest.approx((14 - 8) / 32)  # 2 of 10 were wrong before, four times
    assert table.loc["two", "rate"] == pytest.approx(28 / 32)
    assert table.loc["one", "DBI"] == pytest.approx(results[0].dbi().mean)
    assert "attacks" not in architectures(results)


def test_bad_tables_are_refused_in_a_sentence() -> None:
    one = drawn("one")
    both = pd.concat([attacked((1, 1, 1, 1)), attacked((1, 1, 1, 1), generations=100)])
    assert sentence(InputError, architectures, [one], {"one": both}) == (
        "the attacks on 'one' are of several numbers of generations. Take one: table[table.generations == 100]."
    )
    assert sentence(InputError, architectures, [one], {}) == (
        "there are no attacks on 'one'. Give the table of robustness for every network."
    )
    other = {"one": attacked((1, 1, 1, 1)), "two": attacked((1, 1, 1, 1), images=20)}
    assert sentence(InputError, architectures, [one, drawn("two")], other) == (
        "networks were attacked with other attacks, thresholds or images. Attack all alike."
    )
    assert sentence(InputError, rank_correlations, paper_table(), of=["DBJ"]) == (
        "the table has no column 'DBJ'. Choose 'L0', 'Linf', 'attacks' and 4 more."
    )
    assert sentence(InputError, rank_correlations, paper_table()[:3]) == (
        "3 networks have both 'DBI' and 'attacks', too few for an interval. Give four or more."
    )
