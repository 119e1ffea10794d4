"""Settings: one declaration behind `train`, the command and type checkers; the rate they lead to."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from likewise.cli.train import train as command
from likewise.errors import OptionError
from likewise.networks import Settings, train
from likewise.networks.training.settings import SettingsDict

DATA = "digits:train[:60]"


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
        "momentum, weight_decay, schedule, milestones, decay, warmup, label_smoothing, augment, mixup, cutmix, clip, "
        "patience."
    )


def test_one_augmentation_needs_no_list() -> None:
    assert Settings(augment="flip") == Settings(augment=["flip"]) == Settings(augment=("flip",))
