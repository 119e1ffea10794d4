"""A run that is killed anywhere goes on where it was: the same tables, nothing trained or compared twice."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from likewise._base.files import write_whole
from likewise._base.manifest import MANIFEST
from likewise.benchmark import BenchmarkRun, across, plan, run
from likewise.benchmark.results.frame import Results
from likewise.errors import DamagedStoreWarning, FileError, InputError

PRESET = {"seeds": 4, "group": 3, "layered": 2, "probe": 50, "train": 150, "training": {"epochs": 2}}
NETWORKS = 4 + 6 + 9 + 9
# The run kills itself once the files say that it is where it should be killed: it looks where a file is to get its
# name, and where the measure opens its log, which holds a line for each pair that it is asked about.
SCRIPT = f"""
import os, signal, sqlite3, sys
from pathlib import Path
import likewise
from likewise.benchmark import run

out, log, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

@likewise.measures.register(name="counted", larger_is="less alike", symmetric=True)
def counted(x, y):
    with open(log, "a") as file:
        file.write("pair\\n")
    return float(abs(x - y).mean()) if x.shape == y.shape else 0.0

def scores():
    with sqlite3.connect(f"file:{{out}}/store/scores.sqlite?mode=ro", uri=True) as database:
        return database.execute("SELECT count(*) FROM scores").fetchone()[0]

PLACES = {{
    "training": lambda: len(list(out.glob("networks/*/network.json"))) >= 5,
    "comparing": lambda: (out / "store" / "scores.sqlite").exists() and scores() >= 20,
    "evaluating": lambda: len(list(out.glob("rows/*.csv"))) >= 2,
}}

def look(event, arguments):
    if place in PLACES and (event == "os.rename" or arguments[:1] == (log,)) and PLACES[place]():
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(look)
run("vision", "digits", "mlp", measures=["cka", "counted"], preset={PRESET!r}, out=out, progress=False)
"""


def start(out: Path, log: Path, place: str = "nowhere") -> int:
    words = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(out), str(log), place]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchmarkRun, int]:
    """A run that was not killed, and how often it asked the measure."""
    folder = tmp_path_factory.mktemp("whole")
    assert start(folder / "run", folder / "log") == 0
    return BenchmarkRun.load(folder / "run"), calls(folder / "log")


@pytest.mark.parametrize(("place", "again"), [("training", 0), ("comparing", 2), ("evaluating", 2)])
def test_a_killed_run_is_resumed(whole: tuple[BenchmarkRun, int], tmp_path: Path, place: str, again: int) -> None:
    """`again` are the pairs that may be under way when it is killed, on as many threads."""
    out, log = tmp_path / "run", tmp_path / "log"
    assert start(out, log, place) == -signal.SIGKILL
    made = {path: path.stat().st_mtime_ns for path in out.glob("networks/*/network.json")}
    assert len(made) >= 5
    assert (len(made) == NETWORKS) == (place != "training")
    assert start(out, log) == 0
    assert {path: path.stat().st_mtime_ns for path in made} == made
    expected, once = whole
    found = BenchmarkRun.load(out)
    assert once <= calls(log) <= once + again
    same = [name for name in found.results.columns if name != "seconds"]
    pd.testing.assert_frame_equal(found.results[same], expected.results[same])
    learned = [name for name in found.networks.columns if name != "seconds"]
    pd.testing.assert_frame_equal(found.networks[learned], expected.networks[learned])


def test_a_second_run_does_nothing_and_other_measures_train_nothing(tmp_path: Path) -> None:
    how = {"preset": PRESET, "groundings": ["accuracy", "labels"], "out": tmp_path, "progress": False}
    first = run("vision", "digits", "mlp", measures="cka", **how)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    second = run("vision", "digits", "mlp", measures="cka", **how)
    pd.testing.assert_frame_equal(second.results, first.results)  # the seconds too: nothing was measured again
    other = run("vision", "digits", "mlp", measures=["rsa", "jaccard[k=5]"], **how)
    assert set(other.results["measure"]) == {"rsa", "jaccard"}
    assert {path: path.stat().st_mtime_ns for path in files} == files
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["groundings"] == ["accuracy", "labels"]
    assert record["settings"]["sizes"]["group"] == 3


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    how = {"preset": PRESET, "groundings": ["accuracy"], "measures": "cka", "out": tmp_path, "progress": False}
    run("vision", "digits", "mlp", **how)
    with pytest.raises(InputError) as error:
        run("vision", "digits", "mlp", seed=1, **how)
    assert str(error.value) == (f"{tmp_path} holds a run with another seed (0 there, 1 here). Name another folder.")
    planned = plan("vision", "digits", "mlp", preset=PRESET, groundings=["accuracy", "shortcut"], out=tmp_path)
    assert planned["group"].tolist() == ["standard", "shortcut 0", "shortcut 0.75", "shortcut 1"]
    assert planned["done"].tolist() == [4, 0, 0, 0]
    assert planned["left"].tolist()[0] == 0
    assert (planned["left"].iloc[1:] > 0).all()
    assert planned.attrs == {"pairs": 6 + 36, "measures": 23, "gpu_tflops": 10.0}


def test_networks_are_trained_in_processes_as_in_this_one(tmp_path: Path) -> None:
    how = {"preset": PRESET, "groundings": ["accuracy"], "measures": "cka", "progress": False}
    here = run("vision", "digits", "mlp", out=tmp_path / "here", **how)
    there = run("vision", "digits", "mlp", out=tmp_path / "there", engine="processes:2", **how)
    assert there.networks["accuracy"].tolist() == here.networks["accuracy"].tolist()
    assert there.results["value"].tolist() == pytest.approx(here.results["value"].tolist(), abs=1e-12)


def test_measures_that_a_run_cannot_use_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        run("vision", "digits", "mlp", measures="sat", out=tmp_path, progress=False)
    assert str(error.value) == "sat looks at networks, and a benchmark compares representations. Leave it out."
    for grounding, reason in (
        ("layers", "the same at every layer of a network"),
        ("outputs", "what it would be compared with"),
    ):
        with pytest.raises(InputError) as error:
            run("vision", "digits", "mlp", measures="jsd", groundings=grounding, preset=PRESET, out=tmp_path)
        assert str(error.value) == (
            f"jsd looks at outputs, which are {reason}. Leave out the grounding {grounding!r}, or name a measure of "
            "representations."
        )


def test_a_run_of_an_older_version_of_its_domain_is_not_resumed(tmp_path: Path) -> None:
    how = {"preset": PRESET, "groundings": ["accuracy"], "measures": "cka", "progress": False}
    run("vision", "digits", "mlp", out=tmp_path, **how)
    record = json.loads((tmp_path / "run.json").read_text())
    del record["settings"]["version of the domain"]
    write_whole(tmp_path / "run.json", json.dumps(record).encode())
    with pytest.raises(InputError) as error:
        run("vision", "digits", "mlp", out=tmp_path, **how)
    assert str(error.value) == (
        f"{tmp_path} holds a run with another version of the domain (None there, 3 here). Name another folder."
    )


def test_whatever_is_damaged_is_named_and_made_again(tmp_path: Path) -> None:
    how: Any = {"preset": PRESET, "groundings": ["accuracy"], "measures": "cka", "progress": False}
    first = run("vision", "digits", "mlp", out=tmp_path, **how)
    (rows,) = (tmp_path / "rows").iterdir()
    network = next((tmp_path / "networks").glob("*/network.json"))
    sentences = {
        rows: "does not match its checksum; its results are computed anew.",
        network: "does not match its checksum; the network is made anew.",
        network.with_name("weights.safetensors"): (
            "is missing or does not match its checksum; the network is made anew."
        ),
        tmp_path / "run.json": "does not match its checksum; it is written anew.",
    }
    for path, sentence in sentences.items():
        content = path.read_bytes()
        changed = content[:-1] + bytes([content[-1] ^ 1]) if path.suffix == ".safetensors" else _other_digit(content)
        for damaged in (changed, content[:-9], b""):
            path.write_bytes(damaged)
            (tmp_path / "results.csv").unlink(missing_ok=True)
            with pytest.warns(DamagedStoreWarning) as warnings:
                again = run("vision", "digits", "mlp", out=tmp_path, **how)
            assert {str(warning.message) for warning in warnings} == {f"{path} {sentence}"}
            timeless = [frame.drop(columns="seconds") for frame in (first.results, again.results)]
            pd.testing.assert_frame_equal(*timeless)
    for name in ("results.csv", "networks.csv"):
        path = tmp_path / name
        path.write_bytes(_other_digit(path.read_bytes()))
        for load in (BenchmarkRun.load, Results.load):
            with pytest.raises(FileError) as error:
                load(tmp_path)
            assert str(error.value) == (f"{path} is damaged: it does not match its checksum. Run again what wrote it.")
        again = run("vision", "digits", "mlp", out=tmp_path, **how)  # which makes it again from intact rows
        pd.testing.assert_frame_equal(again.results.drop(columns="seconds"), timeless[0])


def _other_digit(content: bytes) -> bytes:
    """The content with its last digit behind a point changed."""
    position = max(match.start() + 1 for match in re.finditer(rb"\.\d", content))
    return content[:position] + str((int(content[position : position + 1]) + 1) % 10).encode() + content[position + 1 :]


def test_a_run_of_an_earlier_version_is_resumed(tmp_path: Path) -> None:
    how: Any = {"preset": PRESET, "groundings": ["accuracy"], "measures": "cka", "progress": False}
    first = run("vision", "digits", "mlp", out=tmp_path, **how)
    (tmp_path / MANIFEST).unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("networks/*/weights.safetensors")}
    pd.testing.assert_frame_equal(run("vision", "digits", "mlp", out=tmp_path, **how).results, first.results)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("networks/*/weights.safetensors")}


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        BenchmarkRun.load(tmp_path)
    assert str(error.value) == f"there is no file {tmp_path / 'run.json'}. Check the path."


def test_architectures_of_several_runs_are_families(tmp_path: Path) -> None:
    few = {"preset": {"seeds": 3, "probe": 50, "train": 100, "training": {"epochs": 1}}, "measures": "cka"}
    runs = [
        run("vision", "digits", name, groundings="accuracy", out=tmp_path / name, progress=False, **few)
        for name in ("mlp", "lenet")
    ]
    rows = across([runs[0], tmp_path / "lenet"], "cka", progress=False)
    assert set(rows["network"]) == {"mlp+lenet"}
    assert set(rows["grounding"]) == {"family"}
    assert set(rows["networks"]) == {6}
    found = rows.query("metric == 'auprc' and variant == 'published'")
    assert found["chance"].item() == pytest.approx(3 / 12)  # 3 pairs inside a family, 9 with the other
    with pytest.raises(InputError) as error:
        across(runs[:1], "cka", progress=False)
    assert str(error.value) == "families of architectures need two runs or more, and there are 1. Give more."
    other = run("vision", "digits", "mlp", groundings="labels", out=tmp_path / "labels", progress=False, **few)
    with pytest.raises(InputError) as error:
        across([runs[0], other], "cka", progress=False)
    assert str(error.value) == (
        f"{tmp_path / 'labels'} has no networks that differ by their seed alone. Run its grounding 'accuracy'."
    )
