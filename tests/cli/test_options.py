"""Options that commands derive from `Show`: the same in every command, for all networks or by network."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
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


def test_a_normalisation_on_the_command_line_is_that_of_the_address(address: str, tmp_path: Path) -> None:
    file = tmp_path / "nets.py"
    body = "torch.from_numpy(numpy.asarray(image) / 127.5 - 1).float()[None]"
    half = f"import numpy, torch\ndef half(image):\n    return {body}"
    file.write_text(f"{file.read_text()}\n{half}\n")
    words, layerwise = ("--data", "digits:test[:60]", "--json"), commands()["layerwise"].load()
    expected = json.loads(invoke(layerwise, f"{address},mean=0.5,std=0.5", *words))["values"]
    said = json.loads(invoke(layerwise, address, *words, "--mean", "0.5", "--std", "1/2"))["values"]
    by_file = json.loads(invoke(layerwise, address, *words, "--transform", f"{file}:half"))["values"]
    np.testing.assert_allclose(said, expected)
    np.testing.assert_allclose(by_file, expected, atol=1e-2)  # in whole grey levels of 255
    assert not np.allclose(json.loads(invoke(layerwise, address, *words))["values"], expected, atol=1e-2)


def test_attacked_networks_take_a_mean_and_deviation_or_a_transform_that_is_no_more(address: str) -> None:
    attack, words = commands()["attack"].load(), ("--data", "digits:test[:60]", "--json", "--eps", "0.1")
    expected = json.loads(invoke(attack, f"{address},mean=0.5,std=0.5", *words))
    said = json.loads(invoke(attack, address, *words, "--mean", "0.5", "--std", "0.5"))
    assert said | {"network": ""} == expected | {"network": ""}
    file = Path(address.rpartition(":")[0])
    half = "def half(image):\n    return torch.from_numpy(numpy.asarray(image) / 127.5 - 1).float()[None]"
    file.write_text(f"{file.read_text()}\nimport numpy, torch\n{half}\n")
    by_file = json.loads(invoke(attack, address, *words, "--transform", f"{file}:half"))
    assert by_file | {"network": ""} == pytest.approx(expected | {"network": ""})


@pytest.mark.parametrize("name", SHOWING)
def test_every_command_that_shows_images_takes_a_normalisation(name: str) -> None:
    parameters = inspect.signature(commands()[name].load()).parameters
    assert {"mean", "std"} <= set(parameters)
    assert "transform" in parameters
