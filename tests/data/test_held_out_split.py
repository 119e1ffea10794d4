"""A split of our own: a share of every class is held out, drawn by a seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import likewise
from likewise.errors import InputError
from tests.data.helpers import coloured
from tests.helpers import sentence as refusal


def paths(address: str, **options: Any) -> set[str]:
    return {str(path) for path in likewise.dataset(address, **options).inputs.paths}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return coloured(tmp_path, *(f"{name}/{i}.png" for name in ("cat", "dog") for i in range(12)))


def test_every_sixth_image_of_each_class_is_held_out(folder: Path) -> None:
    train, test = (likewise.dataset(f"imagefolder:{folder}:{split},by=images") for split in ("train", "test"))
    assert Counter(train.labels.tolist()) == {0: 10, 1: 10}
    assert Counter(test.labels.tolist()) == {0: 2, 1: 2}
    assert {*train.inputs.paths}.isdisjoint(test.inputs.paths)
    assert len({*train.inputs.paths, *test.inputs.paths}) == 24
    assert train.name == f"imagefolder:{folder}:train,by=images"
    assert all(
        path.parent.name == train.classes[label] for path, label in zip(train.inputs.paths, train.labels, strict=True)
    )
    assert paths(f"imagefolder:{folder}:val,by=images") == paths(f"imagefolder:{folder}:test,by=images")
    assert len(paths(f"{folder}:all,by=images")) == 24


def test_another_seed_and_another_share_draw_others(folder: Path) -> None:
    first = paths(f"{folder}:test,by=images")
    assert paths(f"{folder}:test,by=images,seed=0") == first != paths(f"{folder}:test,by=images,seed=1")
    assert len(paths(f"{folder}:test,by=images,held_out=0.5")) == 12
    assert len(paths(f"{folder}:train", by="images", held_out=1)) == 22
    name = likewise.dataset(f"{folder}:test[:3],by=images,held_out=0.5,seed=4").name
    assert name == f"imagefolder:{folder}:test,by=images,held_out=0.5,seed=4[:3]"


def test_what_is_drawn_of_a_class_does_not_depend_on_the_others(folder: Path) -> None:
    before = {path for path in paths(f"{folder}:test,by=images") if "/cat/" in path}
    coloured(folder, *(f"ant/{i}.png" for i in range(7)))
    assert {path for path in paths(f"{folder}:test,by=images") if "/cat/" in path} == before


def test_folders_of_a_split_are_put_together_first(tmp_path: Path) -> None:
    names = [f"train/cat/{i}.png" for i in range(5)] + [f"val/cat/{i}.png" for i in range(4)]
    coloured(tmp_path, *names, *(f"train/dog/{i}.png" for i in range(6)))
    data = likewise.dataset(f"imagefolder:{tmp_path}:train,by=images,held_out=1")
    assert (Counter(data.labels.tolist()), data.classes) == ({0: 8, 1: 5}, ("cat", "dog"))
    assert len(likewise.dataset(f"imagefolder:{tmp_path}:all")) == 15


@pytest.mark.parametrize("form", ["flat", "class splits"])
def test_mini_imagenet_is_divided_into_500_and_100_images_per_class(form: str, tmp_path: Path) -> None:
    """With empty files: what they hold is not read before it is asked for."""
    wnids = [wnid for wnid in likewise.wordnet.classes("mini-imagenet").wnids if wnid]
    for number, wnid in enumerate(wnids if form == "flat" else wnids[:3]):
        place = tmp_path / wnid if form == "flat" else tmp_path / ("train", "val", "test")[number] / wnid
        place.mkdir(parents=True)
        for i in range(600 if number < 3 else 12):
            (place / f"{i}.jpg").touch()
    train, test = (likewise.dataset(f"mini-imagenet:{tmp_path}:{split},by=images") for split in ("train", "test"))
    assert train.wnids == test.wnids == (tuple(sorted(wnids)) if form == "flat" else tuple(sorted(wnids[:3])))
    large = [sorted(wnids).index(wnid) if form == "flat" else sorted(wnids[:3]).index(wnid) for wnid in wnids[:3]]
    assert [int((train.labels == label).sum()) for label in large] == [500] * 3
    assert [int((test.labels == label).sum()) for label in large] == [100] * 3


REFUSED = {
    "by=classes": "by is 'classes'. Give by=images, or leave it out.",
    "held_out=3": "held_out and seed are for a split of our own. Add by=images.",
    "by=images,held_out=0": "held_out is 0. Give a number of images per class, as in held_out=100, or a share, as in "
    "held_out=0.2.",
    "by=images,held_out=1.5": "held_out is 1.5. Give a number of images per class, as in held_out=100, or a share, as "
    "in held_out=0.2.",
    "by=images,held_out=12": "'cat' has 12 images, so 12 of them cannot be held out. Give a smaller held_out, or more "
    "images.",
    "by=images,seed=a": "seed is 'a'. Give a whole number.",
}


@pytest.mark.parametrize(("options", "sentence"), REFUSED.items())
def test_a_division_that_cannot_be_is_refused(options: str, sentence: str, folder: Path) -> None:
    assert refusal(InputError, likewise.dataset, f"imagefolder:{folder}:train,{options}") == sentence


def test_data_without_labels_or_of_another_kind_is_not_divided(tmp_path: Path) -> None:
    coloured(tmp_path, "1.png", "2.png")
    with pytest.raises(InputError) as error:
        likewise.dataset(f"imagefolder:{tmp_path}:train,by=images")
    assert str(error.value).startswith(f"'imagefolder:{tmp_path}:all' has no labels, and they are needed to divide it.")
    assert refusal(InputError, likewise.dataset, "sentences,by=images") == (
        "sentences has no option 'by'. Leave it out."
    )
