"""Image data by address: what comes in, in which order, and what is said where it is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.data import Data, ImageFiles, Images, held_out
from likewise.errors import InputError, MissingDataError, MissingDependencyError, UnknownNameError
from likewise.wordnet import classes
from tests.conftest import data_root
from tests.helpers import sentence as refusal


def grey(n: int = 4, channels: int = 3, size: int = 8) -> torch.Tensor:
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(0))


def folder_of_images(root: Path, classes: dict[str, int], size: tuple[int, int] = (12, 10)) -> Path:
    image = pytest.importorskip("PIL.Image")
    for number, (name, count) in enumerate(classes.items()):
        (root / name).mkdir(parents=True)
        for i in range(count):
            image.new("RGB", size, (10 * number, 20 * i, 0)).save(root / name / f"{i}.png")
    return root


def test_digits_are_embedded() -> None:
    digits = likewise.dataset("digits:all")
    assert (len(digits), digits.inputs.shape[1:], digits.classes[3]) == (1797, (1, 8, 8), "3")
    sklearn = pytest.importorskip("sklearn.datasets").load_digits()
    assert np.array_equal(digits.inputs[:, 0].numpy() * 16, sklearn.images)
    assert np.array_equal(digits.labels.numpy(), sklearn.target)


def test_the_splits_of_digits_share_nothing_and_leave_nothing_out() -> None:
    train, test = likewise.dataset("digits:train"), likewise.dataset("digits:test")
    assert len(train) + len(test) == 1797
    rows = {tuple(image.flatten().tolist()) for image in train.inputs}
    assert not rows & {tuple(image.flatten().tolist()) for image in test.inputs}


def test_cifar10_is_the_published_one(real_data: Path) -> None:
    data_root("cifar10_small")
    with np.load(data_root("cifar10_small", "cifar10_test_first1000.npz")) as plain:
        pixels, labels = plain["x"], plain["y"]
    data = likewise.dataset("cifar10:test[:1000]")
    assert np.array_equal((data.inputs[:] * 255).round().byte().permute(0, 2, 3, 1), pixels)
    assert np.array_equal(data.labels, labels)
    assert data.classes == tuple(plain_names())
    assert data.wnids is not None
    assert data.wnids[data.classes.index("dog")] == "n02084071"
    assert real_data.exists()


def plain_names() -> list[str]:
    with np.load(data_root("cifar10_small", "cifar10_test_first1000.npz")) as plain:
        return [str(name) for name in plain["class_names"]]


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("address", "n", "mean", "std"),
    [("mnist:train", 60_000, 0.1307, 0.3081), ("fashion-mnist:train", 60_000, 0.2860, 0.3530)],
)
def test_mnist_and_its_fashion_are_the_published_ones(address: str, n: int, mean: float, std: float) -> None:
    data = likewise.dataset(address)
    assert len(data) == n
    assert float(data.inputs[:].mean()) == pytest.approx(mean, abs=5e-5)
    assert float(data.inputs[:].std()) == pytest.approx(std, abs=5e-5)
    assert torch.bincount(data.labels).min() > 5000
    assert (data.wnids is None) == (address == "mnist:train")


def test_class_names_of_cifar100_are_those_of_the_list() -> None:
    rows = data_root("class_lists", "cifar100.tsv").read_text().splitlines()[1:]
    assert tuple(row.split("\t")[1] for row in rows) == classes("cifar100").names


def binary_cifar(root: Path, name: str, label_bytes: int, files: list[str]) -> np.ndarray:
    records = np.random.default_rng(0).integers(0, 10, (4, label_bytes + 3072), dtype=np.uint8)
    (root / name).mkdir()
    for file in files:
        records.tofile(root / name / file)
    return records


def test_cifar100_is_read_in_its_binary_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    records = binary_cifar(tmp_path, "cifar-100-binary", 2, ["test.bin"])
    data = likewise.dataset("cifar100")
    assert data.labels.tolist() == records[:, 1].tolist()  # the second byte is the fine label
    assert data.wnids is not None
    assert data.wnids[data.classes.index("seal")] == "n02076196"  # the animal, not the wax
    assert data.inputs[0, 1, 2, 3] == records[0, 2 + 1024 + 2 * 32 + 3] / np.float32(255)
    assert data.classes[0] == "apple"


def test_cifar10_is_read_in_its_binary_form_too(tmp_path: Path) -> None:
    records = binary_cifar(tmp_path, "cifar-10-batches-bin", 1, [f"data_batch_{i}.bin" for i in range(1, 6)])
    data = likewise.dataset(f"cifar10:{tmp_path}:train")
    assert data.labels.tolist() == records[:, 0].tolist() * 5


@pytest.mark.usefixtures("vision")
def test_data_that_is_nowhere_says_what_to_put_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setattr("urllib.request._opener", None)  # an earlier request would have settled the proxy
    assert refusal(MissingDataError, likewise.dataset, "cifar100") == (
        f"cifar100 was not found in {tmp_path}/mine or {tmp_path}/likewise and could not be "
        "downloaded (<urlopen error [Errno 111] Connection refused>). Put the folder "
        "cifar-100-binary (https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz, unpacked) "
        "there, or set LIKEWISE_DATA to the folder that holds it."
    )


@pytest.mark.usefixtures("vision")
def test_a_download_needs_torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "torchvision.datasets", None)
    assert refusal(MissingDependencyError, likewise.dataset, "mnist") == (
        "to read mnist, torchvision.datasets is needed: pip install 'likewise[vision]'."
    )


@pytest.mark.parametrize(
    ("address", "kind", "sentence"),
    [
        ("cifar11", UnknownNameError, "no data, file or folder is named 'cifar11'. Did you mean 'cifar10'?"),
        ("photoz", UnknownNameError, "no data, file or folder is named 'photoz'. `likewise data` lists the names."),
        (
            "digits:tset",
            InputError,
            "digits has no split 'tset', asked for by 'digits:tset'. Did you mean 'test'? It has test, train, all.",
        ),
        ("digits[5]", InputError, "[5] of 'digits[5]' is not a slice. Write [start:stop] or [start:stop:step]."),
        (
            "imagefolder",
            InputError,
            "'imagefolder' names no folder. Write imagefolder:PATH, where PATH holds the images.",
        ),
        (
            "imagefolder:/nowhere",
            MissingDataError,
            "/nowhere is no folder, so imagefolder cannot be read from it. Give the folder of the "
            "images: imagefolder:PATH.",
        ),
        (
            "",
            InputError,
            "'' is not a data address. Write name, name:split, name:PATH or "
            "name:split[start:stop], as in 'cifar10:test[:1000]'.",
        ),
    ],
)
def test_an_address_that_leads_nowhere_says_so(address: str, kind: type[Exception], sentence: str) -> None:
    assert refusal(kind, likewise.dataset, address) == sentence


def test_an_unknown_option_is_refused() -> None:
    assert refusal(InputError, likewise.dataset, "digits", sise=3) == (
        "digits has no option 'sise'. Did you mean 'size'? It takes size, crop, interpolation, by, held_out, seed."
    )
    assert refusal(InputError, likewise.dataset, "sentences,size=3") == (
        "'sentences:test' holds text inputs, and a size is for images. Leave it out."
    )


def test_a_folder_of_images_is_read_class_by_class(tmp_path: Path) -> None:
    folder_of_images(tmp_path, {"cat": 2, "ant": 1})
    data = likewise.dataset(f"imagefolder:{tmp_path}", size=10)
    assert (data.classes, data.labels.tolist()) == (("ant", "cat"), [0, 1, 1])
    # "cat" was painted first (red 0), its second image with green 20
    assert (data.inputs[[0, 2]][:, :2, 5, 5] * 255).round().tolist() == [[10, 0], [0, 20]]
    assert data.inputs[:].shape == (3, 3, 10, 10)
    assert isinstance(data[1:].inputs, ImageFiles)


def test_splits_of_a_folder_are_folders(tmp_path: Path) -> None:
    folder_of_images(tmp_path / "train", {"a": 3, "b": 3})
    folder_of_images(tmp_path / "val", {"a": 1, "b": 1})
    assert len(likewise.dataset(f"imagefolder:{tmp_path}:train")) == 6
    assert len(likewise.dataset(f"imagefolder:{tmp_path}")) == 2
    (tmp_path / "val").rename(tmp_path / "other")
    assert refusal(MissingDataError, likewise.dataset, f"imagefolder:{tmp_path}:val") == (
        f"{tmp_path} has no folder 'val'. It holds other, train; name one of them."
    )


def test_the_middle_of_a_larger_image_is_taken(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    striped = np.zeros((64, 128, 3), dtype=np.uint8)
    striped[:, 32:96] = 255  # white in the middle square
    image.fromarray(striped).save(tmp_path / "a" / "0.png")
    pixels = likewise.dataset(f"imagefolder:{tmp_path}", size=56).inputs[:]
    assert pixels.shape == (1, 3, 56, 56)
    assert float(pixels.min()) == 1.0  # 64 is 56 · 8/7: cropped, not scaled


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    folder_of_images(tmp_path, {"a": 1})
    (tmp_path / "a" / "1.png").write_bytes(b"no image")
    data = likewise.dataset(f"imagefolder:{tmp_path}", size=10)
    with pytest.raises(InputError) as error:
        data.inputs[:]
    assert str(error.value) == f"{tmp_path}/a/1.png cannot be read as an image. Remove or repair it."


def test_imagenet_is_ordered_by_wordnet_id_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DATA", str(data_root()))
    rows = data_root("class_lists", "imagenet1k.tsv").read_text().splitlines()[1:]
    wnids = [row.split("\t")[1] for row in rows]
    folder_of_images(tmp_path / "val", dict.fromkeys(reversed(wnids), 1), (8, 8))
    data = likewise.dataset(f"imagenet1k:{tmp_path}", size=8)
    assert data.wnids == tuple(wnids)
    assert (data.classes[0], data.classes[999]) == ("tench", rows[999].split("\t")[2])


def test_a_part_of_imagenet_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    folder_of_images(tmp_path, {"n01440764": 1})
    assert refusal(InputError, likewise.dataset, f"imagenet1k:{tmp_path}") == (
        f"imagenet1k:{tmp_path}:val has 1 class folders, not 1000. Each class is a folder named by "
        "its WordNet id, such as n01440764."
    )


def test_the_parts_of_imagenet100_are_put_together(tmp_path: Path) -> None:
    wnids = [f"n{i:08d}" for i in range(100)]
    folder_of_images(tmp_path / "train.X1", dict.fromkeys(wnids[50:], 1), (8, 8))
    folder_of_images(tmp_path / "train.X2", dict.fromkeys(wnids[:50], 1), (8, 8))
    data = likewise.dataset(f"imagenet100:{tmp_path}:train", size=8)
    assert data.wnids == tuple(wnids)


def test_imagenet100_is_looked_for_where_data_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert refusal(MissingDataError, likewise.dataset, "imagenet100") == (
        f"imagenet100 was not found in {tmp_path} or {tmp_path}/cache/likewise. Put the folder imagenet100, with "
        "train.X1 to train.X4 and val.X, or train and val, there, or set LIKEWISE_DATA to the folder that holds it."
    )
    folder_of_images(tmp_path / "imagenet100" / "val.X", {f"n{i:08d}": 1 for i in range(100)}, (8, 8))
    assert len(likewise.dataset("imagenet100:val", size=8)) == 100
    monkeypatch.chdir(tmp_path)
    assert len(likewise.dataset("imagenet100:imagenet100:val[:7]", size=8)) == 7  # a folder without a slash


def test_mini_imagenet_is_split_by_class(tmp_path: Path, real_data: Path) -> None:
    rows = (real_data / "class_lists/mini_imagenet_ravi_larochelle.tsv").read_text().splitlines()
    split_of = {row.split("\t")[1]: row.split("\t")[0] for row in rows[1:]}
    folder_of_images(tmp_path, dict.fromkeys(split_of, 1), (8, 8))
    for split, count in (("train", 64), ("val", 16), ("test", 20), ("all", 100)):
        data = likewise.dataset(f"mini-imagenet:{tmp_path}:{split}", size=8)
        assert len(data.classes) == count
        assert data.wnids is not None
        assert split == "all" or {split_of[str(wnid)] for wnid in data.wnids} == {split}


def test_tiny_imagenet_is_read_as_it_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "wnids.txt").write_text("n02\nn01\n")
    (tmp_path / "words.txt").write_text("n01\tcat, true cat\nn02\tdog\n")
    folder_of_images(tmp_path / "train", {"n01/images": 2, "n02/images": 1}, (64, 64))
    folder_of_images(tmp_path / "val", {"images": 3}, (64, 64))
    (tmp_path / "val" / "val_annotations.txt").write_text(
        "0.png\tn01\t0\t0\t9\t9\n1.png\tn02\t0\t0\t9\t9\n2.png\tn01\t0\t0\t9\t9\n"
    )
    train = likewise.dataset(f"tiny-imagenet:{tmp_path}:train")
    assert (train.classes, train.wnids) == (("dog", "cat"), ("n02", "n01"))
    assert train.labels.tolist() == [0, 1, 1]
    val = likewise.dataset(f"tiny-imagenet:{tmp_path}")
    assert val.labels.tolist() == [0, 1, 1]
    assert (val.inputs[:][:, 1, 0, 0] * 255).round().tolist() == [20, 0, 40]


def test_a_slice_is_a_slice() -> None:
    whole = likewise.dataset("digits:test")
    part = likewise.dataset("digits:test[10:20:2]")
    assert part.name == "digits:test[10:20:2]"
    assert torch.equal(part.inputs, whole.inputs[10:20:2])
    assert torch.equal(part.labels, whole.labels[10:20:2])
    assert whole[[1, 3]].name == "digits:test[2 of 359]"
    assert torch.equal(whole[whole.labels == 4].labels.unique(), torch.tensor([4]))


def test_a_probe_is_the_same_for_the_same_inputs_in_the_same_order() -> None:
    images = (grey() * 255).byte()
    as_bytes = Data("a", "image", images, [0, 1, 0, 1], ("x", "y"))
    as_floats = Data("b", "image", images.float() / 255, [1, 1, 1, 1], ("x", "y"))
    assert as_bytes.probe == as_floats.probe
    assert as_bytes.probe != as_bytes[[1, 0, 2, 3]].probe
    assert as_bytes.probe != as_bytes[:3].probe


def test_a_probe_of_files_is_of_their_content(tmp_path: Path) -> None:
    folder_of_images(tmp_path, {"a": 2})
    before = likewise.dataset(f"imagefolder:{tmp_path}", size=8).probe
    assert before == likewise.dataset(f"imagefolder:{tmp_path}", size=8).probe
    folder_of_images(tmp_path / "more", {"a": 3})
    (tmp_path / "more/a/2.png").rename(tmp_path / "a/1.png")
    (tmp_path / "more/a/0.png").unlink()
    (tmp_path / "more/a/1.png").unlink()
    (tmp_path / "more/a").rmdir()
    (tmp_path / "more").rmdir()
    assert before != likewise.dataset(f"imagefolder:{tmp_path}", size=8).probe


def test_batches_hold_every_input_once_in_the_order_of_the_seed() -> None:
    data = likewise.dataset("digits:test")
    shuffled = [labels for _, labels in data.batches(100, shuffle=1)]
    assert [len(labels) for labels in shuffled] == [100, 100, 100, 59]
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.cat(shuffled), data.labels[order])
    inputs = torch.cat([images for images, _ in data.batches(100, shuffle=1)])
    assert torch.equal(inputs, data.inputs[order])


def test_data_iterates_in_batches() -> None:
    data = likewise.dataset("digits:test")
    assert [len(labels) for _, labels in data] == [256, 103]
    assert data[7].labels.tolist() == [int(data.labels[7])]


def test_bytes_are_shown_as_floats() -> None:
    images = torch.tensor([[[[0, 51], [102, 255]]]], dtype=torch.uint8)
    data = Data("a", "image", images, [0], ("x",))
    assert isinstance(data.inputs, Images)
    shown, _ = next(data.batches(1))
    assert shown.flatten().tolist() == pytest.approx([0, 0.2, 0.4, 1])


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (
            torch.tensor([-2.0, 2.5]).repeat(4, 3, 8, 4),
            "the images of 'mine' run from -2 to 2.5, not within [0, 1]. Divide bytes by 255, and "
            "leave normalisation to the network.",
        ),
        (
            torch.tensor([0.0, 255.0]).repeat(4, 3, 8, 4),
            "the images of 'mine' run from 0 to 255, not within [0, 1]. Divide bytes by 255, and "
            "leave normalisation to the network.",
        ),
        (
            grey().permute(0, 2, 3, 1),
            "the images of 'mine' have shape (4, 8, 8, 3), not (n, channels, height, width) with 1 "
            "or 3 channels. Move the channels forward: images.permute(0, 3, 1, 2).",
        ),
        (
            grey()[:, 0],
            "the images of 'mine' have shape (4, 8, 8), not (n, channels, height, width) with 1 or "
            "3 channels. Give one image per row.",
        ),
        (grey().long(), "the images of 'mine' are torch.int64. Give bytes (uint8), or floats in [0, 1]."),
    ],
)
def test_images_of_the_wrong_size_or_range_are_refused(images: torch.Tensor, sentence: str) -> None:
    assert refusal(InputError, Data, "mine", "image", images, [0, 0, 0, 0], ("x",)) == sentence


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        ([0, 1, 2, 1], "numbers from 0 to 2"),
        ([0, -1, 1, 1], "numbers from -1 to 1"),
        ([0, 1], "int64 of shape (2,)"),
        ([0.5, 1.0, 1.0, 0.0], "float64 of shape (4,)"),
    ],
)
def test_labels_out_of_range_are_refused(labels: list[float], what: str) -> None:
    assert refusal(InputError, Data, "mine", "image", grey(), labels, ("x", "y")) == (
        f"the labels of 'mine' must be 4 whole numbers from 0 to 1, got {what}. Give one class index per input."
    )


def test_ids_that_do_not_match_the_classes_are_refused() -> None:
    assert refusal(InputError, Data, "mine", "image", grey(), [0] * 4, ("x", "y"), wnids=("n01",)) == (
        "'mine' has 2 classes and 1 WordNet ids. Give one id per class, None where there is none."
    )


def test_batches_of_nothing_are_refused() -> None:
    assert refusal(InputError, next, likewise.dataset("digits").batches(0)) == "batch_size is 0. Give at least 1."


def test_the_held_out_split_is_found() -> None:
    assert held_out("cifar10") == "cifar10:test"
    assert held_out("cifar10:train") is None
