"""Recordings as files, and beside each other and networks: what they give, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise import Recording
from likewise._base import sealed
from likewise.cli import main
from likewise.errors import InputError, OptionError, UnknownNameError

X = torch.randn(60, 12, generator=torch.Generator().manual_seed(0))


def made(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 5))


def recorded(seed: int = 0, name: str = "net", x: torch.Tensor = X) -> Recording:
    return likewise.record(made(seed), x, name=name, progress=False)


def test_a_file_gives_back_what_was_recorded(tmp_path: Path) -> None:
    recording = recorded()
    path = recording.save(tmp_path / "old")
    assert path == tmp_path / "old.likewise"
    again = Recording.load(path)
    assert (again.name, again.probe, again.n, again.kind, again.about) == (
        recording.name,
        recording.probe,
        60,
        "classes",
        recording.about,
    )
    for name, layer in recording.layers.items():
        assert np.array_equal(again.layers[name].values, layer.values)
        assert (again.layers[name].similarity is None) == (layer.similarity is None)
    assert np.array_equal(again.answers["top"], recording.answers["top"])
    per_layer = (path.stat().st_size - sum(v.nbytes for v in recording.answers.values())) / len(recording.layers)
    assert per_layer < 16_000


def test_a_single_layer_is_recorded_by_its_answers() -> None:
    recording = likewise.record(nn.Linear(12, 3), X, name="one", progress=False)
    assert (dict(recording.layers), recording.kind) == ({}, "classes")
    assert likewise.diff(recording, recording).answers.disagreement == 0


def test_it_holds_no_input(tmp_path: Path) -> None:
    texts = likewise.dataset("sentences:test[:12]")
    path = likewise.record("zoo:bert-tiny", texts, name="t", progress=False).save(tmp_path / "t")
    content = path.read_bytes()
    assert [text for text in texts.inputs if text.encode() in content] == []


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = recorded().save(tmp_path / "old")
    damaged = tmp_path / "damaged.likewise"
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    damaged.write_bytes(bytes(content))
    with pytest.raises(InputError) as error:
        Recording.load(damaged)
    assert str(error.value) == (
        f"{damaged} is no whole recording: it does not match its checksum. Record the network again."
    )
    tensors, metadata = sealed.read(path)
    header = json.loads(metadata["recording"]) | {"format": 9}
    later = sealed.write(tmp_path / "later", tensors, {"recording": json.dumps(header)}, ending=".likewise")
    with pytest.raises(InputError) as error:
        Recording.load(later)
    assert str(error.value) == (
        f"{later} is a recording of another version (format 9, this reads 2). Record the network again."
    )
    other = tmp_path / "mine.likewise"
    other.write_text("notes")
    with pytest.raises(InputError, match="is no whole recording"):
        recorded().save(other)
    assert other.read_text() == "notes"


def test_another_probe_is_refused_by_name() -> None:
    a, b = recorded(), recorded(name="other", x=X + 1)
    with pytest.raises(InputError) as error:
        likewise.compare(a, b)
    assert str(error.value) == (
        f"'net' was recorded on 'inputs' (60 inputs, {a.probe}) and 'other' on 'inputs' (60 inputs, {b.probe}). Record "
        "both on one probe."
    )


def test_recordings_are_compared_as_networks_are() -> None:
    nets = {"a": made(0), "b": made(1), "c": made(2)}
    exact = likewise.compare(nets, data=X, layers="4", progress=False)
    files = {"a": recorded(0), "b": recorded(1), "c": nets["c"]}
    matrix = likewise.compare(files, data=X, layers="4", progress=False)
    assert np.abs(matrix.values - exact.values).max() < 0.03
    score = likewise.compare(recorded(0), made(1), data=X, layers="4", progress=False)
    assert float(score) == pytest.approx(matrix["a", "b"])
    layers = likewise.layerwise(recorded(0), recorded(1))
    assert list(layers.rows) == ["0", "2", "4"]
    assert layers.values[2, 2] == pytest.approx(matrix["a", "b"])


def test_what_recordings_do_not_hold_is_refused() -> None:
    with pytest.raises(InputError) as error:
        likewise.compare(recorded(), recorded(), "procrustes")
    assert str(error.value) == (
        "recordings hold what cka-debiased needs, and not what 'procrustes' does. Compare the networks themselves, or "
        "leave measure out."
    )
    with pytest.raises(
        InputError, match="is a network, and a comparison with recordings needs to know what to show it"
    ):
        likewise.compare(recorded(), made())
    with pytest.raises(InputError, match="have no similarities of a layer 'nine'"):
        likewise.compare(recorded(), recorded(), layers="nine")


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("top", np.full((60, 3), 3), "its 'top' names more than there are"),
        ("top", np.full((60, 3), -1), "its 'top' has entries that are no answers"),
        ("log_p", np.full((60, 3), np.nan, np.float32), "its 'log_p' has entries that are no answers"),
        ("log_p", np.zeros((60, 2), np.float32), "its 'top' names more than there are"),
        ("top", np.zeros((59, 3), int), "its 'top' has the shape (59, 3) of int64"),
        ("classes", np.zeros(0, int), "its 'classes' has the shape (0,) of int64"),
        ("classes", np.ones(1), "its 'classes' has the shape (1,) of float64"),
    ],
)
def test_answers_that_cannot_be_are_refused(tmp_path: Path, name: str, values: Any, reason: str) -> None:
    whole = recorded()
    path = replace(whole, answers={**whole.answers, name: values}).save(tmp_path / "forged")
    with pytest.raises(InputError) as error:
        Recording.load(path)
    assert str(error.value) == f"{path} is no whole recording: {reason}. Record the network again."


def test_answers_of_more_classes_than_fit_in_memory_are_refused(tmp_path: Path) -> None:
    whole = recorded()
    forged = replace(whole, name="forged", answers={**whole.answers, "classes": np.array([2**50])})
    with pytest.raises(InputError, match=r"'forged' are of 1,125,899,906,842,624 classes and would take .* GB"):
        likewise.diff(whole, forged.save(tmp_path / "forged"))


def test_a_list_of_measures_gives_a_comparison() -> None:
    files = {"a": recorded(0), "b": recorded(1)}
    comparison = likewise.compare(files, ["cka-debiased"])
    assert list(comparison) == ["cka-debiased"]
    assert np.array_equal(comparison["cka-debiased"].values, likewise.compare(files).values)


def test_a_command_compares_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(recorded(seed).save(tmp_path / f"{seed}")) for seed in range(2)]
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *paths, "--data", "digits:test[:20]"])
    assert stopped.value.code in (0, None)
    assert "0.likewise 1.likewise" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [{"calibrate": True}, {"intervals": True}, {"clusters": [0]}, {"series": True}, {"engine": "processes"}]
)
def test_what_needs_inputs_is_refused_beside_recordings(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as error:
        likewise.compare(recorded(0), recorded(1), **options)
    (name,) = options
    assert str(error.value) == (
        f"compare has no use for {name} beside recordings, which hold sketches and no inputs. Leave it out."
    )


def test_a_layer_has_one_name_on_both_sides() -> None:
    files = {"a": recorded(0), "b": recorded(1)}
    one = likewise.compare(files, layers={"a": "2", "b": "2"})
    assert np.array_equal(one.values, likewise.compare(files, layers="2").values)
    with pytest.raises(InputError, match="recordings are compared at a layer of one name, and layers is"):
        likewise.compare(files, layers={"a": "2", "b": "4"})
    with pytest.raises(OptionError, match="layerwise has no use for layers beside recordings"):
        likewise.layerwise(*files.values(), layers=["2"])


def test_a_head_is_named_for_the_network_that_is_recorded() -> None:
    net = made()
    with pytest.raises(UnknownNameError, match="has no layer named 'nosuch'"):
        likewise.record(net, X, head={"Sequential": "nosuch"}, progress=False)
    named = likewise.record(net, X, head={"Sequential": "4"}, name="other", progress=False)
    assert np.array_equal(named.answers["top"], recorded().answers["top"])
