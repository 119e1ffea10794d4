"""Components that make the difference, and keywords of families, where both are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from likewise import analysis
from likewise.errors import InputError
from tests.analysis.helpers import families, matrix


def table(names: list[str], **columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"network": names, **columns})


def test_the_component_that_decides_comes_first() -> None:
    draw = np.random.default_rng(0)
    base, stem = draw.integers(0, 3, 24), draw.integers(0, 3, 24)
    alike = 2.0 * (base[:, None] == base) + 0.5 * (stem[:, None] == stem) + 0.01 * draw.random((24, 24))
    given = matrix((alike + alike.T) / 2)
    components = table(
        list(given.names), other=draw.choice(["x", "y"], 24), stem=stem.astype(str), base=base.astype(str)
    )
    found = analysis.component_importance(given, components)
    assert list(found.all_pairs)[:2] == list(found.held_out)[:2] == ["base", "stem"]
    assert found.r2 > 0.99
    assert abs(found.all_pairs["other"]) < 0.01


def test_keywords_are_weighted_by_how_rare_they_are() -> None:
    given, groups = families((4, 4))
    found = analysis.clusters(given, 2)
    kinds = {name: "ab"[label] for label, group in enumerate(groups) for name in group}
    names = list(given.names)
    rare = ["yes" if name == groups[0][0] else "no" for name in names]
    words = analysis.keywords(found, table(names, kind=[kinds[n] for n in names], rare=rare))
    # a word all of a family have: kind (4 of 8) weighs ln(9/5) + 1, "no" (7 of 8) ln(9/8) + 1 of 3/4 or all
    assert math.log(9 / 5) > math.log(9 / 8)
    own = words[found.labels[names.index(groups[0][0])]]
    assert own == ["kind=a", "rare=no", "rare=yes"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t[t.network != "n3"],
            "the table of components has no row for 'n3'. Give one per network.",
        ),
        (lambda t: pd.concat([t, t]), "the table of components has two rows for one network. Keep one."),
    ],
    ids=["missing", "twice"],
)
def test_a_table_that_does_not_fit_is_refused(change: object, message: str) -> None:
    given, _ = families((3, 3))
    wrong = change(table(list(given.names), kind=list("aabbab")))  # type: ignore[operator]
    with pytest.raises(InputError) as error:
        analysis.component_importance(given, wrong)
    assert str(error.value) == message
