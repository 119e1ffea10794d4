"""Activations from files: what is read, and what is refused with the file's name."""

import numpy as np
import pytest
import torch

from likewise.views.array_files import read_arrays
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))


def test_a_pickle_is_refused(tmp_path) -> None:
    path = tmp_path / "acts.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert sentence(ValueError, read_arrays, [str(path)]) == (
        f"'{path}' holds pickled objects, which can run code when read. Save plain arrays with "
        "numpy.save or safetensors."
    )


class Trap:
    fired = False

    def __reduce__(self):
        return (setattr, (Trap, "fired", True))


@pytest.mark.parametrize("content", [Trap(), {"model": Trap()}, {"epoch": 3}])
def test_a_torch_file_that_is_not_plain_tensors_is_refused(tmp_path, content) -> None:
    path = tmp_path / "model.pt"
    torch.save(content, path)
    assert sentence(ValueError, read_arrays, [str(path)]) == (
        f"'{path}' holds pickled objects, which can run code when read. Save plain arrays with "
        "numpy.save or safetensors."
    )
    assert not Trap.fired


def test_a_torch_file_of_plain_tensors_is_read(tmp_path) -> None:
    torch.save({"a": torch.from_numpy(X), "b": torch.from_numpy(2 * X)}, tmp_path / "acts.pt")
    assert set(read_arrays([str(tmp_path / "acts.pt")])) == {"acts:a", "acts:b"}


def test_files_that_are_not_there_or_not_ours(tmp_path) -> None:
    assert sentence(ValueError, read_arrays, ["nowhere.npy"]) == ("no file 'nowhere.npy'. Check the path.")
    (tmp_path / "acts.csv").write_text("1,2")
    assert sentence(ValueError, read_arrays, [str(tmp_path / "acts.csv")]) == (
        f"'{tmp_path / 'acts.csv'}' is not a file of activations (.npy, .npz, .safetensors). Save the "
        "array with numpy.save."
    )
    np.savez(tmp_path / "acts.npz", early=X, late=X)
    assert sentence(ValueError, read_arrays, [f"{tmp_path / 'acts.npz'}:lat"]) == (
        f"no array 'lat' in '{tmp_path / 'acts.npz'}'. Did you mean 'late'?"
    )
