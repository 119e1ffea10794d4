"""Augmentations: pixels move, labels are mixed as images are."""

from __future__ import annotations

import pytest
import torch

from likewise.errors import InputError
from likewise.networks import train
from likewise.networks.training.augment import Noise, boxes, crop, cutout, enlarged, flip, mix, resized_crop
from tests.networks.helpers import refused


def test_augmentations_move_pixels_and_invent_none() -> None:
    images = torch.rand(64, 3, 16, 16)
    chance = torch.Generator().manual_seed(0)
    flipped = flip(images, chance)
    mirrored = (flipped == images.flip(-1)).flatten(1).all(dim=1)
    assert 16 < int(mirrored.sum()) < 48
    assert torch.equal(flipped[~mirrored], images[~mirrored])
    shifted = crop(images, chance)
    assert shifted.shape == images.shape
    assert torch.isin(shifted, torch.cat([images.flatten(), torch.zeros(1)])).all()
    holes = (cutout(images, chance) == 0).float().mean()
    assert 0.1 < float(holes) <= 0.25


def test_mixed_images_have_mixed_labels() -> None:
    images = torch.stack([torch.full((1, 8, 8), float(i % 2)) for i in range(64)])
    labels = torch.arange(64) % 2
    for how in ({"mixup": 1.0, "cutmix": 0.0}, {"mixup": 0.0, "cutmix": 1.0}):
        chance = torch.Generator().manual_seed(1)
        mixed, soft = mix(images, labels, 2, chance, **how)
        torch.testing.assert_close(soft.sum(dim=1), torch.ones(64))
        # an image is as bright as the share of class 1 in it
        torch.testing.assert_close(mixed.mean(dim=(1, 2, 3)), soft[:, 1])
        assert float(soft[:, 1].std()) > 0


@pytest.mark.parametrize("size", [(32, 32), (20, 48), (8, 8)])
def test_a_resized_crop_is_that_of_torchvision_for_the_same_box(vision: None, size: tuple[int, int]) -> None:
    from torchvision.transforms.v2 import functional

    images = torch.rand(50, 3, *size)
    drawn = boxes(50, *size, torch.Generator().manual_seed(0))
    found = enlarged(images, *drawn)
    for image, ours, (top, left, tall, broad) in zip(images, found, torch.stack(drawn, dim=1).int(), strict=True):
        theirs = functional.resized_crop(image, int(top), int(left), int(tall), int(broad), list(size), antialias=True)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [(32, 32), (20, 48), (60, 10)])
def test_the_boxes_are_drawn_as_those_of_torchvision(vision: None, size: tuple[int, int]) -> None:
    from torchvision.transforms import RandomResizedCrop

    torch.manual_seed(0)
    image, n = torch.empty(3, *size), 3000
    theirs = torch.tensor(
        [RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(n)], dtype=torch.float
    )
    ours = torch.stack(boxes(n, *size, torch.Generator().manual_seed(0)), dim=1)
    assert bool((ours[:, :2] >= 0).all())
    assert bool((ours[:, :2] + ours[:, 2:] <= torch.tensor(size)).all())
    assert (ours[:, 2:] >= 1).all()
    error = (ours.var(dim=0) + theirs.var(dim=0)).div(n).sqrt()
    assert bool(((ours.mean(dim=0) - theirs.mean(dim=0)).abs() <= 4 * error).all())  # top, left, height, width
    torch.testing.assert_close(ours.std(dim=0), theirs.std(dim=0), rtol=0.1, atol=0.05)


def test_resized_crops_are_drawn_by_the_generator_alone() -> None:
    images = torch.rand(8, 1, 8, 8)
    first, again, other = (resized_crop(images, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_noise_has_another_variance_for_each_image_up_to_the_one_given() -> None:
    grey = torch.full((4000, 1, 16, 16), 0.5)
    found = (255 * (Noise(1000)(grey, torch.Generator().manual_seed(0)) - 0.5)).flatten(1)
    variances = found.var(dim=1)
    assert float(variances.mean()) == pytest.approx(500, rel=0.05)
    assert float(variances.std()) == pytest.approx(1000 / 12**0.5, rel=0.1)  # of a uniform distribution
    assert float(variances.max()) < 1300
    assert torch.equal(Noise(0)(grey, torch.Generator()), grey)
    loud = Noise(60000)(grey, torch.Generator().manual_seed(0))
    assert (float(loud.min()), float(loud.max())) == (0, 1)


def test_a_network_trains_with_noise_and_resized_crops() -> None:
    how = {"epochs": 1, "lr": 0.05, "augment": ["resized-crop", Noise()]}
    done = train("zoo:mlp", "digits:train[:64]", **how)  # type: ignore[arg-type]
    assert done.settings.record()["augment"] == ["resized-crop", {"variance": 1000.0}]


@pytest.mark.parametrize("variance", [-1.0, float("inf"), float("nan")])
def test_a_variance_that_cannot_be_is_refused(variance: float) -> None:
    assert (
        refused(lambda: Noise(variance)) == f"Noise was given variance = {variance}. Give 0 or more, as in Noise(1000)."
    )


def test_noise_is_for_images() -> None:
    with pytest.raises(InputError) as error:
        Noise()(["a text"], torch.Generator())  # type: ignore[arg-type]
    assert str(error.value) == "Noise is for images, and a batch is ['a text']. Leave it out."
