"""Data addresses: name, split, slice and options."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import likewise
from likewise.data import held_out
from likewise.errors import InputError
from tests.data.helpers import photos
from tests.helpers import sentence as refusal


def test_a_split_that_is_not_there_is_refused() -> None:
    assert refusal(InputError, likewise.dataset, "digits", split="tarin") == (
        "digits has no split 'tarin', asked for by 'digits'. Did you mean 'train'? It has test, train, all."
    )


def test_options_stand_at_the_end_of_every_address(tmp_path: Path) -> None:
    folder = photos(tmp_path / "a")
    data = likewise.dataset(f"imagefolder:{folder}:test[:2],size=12,crop=1,interpolation=bicubic")
    assert (data.name, data.inputs.shape) == (
        f"imagefolder:{folder}:test[:2],size=12,crop=1,interpolation=bicubic",
        (2, 3, 12, 12),
    )
    assert likewise.dataset("digits:test[:5],size=16").inputs.shape == (5, 1, 16, 16)
    assert likewise.dataset("digits,size=16").inputs[:2].shape == (2, 1, 16, 16)
    # what Python's slicing of such data is called is an address too
    again = likewise.dataset(likewise.dataset("digits:test,size=16")[:5].name)
    assert (len(again), again.inputs.shape) == (5, (5, 1, 16, 16))


def test_options_are_the_same_in_an_address_and_as_arguments(tmp_path: Path) -> None:
    folder = photos(tmp_path / "a")
    written = likewise.dataset(f"imagefolder:{folder},size=12,interpolation=bicubic")
    given = likewise.dataset(f"imagefolder:{folder}", size=12, interpolation="bicubic")
    assert torch.equal(written.inputs[:], given.inputs[:])
    assert (written.name, written.probe) == (given.name, given.probe)
    assert likewise.dataset(f"imagefolder:{folder},size=12", size=10).inputs.shape[2:] == (10, 10)


@pytest.mark.parametrize("name", ["red, green", "photos,year=2024", "a,size=3/b,c=4"])
def test_a_folder_may_have_commas_in_its_name(tmp_path: Path, name: str) -> None:
    folder = photos(tmp_path / name)
    assert likewise.dataset(f"imagefolder:{folder}").inputs.shape == (3, 3, 224, 224)
    assert likewise.dataset(f"imagefolder:{folder},size=12").inputs.shape == (3, 3, 12, 12)
    assert likewise.dataset(f"imagefolder:{folder}[:1],size=12").inputs.shape == (1, 3, 12, 12)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("digits,size=big", "size is 'big'. Give whole pixels from 1 to 8192, as in size=224."),
        (
            "digits,interpolation=cubic",
            "no interpolation is called 'cubic'. Did you mean 'bicubic'? Choose one of bilinear, bicubic, nearest, "
            "lanczos, box, hamming.",
        ),
        (
            "mini-imagenet:.,clases=x",
            "mini-imagenet has no option 'clases'. Did you mean 'classes'? It takes size, crop, interpolation, "
            "by, held_out, seed, classes.",
        ),
        ("sentences[:3],size=3", "'sentences:test[:3]' holds text inputs, and a size is for images. Leave it out."),
    ],
)
def test_options_that_do_not_fit_are_refused(address: str, sentence: str) -> None:
    assert refusal(InputError, likewise.dataset, address) == sentence


def test_the_held_out_split_keeps_the_options() -> None:
    assert held_out("cifar10,size=64") == "cifar10:test,size=64"
    assert held_out("cifar10:train,size=64") is None
    assert held_out("cifar10[:5],size=64") is None


def test_a_folder_without_parts_is_not_validated_on_itself(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "plain" / name).mkdir(parents=True)
        for part in ("train", "validation"):
            (tmp_path / "parted" / part / name).mkdir(parents=True)
    assert held_out(f"imagefolder:{tmp_path / 'plain'}") is None
    assert held_out(f"imagefolder:{tmp_path / 'parted'}") == f"imagefolder:{tmp_path / 'parted'}:val"
