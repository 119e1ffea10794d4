"""Batches of image files: the same whichever process decodes them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.data import Data
from likewise.data.loading import automatic
from likewise.errors import InputError

SIDE = 16


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 48 small images of three classes."""
    from PIL import Image

    root, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(48):
        folder = root / f"class{number % 3}"
        folder.mkdir(exist_ok=True)
        pixels = rng.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return root


def data_of(photos: Path) -> Data:
    return likewise.dataset(f"imagefolder:{photos}")


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_nothing_in_batches(photos: Path, workers: int) -> None:
    for shuffle in (None, 3):
        expected = list(data_of(photos).batches(10, shuffle=shuffle, num_workers=0))
        torch.manual_seed(0)
        batches = list(data_of(photos).batches(10, shuffle=shuffle, num_workers=workers))
        assert len(batches) == len(expected) == 5
        for (images, labels), (same_images, same_labels) in zip(batches, expected, strict=True):
            assert torch.equal(images, same_images)
            assert torch.equal(labels, same_labels)
        drawn = torch.rand(3)
        torch.manual_seed(0)
        assert torch.equal(drawn, torch.rand(3))  # the random numbers of a training are not touched


def test_weights_are_the_same_with_any_number_of_workers_also_after_a_stop(photos: Path, tmp_path: Path) -> None:
    def stop(_net: object, record: dict[str, int]) -> None:
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    def learn(workers: int, **options: object) -> torch.Tensor:
        net = likewise.networks.train(
            "zoo:mlp", data_of(photos), epochs=2, lr=0.01, batch_size=16, num_workers=workers, **options
        ).net
        return torch.cat([weight.flatten() for weight in net.parameters()])

    expected = learn(0)
    with pytest.raises(KeyboardInterrupt):
        learn(2, out=tmp_path / "run", callbacks=[stop])
    for weights in (learn(1), learn(2), learn(2, out=tmp_path / "run")):
        assert torch.equal(weights, expected)


def test_an_extraction_with_workers_gives_the_same(photos: Path) -> None:
    views = [
        likewise.extract("zoo:mlp", data_of(photos), batch_size=20, num_workers=workers, progress=False)
        for workers in (0, 2)
    ]
    assert torch.equal(views[0].values, views[1].values)
    assert views[0].probe == views[1].probe


def test_a_damaged_image_is_named_from_a_worker_too(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "a").mkdir()
    for number in range(4):
        content = next((photos / "class0").iterdir()).read_bytes()
        (tmp_path / "a" / f"{number}.png").write_bytes(content if number < 3 else content[:60])
    with pytest.raises(InputError) as error:
        list(likewise.dataset(f"imagefolder:{tmp_path},size=8").batches(1, num_workers=2))
    assert str(error.value) == f"{tmp_path / 'a' / '3.png'} cannot be read as an image. Remove or repair it."


def test_workers_come_unasked_where_decoded_images_do_not_fit_or_a_gpu_waits(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_of(photos)
    cores = min(8, os.cpu_count() or 1)
    assert automatic(data.inputs, None) == automatic(data.inputs, "cpu") == 0
    assert automatic(data.inputs, "cuda:0") == cores
    monkeypatch.setattr(data.inputs._decoded, "room", 47 * 4 * SIDE * SIDE)
    assert automatic(data.inputs, None) == cores
    data.inputs._decoded.room += 4 * SIDE * SIDE
    list(data.batches(48))
    assert automatic(data.inputs, "cuda:0") == 0  # decoded already
    assert automatic(torch.rand(3, 3, 8, 8), "cuda:0") == 0


@pytest.mark.parametrize("count", [-1, 1.5, "two"])
def test_a_number_of_workers_that_is_none_is_refused(photos: Path, count: object) -> None:
    sentence = f"num_workers is {count!r}. Give 0 or more."
    with pytest.raises(InputError) as error:
        list(data_of(photos).batches(num_workers=count))  # type: ignore[arg-type]
    assert str(error.value) == sentence
    with pytest.raises(InputError) as error:
        likewise.extract("zoo:mlp", data_of(photos), num_workers=count)  # type: ignore[arg-type]
    assert str(error.value) == sentence
