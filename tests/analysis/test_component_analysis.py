"""Components that make the difference, and keywords of families, where both are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from likewise import analysis
from likewise.errors import InputError
from tests.analysis.helpers import families, matrix
from tests.conftest import refused


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


def test_a_table_may_be_a_file_or_a_mapping(tmp_path: Path) -> None:
    given, _ = families((4, 4))
    found, names = analysis.clusters(given, 2), list(given.names)
    frame = table(names, kind=list("aabbabab"), norm=["None"] * 4 + ["BN"] * 4)
    frame.to_csv(tmp_path / "components.csv", index=False)
    mapping = {row["network"]: {"kind": row["kind"], "norm": row["norm"]} for row in frame.to_dict("records")}
    expected = analysis.keywords(found, frame)
    assert any("norm=None" in words for words in expected)  # a word, not an empty cell
    for form in (tmp_path / "components.csv", str(tmp_path / "components.csv"), mapping, frame.set_index("network")):
        assert analysis.keywords(found, form) == expected


def test_an_unknown_component_is_shared_with_no_other_network() -> None:
    draw = np.random.default_rng(0)
    known = np.arange(12) < 6
    alike = 1.0 * (known[:, None] & known) + 0.01 * draw.random((12, 12))
    given = matrix((alike + alike.T) / 2)
    rows = {name: {"stem": "7s2" if k else draw.choice(["", None])} for name, k in zip(given.names, known, strict=True)}
    assert analysis.component_importance(given, rows).r2 > 0.99  # pairs of unknown ones are not alike
    words = analysis.keywords(analysis.clusters(given, 2), rows)
    assert sorted(words) == [[], ["stem=7s2"]]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            [1, 2],
            "[1, 2] is no table of components. Give a data frame, a CSV file, or {network: {component: value}}.",
        ),
        ("missing.csv", "there is no file missing.csv. Check the path."),
        (
            {"n0": {"stem": "7s2"}},
            "the table of components has no row for 'n1'. Give one per network.",
        ),
    ],
    ids=["list", "no file", "missing row"],
)
def test_what_is_no_table_of_components_is_refused(wrong: object, sentence: str) -> None:
    given, _ = families((3, 3))
    assert refused(lambda: analysis.component_importance(given, wrong)) == sentence


def test_a_damaged_file_of_components_is_refused(tmp_path: Path) -> None:
    given, _ = families((3, 3))
    path = tmp_path / "components.csv"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError) as error:
        analysis.component_importance(given, path)
    assert str(error.value).startswith(f"{path} is no table of components (")
    assert str(error.value).endswith("). Give a CSV file, one row per network.")


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
    assert refused(lambda: analysis.component_importance(given, wrong)) == message
