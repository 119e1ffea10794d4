"""Folders of images, one folder per class."""

from __future__ import annotations

from pathlib import Path

import pytest

import likewise


def test_folders_may_have_brackets_and_hidden_folders(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos [2024]"
    for name in ("cat", "dog", "cat/.ipynb_checkpoints", ".ipynb_checkpoints", ".empty"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("cat/1.png", "dog/1.png", "cat/.ipynb_checkpoints/1.png", "dog/._1.png"):
        image.new("RGB", (8, 8)).save(folder / name)
    data = likewise.dataset(f"imagefolder:{folder}")
    assert (len(data), data.classes) == (2, ("cat", "dog"))
    assert len(likewise.dataset(f"imagefolder:{folder}[:1]")) == 1
