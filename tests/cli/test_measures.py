"""`likewise measures`: the table of facts, and the recipe of one measure."""

from __future__ import annotations

import json

from likewise import measures
from tests.cli.conftest import run


def test_measures_are_listed_with_their_facts() -> None:
    done = run("measures")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["measure", "in", "ReSi", "family"]
    assert len(lines) - 4 == len(measures.names()) >= 40
    row = next(line for line in lines if line.startswith("procrustes "))
    assert row.split() == [
        "procrustes",
        "OrthProc",
        "alignment",
        "less",
        "alike",
        "0",
        "…",
        "1.414",
        "yes",
        "permutation,",
        "rotation,",
        "scale,",
        "shift",
    ]


def test_one_measure_prints_its_recipe() -> None:
    done = run("measures", "cka")
    assert "|Xᵀ Y|² / (|Xᵀ X| |Yᵀ Y|)" in done.stdout
    assert "larger is more alike" in done.stdout
    assert "Kornblith" in done.stdout


def test_measures_speak_json() -> None:
    rows = json.loads(run("measures", "--family", "cca", "--json").stdout)
    assert [row["name"] for row in rows] == measures.names("cca")
