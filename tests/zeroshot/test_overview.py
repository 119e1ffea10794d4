"""Tables of several networks as text: all that matters, in 80 columns."""

from __future__ import annotations

import numpy as np

from likewise.zeroshot import ZeroShot, means, paper_table, rank_correlations, summary
from tests.zeroshot.helpers import drawn

NAMES = [f"zoo:mixer-tiny,depth={depth},width=48" for depth in range(4)]


def of_two_seeds(name: str) -> ZeroShot:
    one, two = drawn(name), drawn(f"{name} again")
    accuracy = np.array([0.5, 0.6])
    return ZeroShot(name, one.classes, one.full + two.full, one.held_out + two.held_out, accuracy=accuracy)


def test_long_names_seeds_attacks_and_orders_fit_80_columns() -> None:
    table = means([of_two_seeds(name) for name in NAMES])
    table = table.assign(L0=400, Linf=388, attacks=788, rate=0.123456, **{"attacks of": 800})
    text = summary(table, rank_correlations(paper_table()))
    assert max(map(len, text.splitlines())) <= 80
    for name in ("DBI in [0, 1]", "AM ± over seeds", "accuracy", "Linf", "rate", "correlation"):
        assert name in text
    first = table.iloc[0]
    assert f"{first['DBI']:.3g} ± {first['DBI ±']:.2g}" in text
    assert "0.1235" in text


def test_what_is_not_known_has_no_column() -> None:
    text = summary(means(drawn("net")))
    for name in ("accuracy", "over seeds", "attacks"):
        assert name not in text
