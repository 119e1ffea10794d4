"""Augmentations: pixels move, labels are mixed as images are."""

from __future__ import annotations

import torch

from likewise.networks.training.augment import crop, cutout, flip, mix


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
