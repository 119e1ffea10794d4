"""What an index, a forge and a citation need agrees with the package: names, versions, addresses, dependencies."""

from __future__ import annotations

import email
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import likewise
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = (ROOT / "CITATION.cff").read_text()
RECIPE = (ROOT / "conda" / "meta.yaml").read_text()
WORKFLOWS = {path.stem: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}
EXTRAS = PROJECT["optional-dependencies"]
VERSIONS = ["3.11", "3.12", "3.13"]


def test_one_version_is_named_everywhere() -> None:
    version = PROJECT["version"]
    assert likewise.__version__ == version
    assert f"\nversion: {version}\n" in CITATION
    assert f'{{% set version = "{version}" %}}' in RECIPE


def test_one_repository_is_named_everywhere() -> None:
    repository = PROJECT["urls"]["Repository"]
    assert f"repository-code: {repository}\n" in CITATION
    assert f"home: {repository}\n" in RECIPE
    assert all(PROJECT["urls"][name].startswith(repository) for name in ("Issues", "Changelog"))
    assert PROJECT["authors"] == [{"name": "likewise maintainers"}]


def test_every_python_is_classified_and_checked() -> None:
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert named == VERSIONS
    assert PROJECT["requires-python"] == f">={VERSIONS[0]}"
    quoted = [f'"{version}"' for version in VERSIONS]
    matrix = f"python: [{', '.join(quoted)}]"
    assert [name for name, text in WORKFLOWS.items() if matrix not in text] == []


def test_a_forge_runs_what_a_machine_runs() -> None:
    assert "run: .ci/run" in WORKFLOWS["ci"]
    assert "id-token: write" in WORKFLOWS["release"]
    assert "password" not in re.sub(r"^#.*", "", WORKFLOWS["release"], flags=re.M)


def test_the_recipe_of_conda_has_the_same_dependencies() -> None:
    other = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
    needed = [re.fullmatch(r"([\w-]+)>=(.+)", text) for text in PROJECT["dependencies"]]
    expected = [f"{other.get(one[1], one[1])} >={one[2]}" for one in needed if one]
    assert len(expected) == len(PROJECT["dependencies"])
    run = RECIPE.partition("  run:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^    - (.+)$", run, re.M) == ["python >=3.11", *expected]
    assert all(file in RECIPE for file in PROJECT["license-files"])


def test_all_holds_every_extra_but_those_of_developers_and_the_largest() -> None:
    named = set(re.search(r"\[(.*)\]", EXTRAS["all"][0])[1].split(","))  # type: ignore[index]
    assert set(EXTRAS) - named - {"all"} == {"dev", "docs", "minilm", "dask", "ray", "slurm", "remote"}
    assert EXTRAS["lightning"] == ["lightning>=2.2,!=2.6.2,!=2.6.3"]


def test_the_readme_of_the_package_has_no_relative_links() -> None:
    pytest.importorskip("hatchling")
    made = runpy.run_path(str(ROOT / "hatch_build.py"))
    repository = PROJECT["urls"]["Repository"]
    text = made["absolute"]((ROOT / "README.md").read_text(), repository)
    assert re.findall(r"\]\((?!https://)[^)]*\)", text) == []
    assert f"![A report: what was found, and which networks are alike]({repository}/raw/main/docs/report.png)" in text
    assert f"[All commands]({repository}/blob/main/docs/commands.md)" in text


def test_the_metadata_say_who_where_and_what(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    program = f"from hatchling.build import prepare_metadata_for_build_wheel as p; print(p({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True)
    file = next(tmp_path.glob("*.dist-info/METADATA"))
    metadata = email.message_from_string(file.read_text(encoding="utf-8"))
    assert metadata["Author"] == "likewise maintainers"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert len(metadata.get_all("Project-URL") or []) == 4
    assert "](docs/" not in str(metadata.get_payload())
