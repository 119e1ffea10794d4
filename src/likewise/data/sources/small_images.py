"""Small images that fit in memory: digits (embedded), MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100.

CIFAR is downloaded in its binary form: the better known one is a pickle, and nothing is unpickled.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

from likewise._base.arrays import Array
from likewise._base.files import check_regular, reading
from likewise._base.formats.array_files import read_npz
from likewise._base.optional import prepare_torchvision, require
from likewise.data.address import data_source
from likewise.data.inputs import Data
from likewise.data.sources.locations import cache_folder, downloading, existing_folder, find, missing
from likewise.errors import InputError
from likewise.wordnet import classes, lists

_SITE = "https://www.cs.toronto.edu/~kriz/"
_BINARY = {  # archive, its md5, folder, files by split, bytes of label before each image
    "cifar10": (
        "cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        "cifar-10-batches-bin",
        {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]},
        1,
    ),
    "cifar100": (
        "cifar-100-binary.tar.gz",
        "03b5dce01913d631647c71ecec9e9cb8",
        "cifar-100-binary",
        {"train": ["train.bin"], "test": ["test.bin"]},
        2,
    ),
}
_DAMAGED = "{path} is not a whole file of images: {{reason}}. Fetch it again."
_DIGITS = tuple("0123456789")
Arrays = tuple[Array, Array]


@data_source(name="digits", domain="image", splits=("test", "train", "all"), built_in=True)
def digits(split: str, root: str | None = None) -> Data:
    """1,797 handwritten digits of 8 × 8 pixels, part of this package; every fifth for testing.

    From Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998, by scikit-learn.
    """
    with np.load(str(files("likewise.data") / "digits.npz")) as stored:
        images, labels = stored["images"], stored["labels"]
    for_testing = np.arange(len(labels)) % 5 == 4
    rows = {"test": for_testing, "train": ~for_testing, "all": slice(None)}[split]
    pixels = torch.from_numpy(images[rows]).float()[:, None] / 16
    return Data(f"digits:{split}", "image", pixels, labels[rows], _DIGITS)


@data_source(name="mnist", domain="image", splits=("test", "train"))
def mnist(split: str, root: str | None = None) -> Data:
    """Handwritten digits, 28 × 28: 60,000 for training, 10,000 for testing."""
    images, labels = _idx("mnist", "MNIST", split, root)
    return _data("mnist", split, images[:, None], labels)


@data_source(name="fashion-mnist", domain="image", splits=("test", "train"))
def fashion_mnist(split: str, root: str | None = None) -> Data:
    """Pieces of clothing, 28 × 28: 60,000 for training, 10,000 for testing."""
    images, labels = _idx("fashion_mnist", "FashionMNIST", split, root)
    return _data("fashion-mnist", split, images[:, None], labels)


@data_source(name="cifar10", domain="image", splits=("test", "train"))
def cifar10(split: str, root: str | None = None) -> Data:
    """Photographs of 10 kinds of things, 32 × 32: 50,000 for training, 10,000 for testing."""
    files = ["cifar10_test/test.npz"]
    if split == "train":
        files = [f"cifar10_full/train_{i}.npz" for i in range(1, 6)]
    paths = [find(Path(file).name if root else file, root=root) for file in files]
    if all(paths):
        pairs = [_differences(path) for path in paths if path is not None]
        images, labels = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    else:
        images, labels = _binary("cifar10", split, root)
    return _data("cifar10", split, images, labels)


@data_source(name="cifar100", domain="image", splits=("test", "train"))
def cifar100(split: str, root: str | None = None) -> Data:
    """Photographs of 100 kinds of things, 32 × 32: 50,000 for training, 10,000 for testing."""
    return _data("cifar100", split, *_binary("cifar100", split, root))


def _data(name: str, split: str, images: Array, labels: Array) -> Data:
    pixels = torch.from_numpy(np.ascontiguousarray(images))
    class_list = classes(name) if name in lists() else None
    names, wnids = (class_list.names, class_list.wnids) if class_list else (_DIGITS, None)
    return Data(f"{name}:{split}", "image", pixels, labels.astype(np.int64), names, wnids)


def _differences(path: Path) -> Arrays:
    """CIFAR-10 as 2-D differences of (R - G, G, B - G) modulo 256, which zip shrinks well."""
    with reading(path, _DAMAGED.format(path=path)):
        stored = read_npz(path, ("residual", "y"))
        rows = np.cumsum(stored["residual"], axis=-1, dtype=np.uint8)
        images, labels = np.cumsum(rows, axis=-2, dtype=np.uint8), stored["y"]
        images[:, 0] += images[:, 1]
        images[:, 2] += images[:, 1]
        return images, labels.astype(np.int64)


def _binary(name: str, split: str, root: str | None) -> Arrays:
    archive, md5, folder, files, label_bytes = _BINARY[name]
    where = existing_folder(root, name) if root else find(folder)
    if where is None:
        utils = _torchvision("datasets.utils", to=f"download {name}")
        with downloading(name, f"the folder {folder} ({_SITE}{archive}, unpacked)"):
            utils.download_and_extract_archive(_SITE + archive, str(cache_folder()), md5=md5)
        where = cache_folder() / folder
    where = where / folder if (where / folder).is_dir() else where
    for file in files[split]:
        if not (where / file).exists():
            raise missing(name, f"the folder {folder} with {file} ({_SITE}{archive}, unpacked)")
        check_regular(where / file)
    raw = np.concatenate([np.fromfile(where / file, dtype=np.uint8) for file in files[split]])
    if len(raw) % (label_bytes + 3072):
        raise InputError(f"{where} is damaged: its size is no multiple of one image. Fetch it again.")
    records = raw.reshape(-1, label_bytes + 3072)
    return records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label_bytes - 1]


def _idx(name: str, torchvision_name: str, split: str, root: str | None) -> Arrays:
    path = existing_folder(root, name) / f"{name}.npz" if root else find(f"{name}/{name}.npz", f"{name}.npz")
    if path is not None and path.exists():
        with reading(path, _DAMAGED.format(path=path)):
            stored = read_npz(path, (f"x_{split}", f"y_{split}"))
            return stored[f"x_{split}"], stored[f"y_{split}"].astype(np.int64)
    datasets = _torchvision("datasets", to=f"read {name}")
    folder, train = Path(root) if root else find(torchvision_name), split == "train"
    folder = cache_folder() if folder is None else folder if root else folder.parent
    with downloading(name, f"the folder {torchvision_name} of torchvision, or {name}/{name}.npz"):
        downloaded = getattr(datasets, torchvision_name)(str(folder), train=train, download=True)
    return downloaded.data.numpy(), downloaded.targets.numpy()


def _torchvision(module: str, *, to: str) -> Any:
    prepare_torchvision()
    return require(f"torchvision.{module}", extra="vision", to=to)
