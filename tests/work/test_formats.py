"""Folders written by an earlier version: scores and trainings are taken over, views are made anew beside the old.

Which rows a layer gives has changed for some networks, so that a view of before answers no request; as soon as the
new rows are the same, so are their scores.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.measures.function import Measure
from likewise.work import store
from tests.work.format1 import make

FOLDERS = Path(__file__).parent / "format1"
RAISED = {"pwcca"}  # measures whose version is higher than that of the folders: computed again
EXPECTED = json.loads((FOLDERS / "expected.json").read_text())


@pytest.fixture
def folder(tmp_path):
    """A copy of the old folders."""
    shutil.copytree(FOLDERS, tmp_path, dirs_exist_ok=True)
    return tmp_path


def refused(*given, **options):
    raise AssertionError("computed again")


def content(path):
    if path.suffix != ".safetensors":
        return path.read_bytes()
    tensors, facts = store.read(path)
    return {name: values.tolist() for name, values in tensors.items()}, facts


def contents(folder):
    return {path: content(path) for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name}


@pytest.mark.parametrize("kind", ["scores", "networks"])
def test_scores_of_an_earlier_version_are_found_again(folder, kind, monkeypatch) -> None:
    computed, score = set(), Measure.score

    def noted(measure, *given, **options):
        computed.add(measure.key)
        return score(measure, *given, **options)

    monkeypatch.setattr(Measure, "score", noted)
    before = contents(folder / kind)
    matrices = make.compare(folder) if kind == "scores" else make.compare_networks(folder)
    for name, matrix in matrices.items():
        expected = EXPECTED["scores"][f"{kind} {name}"]
        assert matrix.values.tolist() == (pytest.approx(np.array(expected), rel=1e-9) if name in RAISED else expected)
    assert computed == RAISED & set(matrices)
    after = contents(folder / kind)
    assert {path: after[path] for path in before} == before
    assert kind == "networks" or after == before


def test_views_of_an_earlier_version_are_made_anew_and_then_found(folder, monkeypatch) -> None:
    before = contents(folder / "views")
    assert make.extract(folder).digest == EXPECTED["digest"]
    after = contents(folder / "views")
    assert {path: after[path] for path in before} == before
    monkeypatch.setattr(torch.nn.functional, "linear", refused)
    assert make.extract(folder).digest == EXPECTED["digest"]
    assert contents(folder / "views") == after


def test_a_training_of_an_earlier_version_is_resumed(folder) -> None:
    epochs = []
    done = make.train(folder, [lambda net, record: epochs.append(record["epoch"])])
    assert epochs == [2]
    assert [record["loss"] for record in done.history] == pytest.approx(EXPECTED["losses"], rel=1e-6)
