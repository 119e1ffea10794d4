"""Settings: one declaration behind `train`, the command and type checkers; the rate they lead to."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest
import torch

from likewise._base.optional import prepare_torchvision
from likewise.cli.train import train as command
from likewise.errors import OptionError
from likewise.networks import train
from likewise.networks.training.settings import Settings, SettingsDict, rate_at
from tests.networks.helpers import DATA, refused, settings


def test_type_checkers_see_every_setting() -> None:
    assert get_type_hints(SettingsDict) == get_type_hints(Settings)


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_every_setting_is_an_option_of_the_command_with_its_help_and_default(field: Any) -> None:
    option = inspect.signature(command).parameters[field.name]
    _, about = get_args(option.annotation)[:2]
    assert about.help == field.metadata["help"]
    assert (tuple(option.default) if isinstance(option.default, list) else option.default) == field.default


def test_keywords_change_settings_that_are_given() -> None:
    done = train("zoo:mlp", DATA, Settings(epochs=3, lr=0.05), epochs=1)
    assert len(done.history) == 1
    assert done.settings == Settings(epochs=1, lr=0.05)


@pytest.mark.parametrize(
    ("name", "meant"), [("epoch", "epochs"), ("validate", "validation"), ("call_backs", "callbacks")]
)
def test_an_unknown_keyword_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(OptionError) as error:
        train("zoo:mlp", DATA, **{name: 1})  # type: ignore[arg-type]
    assert str(error.value) == (
        f"a training has no setting {name!r}. Did you mean {meant!r}? It has epochs, seed, batch_size, optimiser, lr, "
        "momentum, weight_decay, schedule, milestones, decay, warmup, label_smoothing, augment, mixup, cutmix, "
        "adversarial, clip, patience, evaluate_every, keep_best."
    )


def test_one_augmentation_needs_no_list() -> None:
    assert Settings(augment="flip") == Settings(augment=["flip"]) == Settings(augment=("flip",))


def test_an_attack_may_be_typed() -> None:
    typed = Settings(adversarial="attack=pgd,eps=8/255,iterations=5")
    assert typed == Settings(adversarial={"attack": "pgd", "eps": 8 / 255, "iterations": 5})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"adversarial": "pgd"},
            "adversarial is 'pgd', in which 'pgd' is no option. Write name=value,name=value.",
        ),
        (
            {"adversarial": 0.1},
            "adversarial is 0.1. Give options, as in dict(attack='pgd', eps=8/255).",
        ),
        (
            {"optimiser": "adamm"},
            "no optimiser named 'adamm'. Did you mean 'adam'? There are sgd, adam, adamw.",
        ),
        (
            {"schedule": "cosin"},
            "no schedule named 'cosin'. Did you mean 'cosine'? There are cosine, linear, step, plateau, constant.",
        ),
        (
            {"augment": ["flop"]},
            "no augmentation named 'flop'. Did you mean 'flip'? There are flip, crop, resized-crop, cutout, "
            "noise, rotation, blur, jitter, perspective, affine.",
        ),
        ({"epochs": 0}, "epochs is 0. Give at least 1."),
        ({"batch_size": 0}, "batch_size is 0. Give at least 1."),
        ({"evaluate_every": 0}, "evaluate_every is 0. Give at least 1."),
        (
            {"evaluate_every": 5},
            "evaluate_every needs data to validate on. Give validation, as in validation='digits:test'.",
        ),
        ({"keep_best": True}, "keep_best needs data to validate on. Give validation, as in validation='digits:test'."),
    ],
)
def test_a_setting_that_does_not_exist_is_refused(options: dict[str, Any], sentence: str) -> None:
    assert refused(lambda: train("zoo:mlp", "digits:train[:50]", **settings(**options))) == sentence


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


@pytest.mark.parametrize("warmup", [0, 1, 2.5])
def test_the_linear_schedule_is_that_of_transformers(warmup: float) -> None:
    pytest.importorskip("transformers")
    prepare_torchvision()  # transformers imports it
    from transformers import get_linear_schedule_with_warmup

    epochs, steps = 5, 8
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    theirs = get_linear_schedule_with_warmup(optimiser, int(warmup * steps), epochs * steps)
    chosen = Settings(epochs=epochs, lr=0.3, schedule="linear", warmup=warmup)
    for step in range(epochs * steps + 1):
        assert rate_at(chosen, step / steps, []) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimiser.step()
        theirs.step()


def test_a_linear_schedule_that_only_warms_up_does_not_fall() -> None:
    assert rate_at(Settings(epochs=2, lr=1.0, schedule="linear", warmup=2), 1, []) == 0.5
