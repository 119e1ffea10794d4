"""`likewise layerwise`: every layer of a network against every layer of another."""

from __future__ import annotations

from pathlib import Path

from likewise.cli.layerwise import layerwise
from likewise.matrices.layers import LayerMatrix
from tests.cli.conftest import invoke


def test_layerwise_prints_a_table_and_writes_a_folder(address: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = (address, address, "--data", "digits:test[:200]")
    title, head, *rows = invoke(layerwise, *words, "--out", str(out)).splitlines()
    assert title == f"cka-debiased  (larger is more alike): {address} down, {address} across"
    assert head.split() == ["1", "3"]
    assert [row.split()[0] for row in rows] == ["1", "3"]
    assert sorted(path.name for path in out.iterdir()) == [
        "layerwise.csv",
        "layerwise.png",
        "layerwise.safetensors",
    ]
    matrix = LayerMatrix.load(out / "layerwise.safetensors")
    assert [f"{value:.3f}" for value in matrix.values[0]] == rows[0].split()[1:]
    lines = [line.split(",") for line in invoke(layerwise, *words, "--csv").splitlines()]
    assert [line[1:] for line in lines] == [["1", "3"], *([f"{v:.4f}" for v in row] for row in matrix.values)]
    assert matrix.about["data"] == "digits:test[:200]"
