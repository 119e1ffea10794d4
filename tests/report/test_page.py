"""The page: one file, no request, and no name that becomes markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import likewise
from likewise.errors import InputError, StoreError
from likewise.report import Runs, report
from tests.report.helpers import EVIL, compared, data_of, unpacked


class Elements(HTMLParser):
    """Which elements a page has, and what stands in them as text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    compared(5, names=EVIL).save(folder / "run" / "matrices")
    return report(folder / "run", out=folder / "report.html").read_text(encoding="utf-8")


def test_names_are_text_everywhere(page: str) -> None:
    found = Elements(page)
    assert "img" not in found.tags
    assert found.tags.count("script") == 3
    shown = "".join(found.text)
    for name in EVIL:
        assert name in shown, name
    assert [net["name"] for net in data_of(page)["networks"]].count(EVIL[0]) == 1


def test_a_page_links_to_nothing_outside(page: str) -> None:
    assert all(link.startswith("#") for link in Elements(page).links)
    own = page.replace((Path(likewise.__file__).parent / "report/page_files/plotly-cartesian.min.js").read_text(), "")
    assert re.findall(r"https?://", own) == []
    assert "@import" not in own
    assert "url(" not in own


def test_the_policy_of_a_page_runs_its_own_scripts_only(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    parts = dict(part.strip().split(" ", 1) for part in policy[1].split(";"))
    assert parts["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/=]+' 'sha256-[\w+/=]+'", parts["script-src"])


def test_a_pair_of_networks_has_a_report(tmp_path: Path) -> None:
    compared(2).save(tmp_path / "run")
    found = data_of(report(tmp_path / "run", out=tmp_path / "r.html").read_text(encoding="utf-8"))
    assert list(found["panels"]) == ["matrix"]  # a map and ranks of pairs need more networks
    assert "How alike are net-0 and net-1?" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_numbers_of_the_page_are_those_of_the_matrix(tmp_path: Path) -> None:
    made = compared(6)
    made.save(tmp_path / "run")
    found = data_of(report(tmp_path / "run", out=tmp_path / "r.html").read_text(encoding="utf-8"))
    names = [net["name"] for net in found["networks"]]
    shown = next(m for m in found["panels"]["matrix"]["measures"] if m["label"] == "cka")
    values = unpacked(shown["values"])
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            assert values[i, j] == pytest.approx(made["cka"][a, b], abs=2e-5)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        report(tmp_path, out=tmp_path / "r.html")
    assert str(error.value) == (
        f"{tmp_path} holds no results. Give a folder that likewise compare, transfer, layerwise, inspect, classes, "
        "zeroshot or benchmark wrote by --out."
    )
    assert not (tmp_path / "r.html").exists()


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        report(tmp_path / "none")
    assert str(error.value) == f"there is no folder or file {tmp_path / 'none'}. Give what a command wrote by --out."


def test_a_damaged_matrix_is_named(tmp_path: Path) -> None:
    compared(3).save(tmp_path / "matrices")
    file = tmp_path / "matrices" / "cka.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(StoreError) as error:
        report(tmp_path, out=tmp_path / "r.html")
    assert str(error.value) == (
        f"{file} is no file of results, or it is damaged (it does not match its checksum). Run again what wrote it."
    )


def test_json_inside_a_page_ends_no_element() -> None:
    from likewise.report.page import as_json

    given = {"</script>": ["<!--", "&amp;", "\u2028", "ä"]}
    text = as_json(given)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == given


def test_runs_are_reported_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        report(Runs(), tmp_path)
    assert str(error.value) == "a Runs is reported alone, and 2 arguments were given. Give read_runs all paths."
