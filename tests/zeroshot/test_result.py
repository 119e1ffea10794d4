"""Soft labels of one's own, from a folder: what is read, what is left alone, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise._base.manifest import MANIFEST
from likewise.errors import InputError
from likewise.zeroshot import ZeroShot, from_folder, means
from tests.helpers import sentence
from tests.zeroshot.helpers import drawn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve samples of each of four classes, a to d, in a folder as a person writes it: no list of files is there."""
    folder = drawn("net").to_folder(tmp_path / "soft")
    (folder / MANIFEST).unlink()
    return folder


def change(folder: Path, name: str, how: Callable[[np.ndarray], Any]) -> None:
    np.save(folder / f"{name}.npy", how(np.load(folder / f"{name}.npy")))


def test_other_files_in_the_folder_are_left_alone(folder: Path) -> None:
    before = from_folder(folder).to_frame()
    (folder / "notes.txt").write_text("mine")
    (folder / "full-old").mkdir()
    for name in ("full-all", "full-0 (1)", "full-00", "held-out-9", "labels"):
        np.save(folder / f"{name}.npy", np.ones(3))
    assert from_folder(folder).to_frame().equals(before)


def test_without_facts_classes_are_numbers_and_arrays_probabilities(folder: Path) -> None:
    (folder / "zeroshot.json").unlink()
    found = from_folder(folder)
    assert (found.network, found.classes, found.answers) == ("soft", ("0", "1", "2", "3"), "probabilities")
    assert np.isnan(found.accuracy).all()


def test_a_fact_that_is_null_is_not_known(folder: Path) -> None:
    (folder / "zeroshot.json").write_text(json.dumps({"classes": None, "accuracy": None, "network": None}))
    found = from_folder(folder)
    assert (found.network, found.classes) == ("soft", ("0", "1", "2", "3"))


def test_names_of_classes_may_hold_anything(tmp_path: Path) -> None:
    odd = ("a/b", "", "naïve «$x_1$», 'q'", "mean")
    one = drawn("net", odd)
    for again in (ZeroShot.load(one.save(tmp_path / "file")), from_folder(one.to_folder(tmp_path / "folder"))):
        assert again.classes == odd
        assert again.to_frame().equals(one.to_frame())
    assert one.soft_labels("").shape == (12, 3)


def test_the_order_of_classes_is_that_of_the_outputs() -> None:
    """The same answers with the classes counted the other way round give the same numbers, class by class."""
    one = drawn("net")
    full, part = (tuple(rows[:, ::-1] for rows in of_seed[0][::-1]) for of_seed in (one.full, one.held_out))
    other = ZeroShot("net", one.classes[::-1], (full,), (part,))
    assert other.dbi().per_class == pytest.approx(one.dbi().per_class)
    assert other.amalgam().per_class == pytest.approx(one.amalgam().per_class)


def test_two_classes_only_are_refused(folder: Path) -> None:
    for name in ("full-2", "full-3"):
        (folder / f"{name}.npy").unlink()
    (folder / "zeroshot.json").unlink()
    assert sentence(InputError, from_folder, folder) == (
        "Raw Zero-Shot leaves out one of three classes or more, and 'soft' has 2. Give data of more classes: two have "
        "to be left."
    )


WHOLE, PART = (
    "the soft labels of class 'a' by the full network",
    "the soft labels of class 'b' by the network without it",
)


@pytest.mark.parametrize(
    ("name", "how", "reason"),
    [
        (
            "full-0",
            lambda rows: rows[:0],
            f"{WHOLE} are none: there is no sample. Give at least one, or leave the class out.",
        ),
        (
            "full-0",
            lambda rows: rows[:7],
            "for class 'a' there are 7 soft labels by the full network and 12 by the one without it. Show both the "
            "same samples in the same order.",
        ),
        (
            "held-out-1",
            lambda rows: np.hstack([rows / 2, rows / 2]),
            "for class 'b' the full network answers with 4 classes and the one without it with 6. Of 4 classes these "
            "are 4 and 3.",
        ),
        (
            "held-out-1",
            lambda rows: rows - 1,
            f"{PART} have negative entries, which probabilities have not. If they are logits, say so.",
        ),
        ("held-out-1", lambda rows: rows * np.nan, f"{PART} have NaN or infinite entries. Drop or repair them."),
        ("full-0", lambda rows: rows / 0.0, f"{WHOLE} have NaN or infinite entries. Drop or repair them."),
        (
            "full-0",
            lambda rows: rows[0],
            f"{WHOLE} are (4,), not (samples, classes) of two classes or more. Give one row each.",
        ),
        (
            "full-0",
            lambda rows: 3 * rows,
            f"{WHOLE} do not sum to one: one row misses it by 2. Say answers='lengths', or 'logits', or scale them.",
        ),
    ],
)
def test_arrays_that_cannot_be_are_refused(
    folder: Path, name: str, how: Callable[[np.ndarray], Any], reason: str
) -> None:
    with np.errstate(divide="ignore"):
        change(folder, name, how)
    assert sentence(InputError, from_folder, folder) == reason


def test_a_folder_that_is_not_whole_is_refused(folder: Path, tmp_path: Path) -> None:
    assert sentence(InputError, from_folder, tmp_path / "none") == (
        f"there is no folder {tmp_path / 'none'}. Give one with full-0.npy, held-out-0.npy and so on."
    )
    assert sentence(InputError, from_folder, None) == "the folder is None. Give a path."
    np.save(folder / "full-4.npy", np.ones(3))
    assert sentence(InputError, from_folder, folder) == (
        f"{folder} holds 5 arrays full-0.npy, full-1.npy, ... of 4 classes. Give one per class."
    )
    (folder / "full-4.npy").unlink()
    (folder / "held-out-2.npy").unlink()
    assert sentence(InputError, from_folder, folder) == f"there is no file {folder}/held-out-2.npy. Check the path."


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ([1, 2], "FILE is no JSON of facts by name (it holds [1, 2]). Repair or remove it."),
        ({"classes": "abcd"}, "in FILE, classes is 'abcd'. Give a list of names."),
        ({"classes": 4}, "in FILE, classes is 4. Give a list of names."),
        ({"accuracy": "high"}, "in FILE, accuracy is 'high'. Give a number."),
        ({"answers": ["logits"]}, "in FILE, answers is ['logits']. Give a word."),
        ({"answers": "softmax"}, "networks do not answer with 'softmax'. Give logits, probabilities or lengths."),
        ({"classes": ["a", "b", "a", "c"]}, "'soft' has two classes named 'a'. Give each another name."),
    ],
)
def test_facts_that_cannot_be_are_refused(folder: Path, facts: Any, reason: str) -> None:
    path = folder / "zeroshot.json"
    path.write_text(json.dumps(facts))
    assert sentence(InputError, from_folder, folder) == reason.replace("FILE", str(path))


def test_what_a_result_does_not_hold_is_said() -> None:
    one = drawn("net")
    assert sentence(InputError, one.soft_labels, "e") == "'net' has no class 'e'."
    assert sentence(InputError, one.soft_labels, "a", seed=1) == (
        "seed is 1, and there are 1 trainings. Count them from 0."
    )
    assert sentence(InputError, ZeroShot, "net", (*one.classes, "e"), one.full, one.held_out) == (
        "'net' has answers to 4 classes and names of 5. Give one array per class."
    )
    assert sentence(InputError, means, []) == "no result is given, so there is no table. Give at least one."
    assert sentence(InputError, one.dbi().interval, resamples=0) == "resamples is 0. Give at least 1."
