"""Folders of images: one folder per class, or images alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from torch import nn

import likewise
from likewise.errors import InputError
from tests.data.helpers import coloured
from tests.helpers import sentence as refusal


def test_folders_may_have_brackets_and_hidden_folders(tmp_path: Path) -> None:
    names = ("cat/1.png", "dog/1.png", "cat/.ipynb_checkpoints/1.png", ".ipynb_checkpoints/1.png", "dog/._1.png")
    folder = coloured(tmp_path / "photos [2024]", *names)
    (folder / ".empty").mkdir()
    data = likewise.dataset(f"imagefolder:{folder}")
    assert (len(data), data.classes) == (2, ("cat", "dog"))
    assert len(likewise.dataset(f"imagefolder:{folder}[:1]")) == 1


def test_a_folder_of_images_alone_has_no_labels_and_is_compared(tmp_path: Path) -> None:
    folder = coloured(tmp_path, *(f"{number}.png" for number in range(6)))
    data = likewise.dataset(f"imagefolder:{folder}")
    assert (len(data), data.labels, data.classes) == (6, None, ())
    assert [labels for _, labels in data[:4].batches(2)] == [None, None]
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 4), nn.ReLU(), nn.Linear(4, 3))
    view = likewise.extract(net, data, "1", store=tmp_path / "store")
    assert view.outputs is not None
    assert (view.outputs.labels, view.shape) == (None, (6, 4))
    assert likewise.compare([net, net], data=data, layers="1").values[0, 1] == pytest.approx(1)


def test_what_needs_labels_says_so(tmp_path: Path) -> None:
    data = likewise.dataset(f"imagefolder:{coloured(tmp_path, '1.png', '2.png')}")
    sentence = (
        f"'imagefolder:{tmp_path}:test' has no labels, and they are needed to {{}}. Give one per input: images in one "
        "folder per class, a table with label=COLUMN, or likewise.data.Data(name, domain, inputs, labels, classes)."
    )
    assert refusal(InputError, likewise.train, "zoo:mlp,hidden=4", data) == (sentence.format("train on"))
    assert refusal(InputError, likewise.classes.inspect, ["zoo:mlp", "zoo:mlp"], data) == (
        sentence.format("inspect a training")
    )
    assert refusal(InputError, likewise.networks.evaluate, nn.Flatten(), data) == (sentence.format("score a network"))
    nets = ["zoo:mlp,size=8", "zoo:mlp,size=8,seed=1"]
    assert refusal(InputError, likewise.compare, *nets, "error-consistency", data=data) == (
        "the true labels of 'zoo:mlp,size=8' and 'zoo:mlp,size=8,seed=1' are not known: "
        f"'imagefolder:{tmp_path}:test' has no labels. Or pass labels=... that count as the network does."
    )
    similarity = likewise.classes.from_wordnet("cifar10")
    assert refusal(InputError, likewise.classes.mistakes, data, [0, 1], similarity) == (
        sentence.format("show mistakes")
    )


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(InputError, likewise.dataset, f"imagefolder:{tmp_path}") == (
        f"{tmp_path} holds no images. Fill it or remove it."
    )


def test_a_class_without_images_is_named_and_keeps_its_label(tmp_path: Path) -> None:
    for number, name in enumerate(("ant", "bee", "cat")):
        (tmp_path / name).mkdir()
        if name != "bee":
            Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / name / "a.png")
    with pytest.warns(UserWarning, match="have no images") as said:
        data = likewise.dataset(f"imagefolder:{tmp_path}")
    assert str(said[0].message) == (
        f"1 of the 3 classes of imagefolder:{tmp_path}:test have no images: 'bee'. Their labels stay unused."
    )
    assert data.classes == ("ant", "bee", "cat")
    assert data.labels.tolist() == [0, 2]
