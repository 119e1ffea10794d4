"""What README, CONTRIBUTING and docs say in numbers, names and options is what the package has."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

import likewise
from likewise import measures
from likewise.cli import _app, commands
from likewise.cli._words import spread
from tests.conftest import ROOT
from tests.contract.test_adding import ADDITIONS
from tests.contract.test_rooms import ROOMS

README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def section(title: str) -> str:
    return README.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_it_fits_on_few_screens() -> None:
    assert len(README.splitlines()) <= 120
    assert README.index("make demo") < README.index("make test") < README.index("\n## ")
    assert [line for block in re.findall(r"^```python\n(.*?)^```", README, re.M | re.S) for line in block.splitlines()][
        8:
    ] == []


def test_measures_are_counted_from_the_registry() -> None:
    total, resi = len(measures.names()), len(measures.RESI)
    assert f"**All the measures**: {total}, the {resi} of the ReSi benchmark and {total - resi} more" in README


def test_networks_are_counted_from_their_table() -> None:
    table = (ROOT / "docs" / "networks-table.md").read_text()
    rows = re.findall(r"^\| (?:timm|torchvision|transformers) \| (\d+) \|", table, re.M)
    assert f"[{sum(map(int, rows))} networks](docs/networks-table.md)" in README


def test_every_promise_of_security_names_tests_that_there_are() -> None:
    promised = (ROOT / "SECURITY.md").read_text().partition("## What is promised\n")[2].partition("\n`python -m")[0]
    promises = re.split(r"^- ", promised, flags=re.M)[1:]
    assert len(promises) > 10
    for promise in promises:
        names = re.findall(r"`(tests/[\w/]+/)?(test_\w+\.py)`", promise)
        assert names, promise
        for folder, name in names:  # those without a folder are beside the one before
            assert (ROOT / (folder or "tests/contract") / name).is_file(), promise


def test_every_public_name_it_uses_is_there() -> None:
    text = re.sub(r"^:::.*", "", "\n".join(page.read_text() for page in PAGES), flags=re.M)  # where the API lies
    used = set(re.findall(r"\blikewise\.([a-zA-Z]\w*)\b(?=[(.])", text))
    assert used - set(likewise.__all__) == set()
    assert {"compare", "train", "Inspector"} <= used


def test_every_measure_the_start_page_recommends_is_there() -> None:
    start = (ROOT / "docs" / "index.md").read_text().partition("## Which measure should I use?\n")[2]
    recommended = re.findall(r"`([a-z][a-z-]+)`", start.partition("\n## ")[0])
    assert [name for name in recommended if name not in measures.registry.MEASURES and name != "calibrate"] == []
    assert "cka-debiased" in recommended


JOBS = re.findall(r"`(likewise [^`]*)` \|$", section("One command per job"), re.M)


@pytest.mark.parametrize("line", JOBS)
def test_every_command_line_it_shows_can_be_parsed(line: str) -> None:
    _, *words = spread(shlex.split(line))
    command: Any = typer.main.get_command(_app(words))
    while hasattr(command, "resolve_command"):  # a group of commands, as all of them are
        name, command, words = command.resolve_command(typer.Context(command), words)
    context = command.make_context(name, words)  # raises on an option it does not know
    assert context.args == []


def test_every_job_has_a_command_of_its_own() -> None:
    shown = [line.split()[1] for line in JOBS]
    assert len(shown) == len(set(shown)) >= 10
    assert set(shown) <= set(commands())


def test_every_extra_is_named() -> None:
    named = set(re.findall(r"`([a-z]+)`", section("Install").partition("Extras:")[2].partition("MIT")[0]))
    assert named == set(EXTRAS) - {"dev", "docs", "minilm"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    paths = re.findall(r"`((?:src|tests|perf|docs|scripts|studies|examples)/[\w./-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_contributors_are_told_every_room_and_every_way_to_add() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.M) == ROOMS
    assert re.findall(r"`(likewise\.[a-z]+)` \|$", text, re.M) == [addition.group for addition in ADDITIONS.values()]
    missing = [addition.file for addition in ADDITIONS.values() if addition.file.rpartition("/")[0] not in text]
    assert missing == []
