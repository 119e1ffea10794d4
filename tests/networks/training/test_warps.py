"""Augmentations of torchvision: each image is changed for itself, from the training's generator alone."""

from __future__ import annotations

import pytest
import torch

from likewise.networks.training.augment import AUGMENTS
from likewise.networks.training.warps import blur, rotation
from tests.classes.helpers import refusals

NAMES = ("rotation", "blur", "jitter", "perspective", "affine")
ONE = torch.rand(3, 12, 12, generator=torch.Generator().manual_seed(1))
SAME = ONE.repeat(64, 1, 1, 1)


def changed(name: str, images: torch.Tensor, seed: int = 0) -> torch.Tensor:
    return AUGMENTS[name](images, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NAMES)
def test_each_image_is_changed_for_itself_and_the_same_seed_gives_the_same(name: str) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    once = changed(name, SAME)
    assert torch.equal(torch.random.get_rng_state(), before)  # nothing but the generator is drawn from
    torch.manual_seed(6)
    assert torch.equal(once, changed(name, SAME))
    assert not torch.equal(once, changed(name, SAME, seed=1))
    assert (once.shape, once.dtype) == (SAME.shape, SAME.dtype)
    assert 0 <= float(once.min()) <= float(once.max()) <= 1 + 1e-6
    kinds = {tuple(image.flatten().tolist()) for image in once}
    assert len(kinds) > 20


@pytest.mark.parametrize("name", NAMES)
def test_grey_images_are_changed_too(name: str) -> None:
    assert changed(name, SAME[:4, :1]).shape == (4, 1, 12, 12)


def test_every_second_image_is_seen_from_the_side() -> None:
    once = changed("perspective", ONE.repeat(400, 1, 1, 1))
    assert sum(torch.equal(image, ONE) for image in once) == pytest.approx(200, abs=40)  # four deviations of ten


def test_a_blurred_image_of_one_colour_stays_as_it_is_and_others_lose_contrast() -> None:
    plain = torch.full((3, 1, 8, 8), 0.4)
    assert changed("blur", plain) == pytest.approx(plain, abs=1e-6)
    assert (changed("blur", SAME).std(dim=(1, 2, 3)) <= ONE.std() + 1e-5).all()


def test_the_middle_of_a_turned_image_stays_where_it_is() -> None:
    images = torch.zeros(8, 1, 9, 9)
    images[:, :, 4, 4] = 1
    assert torch.equal(changed("rotation", images)[:, :, 4, 4], torch.ones(8, 1))


test_an_error_is_a_sentence = refusals(
    (
        lambda: rotation(torch.zeros(3, 4), torch.Generator()),
        "RandomRotation is for images, and a batch is an array of shape (3, 4). Leave it out.",
    ),
    (lambda: blur("words", torch.Generator()), "GaussianBlur is for images, and a batch is 'words'. Leave it out."),
)
