"""Image files of every kind become upright RGB of 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.data.decode import decode
from likewise.errors import InputError

pil: Any = pytest.importorskip("PIL.Image")
RAMP = np.linspace(0, 255, 6 * 8).reshape(6, 8).round().astype(np.uint8)
COLOURS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)


def read(path: Path) -> np.ndarray:
    image = decode(path, path.read_bytes())
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
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == (
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
