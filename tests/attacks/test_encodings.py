"""Images as vectors: the two encodings, value by value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.attacks.encodings import change_all, change_pixels, pixel_bounds, threshold_bounds
from likewise.errors import InputError

# Golden: two pixels of a 2 x 2 colour image, rows and columns modulo the size
IMAGE = torch.tensor([[[10, 20, 30], [40, 50, 60]], [[70, 80, 90], [100, 110, 120]]], dtype=torch.uint8).permute(
    2, 0, 1
)
VECTOR = torch.tensor([[1.9, 0.2, 255.0, 3.7, 0.0, 2.0, 1.5, 9.9, 8.2, 7.5]])
CHANGED = torch.tensor([[[10, 20, 30], [9, 8, 7]], [[255, 3, 0], [100, 110, 120]]]).permute(2, 0, 1)


def test_the_published_encoding_of_pixels_gives_the_published_image() -> None:
    found = change_pixels(IMAGE, VECTOR)
    assert found.dtype == torch.uint8
    assert found.tolist() == [CHANGED.tolist()]


def test_the_published_encoding_of_thresholds_gives_the_published_values() -> None:
    image = torch.tensor([[[0, 3, 128, 254]]], dtype=torch.uint8)
    lower, upper = threshold_bounds(image, 5)
    assert (lower.tolist(), upper.tolist()) == ([0, 0, 123, 249], [5, 8, 133, 255])
    found = change_all(image, torch.tensor([[4.9, 0.4, 123.99, 254.999]], dtype=torch.float64), 5)
    assert found.tolist() == [[[[4, 0, 123, 254]]]]


def test_of_two_entries_for_one_pixel_the_later_counts_in_every_candidate() -> None:
    vectors = torch.tensor([[0.0, 1, 5, 0, 1, 6], [1, 1, 8, 0, 0, 9]])
    found = change_pixels(torch.zeros(1, 2, 2), vectors)
    assert found[:, 0].tolist() == [[[0, 6], [0, 0]], [[9, 0], [0, 8]]]


def test_rows_and_columns_are_not_taken_for_one_another() -> None:
    found = change_pixels(torch.zeros(1, 2, 3), torch.tensor([[1.0, 2, 7]]))
    assert found[0, 0].tolist() == [[0, 0, 0], [0, 0, 7]]
    lower, upper = pixel_bounds(torch.zeros(1, 2, 3), 2)
    assert (lower.tolist(), upper.tolist()) == ([0] * 6, [2, 3, 256] * 2)


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_images_are_written_where_asked_however_they_lie_in_memory(order: torch.memory_format) -> None:
    draw = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, 4, 5), generator=draw).float()
    out = torch.full((7, 3, 4, 5), -1.0).contiguous(memory_format=order)
    pixels, values = 300 * torch.rand(7, 10, generator=draw), 300 * torch.rand(7, 60, generator=draw)
    for change, vectors in ((change_pixels, pixels), (partial(change_all, threshold=9), values)):
        expected = change(image, vectors)
        assert change(image, vectors, out=out) is out
        assert torch.equal(out, expected)


@given(st.lists(st.floats(-1e30, 1e30), min_size=6, max_size=6))
def test_whatever_a_search_proposes_is_an_image(numbers: list[float]) -> None:
    vectors = torch.tensor([numbers], dtype=torch.float64)
    image = torch.tensor([[[0, 3], [128, 254], [9, 255]]], dtype=torch.uint8)
    pixels = change_pixels(image, vectors)
    assert int((pixels != image).sum()) <= 2
    all_values = change_all(image, vectors, 4.5).long()
    assert int((all_values - image.long()).abs().max()) <= 4
    assert 0 <= int(all_values.min()) <= int(all_values.max()) <= 255


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: change_pixels(IMAGE, VECTOR[:, :9]),
            "the vectors have shape (1, 9), and a pixel of 3 channels takes 5 numbers. Give one row per candidate, of "
            "5 or a multiple.",
        ),
        (
            lambda: change_all(IMAGE, VECTOR, 5),
            "the vectors have shape (1, 10), and the image has 12 values. Give one row per candidate, with one number "
            "per value.",
        ),
        (
            lambda: change_pixels(IMAGE, VECTOR * float("nan")),
            "the vectors have NaN or infinite entries. Keep the search within its bounds.",
        ),
        (
            lambda: change_pixels(IMAGE / 255, VECTOR),
            "the values of the image are not whole numbers from 0 to 255. Multiply by 255 and round.",
        ),
        (
            lambda: pixel_bounds(IMAGE[None], 1),
            "the image has shape (1, 3, 2, 2), not (channels, height, width). Give one image.",
        ),
        (lambda: pixel_bounds(IMAGE, 0), "pixels is 0. Change at least 1."),
        (
            lambda: threshold_bounds(IMAGE, 0),
            "threshold is 0. Give a number of grey levels above 0 and up to 255.",
        ),
    ],
)
def test_what_cannot_be_decoded_is_refused(call: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == sentence
