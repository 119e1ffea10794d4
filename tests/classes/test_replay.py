"""Inspection of the checkpoints a training has kept."""

from __future__ import annotations

from pathlib import Path

from likewise import classes
from likewise.errors import InputError, MissingDataError
from tests.classes.helpers import IMAGES, refusals, refused

test_an_error_is_a_sentence = refusals(
    (
        lambda: classes.inspect([], IMAGES),
        "no checkpoint was given. Give a training's folder, or its checkpoints in order.",
    ),
    (
        lambda: classes.inspect("nothere", IMAGES),
        "there is no folder or file nothere. Give a training's folder, its checkpoints in order, or a network's "
        "address.",
        MissingDataError,
    ),
)


def test_a_folder_without_epochs_is_refused(tmp_path: Path) -> None:
    assert refused(InputError, classes.inspect, tmp_path, IMAGES) == (
        f"{tmp_path} keeps no epochs. Train with keep_epochs (likewise train --keep-epochs), or give the "
        "checkpoints themselves."
    )
