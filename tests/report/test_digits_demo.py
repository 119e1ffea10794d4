"""The demo: networks that were changed on purpose, told apart, and everything read when run again."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from likewise._base import sealed
from likewise._base.files import write_whole
from likewise._base.folders import claim
from likewise.errors import InputError, StoreError
from likewise.report import digits_demo as room
from likewise.report.digits_demo import STUDENTS, Student, demo
from likewise.report.page import contents
from likewise.report.runs import read_runs
from tests.helpers import sentence
from tests.report.first_screen import check
from tests.report.helpers import data_of

pytest.importorskip("sklearn")
FEW = (
    Student("mlp-0", "zoo:mlp", 0, epochs=4),
    Student("mlp-1", "zoo:mlp", 1, epochs=4),
    Student("random", "zoo:mlp", 2, epochs=4, training="random labels"),
    Student("conv", "zoo:conv-mlp", 0, epochs=4),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def first(folder: Path) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "MEASURES", ("cka-debiased", "disagreement", "class-alignment"))
        patch.setattr(room, "INPUT_MEASURES", ("pnka",))
        patch.setattr(room, "ATTACK", {"attack": "fgsm", "eps": 0.1})
        patch.setattr(room, "SHUFFLES", 19)
        lines: list[str] = []
        demo(folder, say=lines.append, students=FEW)
        again: list[str] = []
        demo(folder, say=again.append, students=FEW)
        return [json.dumps(lines), json.dumps(again)]


def test_every_view_is_in_the_report(first: list[str], folder: Path) -> None:
    found = data_of((folder / "report.html").read_text(encoding="utf-8"))
    panels = ["matrix", "map", "disagreement", "layers", "inputs", "classes", "attacks", "unseen"]
    assert list(found["panels"]) == panels
    kinds = {measure["view"] for measure in found["panels"]["matrix"]["measures"]}
    assert kinds == {"representations", "answers", "attacks", "classes"}
    assert {net["components"]["training"] for net in found["networks"]} == {"digits", "random labels"}
    assert "zoo:" not in found["panels"]["layers"]["layers"][0]["a"]


def test_every_statement_of_the_first_screen_holds_of_the_numbers(first: list[str], folder: Path) -> None:
    runs = read_runs(folder)
    page = contents(runs)
    check(page, runs)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert page.summary.sentences
    for finding in page.summary.sentences.values():
        assert text.count(f"<dd>{finding.text} ") == 1


def test_a_second_run_reads_what_the_first_made(first: list[str], folder: Path) -> None:
    lines, again = (json.loads(text) for text in first)
    steps = ("compared", "attacked", "layers", "unseen")
    assert not any("read from" in line for line in lines)
    assert [line.rpartition(": read from ")[2] for line in again if "read from" in line] == [
        str(folder / step) for step in steps
    ]


def test_the_network_of_random_labels_knows_nothing(first: list[str]) -> None:
    lines = json.loads(first[0])
    right = {line.split()[4]: float(after.split()[0]) for line, after in pairwise(lines) if line.startswith("network ")}
    assert right["random"] < 40 < right["mlp-0"]


def test_the_demo_has_networks_of_every_kind() -> None:
    assert 8 <= len(STUDENTS) <= 10
    assert len({student.address for student in STUDENTS}) >= 4
    assert {"random labels", "shortcut", "against attacks"} <= {student.training for student in STUDENTS}


def test_a_folder_that_cannot_be_made_is_refused_before_any_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    with pytest.raises((InputError, OSError)):
        demo(tmp_path / "file" / "demo", say=said.append, students=FEW)
    assert said == []


def test_a_device_that_is_not_there_is_refused_before_any_training(tmp_path: Path) -> None:
    assert sentence(InputError, demo, tmp_path / "demo", students=FEW, device="nosuch") == (
        "device 'nosuch' cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
    )
    assert not (tmp_path / "demo").exists()


def test_files_that_no_demo_made_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "mine.py").write_text("code")
    said: list[str] = []
    with pytest.raises(StoreError) as error:
        demo(tmp_path, say=said.append, students=FEW)
    assert str(error.value) == (
        f"{tmp_path} holds files that likewise did not write. Name a new or an empty folder, as in "
        f"{tmp_path / 'likewise'}."
    )
    assert [file.name for file in tmp_path.rglob("*")] == ["layers", "mine.py"]
    assert said == []


def test_what_was_damaged_or_deleted_is_made_again_and_files_of_others_stay(tmp_path: Path) -> None:
    lines: list[str] = []

    def step(out: Path) -> None:
        write_whole(out / "a.csv", b"1,2")
        sealed.write(out / "matrices" / "b", {"a": torch.ones(2)}, {})

    def run(students: tuple[Student, ...] = FEW) -> str:
        room._Steps(tmp_path, students, lines.append).run("layers", "a step", step)
        return lines[-1]

    claim(tmp_path)
    read = f"a step: read from {tmp_path / 'layers'}"
    assert [run(), run()] == ["a step", read]
    for name in ("a.csv", "matrices/b.safetensors", room.DONE):
        path = tmp_path / "layers" / name
        content = path.read_bytes()
        for damaged in (None, content[:-1], content[:-1] + b"#"):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            assert [run(), run()] == ["a step", read]
            assert path.read_bytes() == content
    (tmp_path / "layers" / "matrices" / "mine.txt").write_text("mine")
    (tmp_path / "layers" / "store").mkdir()
    assert run() == read
    sealed.write(tmp_path / "layers" / "matrices" / "of a student", {"a": torch.ones(2)}, {})
    assert run(FEW[:2]) == "a step"
    left = {path.name for path in (tmp_path / "layers").rglob("*") if path.is_file()}
    assert left == {"a.csv", "b.safetensors", room.DONE, "mine.txt"}
