"""Folders of images with a text each, listed in a table beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import likewise
from likewise.data import as_data
from likewise.errors import InputError, MissingDataError
from tests.data.helpers import coloured
from tests.helpers import sentence as refusal

TEXTS = ["a cat", "a dog, asleep", "nothing"]


def captioned(folder: Path, form: str = "metadata.csv") -> Path:
    """Three images and their texts, one image in a folder of its own."""
    names = ["2.png", "sub/1.png", "0.png"]
    coloured(folder, *names, "not listed.png")
    if form.endswith("csv"):
        lines = [f'{name},"{text}",{i % 2}' for i, (name, text) in enumerate(zip(names, TEXTS, strict=True))]
        (folder / form).write_text("\n".join(["file_name,text,label", *lines]))
    else:
        rows = [{"file_name": name, "text": text} for name, text in zip(names, TEXTS, strict=True)]
        (folder / form).write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.mark.parametrize("form", ["metadata.csv", "metadata.jsonl"])
@pytest.mark.parametrize("prefix", ["", "captions:"])
def test_images_and_texts_are_one_probe(form: str, prefix: str, tmp_path: Path) -> None:
    data = as_data(f"{prefix}{captioned(tmp_path, form)}")
    assert (data.name, len(data), data.texts) == (f"captions:{tmp_path}:test", 3, TEXTS)
    assert [path.name for path in data.inputs.paths] == ["2.png", "1.png", "0.png"]
    pixels, texts = data.of_kind("image"), data.of_kind("text")
    assert (pixels.inputs.paths, texts.inputs) == (data.inputs.paths, TEXTS)
    assert (pixels.domain, texts.domain) == ("image", "text")
    assert data.probe == pixels.probe == texts.probe
    assert data.probe != data[[0, 2, 1]].probe
    other = data[1:].of_kind("text")
    assert (other.inputs, other.probe) == (TEXTS[1:], texts[1:].probe)
    assert pixels[1:].probe == other.probe != texts.probe
    if form.endswith("csv"):
        assert (data.labels.tolist(), texts[1:].labels.tolist()) == ([0, 1, 0], [1, 0])


def test_the_texts_count_in_the_probe(tmp_path: Path) -> None:
    before = likewise.dataset(captioned(tmp_path)).probe
    metadata = tmp_path / "metadata.csv"
    metadata.write_text(metadata.read_text().replace("nothing", "something"))
    assert likewise.dataset(tmp_path).probe != before


def test_splits_are_folders_with_a_list_each(tmp_path: Path) -> None:
    captioned(tmp_path / "train")
    captioned(tmp_path / "val", "metadata.jsonl")
    assert likewise.dataset(f"captions:{tmp_path}:train").labels.tolist() == [0, 1, 0]
    assert likewise.dataset(f"captions:{tmp_path}:test").labels is None
    assert likewise.dataset(f"captions:{tmp_path}:all").texts == TEXTS * 2


BROKEN = {
    "file_name,text\n../2.png,x\n": "{0}/metadata.csv names '../2.png' in row 0, which is no file in {0}. Put it "
    "there, or leave the row out.",
    "file_name,text\n/etc/passwd,x\n": "{0}/metadata.csv names '/etc/passwd' in row 0, which is no file in {0}. Put it "
    "there, or leave the row out.",
    "file_name,text\n2.png,x\n9.png,y\n": "{0}/metadata.csv names '9.png' in row 1, which is no file in {0}. Put it "
    "there, or leave the row out.",
    "name,text\n2.png,x\n": "{0}/metadata.csv has no column 'file_name'. Did you mean 'name'? It has 'name', 'text'.",
    "file_name,a,b\n2.png,x,y\n": "captions:{0} has 2 columns of text ('a', 'b'). Name the one to show: "
    "'captions:{0},text=a'.",
}


@pytest.mark.parametrize(("metadata", "sentence"), BROKEN.items())
def test_a_list_that_cannot_be_used_is_named(metadata: str, sentence: str, tmp_path: Path) -> None:
    (captioned(tmp_path) / "metadata.csv").write_text(metadata)
    assert refusal(InputError, likewise.dataset, f"captions:{tmp_path}") == sentence.format(tmp_path)


def test_a_folder_without_a_list_says_what_to_write(tmp_path: Path) -> None:
    coloured(tmp_path, "1.png")
    assert refusal(MissingDataError, likewise.dataset, f"captions:{tmp_path}") == (
        f"{tmp_path} has no metadata.csv. Write one with the columns file_name and text, or take the images alone: "
        f"imagefolder:{tmp_path}."
    )
