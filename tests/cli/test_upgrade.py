"""`likewise upgrade`: from two files of vectors to a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from likewise.cli.upgrade import upgrade
from tests.cli.conftest import invoke


def test_a_rotation_is_mapped_and_the_same_vectors_are_kept(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    old = draw.normal(size=(300, 8))
    turn = np.linalg.qr(draw.normal(size=(8, 8)))[0]
    for name, vectors in (("old", old), ("turned", old @ turn)):
        np.save(tmp_path / f"{name}.npy", vectors)
    files = [str(tmp_path / f"{name}.npy") for name in ("old", "turned")]
    assert invoke(upgrade, files[0], files[0]).startswith("keep")
    assert json.loads(invoke(upgrade, *files, "--json"))["verdict"] in (
        "keep",
        "map",
    )  # neighbours among items are kept
