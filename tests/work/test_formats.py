"""Folders written by an earlier version are read: nothing in them is computed again."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from likewise.measures.facts import Measure
from tests.work.format1 import make

FOLDERS = Path(__file__).parent / "format1"
EXPECTED = json.loads((FOLDERS / "expected.json").read_text())


@pytest.fixture
def folder(tmp_path):
    """A copy of the old folders."""
    shutil.copytree(FOLDERS, tmp_path, dirs_exist_ok=True)
    return tmp_path


def refused(*given, **options):
    raise AssertionError("computed again")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name}


@pytest.mark.parametrize("kind", ["scores", "networks"])
def test_scores_of_an_earlier_version_are_found_again(folder, kind, monkeypatch) -> None:
    monkeypatch.setattr(Measure, "score", refused)
    before = contents(folder / kind)
    found = make.compare(folder) if kind == "scores" else make.compare_networks(folder)
    for name, matrix in found.items():
        assert matrix.values.tolist() == EXPECTED["scores"][f"{kind} {name}"]
    assert contents(folder / kind) == before  # its views are neither written again nor twice


def test_views_of_an_earlier_version_are_found_again(folder, monkeypatch) -> None:
    monkeypatch.setattr(torch.nn.functional, "linear", refused)
    before = contents(folder / "views")
    assert make.extract(folder).digest == EXPECTED["digest"]
    assert contents(folder / "views") == before


def test_a_training_of_an_earlier_version_is_resumed(folder) -> None:
    epochs = []
    done = make.train(folder, [lambda net, record: epochs.append(record["epoch"])])
    assert epochs == [2]
    assert [record["loss"] for record in done.history] == pytest.approx(EXPECTED["losses"], rel=1e-6)
