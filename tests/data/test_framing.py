"""How an image becomes a square: by Pillow, by torch, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from likewise.data.framing import INTERPOLATIONS, Framing
from likewise.errors import InputError
from tests.helpers import sentence as refusal

pil: Any = pytest.importorskip("PIL.Image")


def noise(high: int, wide: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (high, wide, 3), dtype=np.uint8)


@pytest.mark.parametrize("size", [(50, 80), (80, 50), (64, 64), (20, 31)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.usefixtures("vision")
def test_a_square_is_the_one_that_torchvision_takes(size: tuple[int, int], interpolation: str) -> None:
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    image = pil.fromarray(noise(*size))
    theirs = transforms.Compose([transforms.Resize(32, InterpolationMode(interpolation)), transforms.CenterCrop(28)])
    ours = Framing(28, 0.875, interpolation).image(image, "it")
    assert np.array_equal(np.asarray(ours), np.asarray(theirs(image)))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_floats_are_resized_as_bytes_are(interpolation: str) -> None:
    smooth = np.linspace(0, 255, 40 * 60 * 3).reshape(40, 60, 3).astype(np.uint8)
    framing = Framing(16, 0.8, interpolation)
    by_pillow = np.asarray(framing.image(pil.fromarray(smooth), "it")).astype(float) / 255
    floats = torch.from_numpy(smooth).permute(2, 0, 1)[None].float() / 255
    by_torch = framing.tensor(floats)[0].permute(1, 2, 0).numpy()
    # rounding to bytes, and windows that differ where torch has none of that name; one row of the ramp is 6.4 of 255
    assert np.abs(by_pillow - by_torch).max() < (0.005 if interpolation in ("bilinear", "bicubic") else 0.03)


def test_floats_of_the_right_size_are_left_as_they_are() -> None:
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(Framing(8, 1.0, "bicubic").tensor(images), images)


def test_what_is_left_open_comes_from_the_other() -> None:
    asked, own = Framing(interpolation="bicubic"), Framing(224, 0.875, "bilinear")
    assert asked.over(own) == Framing(224, 0.875, "bicubic")
    assert (asked.text, own.text) == (",interpolation=bicubic", ",size=224,crop=0.875,interpolation=bilinear")
    assert (bool(Framing()), bool(asked)) == (False, True)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": 0}, "size is 0. Give whole pixels from 1 to 8192, as in size=224."),
        ({"size": 10**9}, "size is 1000000000. Give whole pixels from 1 to 8192, as in size=224."),
        ({"size": "big"}, "size is 'big'. Give whole pixels from 1 to 8192, as in size=224."),
        ({"size": True}, "size is True. Give whole pixels from 1 to 8192, as in size=224."),
        ({"crop": 0}, "crop is 0. Give the share of the shorter side to keep, as in crop=0.875."),
        ({"crop": 1.5}, "crop is 1.5. Give the share of the shorter side to keep, as in crop=0.875."),
        ({"crop": "all"}, "crop is 'all'. Give the share of the shorter side to keep, as in crop=0.875."),
        (
            {"interpolation": "bicubik"},
            "no interpolation is called 'bicubik'. Did you mean 'bicubic'? Choose one of bilinear, bicubic, "
            "nearest, lanczos, box, hamming.",
        ),
    ],
)
def test_what_is_no_size_crop_or_interpolation_is_refused(given: dict[str, Any], sentence: str) -> None:
    assert refusal(InputError, Framing, **given) == sentence
