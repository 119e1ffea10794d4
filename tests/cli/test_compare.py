"""`likewise compare`: files of activations or networks in, matrices, frame and picture out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likewise import calibrate, measures
from likewise.cli import main
from likewise.cli._words import labels_of
from likewise.errors import InputError
from likewise.matrices.similarity import SimilarityMatrix
from tests.cli.conftest import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("acts")
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(60, 5))
    for name in ("one", "two", "three"):
        np.save(path / f"{name}.npy", hidden @ rng.normal(size=(5, 8)) + rng.normal(size=(60, 8)))
    return path


def test_compare_writes_matrices_scores_and_a_picture(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(
        "compare",
        "one.npy",
        "two.npy",
        "three.npy",
        "--measure",
        "cka",
        "jaccard",
        "--out",
        str(out),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "cka  (larger is more alike)" in done.stdout
    assert (out / "matrices.png").stat().st_size > 10_000
    lines = (out / "scores.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 9
    expected = measures.cka(np.load(folder / "one.npy"), np.load(folder / "two.npy"))
    assert f"{expected:.4f}" in done.stdout


def test_compare_speaks_json_and_calibrates(folder: Path) -> None:
    done = run("compare", "one.npy", "two.npy", "-m", "cka", "--calibrate", "--json", cwd=folder)
    rows = json.loads(done.stdout)
    assert {"a", "b", "value", "calibrated", "p"} <= set(rows[0])


def test_compare_calibrates_within_classes(folder: Path, tmp_path: Path) -> None:
    labels = np.repeat(np.arange(6), 10)
    rng = np.random.default_rng(1)
    for name in "ab":  # nothing in common but the classes
        shared = np.eye(6)[labels] @ rng.normal(size=(6, 8))
        np.save(tmp_path / f"{name}.npy", shared + rng.normal(size=(60, 8)))
    np.save(tmp_path / "labels.npy", labels)
    words = ("compare", "a.npy", "b.npy", "-m", "cka", "--json")
    free, within = (
        json.loads(run(*words, *more, cwd=tmp_path).stdout)[1]
        for more in (["--calibrate"], ["--within-classes", "--labels", "labels.npy"])
    )
    assert free["p"] == free["q"] == pytest.approx(1 / 201)
    assert within["p"] > 0.05
    refused = run(*words, "--within-classes", cwd=tmp_path)
    assert refused.stderr == (
        "likewise: --within-classes needs the class of every input. Pass --labels FILE, an array of one per row.\n"
    )


def test_clips_are_shuffled_and_left_out_whole_and_a_series_is_shifted(tmp_path: Path) -> None:
    rng, clips = np.random.default_rng(0), np.repeat(np.arange(20), 10)
    for name in "ab":  # unrelated, but for the clips
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(20, 8))[clips] + 0.3 * rng.normal(size=(200, 8)))
    np.save(tmp_path / "clips.npy", clips)
    files = ("compare", "a.npy", "b.npy", "-m", "cka-debiased")
    words = (*files, "--json", "--calibrate", "--intervals")
    plain, whole = (
        json.loads(run(*words, *more, cwd=tmp_path).stdout)[1] for more in ([], ["--clusters", "clips.npy"])
    )
    x, y = (np.load(tmp_path / f"{name}.npy") for name in "ab")
    assert plain["p"] == pytest.approx(1 / 201)
    assert whole["p"] == pytest.approx(calibrate(x, y, "cka-debiased", clusters=clips).p)
    assert whole["p"] > 0.05
    assert whole["high"] - whole["low"] > 2 * (plain["high"] - plain["low"])
    assert run(*words, "--series", cwd=tmp_path).stderr == (
        "likewise: the 200 steps of the series make about 18 independent ones, since it takes 11 to forget, and a null "
        "needs 20. Show more of the series.\n"
    )
    assert run(*files, "--clusters", "clips.npy", cwd=tmp_path).stderr == (
        "likewise: --clusters has no effect without --calibrate or --intervals. Leave it out.\n"
    )


def test_compare_marks_saturated_scores_and_reads_keys(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, d in (("wide", 40), ("small", 4)):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(20, d)))
    done = run("compare", "wide.npy", "small.npy", "-m", "gulp[ridge=0.5]", "mean-cca", cwd=tmp_path)
    assert "gulp[ridge=0.5]  (larger is less alike)" in done.stdout
    assert "1.0000†" in done.stdout
    assert "† saturated: 40 neurons can express anything on 20 inputs" in done.stdout


@pytest.mark.parametrize("address", ["zoo:lenet", "mine.py:build"])
def test_the_command_asks_for_data_where_it_is_given_networks(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", address, "zoo:resnet20"])
    assert capsys.readouterr().err == (
        f"likewise: {address} is a network: say what to show it, as in --data 'cifar10:test[:1000]'.\n"
    )


def test_untrained_networks_are_named_beside_the_result_for_people_and_programs(tmp_path: Path) -> None:
    words = ("compare", "zoo:lenet", "zoo:mlp", "--data", "digits:test[:40]", "--dtype", "bfloat16")
    note = "Untrained, with random weights: lenet, mlp."
    done = run(*words, "-m", "cka", "rsa", "--out", str(tmp_path / "out"))
    notes = ["accuracy: lenet 7.5 %, mlp 10.0 %", note]
    assert done.stderr.splitlines() == notes  # once for both measures
    assert SimilarityMatrix.load(tmp_path / "out" / "matrices" / "cka").notes() == notes
    done = run(*words, "--json")
    assert done.stderr.splitlines() == notes
    rows = json.loads(done.stdout)
    assert {(row["a"], row["accuracy_a"]) for row in rows} == {("lenet", 0.075), ("mlp", 0.1)}


def test_intervals_are_printed(tmp_path: Path) -> None:
    hidden, *noise = np.random.default_rng(0).normal(size=(3, 60, 8))
    for name, values in zip("xy", noise, strict=True):
        np.save(tmp_path / f"{name}.npy", hidden + values)
    done = run("compare", "x.npy", "y.npy", "-m", "cka", "--intervals", cwd=tmp_path)
    assert done.stdout.splitlines()[-2].split() == ["a", "b", "measure", "value", "low", "high"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", "cat\ndog, grey\n", ["cat", "dog, grey"]),
        ("a.csv", '\ufeff"cat"\r\ndog\r\n', ["cat", "dog"]),
        ("a.csv", "frame;clip\n1;cat\n", "'a.csv' has several columns. Give one label per line, without the name of "),
        ("a.txt", "cat\n\ndog\n", "line 2 of 'a.txt' is empty. Give one label per line."),
    ],
)
def test_labels_are_the_lines_of_a_text(
    name: str, text: str, expected: list[str] | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    if isinstance(expected, list):
        assert labels_of(name) == expected
        return
    with pytest.raises(InputError) as error:
        labels_of(name)
    assert str(error.value).startswith(expected)


def test_labels_of_several_arrays_ask_which(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", clips=np.arange(4), scenes=np.arange(4))
    with pytest.raises(InputError, match=r"holds 2 arrays\. Name one, as in"):
        labels_of(str(tmp_path / "l.npz"))
