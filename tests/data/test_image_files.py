"""Images in files: which size they have, how they are decoded and how often, and what identifies them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise.data import Data, ImageFiles, image_files
from likewise.data.framing import Framing
from likewise.errors import InputError
from tests.data.helpers import photos
from tests.helpers import sentence


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
    monkeypatch.setattr(image_files.Decoded, "_size", None)
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


# Files of every kind become upright RGB of 8 bits

pil: Any = pytest.importorskip("PIL.Image")
RAMP = np.linspace(0, 255, 6 * 8).reshape(6, 8).round().astype(np.uint8)
COLOURS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)


def read(path: Path) -> np.ndarray:
    (image,) = ImageFiles([path]).pictures([0])
    assert image.mode == "RGB"
    return np.asarray(image)


@pytest.mark.parametrize("ending", [".png", ".tiff"])
def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    pil.fromarray(RAMP.astype(np.uint16) * 257).save(path)
    assert np.array_equal(read(path), np.repeat(RAMP[..., None], 3, axis=2))


def test_floats_in_a_tiff_are_scaled(tmp_path: Path) -> None:
    pil.fromarray(RAMP.astype(np.float32) / 255).save(tmp_path / "a.tiff")
    assert np.array_equal(read(tmp_path / "a.tiff")[..., 0], RAMP)


def test_values_without_a_known_white_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    pil.fromarray(RAMP.astype(np.int32) * 1000).save(path)
    assert sentence(InputError, read, path) == (
        f"{path} holds values from 0 to 255000, of which nothing says what is white. Save it with 8 bits per channel."
    )


def test_greyscale_becomes_three_equal_channels(tmp_path: Path) -> None:
    pil.fromarray(RAMP).save(tmp_path / "a.png")
    assert np.array_equal(read(tmp_path / "a.png"), np.repeat(RAMP[..., None], 3, axis=2))


def test_black_and_white_are_the_ends_of_the_range(tmp_path: Path) -> None:
    pil.fromarray(RAMP > 100).save(tmp_path / "a.png")
    assert np.array_equal(read(tmp_path / "a.png")[..., 0], np.where(RAMP > 100, 255, 0))


def test_transparency_leaves_the_stored_colour(tmp_path: Path) -> None:
    pil.fromarray(np.dstack([COLOURS, RAMP])).save(tmp_path / "a.png")
    assert np.array_equal(read(tmp_path / "a.png"), COLOURS)
    pil.fromarray(np.dstack([RAMP, 255 - RAMP]), mode=None).save(tmp_path / "grey.png")
    assert np.array_equal(read(tmp_path / "grey.png")[..., 1], RAMP)


def test_a_palette_with_transparency_is_read_without_a_warning(tmp_path: Path) -> None:
    image = pil.fromarray(COLOURS).quantize(16)
    colours = np.asarray(image.convert("RGB"))
    image.save(tmp_path / "a.png", transparency=bytes(range(16)))
    assert np.array_equal(read(tmp_path / "a.png"), colours)


def test_cmyk_is_read_as_the_colours_it_stands_for(tmp_path: Path) -> None:
    ink = np.zeros((6, 8, 4), dtype=np.uint8)
    ink[:, 4:, 0] = 255  # cyan: no red
    pil.fromarray(ink, mode="CMYK").save(tmp_path / "a.tiff")
    assert np.array_equal(read(tmp_path / "a.tiff")[0, [0, 7]], [[255, 255, 255], [0, 255, 255]])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_upright(tmp_path: Path, orientation: int) -> None:
    turned = {  # how the upright image lies in the file
        1: COLOURS,
        2: COLOURS[:, ::-1],
        3: COLOURS[::-1, ::-1],
        4: COLOURS[::-1],
        5: COLOURS.transpose(1, 0, 2),
        6: np.rot90(COLOURS),
        7: COLOURS.transpose(1, 0, 2)[::-1, ::-1],
        8: np.rot90(COLOURS, -1),
    }[orientation]
    exif = pil.Exif()
    exif[0x0112] = orientation
    pil.fromarray(np.ascontiguousarray(turned)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read(tmp_path / "a.png"), COLOURS)


@pytest.mark.parametrize("orientation", [0, 9, 77])
def test_an_orientation_that_means_nothing_is_ignored(tmp_path: Path, orientation: int) -> None:
    exif = pil.Exif()
    exif[0x0112] = orientation
    pil.fromarray(COLOURS).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read(tmp_path / "a.png"), COLOURS)


def test_damaged_exif_does_not_keep_an_image_from_being_read(tmp_path: Path) -> None:
    pil.fromarray(COLOURS).save(tmp_path / "a.png", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert np.array_equal(read(tmp_path / "a.png"), COLOURS)
