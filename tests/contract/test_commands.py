"""Commands hold whatever is typed: a drawn selection of the battery, and what it is made of."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from contextlib import chdir
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated

import pytest
from typer import Option

from likewise import cli
from tests.contract.battery import commands as battery
from tests.contract.battery.command_files import write_files

SEED, DRAWN = 0, 120


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("battery") / "files"
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_files(folder)
    return folder


def test_every_command_is_registered_with_an_example() -> None:
    assert battery.unregistered() == []
    assert set(battery.EXAMPLES) == set(battery.declared())


def extra(size: Annotated[int, Option(help="A number.")] = 1) -> None:
    """A command of somebody else."""


def test_a_command_without_an_example_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = EntryPoint("extra", f"{__name__}:extra", cli.GROUP)
    monkeypatch.setattr(cli, "entry_points", lambda group: [theirs])
    battery.declared.cache_clear()
    try:
        assert battery.unregistered() == ["extra"]
    finally:
        battery.declared.cache_clear()


def test_at_least_three_hundred_vectors_are_derived() -> None:
    vectors = battery.select(SEED, battery.ALL)
    assert len(set(vectors)) >= 300
    assert {vector.command for vector in vectors} == set(battery.EXAMPLES)


def test_a_drawn_selection_of_vectors_holds(template: Path) -> None:
    before = battery.digests(template)
    seen = [
        (vector.command, vector.words, fault)
        for vector in battery.select(SEED, DRAWN)
        for fault in battery.faults(vector, template, before)
    ]
    assert seen == []


BROKEN = {
    "foreign": lambda **_: 1 / 0,
    "ignored": lambda **_: None,
    "touched": lambda **_: Path("user.txt").write_text("gone"),
    "outside": lambda **_: Path("../../elsewhere.txt").write_text("here"),
    "wordless": lambda **_: print("\x1b[31m"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_the_battery_notices(kind: str, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(size: Annotated[int, Option(help="A number.")] = 1) -> None:
        BROKEN[kind]()

    class Point:
        name, value = "broken", "somewhere:broken"

        def load(self) -> object:
            return broken

    monkeypatch.setattr(cli, "entry_points", lambda group: [Point()])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    vector = battery.Vector("broken", ("--size", "2"), "--size", nonsense=True)
    assert kind in {fault for fault, _ in battery.faults(vector, template, battery.digests(template))}


# --- arguments that mean nothing --------------------------------------------------------------------------------

TWO = "nets.py:build nets.py:other --data digits:test[:40] --mean 0 --std 1"
REFUSALS = {
    "compare a.npy b.npy --labels missing.txt --calibrate": (
        "--labels has no effect without --within-classes. Leave it out."
    ),
    "compare a.npy b.npy --device nosuch": (
        "device 'nosuch' cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
    ),
    "compare a.npy b.npy --head nosuch": (
        "head says how networks are shown data, and compare was given arrays. Leave it out."
    ),
    "compare a.npy b.npy --dtype float99": (
        "no dtype named 'float99'. Did you mean 'float32'? There are float32, float16, bfloat16."
    ),
    "compare a.npy b.npy --reduce nosuch": (
        "no reduction named 'nosuch'. There are mean, cls, last, flatten, spatial, pool7, pool7-spatial."
    ),
    "compare nets.py:build nets.py:other --data digits:test[:0]": (
        "'digits:test[:0]' holds no inputs. Give a part of the data that has some."
    ),
    f"diff {TWO} --markdown --json": "--markdown and --json are two forms of one output. Give one of them.",
    "measures cka --family nosuch": "--family has no effect beside the name of one measure. Leave it out.",
    "train zoo:mlp digits --out new --epochs 1 --warmup 99": (
        "warmup is 99 epochs, and there are 1. Give at most as many."
    ),
    "train zoo:mlp digits --out new --milestones 9 --schedule step": (
        "milestones are (9.0,). Give shares of all epochs, between 0 and 1."
    ),
    "train zoo:mlp digits --out new --milestones 0.3": (
        "milestones is for the schedule 'step', and it is 'cosine'. Leave milestones out."
    ),
    "train zoo:mlp digits --out new --patience 0": "patience is 0. Give at least 1.",
    "families run --distance": (
        "--distance has no effect on a saved matrix, which knows what a larger number means. Leave it out."
    ),
    "families run --plot images": "images is a folder. Give the name of a picture, as in images/picture.png.",
    "advise --domain graph --question all --d 5": "--d has no effect without --n. Leave it out.",
    f"layerwise {TWO} --head nosuch": (
        "'nets.py:build' has no layer 'nosuch' to be its head. The first are '0', '1', '2'; `likewise layers` lists "
        "all."
    ),
}


@pytest.mark.parametrize("line", REFUSALS)
def test_what_means_nothing_is_refused_in_one_sentence(line: str, template: Path) -> None:
    done = battery.outcome(tuple(line.split()), template)
    assert (done.code, done.err) == (1, f"likewise: {REFUSALS[line]}\n")


@pytest.mark.parametrize(
    "line",
    [
        "families run --seed -1",
        "ensemble run --seed -1",
        "advise --domain graph --question all --n 500 --d 0",
        f"diff {TWO} --transfer -1",
        "compare a.npy b.npy --batch-size 0",
    ],
)
def test_numbers_out_of_range_are_errors_of_use(line: str, template: Path) -> None:
    done = battery.outcome(tuple(line.split()), template)
    flag = line.split()[-2]
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(f"Error: Invalid value for '{flag}': ")


def test_a_picture_without_an_ending_is_named_as_it_is_written(template: Path) -> None:
    done = battery.outcome(("families", "run", "--plot", "families"), template)
    assert done.out.endswith("\nwritten to families.png\n")
    assert "families.png" in done.files


def test_a_command_that_cannot_be_recorded_keeps_the_exit_code_of_its_results(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(words: list[str]) -> None:
        if Path("new/scores.csv").exists():  # it is written before, too, for a run that is killed
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("likewise.cli._words.record", full)
    done = battery.outcome(("compare", "a.npy", "b.npy", "--out", "new"), template)
    assert done.code == 0
    assert done.err == (
        "likewise: the results are written, the command beside them is not: [Errno 28] No space left on device\n"
    )
    assert "new/scores.csv" in done.files


# --- files that are there ----------------------------------------------------------------------------------------

KINDS = {
    "report run --out": "report",
    "benchmark board sent.json --no-ours --out": "page of a board",
    "benchmark submit cka --views cached.safetensors --out": "row of a board",
    "benchmark views trained --out": "file of cached views",
}


@pytest.mark.parametrize("line", KINDS)
def test_a_file_of_ours_replaces_one_of_its_kind_alone(line: str, template: Path) -> None:
    words = tuple(line.split())
    name = "theirs.safetensors" if "views" in words[:2] else "theirs.html"
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        shutil.copytree(template, files)
        (files / name).write_text("a user's own text")
        done = battery.outcome((*words, name), files)
        assert done.err == f"likewise: {name} is no {KINDS[line]}, and is not replaced. Name another file.\n"
        assert done.code == 1
        assert done.files == battery.digests(files)
        (files / name).unlink()
        with chdir(files):
            for _ in range(2):
                with pytest.raises(SystemExit) as stopped:
                    cli.main([*words, name])
                assert stopped.value.code in (0, None)
