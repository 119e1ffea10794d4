"""Warnings name the line that called into this package, however deep inside they arise."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
import torch

import likewise
from likewise._base import progress
from likewise._base.progress import Progress, Style, progress_as, warn
from likewise.errors import DamagedStoreWarning


def test_a_warning_points_at_the_caller_of_this_package() -> None:
    batches = [(torch.rand(4, 3), torch.tensor([0, 1, 9, 0]))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        likewise.extract(torch.nn.Linear(3, 2), batches, "logits")
        likewise.classes.from_confusion([0, 0], [0, 1])
        warn("here", DamagedStoreWarning)
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)] * 3
    assert caught[2].category is DamagedStoreWarning
    assert caught[2].lineno == caught[1].lineno + 1 == caught[0].lineno + 2


def shown(style: Style, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with progress_as(style), Progress(3, "counting") as bar:
        for _ in range(3):
            bar.advance()
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_plain_progress_says_where_work_begins_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    first, last = shown("plain", capsys)
    assert first == "counting: 0 of 3 after 0 s"
    assert re.fullmatch(r"counting: 3 of 3 after \d+ s", last)


def test_a_log_has_lines_only_of_what_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 1e9)
    assert shown("log", capsys) == []
    monkeypatch.setattr(progress, "EVERY", 0.0)
    lines = shown("log", capsys)
    assert [line.partition(" after ")[0] for line in lines] == [f"counting: {count} of 3" for count in (1, 2, 3)]
    assert all("about 0 s left" in line for line in lines[:-1])


@pytest.mark.parametrize("style", ["none", "bar"])
def test_without_a_terminal_nothing_is_shown_unless_it_is_asked_for(
    style: Style, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(style, capsys) == []


def test_one_step_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_as("plain"), Progress(1, "counting") as bar:
        bar.advance()
    assert capsys.readouterr().err == ""
