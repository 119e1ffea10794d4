"""`likewise advise`: measures ranked for a question, with the rows they rest on."""

from __future__ import annotations

import json

import pytest

from likewise.benchmark.paper import figures
from likewise.cli.advise import advise
from likewise.errors import InputError, UnknownNameError
from tests.cli.conftest import invoke


def test_measures_are_ranked_and_every_place_is_traced_to_the_papers_tables() -> None:
    found = json.loads(
        invoke(advise, "--domain", "vision", "--question", "shortcut", "--n", "500", "--top", "3", "--json")
    )
    printed = figures()
    assert len(found["measures"]) == 3
    for one in found["measures"]:
        assert one["evidence"]
        for row in one["evidence"]:
            table = int(row["source"].removeprefix("ReSi paper, table "))
            same = (printed["table"] == table) & (printed["data"] == row["data"])
            same &= (printed["network"] == row["network"]) & (printed["measure"] == one["measure"])
            assert row["value"] in printed[same]["value"].tolist()


def test_a_budget_leaves_out_what_costs_more() -> None:
    cheap = invoke(
        advise, "--domain", "graph", "--question", "labels", "--n", "2000", "--budget", "50ms", "--top", "30"
    )
    every = invoke(advise, "--domain", "graph", "--question", "labels", "--n", "2000", "--top", "30")
    assert "IMD" in every
    assert "\nIMD" not in cheap


def test_what_is_no_question_is_refused_with_one_that_is_near() -> None:
    with pytest.raises(UnknownNameError) as error:
        invoke(advise, "--domain", "vision", "--question", "shortcutt")
    assert "Did you mean 'shortcut'?" in str(error.value)
    with pytest.raises(InputError) as budget:
        invoke(advise, "--domain", "vision", "--question", "shortcut", "--budget", "10s")
    assert "n" in str(budget.value).replace(".", " ").replace("=", " ").split()
