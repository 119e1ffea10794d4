"""Options that commands derive from `Show`: the same in every command, for all networks or by network."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from likewise.cli import commands
from likewise.cli._options import LEFT_OUT, show_keywords
from likewise.errors import InputError, OptionError
from likewise.views.show import Show
from tests.cli.conftest import invoke
from tests.helpers import sentence

SHOWING = ("attack", "classes", "compare", "diff", "inspect", "layerwise", "transfer")
FIELDS = [field for field in fields(Show) if field.name not in LEFT_OUT]


@pytest.mark.parametrize("name", SHOWING)
def test_what_commands_say_of_devices_and_precision_is_what_show_says(name: str) -> None:
    parameters = inspect.signature(commands()[name].load()).parameters
    for field in FIELDS:
        if field.name in ("device", "dtype", "store") and field.name in parameters:
            assert parameters[field.name].annotation.__metadata__[0].help == field.metadata["help"]
    assert "device" in parameters
    assert not set(LEFT_OUT) & set(parameters)


def test_layers_and_heads_are_given_for_all_networks_or_by_network() -> None:
    show = {"layers": ["a:x", "a:y", "z"], "head": ["a:fc"], "reduce": None, "device": "cpu"}
    assert show_keywords(show, ["a", "b"], several=True) == {
        "layers": {"a": ["x", "y"], "b": ["z"]},
        "head": {"a": "fc"},
        "device": "cpu",
    }
    assert sentence(InputError, show_keywords, show, ["a", "b"]) == (
        "--layers was given 'x' and 'y' for 'a'. Give each network one: --layers NETWORK:LAYER."
    )
    assert show_keywords({**show, "layers": ["z"]}) == {"layers": "z", "head": "fc", "device": "cpu"}


def test_an_option_that_means_nothing_without_data_is_refused() -> None:
    words = (commands()["classes"].load(), "zoo:lenet", "--reduce", "mean")
    assert sentence(OptionError, invoke, *words) == "from_weights has no use for reduce. Leave it out."
