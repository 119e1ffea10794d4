"""Epochs on disk: kept, read again, and refused where they are damaged."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from likewise._base.manifest import MANIFEST
from likewise.classes import Inspector
from likewise.errors import DamagedStoreWarning, InputError, StoreError
from tests.classes.helpers import NAMES, PATHS, WEIGHTS, refusals, refused, reported, warned

test_an_error_is_a_sentence = refusals((lambda: Inspector(3).matrices(7), "epoch 7 was not kept. There are: none."))


def test_a_folder_with_another_inspection_is_left_alone(tmp_path: Path) -> None:
    reported(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert refused(InputError, Inspector, ["cat", "dog", "car"], out=tmp_path) == (
        f"{tmp_path} holds an inspection of other classes (3, first 'cat'). Give another folder."
    )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("damage", ["cut", "emptied", "another file"])
def test_a_damaged_epoch_is_named(tmp_path: Path, damage: str) -> None:
    reported(tmp_path)
    path = tmp_path / "0002.safetensors"
    if damage == "another file":
        save_file({"fc.weight": np.eye(3)}, path)
    else:
        path.write_bytes(path.read_bytes()[:-9] if damage == "cut" else b"")
    sentence = f"{path} is no epoch of an inspection, or it is damaged; it is left out."
    with pytest.warns(DamagedStoreWarning, match=f"^{re.escape(sentence)}$"):
        inspector = Inspector(NAMES, out=tmp_path)
    assert (list(inspector.curves().index), list(inspector.damaged_epochs)) == ([1], [2])
    inspector.update(np.eye(3), [0, 1, 2])
    inspector.report(epoch=2)  # in place of the damaged one
    assert list(Inspector(NAMES, out=tmp_path).curves().index) == [1, 2]


def test_an_epoch_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    reported(tmp_path)
    path = tmp_path / "0003.safetensors"
    save_file({"fc.weight": np.eye(3)}, path)
    before = path.read_bytes()
    with pytest.warns(DamagedStoreWarning):
        inspector = Inspector(NAMES, out=tmp_path)
    inspector.update(np.eye(3), [0, 1, 2])
    assert refused(StoreError, inspector.report, epoch=3) == (
        f"cannot write {path}: likewise did not write what is there. Move it, and run again."
    )
    assert path.read_bytes() == before


def test_an_inspection_is_read_without_a_trace(tmp_path: Path) -> None:
    reported(tmp_path)
    (tmp_path / MANIFEST).unlink()
    (tmp_path / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert list(Inspector(NAMES, out=tmp_path).curves().index) == [1, 2]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_reports_from_a_checkpoint_come_without_matrices() -> None:
    inspector = Inspector(NAMES)
    inspector.load_state_dict(reported(None).state_dict())
    assert list(inspector.curves().index) == [1, 2]
    assert refused(InputError, inspector.matrices, 1) == "epoch 1 was not kept. There are: none."


@pytest.mark.parametrize("kept", [True, False], ids=["in a folder", "in memory"])
def test_an_empty_epoch_has_weights_but_no_mistakes(tmp_path: Path, kept: bool) -> None:
    out = tmp_path if kept else None
    inspector = reported(out, epochs=1)
    first = inspector.curves().loc[1]
    report, said = warned(inspector.report, WEIGHTS)
    assert said == ["epoch 2 is empty: no test batch was counted, so its mistakes are unknown."]
    assert report["wsi_max"] == first["wsi_max"]
    assert report["sai_ncsm_scsm"] == first["sai_ncsm_scsm"]
    again = Inspector(NAMES, reference=PATHS, out=out) if kept else inspector
    assert math.isnan(again.curves().loc[2, "accuracy"])
    assert math.isnan(again.curves().loc[2, "widm_errors"])
    pd.testing.assert_series_equal(again.curves().loc[1], first)
    assert sorted(again.matrices(1)) == ["confusion", "weights"]
    assert sorted(again.matrices(2)) == ["weights"]


def test_an_epoch_with_nothing_at_all_does_not_close_the_folder(tmp_path: Path) -> None:
    warned(Inspector(NAMES, out=tmp_path).report)
    again = Inspector(NAMES, out=tmp_path)
    assert (again.next_epoch, again.matrices(1)) == (2, {})
