"""docs/papers.md: every page and test that it names exists, and every row says what became of its item."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGE = ROOT / "docs" / "papers.md"
TEXT = PAGE.read_text(encoding="utf-8")
# a row per item of each paper and what goes past it, below a header each
LEAST = {"ReSi": 39, "Deep Similarity Inspector": 38, "attack transferability": 45, "Raw Zero-Shot": 28}


def test_every_page_that_is_named_exists() -> None:
    pages = {target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", TEXT) if "://" not in target}
    assert [page for page in sorted(pages) if not (ROOT / "docs" / page).is_file()] == []


def test_every_file_and_test_that_is_named_exists() -> None:
    names = re.findall(r"`((?:tests|src|studies|perf)/[^`\s]+)`", TEXT)
    assert len(names) > 100
    missing = []
    for name in dict.fromkeys(names):
        path, _, function = name.partition("::")
        target = ROOT / path
        if not target.exists() or (function and f"def {function}(" not in target.read_text(encoding="utf-8")):
            missing.append(name)
    assert missing == []


def section_of(paper: str) -> tuple[str, list[list[str]]]:
    """The section of a paper, and the cells of its rows."""
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    (section,) = [one for one in sections if paper in one.partition("\n")[0]]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return section, [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("paper", LEAST)
def test_every_item_of_a_paper_has_a_row(paper: str) -> None:
    _, rows = section_of(paper)
    assert len(rows) >= LEAST[paper]
    assert all(cell for row in rows for cell in row)


@pytest.mark.parametrize("paper", LEAST)
def test_every_item_is_in_one_of_three_states_and_they_are_counted(paper: str) -> None:
    section, rows = section_of(paper)
    states = Counter(row[2] for row in rows if "past it" not in " ".join(row[:2]))
    assert set(states) <= {"yes", "smaller", "refused"}
    counted = ", ".join(f"{states[name]} {name}" for name in ("yes", "smaller", "refused") if states[name])
    assert f"{LEAST[paper]} items: {counted}." in section
