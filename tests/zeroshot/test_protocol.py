"""The test as a whole: resumed after a kill, on any engine, and what it refuses."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.data import Data
from likewise.errors import InputError
from likewise.zeroshot import ZeroShot, davies_bouldin, from_folder, run, unseen
from tests.helpers import ends_when, sentence

DATA = "digits:train[:160]"
QUICK: dict[str, Any] = {"preset": "small", "epochs": 1, "batch_size": 80, "progress": False}
PROGRAM = f"import likewise; likewise.zeroshot.run('zoo:mlp', {DATA!r}, store='STORE', **{QUICK!r})"


def small(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))


def three(n: int = 24, classes: int = 3) -> Data:
    images = torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return Data("squares", "image", images, torch.arange(n) % classes, tuple("abcdef"[:classes]))


@pytest.fixture(scope="module")
def whole() -> ZeroShot:
    return run("zoo:mlp", DATA, **QUICK)


def test_killed_in_the_sixth_class_it_resumes_without_training_the_first_five_again(
    whole: ZeroShot, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    program = ends_when(store, "soft-labels/*.safetensors", 5) + PROGRAM.replace("STORE", str(store))
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (store / "soft-labels").glob("*.safetensors")}
    assert len(kept) == 5
    again = run("zoo:mlp", DATA, store=store, **QUICK)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (again.dbi().values == whole.dbi().values).all()
    assert (again.amalgam().values == whole.amalgam().values).all()


def test_each_network_has_one_output_fewer_and_answers_to_the_class_it_never_saw(whole: ZeroShot) -> None:
    labels = likewise.dataset(DATA).labels
    assert whole.classes == tuple("0123456789")
    for i, (full, part) in enumerate(zip(whole.full[0], whole.held_out[0], strict=True)):
        count = int((labels == i).sum())
        assert (full.shape, part.shape) == ((count, 10), (count, 9))
    assert whole.answers == "logits"
    frame = whole.to_frame()
    assert frame["DBI"].mean() == pytest.approx(whole.dbi().mean)
    assert frame["AM"].mean() == pytest.approx(whole.amalgam().mean)


def test_a_result_survives_its_file_and_its_folder_of_arrays(whole: ZeroShot, tmp_path: Path) -> None:
    for again in (ZeroShot.load(whole.save(tmp_path / "mlp")), from_folder(whole.to_folder(tmp_path / "arrays"))):
        assert again.to_frame()[["DBI", "AM"]].equals(whole.to_frame()[["DBI", "AM"]])
        assert (again.network, again.classes) == ("zoo:mlp", whole.classes)
        assert again.accuracy == pytest.approx(whole.accuracy)


def test_a_function_of_the_number_of_classes_is_a_network_too() -> None:
    found = run(small, three(), **QUICK, seeds=2)
    assert (found.network, found.seeds, found.dbi().values.shape) == ("small", 2, (2, 3))
    histograms = found.histograms()
    assert np.nansum(histograms[1], axis=1) == pytest.approx([8, 8, 8])


def test_processes_give_the_numbers_of_one_after_another(whole: ZeroShot, tmp_path: Path) -> None:
    found = run("zoo:mlp", DATA, **QUICK, engine="processes:2", store=tmp_path / "store")
    assert (found.dbi().values == whole.dbi().values).all()
    assert (found.amalgam().values == whole.amalgam().values).all()
    assert (found.accuracy == whole.accuracy).all()


def test_the_network_of_all_classes_is_found_again_in_the_store(tmp_path: Path) -> None:
    data = likewise.dataset(DATA)
    found = run("zoo:mlp", data, **QUICK, seeds=2, store=tmp_path / "store")
    assert len(found.about["weights"]) == 2
    for seed, address in enumerate(found.about["weights"]):
        logits = likewise.network(address, data=data)(data.inputs[:]).detach()
        for i, rows in enumerate(found.full[seed]):
            np.testing.assert_allclose(logits[data.labels == i], rows, rtol=1e-4, atol=1e-5)
    assert "weights" not in run(small, three(), **QUICK).about


class Shares(nn.Module):
    """Answers with probabilities."""

    answers = "probabilities"

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.fc = nn.Linear(64, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(images.flatten(1)).softmax(dim=1)


def test_a_network_of_probabilities_gives_the_numbers_of_its_logits() -> None:
    """A softmax at the end of the same layer changes nothing that is found."""
    found, other = run(Shares, three(), **QUICK), run(small, three(), **QUICK)
    assert (found.answers, other.answers) == ("probabilities", "logits")
    assert found.dbi().values == pytest.approx(other.dbi().values, rel=1e-3)
    assert found.amalgam().values == pytest.approx(other.amalgam().values, rel=1e-3, abs=1e-4)


def test_accuracy_is_that_on_held_out_data_where_there_is_some() -> None:
    train, test = three(24), three(9)
    assert run(small, train, test=test, **QUICK).about["accuracy on"] == "squares"
    found = run(small, train, test=Data("wrong", "image", test.inputs, (test.labels + 1) % 3, test.classes), **QUICK)
    right = run(small, train, test=test, **QUICK)
    assert found.accuracy[0] + right.accuracy[0] <= 1  # of the same answers, other labels are right


def test_capsules_answer_with_lengths() -> None:
    found = run("zoo:capsnet", three(12), **QUICK)
    assert found.answers == "lengths"
    raw = found.held_out[0][0].astype(np.float64)
    assert found.dbi().values[0, 0] == pytest.approx(np.sqrt(raw.var(axis=0).sum()))


def test_several_classes_unseen_by_one_network_are_clusters() -> None:
    found = unseen(small, three(24, 4), ["a", "c"], **{k: v for k, v in QUICK.items() if k != "progress"})
    assert {name: rows.shape for name, rows in found.items()} == {"a": (6, 2), "c": (6, 2)}
    assert davies_bouldin(found) > 0


def test_bad_input_is_refused_in_a_sentence() -> None:
    assert sentence(InputError, run, small, three(8, 2), **QUICK) == (
        "Raw Zero-Shot leaves out one of three classes or more, and 'squares' has 2. Give data of more classes: two "
        "have to be left."
    )
    twice = Data("twin", "image", torch.rand(4, 1, 8, 8), [0, 1, 2, 3], ("a", "b", "a", "c"))
    assert sentence(InputError, run, small, twice, **QUICK) == (
        "'twin' has two classes named 'a'. Give each another name."
    )
    swapped = Data("swapped", "image", torch.rand(3, 1, 8, 8), [0, 1, 2], ("b", "a", "c"))
    assert sentence(InputError, run, small, three(), test=swapped, **QUICK) == (
        "'squares' and 'swapped' have different classes, or the same in another order. Give splits of one data set."
    )
    empty = Data("gap", "image", torch.rand(4, 1, 8, 8), [0, 1, 0, 1], ("a", "b", "c"))
    assert sentence(InputError, run, small, empty, **QUICK) == (
        "'gap' has no samples of class 'c', so nothing can be said of it. Give some, or "
        "likewise.data.changes.without_class of the data."
    )
    assert sentence(InputError, run, small(3), three(), **QUICK) == (
        "Sequential is built already, and one output fewer is needed. Give an address, or a function of the number of "
        "classes."
    )
    assert sentence(InputError, run, "zoo:mlp@a.safetensors", three(), **QUICK) == (
        "zoo:mlp@a.safetensors has trained weights, which may know the class that is to be left out. Give the address "
        "without them."
    )
    assert sentence(InputError, run, lambda classes: small(7), three(), **QUICK) == (
        "Sequential answers with shape (2, 7) to 2 samples of 2 classes, not with (2, 2). Let the number of classes "
        "decide its outputs."
    )
    assert sentence(InputError, run, small, three(), **QUICK, split="test") == (
        "'squares' has no held-out split of its own. Give test=, or split='train'."
    )
    assert sentence(InputError, run, small, three(), **{**QUICK, "preset": "tiny"}) == (
        "no preset named 'tiny'. Give paper or small."
    )
