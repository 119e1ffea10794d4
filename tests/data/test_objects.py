"""What people have at hand: columns of pandas, arrays of texts, generators, images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.data import Data, as_data, objects
from likewise.errors import InputError
from tests.data.helpers import photos
from tests.helpers import sentence as refusal

TEXTS = ["a plain text", "another", "and a third one"]
FORMS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array": np.array(TEXTS),
    "objects": np.array(TEXTS, dtype=object),
    "series": pd.Series(TEXTS, index=[5, 6, 7], name="review"),
    "unnamed series": pd.Series(TEXTS),
    "frame": pd.DataFrame({"review": TEXTS, "stars": [1, 2, 3]}),
    "column": pd.DataFrame({0: TEXTS})[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_texts_are_one_probe_whatever_holds_them(form: str) -> None:
    data = as_data(FORMS[form])
    assert (data.inputs, data.domain, data.labels) == (TEXTS, "text", None)
    assert data.probe == Data("any", "text", TEXTS).probe


def test_data_is_made_of_texts_in_any_form() -> None:
    for form in (np.array(TEXTS), pd.Series(TEXTS), tuple(TEXTS)):
        data = Data("mine", "text", form)
        assert next(iter(data.batches(2)))[0] == TEXTS[:2]
        assert data.probe == as_data(TEXTS).probe


def test_captioned_images_are_made_of_images_and_texts() -> None:
    pil = pytest.importorskip("PIL.Image")
    pictures = [pil.new("RGB", (8, 8), (i, 0, 0)) for i in range(3)]
    data = likewise.data.Captioned("mine", "image", pictures, texts=TEXTS)
    assert data[1:].of_kind("text").inputs == TEXTS[1:]
    assert refusal(InputError, likewise.data.Captioned, "mine", "image", pictures, texts=TEXTS[1:]) == (
        "'mine' has 3 images and 2 texts. Give one text per image."
    )


def test_a_generator_of_texts_is_read_as_texts() -> None:
    assert as_data(text for text in TEXTS).inputs == TEXTS
    assert as_data(iter([("a", "b"), ("c", "d")])).inputs == [("a", "b"), ("c", "d")]


def test_numbers_and_batches_stay_what_they_are() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert torch.equal(as_data(frame), torch.tensor([[1.0, 3.0], [2.0, 4.0]], dtype=torch.float64))
    for same in (torch.rand(3, 4), np.zeros((3, 4)), [torch.rand(2, 4)], [], [["a", "b"], ["c"]]):
        assert as_data(same) is same


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["a", float("nan")], "entry 1 of the texts is nan, not a text. Leave such entries out."),
        (["a", ("b", "c")], "entry 1 of the texts is ('b', 'c'), not a text. Leave such entries out."),
        (
            pd.Series(["a", None], name="review"),
            "column 'review' of data frame holds {} in row 1, not text. Leave such rows out.",
        ),
    ],
)
def test_an_entry_that_is_no_text_is_named(given: Any, sentence: str) -> None:
    missing = repr(given.iloc[1]) if isinstance(given, pd.Series) else ""
    assert refusal(InputError, as_data, given) == sentence.format(missing)


def test_an_object_that_is_no_data_is_refused() -> None:
    assert refusal(InputError, likewise.dataset, 3) == (
        "dataset needs an address, a path, a data frame or a dataset of Hugging Face, and was given 3. Pass it to "
        "compare or extract as it is, or make likewise.data.Data of it."
    )


@pytest.mark.parametrize(("given", "first"), [(range(5), "0"), ({"text": TEXTS}, "'text'"), ({3.5}, "3.5")])
def test_what_gives_no_batches_is_refused(given: Any, first: str) -> None:
    assert refusal(InputError, likewise.extract, nn.Linear(2, 2), given, "logits") == (
        f"the data gives {first} where a batch of inputs is wanted. Give batches, or one array or list of all inputs."
    )


def test_tables_of_pyarrow_are_texts_too() -> None:
    arrow = pytest.importorskip("pyarrow")
    for given in (arrow.table({"text": TEXTS, "n": [1, 2, 3]}), arrow.array(TEXTS), arrow.chunked_array([TEXTS])):
        assert as_data(given).inputs == TEXTS


def batches(rows: Tensor) -> Iterator[Tensor]:
    yield from rows.split(4)


def nets() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {name: nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)) for name in "ab"}


def test_a_generator_is_read_once_for_all_networks() -> None:
    rows, pair = torch.rand(12, 3), nets()
    found = likewise.compare(pair, "cka", data=batches(rows))
    expected = likewise.compare(pair, "cka", data=rows)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    layers = likewise.layerwise(*pair.values(), batches(rows), measure="cka", layers="all")
    np.testing.assert_allclose(
        layers.values, likewise.layerwise(*pair.values(), rows, measure="cka", layers="all").values, atol=1e-6
    )


def test_a_generator_larger_than_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "free_memory", lambda: 200)
    assert refusal(
        InputError, likewise.compare, nets(), "cka", data=({"input": rows} for rows in batches(torch.rand(12, 3)))
    ) == (
        "the data is a generator, which can be read once only, and it gives more than memory can keep for the next "
        "network. Pass what can be read again: an address, a dataset or a DataLoader."
    )
    one = likewise.extract(nets()["a"], batches(torch.rand(12, 3)), "0")
    assert one.shape == (12, 5)


def test_a_generator_that_is_used_up_says_so() -> None:
    used = batches(torch.rand(12, 3))
    likewise.extract(nets()["a"], used, "0")
    assert refusal(InputError, likewise.extract, nets()["a"], used, "0") == (
        "the data gave no inputs: a generator can be read once only. Pass a list of its batches."
    )


def drawn(*sizes: tuple[int, int]) -> list[Any]:
    pil: Any = pytest.importorskip("PIL.Image")
    draw = np.random.default_rng(0)
    return [pil.fromarray(draw.integers(0, 256, (high, wide, 3), dtype=np.uint8)) for wide, high in sizes]


def test_a_list_of_pil_images_is_shown_to_a_network_by_its_own_transform(vision: None) -> None:
    net = likewise.network("timm:test_vit,pretrained=false")
    images = drawn((40, 30), (24, 36), (50, 50))
    view = likewise.extract(net, images, progress=False)
    assert (view.n, view.about["data"]) == (3, "images")
    assert view.about["transform"] == "timm: 160 × 160, crop 0.95 (center), bicubic"
    arrays = likewise.extract(net, [np.asarray(image) for image in images], progress=False)
    assert (arrays.probe, np.array_equal(arrays.values, view.values)) == (view.probe, True)
    same_size = np.stack([np.asarray(image.resize((40, 30))) for image in images])
    assert np.array_equal(as_data(same_size).inputs[:].permute(0, 2, 3, 1) * 255, same_size)
    plain = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 3))
    score = likewise.compare({"vit": net, "plain": plain}, "cka", data=tuple(images), progress=False)
    assert score.values.shape == (2, 2)


def test_a_list_of_single_images_is_data_and_not_batches() -> None:
    images = list(torch.rand(5, 3, 8, 9))
    assert torch.equal(as_data(images), torch.stack(images))
    assert torch.equal(as_data([image.numpy() for image in images]), torch.stack(images))
    batches = list(torch.rand(5, 4, 8, 9))
    assert as_data(batches) is batches
    steps = list(torch.rand(5, 3, 4))  # three inputs of a few numbers each
    assert as_data(steps) is steps


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (
            lambda: [*drawn((9, 9)), "photo.jpg"],
            "entry 1 of the images is 'photo.jpg', not an image. Leave such entries out.",
        ),
        (
            lambda: [torch.rand(3, 8, 9), torch.rand(3, 9, 8)],
            "the images have shapes (3, 8, 9) and (3, 9, 8), and make no batch. Resize them, or give PIL images.",
        ),
    ],
)
def test_lists_of_images_that_do_not_fit_are_refused(images: Callable[[], list[Any]], sentence: str) -> None:
    assert refusal(InputError, as_data, images()) == sentence


def test_a_dataset_of_torchvision_is_shown_by_each_networks_transform(tmp_path: Path, vision: None) -> None:
    from torchvision import datasets, transforms

    photos(tmp_path)
    data = as_data(datasets.ImageFolder(str(tmp_path)))
    files = likewise.dataset(f"imagefolder:{tmp_path}")
    assert (data.classes, data.labels.tolist(), len(data)) == (("some",), [0, 0, 0], 3)
    assert torch.equal(data.inputs[:], files.inputs[:])
    transformed = datasets.ImageFolder(str(tmp_path), transforms.ToTensor())
    assert as_data(transformed) is transformed


def test_inputs_and_labels_as_a_pair_of_arrays_are_data() -> None:
    generator = np.random.default_rng(0)
    rows, labels = generator.random((20, 6)), generator.integers(0, 3, 20)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    view = likewise.extract(net, (rows, labels))
    assert view.outputs is not None
    assert view.outputs.labels.tolist() == labels.tolist()
    torch.testing.assert_close(view.values, net[:2](torch.tensor(rows).float()).detach())


def test_photographs_and_labels_in_one_column_are_data_as_keras_has_it() -> None:
    generator = np.random.default_rng(0)
    images, labels = generator.integers(0, 256, (9, 8, 8, 3), dtype=np.uint8), generator.integers(0, 4, (9, 1))
    data = as_data((images, labels))
    assert data.labels.tolist() == labels[:, 0].tolist()
    (shown, _), *_ = data.batches(9)
    np.testing.assert_allclose(shown.permute(0, 2, 3, 1).numpy() * 255, images, atol=1e-4)
