"""`likewise layerwise`: every layer of a network against every layer of another."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likewise.cli.layerwise import layerwise
from likewise.errors import OptionError
from likewise.matrices.layers import LayerMatrix
from tests.cli.conftest import invoke


def test_layerwise_prints_a_table_and_writes_a_folder(address: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = (address, address, "--data", "digits:test[:200]")
    title, head, *rows = invoke(layerwise, *words, "--out", str(out)).splitlines()
    assert title == f"cka-debiased  (larger is more alike): {address} down, {address} across"
    assert head.split() == ["1", "3"]
    assert [row.split()[0] for row in rows] == ["1", "3"]
    assert sorted(path.name for path in out.glob("layerwise.*")) == [
        "layerwise.csv",
        "layerwise.png",
        "layerwise.safetensors",
    ]
    matrix = LayerMatrix.load(out / "layerwise.safetensors")
    assert [f"{value:.3f}" for value in matrix.values[0]] == rows[0].split()[1:]
    lines = [line.split(",") for line in invoke(layerwise, *words, "--csv").splitlines()]
    assert [line[1:] for line in lines] == [["1", "3"], *([f"{v:.4f}" for v in row] for row in matrix.values)]
    assert matrix.about["data"] == "digits:test[:200]"


def test_layerwise_compares_the_most_alike_layers_with_chance(address: str) -> None:
    words = (address, "zoo:mlp", "--data", "digits:test[:60]", "--calibrate")
    text = invoke(layerwise, *words).splitlines()[-1]
    assert text.startswith("most alike: ")
    facts = json.loads(invoke(layerwise, *words, "--json"))
    assert facts["maximum"]["p"] == 1 / 201
    assert f"p = {1 / 201:.3g} from 200 shuffles" in text
    assert len(facts["calibrated"]) == len(facts["p_search"]) == len(facts["values"]) == len(facts["rows"])


def test_clusters_change_places_as_a_whole(address: str, tmp_path: Path) -> None:
    np.save(tmp_path / "clips.npy", np.arange(60) // 4)
    words = (address, "zoo:mlp", "--data", "digits:test[:60]", "--clusters", str(tmp_path / "clips.npy"))
    text = invoke(layerwise, *words, "--calibrate").splitlines()[-1]
    assert "the most alike of shuffled 15 clusters of inputs have 0." in text
    with pytest.raises(OptionError, match=r"^--clusters has no effect without --calibrate\. Leave it out\.$"):
        invoke(layerwise, *words)
