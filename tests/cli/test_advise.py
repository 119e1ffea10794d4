"""`likewise advise`: measures ranked for a question, with the rows they rest on."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from likewise.benchmark.results.advice import OURS
from likewise.benchmark.results.paper import figures
from likewise.cli.advise import advise
from likewise.errors import InputError, UnknownNameError
from tests.cli.conftest import invoke


def test_measures_are_ranked_and_every_place_is_traced_to_rows_of_the_tables_behind_it() -> None:
    found = json.loads(
        invoke(advise, "--domain", "vision", "--question", "shortcut", "--n", "500", "--top", "3", "--json")
    )
    tables = [figures(), *([pd.read_csv(OURS)] if OURS.exists() else [])]
    assert len(found["measures"]) == 3
    for one in found["measures"]:
        assert one["evidence"]
        for row in one["evidence"]:
            where, _, name = row["source"].rpartition("table " if "table" in row["source"] else "our run")
            printed = tables[0] if where else tables[1]
            column, names = ("table", [int(name)]) if where else ("run", name.removeprefix("s").strip().split(", "))
            same = printed[column].isin(names) & (printed["data"] == row["data"])
            same &= (printed["network"] == row["network"]) & (printed["measure"] == one["measure"])
            same &= (printed["grounding"] == row["grounding"]) & (printed["metric"] == row["metric"])
            assert row["value"] == pytest.approx(printed[same]["value"].mean())


def test_what_costs_more_than_the_budget_comes_last_and_says_so() -> None:
    words = ("--domain", "graph", "--question", "labels", "--n", "2000", "--top", "50")
    every, cheap = (invoke(advise, *words, *more).splitlines() for more in ((), ("--budget", "50ms")))
    assert not [line for line in every if "over budget" in line]
    (dear,) = [line for line in cheap if " IMD " in line]
    assert "over budget" in dear
    after = [line for line in cheap[cheap.index(dear) :] if line[:1].isdigit()]
    assert all("over budget" in line or "sees too little" in line or "undefined" in line for line in after)


def test_what_is_no_question_is_refused_with_one_that_is_near() -> None:
    with pytest.raises(UnknownNameError) as error:
        invoke(advise, "--domain", "vision", "--question", "shortcutt")
    assert "Did you mean 'shortcut'?" in str(error.value)
    with pytest.raises(InputError) as budget:
        invoke(advise, "--domain", "vision", "--question", "shortcut", "--budget", "10s")
    assert "n" in str(budget.value).replace(".", " ").replace("=", " ").split()
