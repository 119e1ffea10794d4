"""Attacks by name: declared by one decorator, found without an import of their file."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise.errors import UnknownNameError


def test_an_attack_is_found_by_its_name_and_as_an_attribute() -> None:
    assert attacks.names("p*") == ["pgd"]
    found = attacks.get("PGD")
    assert found is attacks.pgd
    assert (found.norm, found.source) == ("Linf", "Madry et al. 2018, arXiv:1706.06083")
    assert found.summary.startswith("Projected gradient descent:")
    assert "pgd" in dir(attacks)


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


def test_an_attack_is_loaded_when_it_is_looked_up() -> None:
    program = (
        "import sys; from likewise import attacks\n"
        "assert 'likewise.attacks.gradient' not in sys.modules\n"
        "attacks.get('pgd')\n"
        "assert 'likewise.attacks.gradient' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
