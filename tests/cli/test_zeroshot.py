"""`likewise zeroshot`: a table of networks by what they make of classes they never saw."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pandas import read_csv

from likewise.cli.zeroshot import zeroshot
from likewise.errors import LikewiseError
from tests.cli.conftest import invoke
from tests.zeroshot.helpers import drawn


def test_networks_are_scored_written_and_found_again(tmp_path: Path) -> None:
    given = ("zoo:mlp", "--data", "digits:train[:120]", "--preset", "small", "--epochs", "1", "--out", str(tmp_path))
    (row,) = json.loads(invoke(zeroshot, *given, "--json"))
    assert 0 < row["DBI"] < 1
    assert row["AM"] > 0
    weights = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    assert len(weights) == 11  # ten classes left out, and all of them
    text = invoke(zeroshot, *given)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")} == weights
    assert f"{row['DBI']:.3g} ± {row['DBI ±']:.2g}" in text
    assert f"written to {tmp_path}: zeroshot.csv, one file per network, store/" in text.replace("\n", " ")
    assert (tmp_path / "0.safetensors").is_file()


def test_a_preset_that_is_not_there_is_refused() -> None:
    with pytest.raises(Exception, match="tiny") as error:
        invoke(zeroshot, "zoo:mlp", "--data", "digits", "--preset", "tiny")
    assert "small" in str(error.value)


def test_one_command_gives_tables_pictures_and_attacks(tmp_path: Path) -> None:
    given = ("zoo:mlp", "--data", "digits:train[:200]", "--preset", "small", "--epochs", "2")
    given += ("--out", str(tmp_path), "--attacks", "--images", "10")
    (row,) = json.loads(invoke(zeroshot, *given, "--json"))
    (written,) = read_csv(tmp_path / "attacks.csv").to_dict("records")
    assert row["attacks"] == written["attacks"] == written["L0"] + written["Linf"]
    assert row["attacks of"] == 80  # 10 images, 4 thresholds, 2 attacks
    text = invoke(zeroshot, *given)
    assert f"{row['rate']:.4g}" in text
    assert max(map(len, text.splitlines()[:8])) <= 80


def test_folders_of_soft_labels_are_scored_and_drawn(tmp_path: Path) -> None:
    for name in ("one", "two"):
        drawn(name).to_folder(tmp_path / name)
    folders = (str(tmp_path / "one"), str(tmp_path / "two"))
    text = invoke(zeroshot, *folders, "--out", str(tmp_path / "run"), "--pictures")
    first = drawn("one")
    assert f"{first.dbi().mean:.3g} ± {first.dbi().std():.2g}" in text
    assert text.replace("\n", " ").endswith(": zeroshot.csv, five pictures, one file per network ")
    pictures = [f"{name}.png" for name in ("isomap", "tsne", "differences", "histograms", "gaps")]
    assert sorted(path.name for path in (tmp_path / "run").glob("*.png")) == sorted(pictures)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("zoo:mlp",),
            "networks are trained on labelled images. Say which, as in --data cifar10.",
        ),
        (
            ("zoo:mlp", "--data", "digits", "--pictures"),
            "--pictures makes files. Say where they go, with --out FOLDER.",
        ),
        (
            ("zoo:mlp", "--data", "digits", "--attacks"),
            "--attacks makes files. Say where they go, with --out FOLDER.",
        ),
        (
            ("zoo:mlp", "--data", "digits", "--images", "5"),
            "--images has no effect without --attacks. Leave it out.",
        ),
        (
            ("zoo:mlp", "--data", "digits", "--generations", "5"),
            "--generations has no effect without --attacks. Leave it out.",
        ),
        (
            (".", "--data", "digits"),
            "--data has no effect on soft labels that are there already. Leave it out.",
        ),
        (
            (".", "--seeds", "2"),
            "--seeds has no effect on soft labels that are there already. Leave it out.",
        ),
        (
            (".", "--attacks", "--out", "run"),
            "folders of soft labels hold no networks to attack. Leave out --attacks, or the folders.",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(
    words: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LikewiseError, match=f"^{re.escape(sentence)}$"):
        invoke(zeroshot, *words)
    assert not list(tmp_path.iterdir())
