"""Inspection of the checkpoints a training has kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise import classes
from likewise.errors import InputError, LikewiseError, MissingDataError
from tests.classes.helpers import (
    IMAGES,
    refused,
)

SENTENCES: dict[str, tuple[type[LikewiseError], Callable[[], Any]]] = {
    "no checkpoint was given. Give a training's folder, or its checkpoints in order.": (
        InputError,
        lambda: classes.inspect([], IMAGES),
    ),
    "there is no folder or file nothere. Give a training's folder, its checkpoints in order, or a network's address.": (
        MissingDataError,
        lambda: classes.inspect("nothere", IMAGES),
    ),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_error_is_a_sentence(sentence: str) -> None:
    error, act = SENTENCES[sentence]
    assert refused(error, act) == sentence


def test_a_folder_without_epochs_is_refused(tmp_path: Path) -> None:
    assert refused(InputError, classes.inspect, tmp_path, IMAGES) == (
        f"{tmp_path} keeps no epochs. Train with keep_epochs (likewise train --keep-epochs), or give the "
        "checkpoints themselves."
    )
