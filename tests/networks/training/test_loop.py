"""Training: the same seed gives the same weights, also after being killed."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import InputError
from likewise.networks import Settings, evaluate, train
from likewise.networks.training.step import Classify
from tests.networks.helpers import DATA, refused, same, settings, small


def test_the_same_seed_gives_the_same_weights_and_another_others() -> None:
    digits = likewise.dataset("digits:train[:200]")
    first, again, other = (
        train("zoo:lenet", digits, **settings(seed=seed, augment=["crop"])).net for seed in (1, 1, 2)
    )
    assert same(first, again)
    assert not same(first, other)


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


NOISY = settings(epochs=3, batch_size=20, lr=0.3, weight_decay=0.0, validation="digits:test[:40]")


def test_validation_every_few_steps_changes_no_weights_and_is_recorded() -> None:
    plain = train("zoo:lenet", "digits:train[:100]", **NOISY)
    often = train("zoo:lenet", "digits:train[:100]", evaluate_every=2, **NOISY)
    assert same(plain.net, often.net)
    assert [record["validation_loss"] for record in plain.history] == [
        record["validation_loss"] for record in often.history
    ]
    # five steps per epoch, of which the last is validated anyway
    steps = [[one["step"] for one in record.get("evaluations", [])] for record in often.history]
    assert steps == [[2, 4], [6, 8], [12, 14]]
    assert "evaluations" not in plain.history[0]


def test_the_best_weights_are_the_first_of_the_best_validation_accuracy() -> None:
    data, validation = likewise.dataset("digits:train[:100]"), likewise.dataset("digits:test[:40]")
    how = Settings().override({name: value for name, value in NOISY.items() if name != "validation"})
    usual, states = Classify(how, data), []

    def watched(net: nn.Module, batch: Any) -> Any:
        states.append(deepcopy(net.state_dict()))  # as the step before left it
        return usual(net, batch)

    last = train("zoo:lenet", data, how, step=watched).net
    states.append(deepcopy(last.state_dict()))
    accuracies = []
    for state in states[1:]:
        last.load_state_dict(state)
        accuracies.append(evaluate(last, validation, batch_size=20)[1])
    found = accuracies.index(max(accuracies))
    assert 0 < found < len(accuracies) - 1
    last.load_state_dict(states[1 + found])
    kept = train("zoo:lenet", data, how, validation=validation, evaluate_every=1, keep_best=True)
    assert same(kept.net, last)
    best = [record for record in kept.history if "best_step" in record][-1]
    assert (best["best_step"], best["best_accuracy"]) == (found + 1, max(accuracies))
    assert evaluate(kept.net, validation)[1] == max(accuracies)


def test_a_last_batch_of_one_is_left_out() -> None:
    done = train("zoo:lenet", "digits:train[:65]", **settings(epochs=1))
    assert done.history[0]["epoch"] == 1


def test_a_loss_that_explodes_is_said() -> None:
    assert refused(lambda: train("zoo:mlp", "digits:train[:200]", **settings(lr=1e30, schedule="constant"))) == (
        "the loss is nan in epoch 1. Lower lr (it was 1e+30) or give warmup."
    )


def test_a_network_without_parameters_is_refused() -> None:
    assert refused(lambda: train(nn.Flatten(), "digits:train[:50]", **settings())) == (
        "Flatten has nothing to train. Set requires_grad on some parameters."
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"mixup": -1}, "mixup is -1. Give 0 or more."),
        ({"lr": -1}, "lr is -1. Give 0 or more."),
        ({"lr": float("nan")}, "lr is nan. Give 0 or more."),
        ({"label_smoothing": 5}, "label_smoothing is 5. Give a share, 0 to 1."),
        (
            {"augment": "flop"},
            "no augmentation named 'flop'. Did you mean 'flip'? There are flip, crop, resized-crop, cutout, "
            "noise, rotation, blur, jitter, perspective, affine.",
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
    assert refused(lambda: train("zoo:mlp", DATA, epochs=1, **given)) == sentence


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
    assert refused(lambda: train("zoo:mlp", DATA, epochs=1, out=path)) == (
        f"{path} is a file, and a training needs a folder. Give another out."
    )


def test_batch_normalisation_is_not_trained_on_batches_of_one() -> None:
    assert refused(lambda: train("zoo:resnet20", DATA, epochs=1, batch_size=1)) == (
        "ResNet has batch normalisation, which cannot be trained on batches of one input. Give a "
        "batch_size of at least 2, and as many inputs."
    )


def test_batches_of_one_show_every_input() -> None:
    seen = []
    net = small(0)
    net.register_forward_hook(lambda module, given, found: seen.append(len(found)))
    train(net, "digits:train[:7]", epochs=1, batch_size=1)
    assert seen == [1] * 7
