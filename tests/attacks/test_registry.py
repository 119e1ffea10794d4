"""Attacks by name: declared by one decorator, found without an import of their file."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise.errors import InputError, OptionError, UnknownNameError


def test_an_attack_is_found_by_its_name_and_as_an_attribute() -> None:
    assert attacks.names("pg*") == ["pgd"]
    found = attacks.get("PGD")
    assert found is attacks.pgd
    assert (found.norm, found.source) == ("Linf", "Madry et al. 2018, arXiv:1706.06083")
    assert found.summary.startswith("Projected gradient descent:")
    assert "pgd" in dir(attacks)
    assert repr(attacks.fgsm) == "<attack 'fgsm', Linf: One step of size `eps` along the sign of the gradient.>"
    assert list(inspect.signature(attacks.fgsm).parameters) == ["net", "images", "labels", "eps", "targeted", "exact"]
    assert attacks.fgsm.__doc__.splitlines()[0] == "One step of size `eps` along the sign of the gradient."


def test_an_unknown_attack_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as error:
        attacks.get("pdg")
    assert str(error.value) == "no attack named 'pdg'. Did you mean 'pgd'?"
    with pytest.raises(AttributeError) as absent:
        attacks.pdg  # noqa: B018
    assert str(absent.value) == "no attack named 'pdg'. Did you mean 'pgd'?"


def test_an_attack_of_ones_own_needs_one_declaration() -> None:
    @attacks.attack(name="invert", norm="Linf", source="by hand")
    def invert(net: nn.Module, images: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Light and dark swapped."""
        return 1 - images, net(images).argmax(dim=1) if labels is None else labels

    try:
        images = torch.tensor([[0.0, 0.25], [1.0, 0.5]])
        changed, truth = attacks.get("invert")(nn.Identity(), images)
        assert changed.tolist() == [[1.0, 0.75], [0.0, 0.5]]
        assert truth.tolist() == [1, 0]
        assert attacks.names("in*") == ["invert"]
    finally:
        attacks.ATTACKS.remove("invert")


def test_the_options_of_an_attack_are_those_of_its_function() -> None:
    assert attacks.fgsm.options == {"eps": 8 / 255, "targeted": False, "exact": False}
    attacks.pgd.check({"eps": 1, "step": None, "relative_step": 0.1, "norm": "L2", "random_start": False, "seed": 3})


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("fgsm", {"esp": 0.1}, "fgsm has no option 'esp'. Did you mean 'eps'? Its options are eps, targeted, exact."),
        ("fgsm", {"eps": "8/255"}, "fgsm: eps is '8/255'. Give a number."),
        ("fgsm", {"eps": None}, "fgsm: eps is None. Give a number."),
        ("fgsm", {"eps": True}, "fgsm: eps is True. Give a number."),
        ("fgsm", {"targeted": 1}, "fgsm: targeted is 1. Give true or false."),
        ("pgd", {"iterations": 2.5}, "pgd: iterations is 2.5. Give a whole number."),
        ("pgd", {"step": "none"}, "pgd: step is 'none'. Give a number."),
        ("pgd", {"norm": "L1"}, "pgd: norm is 'L1'. Give 'Linf' or 'L2'."),
    ],
)
def test_options_that_an_attack_does_not_have_are_refused(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((InputError, OptionError)) as error:
        attacks.get(name).check(options)
    assert str(error.value) == sentence


def test_an_attack_is_loaded_when_it_is_looked_up() -> None:
    program = (
        "import sys; from likewise import attacks\n"
        "assert 'likewise.attacks.gradient' not in sys.modules\n"
        "attacks.get('pgd')\n"
        "assert 'likewise.attacks.gradient' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
