"""Datasets of Hugging Face: objects, streams, columns, saved folders and names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import likewise
from likewise.data import as_data
from likewise.errors import InputError, LikewiseError
from tests.helpers import sentence as refusal

library: Any = pytest.importorskip("datasets")
TEXTS = [f"text number {i}" for i in range(6)]
LABELS = [0, 1, 1, 0, 1, 0]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    library.disable_progress_bars()
    yield
    library.enable_progress_bars()


def labelled() -> Any:
    kinds = {"text": library.Value("string"), "label": library.ClassLabel(names=["neg", "pos"])}
    return library.Dataset.from_dict({"text": TEXTS, "label": LABELS}, features=library.Features(kinds))


def content(data: Any) -> tuple[Any, ...]:
    return data.inputs, None if data.labels is None else data.labels.tolist(), data.classes


@pytest.mark.parametrize(
    "form",
    [
        lambda ds: ds,
        lambda ds: ds.with_format("torch"),
        lambda ds: library.DatasetDict({"only": ds}),
        lambda ds: library.DatasetDict({"train": ds.select([0]), "test": ds}),
    ],
    ids=["dataset", "torch format", "one split", "test split"],
)
def test_a_dataset_gives_its_texts_labels_and_classes(form: Callable[[Any], Any]) -> None:
    data = as_data(form(labelled()))
    assert content(data) == (TEXTS, LABELS, ("neg", "pos"))
    assert data.probe == as_data(TEXTS).probe


def test_a_column_gives_its_texts() -> None:
    nested = library.Dataset.from_dict({"meta": [{"said": text} for text in TEXTS]})
    for column in (labelled()["text"], labelled().select([5, 0])["text"], nested["meta"]["said"]):
        assert content(as_data(column)) == (list(column), None, ())


def test_a_stream_is_sampled_by_a_seed() -> None:
    def stream() -> Any:
        return library.IterableDataset.from_generator(lambda: ({"text": str(i)} for i in range(3000)))

    found = [likewise.dataset(stream(), n=20, seed=seed).inputs for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert all(len(set(texts)) == 20 for texts in found)
    assert found[0] != [str(i) for i in range(20)]
    assert likewise.dataset(stream()["text"], n=20).inputs == found[0]
    sampled = likewise.dataset(labelled(), n=3, seed=1)
    assert len(sampled) == 3
    assert all(LABELS[TEXTS.index(text)] == label for text, label in zip(sampled.inputs, sampled.labels, strict=True))


def test_a_saved_folder_is_read_by_its_path(tmp_path: Path) -> None:
    labelled().save_to_disk(tmp_path / "one")
    library.DatasetDict({"train": labelled(), "dev": labelled().select([3, 1])}).save_to_disk(tmp_path / "two")
    assert content(likewise.dataset(str(tmp_path / "one"))) == (TEXTS, LABELS, ("neg", "pos"))
    assert likewise.dataset(tmp_path / "one").name == f"datasets:{tmp_path}/one"
    assert likewise.dataset(f"datasets:{tmp_path}/two:dev[:1]").inputs == [TEXTS[3]]
    assert likewise.dataset(f"{tmp_path}/two:train").labels.tolist() == LABELS
    assert refusal(InputError, likewise.dataset, f"{tmp_path}/two") == (
        f"datasets:{tmp_path}/two has 2 splits ('train', 'dev'). Name one: 'datasets:{tmp_path}/two:train'."
    )
    assert refusal(InputError, likewise.dataset, f"{tmp_path}/two:tset") == (
        f"datasets:{tmp_path}/two has no split 'tset' ('train', 'dev'). Name one: 'datasets:{tmp_path}/two:train'."
    )


@pytest.mark.parametrize("name", ["data-00000-of-00001.arrow", "dataset_info.json"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_or_a_link_in_a_saved_folder_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "saved"
    labelled().save_to_disk(folder)
    path = folder / name
    path.rename(tmp_path / "elsewhere")
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LikewiseError) as error:
        likewise.dataset(f"datasets:{folder}")
    sentences = {
        "pipe": f"{path} is a pipe, not a file. Give the path of a file.",
        "link": f"{path} leads out of {folder}, whose files may only be read inside of it. Copy it there.",
    }
    assert str(error.value) == sentences[kind]


def test_a_saved_folder_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    labelled().save_to_disk(tmp_path / "own")
    labelled().save_to_disk(tmp_path / "evil")
    state = tmp_path / "evil" / "state.json"
    listed = json.loads(state.read_text())
    name = listed["_data_files"][0]["filename"]
    listed["_data_files"][0]["filename"] = f"../own/{name}"
    state.write_text(json.dumps(listed))
    assert refusal(InputError, likewise.dataset, tmp_path / "evil") == (
        f"{state} names '../own/{name}', which is no file beside it. Save the dataset again."
    )


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "stream": (
        lambda: labelled().to_iterable_dataset(),
        "dataset is a stream, which may have no end. Say how many rows to draw: likewise.dataset(data, n=1000).",
    ),
    "splits": (
        lambda: library.DatasetDict({"train": labelled(), "dev": labelled()}),
        "the dataset has 2 splits ('train', 'dev'). Name one: data['train'].",
    ),
    "tokens": (
        lambda: library.Dataset.from_dict({"input_ids": [[1, 2], [3]]}),
        "dataset has no column of text. Its columns are 'input_ids'. Give one that has, or batches of what the "
        "network takes.",
    ),
    "pairs": (
        lambda: library.Dataset.from_dict({"premise": ["a"], "hypothesis": ["b"]}),
        "dataset has 2 columns of text ('premise', 'hypothesis'). Name the one to show: likewise.dataset(data, "
        "text='premise'), and a second beside it with pair=.",
    ),
    "transform": (
        lambda: labelled().with_transform(lambda rows: rows),
        "dataset has a transform of its own. Pass data.with_format(None) for its columns, or batches of what the "
        "transform gives: torch.utils.data.DataLoader(data, batch_size=32).",
    ),
    "features": (
        lambda: labelled().features,
        "dataset is a Features, not a dataset. Pass a Dataset, a stream or a column.",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), REFUSED.values(), ids=list(REFUSED))
def test_a_dataset_that_cannot_be_shown_says_what_to_choose(make: Callable[[], Any], sentence: str) -> None:
    assert refusal(InputError, as_data, make()) == sentence


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (7, "dataset has 6 rows, fewer than n=7. Ask for at most 6."),
        (0, "dataset cannot give n=0 rows. Say how many rows to draw: likewise.dataset(data, n=1000)."),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_sample_of_more_rows_than_there_are_is_refused(n: int, sentence: str, streamed: bool) -> None:
    assert refusal(InputError, likewise.dataset, labelled().to_iterable_dataset() if streamed else labelled(), n=n) == (
        sentence
    )


def test_a_name_that_cannot_be_had_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "import likewise\n"
        "try: likewise.dataset('datasets:someone/reviews:test')\n"
        "except likewise.errors.MissingDataError as error: print(error)"
    )
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | offline, capture_output=True, text=True)
    assert run.stdout == (
        "datasets:someone/reviews is no folder, and could not be downloaded (Couldn't reach 'someone/reviews' on the "
        "Hub (OfflineModeIsEnabled)). Check its name, or save it where there is a connection, with save_to_disk, and "
        "give the folder.\n"
    )


def test_a_name_is_read_from_the_cache_of_the_library(tmp_path: Path) -> None:
    code = """
import datasets, likewise, pathlib, sys
home = pathlib.Path(sys.argv[1])
(home / "reviews").mkdir()
(home / "reviews" / "test.csv").write_text("text,label\\ngood,1\\nbad,0\\n")
datasets.disable_progress_bars()
datasets.load_dataset(str(home / "reviews"))
(home / "datasets" / "reviews").rename(home / "datasets" / "someone___reviews")
for address in ("datasets:someone/reviews", "datasets:someone/reviews:test[:1]", "datasets:someone/reviews,n=2,seed=1"):
    data = likewise.dataset(address)
    print(data.name, sorted(data.inputs), data.classes)
"""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=os.environ | offline, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == [
        "datasets:someone/reviews:test ['bad', 'good'] ('0', '1')",
        "datasets:someone/reviews:test[:1] ['good'] ('0', '1')",
        "datasets:someone/reviews:test,n=2,seed=1 ['bad', 'good'] ('0', '1')",
    ], run.stderr


def test_a_folder_of_anything_else_is_no_dataset(tmp_path: Path) -> None:
    assert refusal(InputError, likewise.dataset, f"datasets:{tmp_path}") == (
        f"{tmp_path} was not written by save_to_disk. Give the path of a table in it, as in 'table:PATH.csv', or of a "
        "folder of images."
    )


def pictures(folder: Path, **columns: Any) -> Any:
    """A dataset of six small images in files, with other columns."""
    pil = pytest.importorskip("PIL.Image")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(folder / f"{i}.png") for i in range(6)]
    for i, path in enumerate(paths):
        pil.new("RGB", (8 + i % 2, 8), (40 * i, 5, 250 - i)).save(path)
    rows = library.Dataset.from_dict({"image": paths, **columns})
    return rows.cast_column("image", library.Image())


def test_a_column_of_images_is_shown_as_the_files_are(tmp_path: Path) -> None:
    rows = pictures(tmp_path / "photos", label=LABELS, note=TEXTS)
    rows.save_to_disk(tmp_path / "saved")
    folder = likewise.dataset(f"imagefolder:{tmp_path}/photos")
    stream = likewise.dataset(rows.to_iterable_dataset(), n=6)
    for data in (
        as_data(rows),
        likewise.dataset(tmp_path / "saved"),
        as_data(rows["image"]),
        as_data(rows["image"])[:],
    ):
        assert (data.domain, len(data), data.probe) == ("image", 6, folder.probe)
        assert data.inputs[:].equal(folder.inputs[:])
        assert data.inputs.pictures([3])[0].size == (9, 8)
    assert as_data(rows).labels.tolist() == LABELS
    assert likewise.dataset(rows, size=4).inputs.shape == (6, 3, 4, 4)
    assert sorted(stream.labels.tolist()) == sorted(LABELS)
    assert {image.tobytes() for image in stream.inputs.pictures(slice(None))} == {
        image.tobytes() for image in folder.inputs.pictures(slice(None))
    }


def test_images_with_texts_are_captioned(tmp_path: Path) -> None:
    rows = pictures(tmp_path, caption=TEXTS, note=TEXTS[::-1])
    data = as_data(rows)
    assert (data.domains, data.texts) == (("image", "text"), TEXTS)
    assert likewise.dataset(rows, text="note").texts == TEXTS[::-1]
    assert content(likewise.dataset(rows, image=False)) == (TEXTS, None, ())


def test_images_elsewhere_are_neither_fetched_nor_read_from_a_saved_folder(tmp_path: Path) -> None:
    path = str(tmp_path / "photos" / "1.png")
    pictures(tmp_path / "photos")
    rows = library.Dataset.from_dict({"image": ["https://example.com/a.png", path]})
    mine = as_data(rows.cast_column("image", library.Image()))
    assert mine.inputs.pictures([1])[0].size == (9, 8)
    kind = {"bytes": library.Value("binary"), "path": library.Value("string")}
    named = [{"bytes": None, "path": path}]
    library.Dataset.from_dict({"image": named}, library.Features({"image": kind})).save_to_disk(tmp_path / "saved")
    about = tmp_path / "saved" / "dataset_info.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "features": {"image": {"_type": "Image"}}}))
    saved = likewise.dataset(tmp_path / "saved")
    for data, name in ((mine, "dataset"), (saved, f"datasets:{tmp_path}/saved")):
        assert refusal(InputError, data.inputs.pictures, [0]) == (
            f"row 0 of column 'image' of {name} holds no image. Embed it before saving, or leave the row out."
        )


def test_a_column_that_holds_no_images_is_refused(tmp_path: Path) -> None:
    rows = pictures(tmp_path, note=TEXTS)
    assert refusal(InputError, likewise.dataset, rows, image="note") == (
        "dataset holds images in 'image'. Name one: likewise.dataset(data, image='image')."
    )
    assert refusal(InputError, likewise.dataset, labelled(), image="text") == (
        "dataset holds no images. Leave image out."
    )
    broken = library.Dataset.from_dict({"image": [{"bytes": b"not an image", "path": None}]})
    assert refusal(InputError, as_data(broken.cast_column("image", library.Image())).inputs.pictures, [0]) == (
        "row 0 of column 'image' of dataset cannot be read as an image. Remove or repair it."
    )
