"""`likewise zeroshot`: a table of networks by what they make of classes they never saw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise.cli.zeroshot import zeroshot
from tests.cli.conftest import invoke


def test_networks_are_scored_written_and_found_again(tmp_path: Path) -> None:
    given = ("zoo:mlp", "--data", "digits:train[:120]", "--preset", "small", "--epochs", "1", "--out", str(tmp_path))
    (row,) = json.loads(invoke(zeroshot, *given, "--json"))
    assert 0 < row["DBI"] < 1
    assert row["AM"] > 0
    weights = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    assert len(weights) == 11  # ten classes left out, and all of them
    text = invoke(zeroshot, *given)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")} == weights
    assert f"{row['DBI']:.4g}" in text
    assert f"written to {tmp_path}: zeroshot.csv, one file per network, store/" in text.replace("\n", " ")
    assert (tmp_path / "0.safetensors").is_file()


def test_a_preset_that_is_not_there_is_refused() -> None:
    with pytest.raises(Exception, match="tiny") as error:
        invoke(zeroshot, "zoo:mlp", "--data", "digits", "--preset", "tiny")
    assert "small" in str(error.value)
