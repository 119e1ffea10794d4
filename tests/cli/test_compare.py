"""The command line, run as a person runs it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from likewise import measures


def run(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", "from likewise.cli import main; main()", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("acts")
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(60, 5))
    for name in ("one", "two", "three"):
        np.save(path / f"{name}.npy", hidden @ rng.normal(size=(5, 8)) + rng.normal(size=(60, 8)))
    return path


def test_measures_are_listed_with_their_facts():
    done = run("measures")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["measure", "in", "ReSi", "family"]
    assert len(lines) - 4 == len(measures.names()) >= 40
    row = next(line for line in lines if line.startswith("procrustes "))
    assert row.split() == [
        "procrustes",
        "OrthProc",
        "alignment",
        "less",
        "alike",
        "0",
        "…",
        "1.414",
        "yes",
        "permutation,",
        "rotation,",
        "scale,",
        "shift",
    ]


def test_one_measure_prints_its_recipe():
    done = run("measures", "cka")
    assert "|Xᵀ Y|² / (|Xᵀ X| |Yᵀ Y|)" in done.stdout
    assert "larger is more alike" in done.stdout
    assert "Kornblith" in done.stdout


def test_measures_speak_json():
    rows = json.loads(run("measures", "--family", "cca", "--json").stdout)
    assert [row["name"] for row in rows] == measures.names("cca")


def test_compare_writes_matrices_scores_and_a_picture(folder, tmp_path):
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


def test_compare_speaks_json_and_calibrates(folder):
    done = run("compare", "one.npy", "two.npy", "-m", "cka", "--calibrate", "--json", cwd=folder)
    rows = json.loads(done.stdout)
    assert {"a", "b", "value", "calibrated", "p"} <= set(rows[0])


def test_an_error_is_one_line_and_exit_code_one(folder):
    done = run("compare", "one.npy", "two.npy", "--measure", "ckaa", cwd=folder)
    assert done.returncode == 1
    assert done.stderr == "likewise: no measure named 'ckaa'. Did you mean 'cka'?\n"
    assert done.stdout == ""
    assert "Traceback" in run("compare", "one.npy", "x.npy", "--debug", cwd=folder).stderr


def test_compare_calibrates_within_classes(folder, tmp_path):
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


def test_compare_marks_saturated_scores_and_reads_keys(folder, tmp_path):
    rng = np.random.default_rng(0)
    for name, d in (("wide", 40), ("small", 4)):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(20, d)))
    done = run("compare", "wide.npy", "small.npy", "-m", "gulp[ridge=0.5]", "mean-cca", cwd=tmp_path)
    assert "gulp[ridge=0.5]  (larger is less alike)" in done.stdout
    assert "1.0000†" in done.stdout
    assert "† saturated: 40 neurons can express anything on 20 inputs" in done.stdout
