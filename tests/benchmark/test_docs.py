"""What docs/benchmark.md shows runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

from likewise.benchmark import GROUNDINGS
from tests.conftest import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "benchmark.md").read_text(), re.S)


def test_representations_of_ones_own_are_evaluated_as_shown(tmp_path: Path) -> None:
    names: dict[str, object] = {"folder": tmp_path}
    exec(BLOCKS[0], names)
    rows = names["rows"]
    found = rows[(rows["metric"] == "auprc") & (rows["variant"] == "published")].set_index("measure")["value"]
    assert found.to_dict() == {"cka": 1.0, "rsa": 1.0}


def test_a_grounding_of_ones_own_is_declared_as_shown() -> None:
    exec(BLOCKS[1], {})
    assert GROUNDINGS.get("same-teacher").summary == "Are networks of one teacher more alike than others?"
    GROUNDINGS.remove("same-teacher")
    assert len(BLOCKS) == 2
