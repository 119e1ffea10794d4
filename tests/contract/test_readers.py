"""The readers' part of the battery: a seeded selection, and the proof that it would notice."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import likewise
from likewise._base import sealed
from tests.contract.battery.hostile import HOSTILE, deep, folder_instead, link_outside, mutated
from tests.contract.battery.readers import reached, reader_functions
from tests.contract.battery.result_files import RESULTS
from tests.contract.imports import SOURCE
from tests.fuzz.file_kinds import KINDS, FileKind
from tests.fuzz.files import BAD, fuzz

# Readers of files that need a download or a published folder to be reached. May only shrink.
NOT_REACHED = {
    ("_base/folders.py", "check_replaceable"),  # what is there before a file is written
    ("benchmark/training.py", "_made"),  # in the midst of a run: tests/benchmark/test_runs.py damages its files
    ("data/sources/imagenet.py", "_split_ids"),
    ("networks/sources/repository.py", "check_whole"),
    ("networks/sources/sentences.py", "_json"),
    ("networks/training/checkpoints.py", "_start_over"),  # only a damaged checkpoint leads there
}
# several per second at most, or fetched anew where a file is missing; the command runs them all
SLOW = {"training", "store", "transformers", "datasets", "graph, npz", "planetoid", "ogbn-arxiv", "flickr"}


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.name)
def test_damaged_and_hostile_results_are_refused_or_give_what_was_saved(kind: FileKind) -> None:
    cases = [*fuzz(kind, 4, 11), *fuzz(kind, 10, 11, HOSTILE)]
    assert [case for case in cases if case.outcome in BAD] == []
    assert {case.outcome for case in cases} & {"refused", "warned"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name not in SLOW], ids=lambda kind: kind.name)
def test_hostile_files_that_users_name_are_refused_or_read(kind: FileKind) -> None:
    cases = list(fuzz(kind, 5, 11, HOSTILE))
    assert [case for case in cases if case.outcome in ("wrong", "foreign")] == []


def test_every_reader_is_registered() -> None:
    assert reader_functions(SOURCE) - reached(SOURCE) == NOT_REACHED


def test_a_reader_that_is_not_registered_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "added"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "room.py").write_text(
        "from likewise._base.folders import read_json\n\n\ndef read_settings(folder):\n"
        "    return read_json(folder, 'a.json')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    functions = {("room.py", "read_settings")}
    assert reader_functions(package) - reached(package, ()) == functions
    from added.room import read_settings  # type: ignore[import-not-found]

    registered = FileKind("added", lambda folder: (folder / "a.json").write_text('{"a": 1}'), read_settings)
    assert reader_functions(package) - reached(package, [registered]) == set()


def test_a_reader_that_follows_links_or_believes_anything_is_caught(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "a.json").write_text('{"values": [1, 2, 3]}')

    def trusting(folder: Path) -> object:
        import json

        return sum(json.loads((folder / "a.json").read_text())["values"])

    reader = FileKind("trusting", write, trusting, folder=True)
    outcomes = [case.outcome for case in fuzz(reader, 3, 0, (link_outside, folder_instead, deep))]
    assert outcomes == ["outside", "foreign", "foreign"]


def test_a_mutated_record_differs_in_one_entry(tmp_path: Path) -> None:
    record = {"a": [1, 2, {"b": "c"}], "d": None}
    several = [repr(mutated(record, random.Random(seed), tmp_path)) for seed in range(60)]
    assert len(set(several)) > 30
    assert record == {"a": [1, 2, {"b": "c"}], "d": None}


# What was believed before


def _report(folder: Path) -> str:
    out = folder.parent / "report.html"
    likewise.report.report(folder, out=out)
    return out.read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    matrix = likewise.SimilarityMatrix(["a", "b", "c"], [[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]])
    matrix.save(folder / "matrices" / "m")
    return folder


def _refusal(function: object, *arguments: object, **options: object) -> str:
    with pytest.raises(likewise.errors.LikewiseError) as error:
        function(*arguments, **options)  # type: ignore[operator]
    return str(error.value)


def test_a_report_does_not_publish_what_a_link_leads_to(run: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("PRIVATE")
    (run / "command.txt").symlink_to(tmp_path / "key")
    assert _refusal(_report, run) == (
        f"{run / 'command.txt'} leads out of {run}, whose files may only be read inside of it. Copy it there."
    )


def test_a_folder_that_leads_out_is_not_reported(run: Path, tmp_path: Path) -> None:
    run.rename(tmp_path / "elsewhere")
    run.mkdir()
    (run / "inner").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match=r"leads out of .* and is not read\. Give it by its own path\."):
        assert "holds no results" in _refusal(_report, run)


def test_a_command_that_never_ends_is_refused_at_once(run: Path) -> None:
    command = run / "command.txt"
    os.mkfifo(command)
    assert _refusal(_report, run) == f"{command} is a pipe, not a file. Give the path of a file."
    command.unlink()
    with command.open("wb") as file:
        file.truncate(400_000_000)
    assert _refusal(_report, run) == f"{command} has more than the 1,048,576 bytes that such a file may have."
    command.unlink()
    command.mkdir()
    assert _refusal(_report, run) == f"{command} is a folder, not a file. Give the path of a file."


@pytest.mark.parametrize("facts", ["[1]", "null", "{", "[" * 20_000, '{"names": ' + "1" * 5000 + "}"])
def test_a_header_is_checked_before_it_is_believed(run: Path, facts: str) -> None:
    path = run / "matrices" / "m.safetensors"
    tensors, _ = sealed.read(path)
    sealed.write(path, {name: tensor.clone() for name, tensor in tensors.items()}, {"facts": facts})
    assert _refusal(_report, run).startswith(f"{path} is damaged (it ")


@pytest.mark.parametrize("name", ["../secret.npy", "ABSOLUTE", None, 3, ["a.npy"], "out/secret.npy", "pipe.npy"])
@pytest.mark.parametrize("field", ["representation", "outputs", "labels"])
def test_a_manifest_names_files_of_its_folder(tmp_path: Path, name: object, field: str) -> None:
    import json

    import numpy as np

    folder = tmp_path / "mine"
    folder.mkdir()
    values = np.random.default_rng(0).normal(size=(20, 4))
    np.save(tmp_path / "secret.npy", values)
    np.save(folder / "a.npy", values)
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.npy")
    name = str(tmp_path / "secret.npy") if name == "ABSOLUTE" else name
    network = {"representation": "a.npy", "group": "a", "outputs": "a.npy"}
    np.save(folder / "labels.npy", np.arange(20) % 4)
    manifest = {"labels": "labels.npy", "networks": {"a": network}}
    (manifest if field == "labels" else network)[field] = name  # type: ignore[index]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    sentence = _refusal(likewise.benchmark.from_folder, folder, "cka", progress=False)
    assert str(folder) in sentence
    assert "leads out of" in sentence or "is no manifest" in sentence or "is a pipe" in sentence


@pytest.mark.parametrize("data", ["imagefolder:/etc", "cifar100", "digits,size=99999", "/etc", "evil.py:build"])
def test_a_run_of_a_stranger_chooses_no_data(tmp_path: Path, data: str) -> None:
    import json

    kind = next(kind for kind in RESULTS if kind.name == "benchmark inputs")
    kind.write(tmp_path)
    (tmp_path / "likewise.manifest").unlink()
    record = json.loads((tmp_path / "run.json").read_text())
    record["settings"]["data"] = data
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert _refusal(likewise.benchmark.plot_inputs, tmp_path) == (
        f"{tmp_path} says that it was run on {data!r}, and a folder may not choose what is read or fetched. "
        f"Where you trust it, name the data: --data {data}, in Python data={data!r}."
    )
    assert likewise.benchmark.plot_inputs(tmp_path, data="digits").axes
