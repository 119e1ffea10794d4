"""A report as a folder that a hub serves: the same page, and a card that says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from likewise.errors import StoreError
from likewise.report import Runs, hub_page
from likewise.report.page import contents, render
from tests.report.helpers import EVIL, arrays, compared
from tests.report.test_summary import zoo


def test_the_card_says_what_the_page_says(tmp_path: Path) -> None:
    runs = zoo(0.2, odd=True)
    page, card = hub_page(runs, out=tmp_path / "page", title='A "zoo": #1')
    assert page.read_text(encoding="utf-8") == render(contents(runs), 'A "zoo": #1')
    _, head, text = card.read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(head) == {
        "title": 'A "zoo": #1',
        "sdk": "static",
        "app_file": "index.html",
        "pinned": False,
    }
    first = contents(runs).summary
    for question, finding in first.sentences.items():
        assert f"- **{question}:** {finding.text}\n" in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| n") and "%" in line] == [
        f"| {row.name}" for row in first.rows
    ]
    row = next(row for row in first.rows if row.odd)
    assert f"| {row.name} | {100 * row.accuracy:.1f} % | {row.nearest} {row.score:.3g} |\n" in text
    assert sorted(path.name for path in page.parent.iterdir()) == ["README.md", "index.html", "likewise.manifest"]


def test_names_and_commands_are_no_markup_in_the_card(tmp_path: Path) -> None:
    runs = compared(6, ["cka"], names=EVIL)
    whole = Runs(matrices=list(runs.values()), commands=["likewise compare <b>"], missing=["it was *stopped*."])
    _, card = hub_page(whole, out=tmp_path / "page")
    text = card.read_text(encoding="utf-8")
    assert "```\nlikewise compare <b>\n```\n" in text
    assert "- **Unfinished:** it was \\*stopped\\*." in text
    outside = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any(name in line for line in outside for name in EVIL if "<" in name)


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    runs = Runs(matrices=list(compared(3, ["cka"]).values()))
    with pytest.raises(StoreError, match="holds files that likewise did not write"):
        hub_page(runs, out=tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_run_that_was_saved_is_read(tmp_path: Path) -> None:
    compared(3, ["cka"]).save(tmp_path / "run" / "matrices")
    page, _ = hub_page(tmp_path / "run", out=tmp_path / "page")
    assert all(name in page.read_text(encoding="utf-8") for name in arrays(3))
