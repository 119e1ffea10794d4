"""`likewise attack`: the success of an attack, and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.image
import pytest

import likewise
from likewise.cli.attack import attack
from likewise.errors import InputError, UnknownNameError
from likewise.transfer import success
from tests.cli.conftest import invoke


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("trained") / "net"
    likewise.train("zoo:mlp", "digits:train[:500]", out=folder, epochs=4, lr=0.1, validation=None, progress=False)
    return str(folder)


def test_an_attack_prints_its_success_with_an_interval_and_leaves_pictures(net: str, tmp_path: Path) -> None:
    words = (net, "--data", "digits:test[:40]", "--attack", "mi-fgsm", "--eps", "60/255", "--iterations", "3")
    printed = invoke(attack, *words, "--out", str(tmp_path / "out"))
    found = success(net, "digits:test[:40]", "mi-fgsm", eps=60 / 255, iterations=3, progress=False)
    assert printed == f"{found}\nwritten to {tmp_path / 'out'}: examples.png\n"
    picture = matplotlib.image.imread(tmp_path / "out" / "examples.png")
    assert picture.shape[0] > 1000  # eight rows of three
    numbers = json.loads(invoke(attack, *words, "--json"))
    assert numbers["rate"] == found.rate > 0
    assert numbers["low"] < numbers["rate"] < numbers["high"]


def test_attacks_and_options_nobody_knows_are_refused(net: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        invoke(attack, net, "--data", "digits:test[:4]", "--attack", "mi-fgms")
    assert str(error.value) == "no attack named 'mi-fgms'. Did you mean 'mi-fgsm'?"
    with pytest.raises(InputError) as odd:
        invoke(attack, net, "--data", "digits:test[:4]", "--attack", "pgd,eps")
    assert str(odd.value) == "attack is 'eps', in which 'eps' is no option. Write name=value,name=value."
