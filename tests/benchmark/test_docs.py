"""What docs/benchmark.md shows runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import likewise
from likewise.benchmark import DOMAINS, GROUNDINGS
from tests.conftest import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "benchmark.md").read_text(), re.S)


def test_representations_and_a_measure_of_ones_own_are_evaluated_as_shown(tmp_path: Path) -> None:
    names: dict[str, Any] = {"folder": tmp_path}
    for block in BLOCKS[:2]:
        exec(block, names)
    assert _auprc(names["rows"]) == {"cka": 1.0, "rsa": 1.0}
    own = _auprc(names["own"])
    assert own == {"cka": 1.0, "first-direction": own["first-direction"]}
    assert 0.2 < own["first-direction"] <= 1  # by chance it would be 3 of 12 pairs


def test_a_grounding_of_ones_own_is_declared_as_shown() -> None:
    exec(BLOCKS[2], {})
    assert GROUNDINGS.get("same-teacher").summary == "Are networks of one teacher more alike than others?"
    GROUNDINGS.remove("same-teacher")


def test_a_domain_of_ones_own_runs_as_shown(tmp_path: Path) -> None:
    names: dict[str, Any] = {"folder": tmp_path, "likewise": likewise}
    try:
        exec(BLOCKS[3], names)
    finally:
        DOMAINS.remove("digits-only")
    found = names["run"]
    assert set(found.results["grounding"]) == set(GROUNDINGS.names())
    groups = ["labels 1", "shortcut 0", "shortcut 1", "augmentation 2000"]
    assert sorted(set(found.networks["group"])) == sorted(["standard", *groups])
    assert len(BLOCKS) == 4
    assert all(len(block.splitlines()) < 30 for block in BLOCKS)


def _auprc(rows: Any) -> dict[str, Any]:
    found = rows[(rows["metric"] == "auprc") & (rows["variant"] == "published")]
    values: dict[str, Any] = found.set_index("measure")["value"].to_dict()
    return values
