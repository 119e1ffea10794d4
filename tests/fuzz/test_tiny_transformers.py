"""Tiny random networks of transformers, as folders that can be loaded without a download."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import torch

pytest.importorskip("transformers")

from tests.fuzz.tiny_transformers import KINDS, Task, build, save


def test_there_are_sixty_architectures_and_some_of_every_task() -> None:
    assert len({tiny.architecture for tiny in KINDS.values()}) >= 60
    assert {tiny.task for tiny in KINDS.values()} == set(get_args(Task))


def test_a_saved_folder_holds_the_same_weights_each_time(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    save("bert", tmp_path)
    loaded, own = transformers.AutoModel.from_pretrained(tmp_path), build("bert")
    assert all(torch.equal(own.state_dict()[key], value) for key, value in loaded.state_dict().items())
    words = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert words("The cat sat!").input_ids == [2, 3, 5, 9, 28, 29]
