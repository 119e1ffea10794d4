"""Images in files: which size they have, how often they are decoded, and what identifies them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise.data import Data, ImageFiles, image_files
from likewise.data.framing import Framing
from tests.data.helpers import photos


def folder(root: Path, *sizes: tuple[int, int], options: str = "") -> Data:
    return likewise.dataset(f"imagefolder:{photos(root / 'a', sizes)}{options}")


@pytest.mark.parametrize("side", [20, 300])
def test_squares_of_one_size_keep_it(tmp_path: Path, side: int) -> None:
    data = folder(tmp_path, (side, side), (side, side))
    assert data.inputs.shape == (2, 3, side, side)
    pixels = np.random.default_rng(1).integers(0, 256, (side, side, 3), dtype=np.uint8)
    assert np.array_equal((data.inputs[1:] * 255).round()[0].permute(1, 2, 0), pixels)


@pytest.mark.parametrize("sizes", [((64, 64), (500, 375), (90, 300)), ((30, 20), (30, 20)), ((20, 20), (30, 30))])
def test_no_file_decides_the_size_alone(tmp_path: Path, sizes: tuple[tuple[int, int], ...]) -> None:
    data = folder(tmp_path, *sizes)
    assert data.inputs.shape == (len(sizes), 3, 224, 224)
    assert data[:1].inputs[:].shape == (1, 3, 224, 224)  # nor where it is asked for alone


def test_headers_are_read_only_where_the_size_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = folder(tmp_path, (40, 30), (24, 36))
    monkeypatch.setattr(image_files, "open_image", None)
    assert [image.size for image in data.inputs.pictures(slice(None))] == [(40, 30), (24, 36)]
    assert data.framed(Framing(12, 0.875, "bilinear")).inputs.shape == (2, 3, 12, 12)
    assert len(data.probe) == 16


def test_what_is_asked_for_goes_before_the_size_of_the_files(tmp_path: Path) -> None:
    data = folder(tmp_path, (20, 20), (20, 20))
    assert data.framed(Framing(20)).inputs[:].equal(data.inputs[:])  # they have it already
    whole, middle = (data.framed(Framing(10, crop, "box")).inputs[:] for crop in (None, 0.5))
    assert torch.equal(middle, data.inputs[:][:, :, 5:15, 5:15])  # 20 to 10 / 0.5, then the middle
    assert (
        whole - torch.nn.functional.avg_pool2d(data.inputs[:], 2)
    ).abs().max() <= 1 / 255 + 1e-6  # rounded along both sides
    assert data.framed(Framing(crop=0.5)).inputs.shape == (2, 3, 20, 20)


def test_images_are_decoded_once_however_many_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    decode = image_files.decode
    monkeypatch.setattr(image_files, "decode", lambda path, content: counted.append(path) or decode(path, content))
    data = folder(tmp_path, (40, 30), (24, 36), (50, 50))
    for part in (data, data[:2], data.framed(Framing(16)), data[[2, 0]]):
        assert len(part.inputs[:]) == len(part)
    assert len(counted) == 3


def test_images_that_find_no_room_are_decoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_files, "free_memory", lambda: 4 * 4 * (40 * 30 + 24 * 36))  # for two, at a quarter
    counted: list[Any] = []
    decode = image_files.decode
    monkeypatch.setattr(image_files, "decode", lambda path, content: counted.append(path.name) or decode(path, content))
    data = folder(tmp_path, (40, 30), (24, 36), (50, 50))
    assert torch.equal(data.inputs[:], data.inputs[:])
    assert counted == ["0.png", "1.png", "2.png", "2.png"]


def test_the_probe_is_of_the_files_and_not_of_the_size_they_are_shown_at(tmp_path: Path) -> None:
    data = folder(tmp_path, (40, 30), (24, 36))
    assert data.probe == data.framed(Framing(16)).probe == likewise.dataset(data.name).probe
    assert data.probe != data[[1, 0]].probe
    whole = likewise.dataset("digits:test[:20]")
    assert whole.probe == likewise.dataset("digits:test[:20],size=16").probe


def test_a_list_of_pil_images_is_data(tmp_path: Path) -> None:
    pil: Any = pytest.importorskip("PIL.Image")
    files = folder(tmp_path, (40, 30), (24, 36))
    images = [pil.open(path) for path in files.inputs.paths]
    data = Data("mine", "image", images, [0, 1], ("a", "b"))
    assert isinstance(data.inputs, ImageFiles)
    assert torch.equal(data.inputs[:], files.inputs[:])
    assert torch.equal(data[[1]].framed(Framing(16)).inputs[:], files[[1]].framed(Framing(16)).inputs[:])
    assert data.probe == Data("mine", "image", images, [1, 0], ("a", "b")).probe
    assert data.probe != Data("mine", "image", images[::-1], [0, 1], ("a", "b")).probe
    grey = Data("grey", "image", [image.convert("L") for image in images])
    assert grey.inputs[:].shape == (2, 3, 224, 224)


def test_bytes_and_floats_are_brought_to_the_size_that_is_asked_for() -> None:
    draw = torch.Generator().manual_seed(0)
    smooth = torch.nn.functional.interpolate(torch.rand(3, 1, 4, 4, generator=draw), (32, 32), mode="bicubic").clamp(
        0, 1
    )
    floats = Data("floats", "image", smooth).framed(Framing(24, 0.8, "bicubic"))
    bytes_ = Data("bytes", "image", (smooth * 255).round().byte()).framed(Framing(24, 0.8, "bicubic"))
    assert floats.inputs.shape == bytes_.inputs.shape == (3, 1, 24, 24)
    assert (floats.inputs[:] - bytes_.inputs[:]).abs().max() < 0.01
    assert bytes_[:0].inputs[:].shape == (0, 1, 24, 24)
