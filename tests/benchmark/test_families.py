"""Runs of several architectures as families of networks."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.benchmark import across, run
from likewise.errors import InputError

HOW = {"preset": {"seeds": 3, "probe": 50, "train": 100, "training": {"epochs": 1}}, "measures": "cka"}


def test_architectures_of_several_runs_are_families(tmp_path: Path) -> None:
    runs = [
        run("vision", "digits", name, groundings="accuracy", out=tmp_path / name, progress=False, **HOW)
        for name in ("mlp", "lenet")
    ]
    rows = across([runs[0], tmp_path / "lenet"], "cka", progress=False)
    assert set(rows["network"]) == {"mlp+lenet"}
    assert set(rows["grounding"]) == {"family"}
    assert set(rows["networks"]) == {6}
    found = rows.query("metric == 'auprc' and variant == 'published'")
    assert found["chance"].item() == pytest.approx(3 / 12)  # 3 pairs inside a family, 9 with the other
    with pytest.raises(InputError) as error:
        across(runs[:1], "cka", progress=False)
    assert str(error.value) == "families of architectures need two runs or more, and there are 1. Give more."
    other = run("vision", "digits", "mlp", groundings="labels", out=tmp_path / "labels", progress=False, **HOW)
    with pytest.raises(InputError) as error:
        across([runs[0], other], "cka", progress=False)
    assert str(error.value) == (
        f"{tmp_path / 'labels'} has no networks that differ by their seed alone. Run its grounding 'accuracy'."
    )
