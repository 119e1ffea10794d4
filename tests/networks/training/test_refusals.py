"""What a training refuses: to go on with another's run, and settings that cannot be meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import InputError
from likewise.networks import evaluate, train

DATA = "digits:train[:60]"
OTHERWISE = "Give the same settings to resume it, or another folder."


def weights(path: Path, seed: int) -> Path:
    data = likewise.dataset(DATA)
    likewise.networks.save(likewise.network("zoo:mlp", data=data, seed=seed), path)
    return path


def equal(a: nn.Module, b: nn.Module) -> bool:
    left, right = a.state_dict(), b.state_dict()
    return all(torch.equal(left[key], right[key]) for key in left)


def small(seed: int, width: int = 8) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def test_weights_of_another_do_not_go_on_with_a_training(tmp_path: Path) -> None:
    a, b = (weights(tmp_path / f"{seed}.safetensors", seed) for seed in (1, 2))
    first = train(f"zoo:mlp@{a}", DATA, epochs=1, out=tmp_path / "ft")
    again = train(f"zoo:mlp@{a}", DATA, epochs=1, out=tmp_path / "ft")
    assert equal(first.net, again.net)
    with pytest.raises(InputError, match=r"holds a training with other settings \(start weights"):
        train(f"zoo:mlp@{b}", DATA, epochs=1, out=tmp_path / "ft")


@pytest.mark.parametrize("width", [8, 9])
def test_another_module_does_not_go_on_with_a_training(tmp_path: Path, width: int) -> None:
    train(small(0), DATA, epochs=1, out=tmp_path)
    assert train(small(0), DATA, epochs=1, out=tmp_path).history
    with pytest.raises(InputError, match=r"holds a training with other settings \(start weights"):
        train(small(1, width), DATA, epochs=1, out=tmp_path)


def test_other_options_do_not_go_on_with_a_training(tmp_path: Path) -> None:
    train("zoo:mlp,hidden=8", DATA, epochs=1, out=tmp_path)
    with pytest.raises(InputError) as error:
        train("zoo:mlp,hidden=9", DATA, epochs=1, out=tmp_path)
    there, here = ({"classes": 10, "channels": 1, "size": 8, "hidden": hidden} for hidden in (8, 9))
    assert str(error.value) == (
        f"{tmp_path} holds a training with other settings (options {there} there, {here} here). {OTHERWISE}"
    )


def test_another_schedule_does_not_go_on_with_a_training(tmp_path: Path) -> None:
    def run(schedule: Any) -> Any:
        return train("zoo:mlp", DATA, epochs=1, out=tmp_path, schedule=schedule)

    run(lambda share: 1 - share)
    assert run(lambda share: 1 - share).history
    with pytest.raises(InputError, match=r"other settings \(schedule '<lambda> "):
        run(lambda share: 1 - share / 2)


def test_a_module_that_was_interrupted_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = train(small(0), DATA, epochs=3)
    net, count = small(0), 0

    def stop(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(net, DATA, epochs=3, out=tmp_path, callbacks=[stop])
    assert equal(train(net, DATA, epochs=3, out=tmp_path).net, whole.net)
    net.load_state_dict(small(5).state_dict())
    with pytest.raises(InputError, match=r"holds a training with other settings \(start weights"):
        train(net, DATA, epochs=3, out=tmp_path)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"mixup": -1}, "mixup is -1. Give 0 or more."),
        ({"lr": -1}, "lr is -1. Give 0 or more."),
        ({"lr": float("nan")}, "lr is nan. Give 0 or more."),
        ({"label_smoothing": 5}, "label_smoothing is 5. Give a share, 0 to 1."),
        (
            {"augment": "flop"},
            "no augmentation named 'flop'. Did you mean 'flip'? There are flip, crop, cutout, noise.",
        ),
        (
            {"validation": "digits:test[:0]"},
            "'digits:test[:0]' has no inputs to validate on. Give at least one.",
        ),
        (
            {"validation": [1, 2]},
            "the data to validate on is a list, which does not say what its classes are. Give an "
            "address, or likewise.data.Data of inputs, labels and classes.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_start(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        train("zoo:mlp", DATA, epochs=1, **given)
    assert str(error.value) == sentence


def test_one_augmentation_needs_no_list() -> None:
    assert train("zoo:mlp", DATA, epochs=1, augment="flip").settings.augment == ("flip",)


def test_bare_datasets_are_refused() -> None:
    bare = torch.utils.data.TensorDataset(torch.rand(4, 1, 8, 8), torch.zeros(4))
    with pytest.raises(InputError) as error:
        train("zoo:mlp", bare, epochs=1)  # type: ignore[arg-type]
    assert str(error.value) == (
        "the data to train on is a TensorDataset, which does not say what its classes are. Give an "
        "address, or likewise.data.Data of inputs, labels and classes."
    )


def test_a_file_is_no_folder_to_train_into(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("")
    with pytest.raises(InputError) as error:
        train("zoo:mlp", DATA, epochs=1, out=path)
    assert str(error.value) == (f"{path} is a file, and a training needs a folder. Give another out.")


def test_batch_normalisation_is_not_trained_on_batches_of_one() -> None:
    with pytest.raises(InputError) as error:
        train("zoo:resnet20", DATA, epochs=1, batch_size=1)
    assert str(error.value) == (
        "ResNet has batch normalisation, which cannot be trained on batches of one input. Give a "
        "batch_size of at least 2, and as many inputs."
    )


def test_nothing_cannot_be_scored() -> None:
    data = likewise.dataset("digits:test[:0]")
    with pytest.raises(InputError) as error:
        evaluate(small(0), data)
    assert str(error.value) == "'digits:test[:0]' has no inputs to be scored on. Give at least one."


def test_batches_of_one_show_every_input() -> None:
    seen = []
    net = small(0)
    net.register_forward_hook(lambda module, given, found: seen.append(len(found)))
    train(net, "digits:train[:7]", epochs=1, batch_size=1)
    assert seen == [1] * 7
