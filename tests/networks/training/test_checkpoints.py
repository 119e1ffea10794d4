"""A training on disk: resumed to the same weights, never under other settings, every epoch kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import likewise
from likewise._base.manifest import MANIFEST
from likewise.classes import Inspector
from likewise.errors import DamagedStoreWarning, InputError
from likewise.networks import Normalised, save, train
from likewise.networks.training import checkpoints, loop
from tests.networks.helpers import DATA, refused, same, settings, small

PATIENCE = 1800  # seconds, on a busy machine


def test_every_epoch_is_kept_from_before_the_first_step(tmp_path: Path) -> None:
    done = train("zoo:mlp", "digits:train[:64]", epochs=2, out=tmp_path, keep_epochs=True, lr=0.05)
    kept = sorted(file.name for file in (tmp_path / "epochs").iterdir())
    assert kept == ["0000.safetensors", "0001.safetensors", "0002.safetensors"]
    last = likewise.network(str(tmp_path / "epochs" / "0002.safetensors"))
    images = likewise.dataset("digits:test[:5]").inputs.double().float()
    with torch.no_grad():
        assert torch.equal(last(images), done.net(images))


def test_a_resumed_training_keeps_the_epochs_it_had(tmp_path: Path) -> None:
    settings = {"epochs": 3, "out": tmp_path, "keep_epochs": True, "lr": 0.05}
    train("zoo:mlp", "digits:train[:64]", callbacks=[lambda *_: True], **settings)
    first = (tmp_path / "epochs" / "0001.safetensors").read_bytes()
    train("zoo:mlp", "digits:train[:64]", **settings)
    assert (tmp_path / "epochs" / "0001.safetensors").read_bytes() == first


def test_epochs_cannot_be_kept_nowhere() -> None:
    assert (
        refused(lambda: train("zoo:mlp", "digits:train[:64]", epochs=1, keep_epochs=True))
        == "keep_epochs needs a folder to keep the epochs in. Give out."
    )


def test_epochs_shorter_than_saving_them_are_saved_now_and_then_and_the_last_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, saved, clock = checkpoints.save, [], [0.0]

    def tick() -> float:
        clock[0] += 0.05  # between two looks at it, of which an epoch takes three
        return clock[0]

    def slowly(*given: Any) -> None:
        clock[0] += 0.05
        saved.append(len(given[4]))
        plain(*given)

    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=tick))
    monkeypatch.setattr(checkpoints, "save", slowly)
    short: dict[str, Any] = {"epochs": 30, "lr": 0.05}
    done = train("zoo:mlp", "digits:train[:32]", **short, out=tmp_path / "plain")
    assert (saved[0], saved[-1], len(done.history)) == (1, 30, 30)
    assert 3 < len(saved) < 6
    saved.clear()
    train("zoo:mlp", "digits:train[:32]", **short | {"epochs": 4}, out=tmp_path / "called", callbacks=[lambda *_: None])
    assert saved == [1, 2, 3, 4]  # what a callback was told is never told again


# Everything that remembers something: dropout, batch normalisation, momentum, augmentation, mixing, the best weights.
RECIPE = (
    "epochs=6, seed=4, batch_size=64, lr=0.05, augment=('resized-crop', 'noise'), mixup=0.2, cutmix=1.0, warmup=1, "
    "schedule='linear', label_smoothing=0.1, validation='digits:test[:50]', evaluate_every=2, keep_best=True"
)


ATTACKED = (
    "epochs=6, seed=4, batch_size=64, lr=0.05, augment=('crop',), label_smoothing=0.1, keep_epochs=True, "
    "adversarial={{'attack': 'pgd', 'eps': 2 / 255, 'iterations': 2}}, teacher={teacher!r}"
)


def program(out: Path, recipe: str, pause: float = 0.0) -> subprocess.Popen[bytes]:
    """A training in a process of its own, resting after each epoch so that it can be killed."""
    text = f"""
import time
from likewise import train
train("zoo:lenet", "digits:train[:300]", out={str(out)!r}, {recipe},
      callbacks=[lambda net, record: time.sleep({pause} if record["epoch"] == 4 else 0)])
"""
    return subprocess.Popen([sys.executable, "-c", text], env=os.environ | {"OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize("recipe", [RECIPE, ATTACKED], ids=["mixed", "attacked and taught"])
def test_a_killed_training_is_resumed_to_the_same_weights(tmp_path: Path, recipe: str) -> None:
    teacher = tmp_path / "teacher.safetensors"
    save(likewise.network("zoo:mlp", channels=1, size=8, classes=10, seed=3), teacher)
    recipe = recipe.format(teacher=str(teacher))
    whole = program(tmp_path / "whole", recipe)
    killed = program(tmp_path / "killed", recipe, pause=2 * PATIENCE)
    checkpoint = tmp_path / "killed" / "checkpoint.safetensors"
    deadline = time.monotonic() + PATIENCE
    while _epochs_of(checkpoint) != 3:
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "weights.safetensors").exists()
    again = program(tmp_path / "killed", recipe)
    assert whole.wait(PATIENCE) == again.wait(PATIENCE) == 0
    kept = sorted(file.relative_to(tmp_path / "whole") for file in (tmp_path / "whole").rglob("*.safetensors"))
    assert len(kept) == (10 if "keep_epochs" in recipe else 3)
    for name in kept:
        one, other = load_file(tmp_path / "whole" / name), load_file(tmp_path / "killed" / name)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("name", ["lenet", "allconv"])
def test_every_optimiser_is_remembered(tmp_path: Path, optimiser: str, name: str) -> None:
    class StoppedError(Exception):
        pass

    def stop(net: nn.Module, record: Any) -> None:
        if record["epoch"] == 3:
            raise StoppedError

    what = (f"zoo:{name}", "digits:train[:40]")
    how = settings(epochs=4, batch_size=16, lr=1e-3, optimiser=optimiser)
    whole = train(*what, **how)
    with pytest.raises(StoppedError):
        train(*what, out=tmp_path, callbacks=[stop], **how)
    assert _epochs_of(tmp_path / "checkpoint.safetensors") == 2
    again = train(*what, out=tmp_path, **how)
    assert same(whole.net, again.net)


def _epochs_of(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    try:
        with safe_open(checkpoint, framework="pt") as file:
            return len(json.loads(file.metadata()["history"]))
    except (FileNotFoundError, RuntimeError):  # another process set it aside this moment, for the next one
        return 0


def test_a_finished_training_is_not_done_again(tmp_path: Path) -> None:
    first = train("zoo:mlp", "digits:train[:100]", out=tmp_path, **settings())
    told: list[int] = []
    again = train(
        "zoo:mlp",
        "digits:train[:100]",
        out=tmp_path,
        callbacks=[lambda net, record: told.append(record["epoch"])],
        **settings(),
    )
    assert told == []
    assert again.history == first.history
    assert same(first.net, again.net)


def test_the_folder_of_a_training_is_an_address(tmp_path: Path) -> None:
    done = train("zoo:mlp", "digits:train[:100]", out=tmp_path, **settings())
    again = likewise.network(str(tmp_path))
    images = likewise.dataset("digits:test").inputs
    assert isinstance(again, Normalised)
    assert torch.equal(again(images), done.net(images))


OTHERWISE = "Give the same settings to resume it, or another folder."


def saved(path: Path, seed: int) -> Path:
    data = likewise.dataset(DATA)
    likewise.networks.save(likewise.network("zoo:mlp", data=data, seed=seed), path)
    return path


def test_weights_of_another_do_not_resume_a_training(tmp_path: Path) -> None:
    a, b = (saved(tmp_path / f"{seed}.safetensors", seed) for seed in (1, 2))
    first = train(f"zoo:mlp@{a}", DATA, epochs=1, out=tmp_path / "ft")
    again = train(f"zoo:mlp@{a}", DATA, epochs=1, out=tmp_path / "ft")
    assert same(first.net, again.net)
    with pytest.raises(InputError, match=r"holds a training with other settings \(start weights"):
        train(f"zoo:mlp@{b}", DATA, epochs=1, out=tmp_path / "ft")


@pytest.mark.parametrize("width", [8, 9])
def test_another_module_does_not_resume_a_training(tmp_path: Path, width: int) -> None:
    train(small(0), DATA, epochs=1, out=tmp_path)
    assert train(small(0), DATA, epochs=1, out=tmp_path).history
    with pytest.raises(InputError, match=r"holds a training with other settings \(start weights"):
        train(small(1, width), DATA, epochs=1, out=tmp_path)


SIZES = {"classes": 10, "channels": 1, "size": 8}


@pytest.mark.parametrize(
    ("first", "second", "differences"),
    [
        ({}, {"epochs": 3, "seed": 1}, "epochs 2 there, 3 here; seed 0 there, 1 here"),
        ({}, {"net": "zoo:lenet"}, "network 'zoo:mlp' there, 'zoo:lenet' here"),
        (
            {"net": "zoo:mlp,hidden=8"},
            {"net": "zoo:mlp,hidden=9"},
            f"options {SIZES | {'hidden': 8}} there, {SIZES | {'hidden': 9}} here",
        ),
        ({"schedule": "constant"}, {"schedule": "constant", "epochs": 1}, "epochs 2 there, 1 here"),
    ],
    ids=["settings", "network", "options", "fewer epochs"],
)
def test_other_settings_do_not_resume_a_training(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], differences: str
) -> None:
    usual = {"net": "zoo:mlp", "data": DATA, "out": tmp_path} | settings()
    train(**usual | first)
    assert refused(lambda: train(**usual | second)) == (
        f"{tmp_path} holds a training with other settings ({differences}). {OTHERWISE}"
    )


def test_another_schedule_does_not_resume_a_training(tmp_path: Path) -> None:
    def run(schedule: Any) -> Any:
        return train("zoo:mlp", DATA, epochs=1, out=tmp_path, schedule=schedule)

    run(lambda share: 1 - share)
    assert run(lambda share: 1 - share).history
    with pytest.raises(InputError, match=r"other settings \(schedule '<lambda> "):
        run(lambda share: 1 - share / 2)


def test_a_module_that_was_interrupted_is_resumed_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = train(small(0), DATA, epochs=3)
    net, count = small(0), 0

    def stop(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(net, DATA, epochs=3, out=tmp_path, callbacks=[stop])
    assert same(train(net, DATA, epochs=3, out=tmp_path).net, whole.net)
    net.load_state_dict(small(5).state_dict())
    with pytest.raises(InputError, match=r"holds a training with other settings \(start weights"):
        train(net, DATA, epochs=3, out=tmp_path)


def test_a_checkpoint_older_than_a_setting_is_resumed_at_its_default(tmp_path: Path) -> None:
    done = train("zoo:mlp", DATA, out=tmp_path, **settings())
    path = tmp_path / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    stored = json.loads(header["settings"])
    assert stored.pop("clip", 0) is None
    assert stored.pop("momentum") == 0.9
    header = {name: header[name] for name in ("history", "groups", "numbers")} | {"settings": json.dumps(stored)}
    save_file(load_file(path), path, metadata=header)
    assert train("zoo:mlp", DATA, out=tmp_path, **settings()).history == done.history
    assert refused(lambda: train("zoo:mlp", DATA, out=tmp_path, momentum=0.2, **settings())) == (
        f"{tmp_path} holds a training with other settings (momentum 0.9 there, 0.2 here). {OTHERWISE}"
    )


@pytest.mark.parametrize("schedule", ["constant", "plateau"])
def test_a_finished_training_takes_more_epochs_as_if_it_had_had_them(tmp_path: Path, schedule: str) -> None:
    how = settings(schedule=schedule, warmup=1, augment="noise", lr=0.05)
    whole = train("zoo:lenet", "digits:train[:100]", **{**how, "epochs": 4})
    for epochs in (2, 3, 4):
        done = train("zoo:lenet", "digits:train[:100]", out=tmp_path, keep_epochs=True, **{**how, "epochs": epochs})
    assert same(done.net, whole.net)
    assert same(likewise.network(str(tmp_path)), whole.net)
    assert [record["loss"] for record in done.history] == [record["loss"] for record in whole.history]
    assert [record.get("planned_before") for record in done.history] == [None, None, 2, 3]
    assert len(list((tmp_path / "epochs").iterdir())) == 5
    again = train("zoo:lenet", "digits:train[:100]", out=tmp_path, keep_epochs=True, **{**how, "epochs": 4})
    assert again.history == done.history


def test_the_best_weights_survive_more_epochs_and_a_finished_training(tmp_path: Path) -> None:
    how = settings(schedule="constant", lr=0.2, seed=2, batch_size=20, keep_best=True, validation="digits:test[:40]")
    whole = train("zoo:lenet", "digits:train[:60]", **{**how, "epochs": 6})
    for epochs in (3, 6, 6):
        done = train("zoo:lenet", "digits:train[:60]", out=tmp_path, **{**how, "epochs": epochs})
    assert same(done.net, whole.net)
    assert same(likewise.network(str(tmp_path)), whole.net)
    with safe_open(tmp_path / "checkpoint.safetensors", framework="pt") as file:
        names = [name.removeprefix("net.") for name in file.keys() if name.startswith("net.")]  # noqa: SIM118
        moved = [not torch.equal(file.get_tensor(f"net.{name}"), file.get_tensor(f"best.{name}")) for name in names]
    assert any(moved)  # the best were not the last


def test_a_checkpoint_whose_best_weights_are_lost_is_damaged(tmp_path: Path) -> None:
    how = settings(keep_best=True, validation="digits:test[:40]")
    whole = train("zoo:mlp", DATA, out=tmp_path, **how)
    path = tmp_path / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        header = {name: file.metadata()[name] for name in ("history", "groups", "numbers", "settings")}
    tensors = load_file(path)
    lost = next(name for name in tensors if name.startswith("best."))
    save_file({name: value for name, value in tensors.items() if name != lost}, path, metadata=header)
    (tmp_path / "checkpoint-before.safetensors").unlink()
    again = _warned(
        f"{path} is no checkpoint of a training, or it is damaged; the training starts over.",
        lambda: train("zoo:mlp", DATA, out=tmp_path, **how),
    )
    assert same(again.net, whole.net)


def _warned(sentence: str, training: Callable[[], Any]) -> Any:
    """What a training returns, which says one sentence."""
    with pytest.warns(DamagedStoreWarning) as warnings:
        done = training()
    assert [str(warning.message) for warning in warnings] == [sentence]
    return done


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "deleted"])
def test_a_damaged_checkpoint_costs_the_epoch_since_the_one_before(tmp_path: Path, damage: str) -> None:
    how = settings(epochs=3, keep_best=True, validation="digits:test[:40]", callbacks=[lambda *_: None])
    whole = train("zoo:mlp", DATA, **how)
    train("zoo:mlp", DATA, out=tmp_path, **how)
    last, before = tmp_path / "checkpoint.safetensors", tmp_path / "checkpoint-before.safetensors"
    assert (_epochs_of(last), _epochs_of(before)) == (3, 2)
    content = last.read_bytes()
    changed = {"flipped": content[:-1] + bytes([content[-1] ^ 1]), "cut": content[:-9], "emptied": b"", "deleted": b""}
    last.write_bytes(changed[damage])
    if damage == "deleted":
        last.unlink()
        again = train("zoo:mlp", DATA, out=tmp_path, **how)
    else:
        again = _warned(
            f"{last} is damaged; the training resumes from checkpoint-before.safetensors.",
            lambda: train("zoo:mlp", DATA, out=tmp_path, **how),
        )
    assert same(again.net, whole.net)
    assert (_epochs_of(last), _epochs_of(before)) == (3, 2)


def test_a_damaged_checkpoint_of_another_training_is_left_alone(tmp_path: Path) -> None:
    train("zoo:mlp", DATA, out=tmp_path, **settings(epochs=1))
    path = tmp_path / "checkpoint.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # what it says of its settings can still be read
    weights = (tmp_path / "weights.safetensors").read_bytes()
    assert refused(lambda: train("zoo:mlp", DATA, out=tmp_path, **settings(epochs=1, lr=0.123))) == (
        f"{tmp_path} holds a training with other settings (lr 0.05 there, 0.123 here). {OTHERWISE}"
    )
    assert (tmp_path / "weights.safetensors").read_bytes() == weights


def test_a_damaged_report_of_the_last_epoch_is_made_again_by_the_training(tmp_path: Path) -> None:
    def run() -> Any:
        inspector = Inspector(10, out=tmp_path / "watched")
        train(
            "zoo:mlp",
            DATA,
            out=tmp_path / "run",
            callbacks=[inspector],
            validation="digits:test[:40]",
            **settings(epochs=3),
        )
        return inspector

    curves = run().curves()
    path = tmp_path / "watched" / "0003.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    with pytest.warns(DamagedStoreWarning, match="it is left out"):
        again = run()
    assert again.curves().equals(curves)
    assert path.read_bytes() == content
    (tmp_path / "watched" / "0001.safetensors").write_bytes(b"")
    with pytest.warns(DamagedStoreWarning) as warnings:
        again = run()
    assert list(again.curves().index) == [0, 2, 3]
    assert str(warnings[1].message) == (
        f"epoch 1 was reported to a damaged file, and the training in {tmp_path / 'run'} is past it: its report is "
        "left out. Inspect kept epochs again, or train in another folder."
    )


def test_a_training_of_an_earlier_version_is_resumed(tmp_path: Path) -> None:
    how = settings(schedule="constant")
    whole = train("zoo:mlp", DATA, **{**how, "epochs": 4})
    train("zoo:mlp", DATA, out=tmp_path, **{**how, "epochs": 2})
    for name in (MANIFEST, "checkpoint-before.safetensors"):
        (tmp_path / name).unlink()
    assert same(train("zoo:mlp", DATA, out=tmp_path, **{**how, "epochs": 4}).net, whole.net)


@pytest.mark.parametrize("schedule", ["cosine", "step"])
def test_a_schedule_over_all_epochs_takes_no_more_of_them(tmp_path: Path, schedule: str) -> None:
    out = tmp_path / "run"
    how = settings(schedule=schedule, epochs=2)
    train("zoo:mlp", DATA, out=out, **how)
    assert refused(lambda: train("zoo:mlp", DATA, out=out, **{**how, "epochs": 5})) == (
        f"{out} holds a training of 2 epochs, whose schedule {schedule!r} spreads the learning rate over 2: they are "
        "not the first 2 of 5. Only plateau and constant schedules take more epochs. Train 5 anew in another folder, "
        f"or train on from its weights in another folder: network {str(out)!r}, epochs=3."
    )
    more = train(str(out), DATA, out=tmp_path / "more", **{**how, "epochs": 3})
    assert more.history[0]["loss"] < train("zoo:mlp", DATA, **how).history[0]["loss"]  # it starts where that ended


def test_an_unfinished_training_is_resumed_by_the_epochs_it_was_planned_for(tmp_path: Path) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("zoo:mlp", DATA, out=tmp_path, callbacks=[lambda _, record: record["epoch"] == 2 and stop()], epochs=3)
    with pytest.raises(InputError) as error:
        train("zoo:mlp", DATA, out=tmp_path, epochs=4)
    assert str(error.value).endswith("Train 4 anew in another folder, or give epochs=3 to resume it.")
