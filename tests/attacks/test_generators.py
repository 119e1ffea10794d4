"""Examples by a generator of one's own: what it makes, kept near the images."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise.errors import InputError
from tests.attacks.helpers import digits, small


class Shift(nn.Module):
    """Adds a number to every image while it is trained, and half of it at rest."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.tensor(by))

    def forward(self, images: Tensor) -> Tensor:
        return images + (self.by if self.training else self.by / 2)


def test_what_the_generator_makes_is_brought_near_the_images() -> None:
    images, labels = digits()
    near = attacks.generator(small(), images, labels, generator=Shift(0.2), eps=0.5)
    torch.testing.assert_close(near.images, (images + 0.1).clamp(0, 1))
    far = attacks.generator(small(), images, labels, generator=Shift(-9.0), eps=0.05)
    torch.testing.assert_close(far.images, (images - 0.05).clamp(0, 1))
    assert torch.equal(far.labels, labels)


def test_the_generator_is_left_as_it_was() -> None:
    made_by = Shift(0.1)
    attacks.generator(small(), digits()[0], generator=made_by)
    assert made_by.training
    assert made_by.by.requires_grad
    assert made_by.by.grad is None


def test_without_a_generator_there_is_nothing_to_run() -> None:
    for given in (None, "generator.pt"):
        with pytest.raises(InputError) as error:
            attacks.generator(small(), digits()[0], generator=given)
        assert str(error.value) == (
            "the attack 'generator' needs a network that changes images. Pass generator=NETWORK."
        )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (nn.Flatten(), "Flatten makes (300, 64) of"),
        (nn.Sequential(nn.Identity(), Shift(float("nan"))), "Sequential makes (300, 1, 8, 8) of"),
    ],
)
def test_a_generator_that_makes_no_such_images_is_refused(kind: nn.Module, words: str) -> None:
    with pytest.raises(InputError) as error:
        attacks.generator(small(), digits()[0], generator=kind)
    assert str(error.value) == (
        f"{words} images (300, 1, 8, 8). Give a generator whose images have the shape of those it is shown, and finite "
        "values."
    )
