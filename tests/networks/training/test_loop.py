"""Training: the same seed gives the same weights, also after being killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

import likewise
from likewise.errors import InputError
from likewise.networks import Normalised, evaluate, train
from likewise.networks.training.augment import crop, cutout, flip, mix
from likewise.networks.training.settings import Settings, rate_at

# Everything that remembers something: dropout, batch normalisation, momentum, augmentation, mixing.
RECIPE = (
    "epochs=6, seed=4, batch_size=64, lr=0.05, augment=('crop', 'noise'), mixup=0.2, cutmix=1.0, "
    "warmup=1, label_smoothing=0.1, validation='digits:test[:50]'"
)


def settings(**options: Any) -> dict[str, Any]:
    return {"epochs": 2, "lr": 0.05, "batch_size": 64} | options


def weights(net: nn.Module) -> list[torch.Tensor]:
    return [value.clone() for value in net.state_dict().values()]


def equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def program(out: Path, pause: float = 0.0) -> subprocess.Popen[bytes]:
    """A training in a process of its own, resting after each epoch so that it can be killed."""
    text = f"""
import time
from likewise import train
train("zoo:lenet", "digits:train[:300]", out={str(out)!r}, {RECIPE},
      callbacks=[lambda net, record: time.sleep({pause} if record["epoch"] == 4 else 0)])
"""
    return subprocess.Popen([sys.executable, "-c", text], env=os.environ | {"OMP_NUM_THREADS": "1"})


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = program(tmp_path / "whole")
    killed = program(tmp_path / "killed", pause=600)
    checkpoint = tmp_path / "killed" / "checkpoint.safetensors"
    deadline = time.monotonic() + 300
    while _epochs_of(checkpoint) != 3:
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "weights.safetensors").exists()
    again = program(tmp_path / "killed")
    assert whole.wait(300) == again.wait(300) == 0
    for name in ("weights.safetensors", "checkpoint.safetensors"):
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
    assert equal(weights(whole.net), weights(again.net))


def _epochs_of(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    with safe_open(checkpoint, framework="pt") as file:
        return len(json.loads(file.metadata()["history"]))


def test_the_same_seed_gives_the_same_weights_and_another_others() -> None:
    digits = likewise.dataset("digits:train[:200]")
    first, again, other = (
        train("zoo:lenet", digits, **settings(seed=seed, augment=["crop"])).net for seed in (1, 1, 2)
    )
    assert equal(weights(first), weights(again))
    assert not equal(weights(first), weights(other))


def test_every_epoch_has_an_order_of_its_own() -> None:
    seen: list[list[int]] = []

    def watched(net: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        images, labels = batch
        seen.append(labels.tolist())
        logits = net(images)
        return nn.functional.cross_entropy(logits, labels), logits, labels

    train("zoo:mlp", "digits:train[:40]", step=watched, **settings())
    assert sorted(seen[0]) == sorted(seen[1])
    assert seen[0] != seen[1]


def test_training_leaves_chance_as_it_was() -> None:
    before = torch.get_rng_state()
    train("zoo:mlp", "digits:train[:100]", **settings())
    assert torch.equal(before, torch.get_rng_state())


def test_a_training_learns() -> None:
    done = train("zoo:lenet", "digits", **settings(epochs=4), validation="digits:test")
    assert done.history[-1]["validation_accuracy"] > 0.93
    _, accuracy = evaluate(done.net, likewise.dataset("digits:test"))
    assert accuracy == done.history[-1]["validation_accuracy"]
    assert not done.net.training


def test_capsules_are_trained_by_their_own_loss() -> None:
    data = likewise.dataset("digits:train[:64]")
    net = likewise.network("zoo:capsnet", data=data)
    done = train(net, data, **settings(epochs=3, optimiser="adam", lr=1e-3, batch_size=16))
    assert done.history[-1]["loss"] < 0.5 * done.history[0]["loss"]


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
    assert equal(weights(first.net), weights(again.net))


def test_the_folder_of_a_training_is_an_address(tmp_path: Path) -> None:
    done = train("zoo:mlp", "digits:train[:100]", out=tmp_path, **settings())
    again = likewise.network(str(tmp_path))
    images = likewise.dataset("digits:test").inputs
    assert isinstance(again, Normalised)
    assert torch.equal(again(images), done.net(images))


def test_other_settings_do_not_go_on_with_a_training(tmp_path: Path) -> None:
    train("zoo:mlp", "digits:train[:100]", out=tmp_path, **settings())
    with pytest.raises(InputError) as error:
        train("zoo:mlp", "digits:train[:100]", out=tmp_path, **settings(epochs=3, seed=1))
    assert str(error.value) == (
        f"{tmp_path} holds a training with other settings (epochs 2 there, 3 here; seed 0 there, 1 "
        "here). Give the same settings to resume it, or another folder."
    )


def test_another_network_does_not_go_on_with_a_training(tmp_path: Path) -> None:
    train("zoo:mlp", "digits:train[:100]", out=tmp_path, **settings())
    with pytest.raises(InputError) as error:
        train("zoo:lenet", "digits:train[:100]", out=tmp_path, **settings())
    assert str(error.value) == (
        f"{tmp_path} holds a training with other settings (network 'zoo:mlp' there, 'zoo:lenet' "
        "here). Give the same settings to resume it, or another folder."
    )


@pytest.mark.parametrize(("n", "label"), [(100, "training"), (300, "epoch 2 of 2")])
def test_progress_is_shown_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, n: int, label: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    train("zoo:mlp", f"digits:train[:{n}]", progress=True, **settings(batch_size=12))
    said = capsys.readouterr()
    assert label in said.err
    assert said.out == ""


def test_a_callback_may_stop_the_training(tmp_path: Path) -> None:
    def stop(net: nn.Module, record: Any) -> bool:
        return record["epoch"] == 2

    kwargs = settings(epochs=5, out=tmp_path, callbacks=[stop])
    done = train("zoo:mlp", "digits:train[:100]", **kwargs)
    assert len(done.history) == 2
    assert len(train("zoo:mlp", "digits:train[:100]", **kwargs).history) == 2


def test_patience_stops_early_and_is_off_by_default() -> None:
    still = settings(epochs=6, lr=0.0, weight_decay=0.0, validation="digits:test[:50]")
    assert len(train("zoo:mlp", "digits:train[:50]", **still).history) == 6
    # the first epoch is the best, and two more go by without a better one
    assert len(train("zoo:mlp", "digits:train[:50]", patience=2, **still).history) == 3


def test_a_last_batch_of_one_is_left_out() -> None:
    done = train("zoo:lenet", "digits:train[:65]", **settings(epochs=1))
    assert done.history[0]["epoch"] == 1


def test_a_step_of_ones_own_replaces_the_forward_pass() -> None:
    data = likewise.dataset("digits:train[:64]")

    def halved(net: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        images, labels = batch
        logits = net(images[::2])
        return nn.functional.cross_entropy(logits, labels[::2]), logits, labels[::2]

    done = train("zoo:mlp", data, step=halved, **settings())
    half = train("zoo:mlp", data, **settings())
    assert not equal(weights(done.net), weights(half.net))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"optimiser": "adamm"},
            "no optimiser named 'adamm'. Did you mean 'adam'? There are sgd, adam, adamw.",
        ),
        (
            {"schedule": "cosin"},
            "no schedule named 'cosin'. Did you mean 'cosine'? There are cosine, step, plateau, constant.",
        ),
        (
            {"augment": ["flop"]},
            "no augmentation named 'flop'. Did you mean 'flip'? There are flip, crop, cutout, noise.",
        ),
        ({"epochs": 0}, "epochs is 0. Give at least 1."),
        ({"batch_size": 0}, "batch_size is 0. Give at least 1."),
    ],
)
def test_a_setting_that_does_not_exist_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        train("zoo:mlp", "digits:train[:50]", **settings(**options))
    assert str(error.value) == sentence


def test_a_network_with_too_few_classes_is_refused() -> None:
    net = likewise.network("zoo:mlp", channels=1, size=8, classes=3)
    with pytest.raises(InputError) as error:
        train(net, "digits:train[:50]", **settings())
    assert str(error.value) == (
        "the network answers with 3 classes and 'digits:train[:50]' has 10. Build it with classes=10."
    )


def test_a_loss_that_explodes_is_said() -> None:
    with pytest.raises(InputError) as error:
        train("zoo:mlp", "digits:train[:200]", **settings(lr=1e30, schedule="constant"))
    assert str(error.value) == ("the loss is nan in epoch 1. Lower lr (it was 1e+30) or give warmup.")


def test_a_network_without_parameters_is_refused() -> None:
    with pytest.raises(InputError) as error:
        train(nn.Flatten(), "digits:train[:50]", **settings())
    assert str(error.value) == ("Flatten has nothing to train. Set requires_grad on some parameters.")


def test_the_schedules_are_what_they_are_called() -> None:
    def rates(epochs_done: list[float], losses: list[float] | None = None, **how: Any) -> list[float]:
        chosen = Settings(epochs=8, lr=1.0, **how)
        return [round(rate_at(chosen, e, losses or []), 4) for e in epochs_done]

    assert rates([0, 4, 8], schedule="cosine") == [1, 0.5, 0]
    assert rates([0, 3.9, 4, 6], schedule="step") == [1, 1, 0.1, 0.01]
    assert rates([0, 7], schedule="constant") == [1, 1]
    assert rates([0, 1, 2, 3], schedule="constant", warmup=2) == [0, 0.5, 1, 1]
    assert rates([11], [1.0] * 11, schedule="plateau") == [0.1]
    assert rates([11], [1.0 - i / 100 for i in range(11)], schedule="plateau") == [1]
    assert rates([0, 8], schedule=lambda share: 1 - share / 2) == [1, 0.5]


def test_augmentations_move_pixels_and_invent_none() -> None:
    images = torch.rand(64, 3, 16, 16)
    chance = torch.Generator().manual_seed(0)
    flipped = flip(images, chance)
    mirrored = (flipped == images.flip(-1)).flatten(1).all(dim=1)
    assert 16 < int(mirrored.sum()) < 48
    assert torch.equal(flipped[~mirrored], images[~mirrored])
    shifted = crop(images, chance)
    assert shifted.shape == images.shape
    assert torch.isin(shifted, torch.cat([images.flatten(), torch.zeros(1)])).all()
    holes = (cutout(images, chance) == 0).float().mean()
    assert 0.1 < float(holes) <= 0.25


def test_mixed_images_have_mixed_labels() -> None:
    images = torch.stack([torch.full((1, 8, 8), float(i % 2)) for i in range(64)])
    labels = torch.arange(64) % 2
    for how in ({"mixup": 1.0, "cutmix": 0.0}, {"mixup": 0.0, "cutmix": 1.0}):
        chance = torch.Generator().manual_seed(1)
        mixed, soft = mix(images, labels, 2, chance, **how)
        torch.testing.assert_close(soft.sum(dim=1), torch.ones(64))
        # an image is as bright as the share of class 1 in it
        torch.testing.assert_close(mixed.mean(dim=(1, 2, 3)), soft[:, 1])
        assert float(soft[:, 1].std()) > 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mixup": 0.2}, "text inputs cannot be mixed. Leave out mixup and cutmix."),
        (
            {"augment": ["flip"]},
            "text inputs have no augmentations by name. Give a function of the batch and a torch.Generator.",
        ),
    ],
)
def test_text_is_neither_mixed_nor_flipped(options: dict[str, Any], sentence: str) -> None:
    data = likewise.data.Data("t", "text", ["a", "b"], [0, 1], ("x", "y"))
    with pytest.raises(InputError) as error:
        train(nn.Linear(2, 2), data, **settings(**options))
    assert str(error.value) == sentence
