"""Damaged files: each is named in a sentence of ours, and none gives a wrong result."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from safetensors.torch import load_file, save_file

import likewise
from likewise._base.formats.array_files import read_npy, read_npz
from likewise.data.sources import planetoid
from likewise.errors import DamagedStoreWarning, InputError, LikewiseError
from likewise.networks import save
from likewise.views.array_files import read_arrays
from tests.fuzz.file_kinds import KINDS, FileKind
from tests.fuzz.files import fuzz, same

X = np.random.default_rng(0).normal(size=(6, 3))


def refusal(function: Any, *given: Any, **options: Any) -> str:
    with pytest.raises(LikewiseError) as error:
        function(*given, **options)
    return str(error.value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_refused_or_gives_what_it_held(kind: FileKind) -> None:
    if kind.name == "transformers":
        pytest.importorskip("transformers")
    if kind.name in ("graph, npz", "planetoid", "ogbn-arxiv", "flickr"):
        pytest.importorskip("torch_geometric")
    cases = list(fuzz(kind, each=8, seed=7))
    assert [case for case in cases if case.outcome in ("foreign", "wrong")] == []
    assert len({case.way for case in cases}) == 8


def test_the_fuzzer_sees_what_differs() -> None:
    assert same({"a": [X, "b"]}, {"a": [X.copy(), "b"]})
    assert not same(X, X + np.eye(6, 3) * 1e-16 + 1e-12)
    assert not same(np.zeros(2), -np.zeros(2))
    assert not same({"a": 1}, {"b": 1})


def test_the_fuzzer_catches_a_reader_that_lies(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "a").write_bytes(bytes(range(64)))

    lying = FileKind("lying", write, lambda folder: (folder / "a").read_bytes(), checked=True)
    outcomes = [case.outcome for case in fuzz(lying, each=8, seed=0)]
    assert set(outcomes) == {"wrong"}
    failing = FileKind("failing", write, lambda f: {64: 1}[len((f / "a").read_bytes())])
    assert "foreign" in [case.outcome for case in fuzz(failing, each=8, seed=0)]


# What is no file


@pytest.mark.parametrize("ending", [".npy", ".npz", ".pt", ".safetensors"])
def test_a_pipe_a_folder_and_a_device_are_named_as_such(tmp_path: Path, ending: str) -> None:
    pipe, folder, device = (tmp_path / f"{name}{ending}" for name in ("pipe", "folder", "device"))
    os.mkfifo(pipe)
    folder.mkdir()
    device.symlink_to("/dev/zero")
    for path, what in ((pipe, "a pipe"), (folder, "a folder"), (device, "a device")):
        sentence = f"{path} is {what}, not a file. Give the path of a file."
        assert refusal(read_arrays, [str(path)]) == sentence


@pytest.mark.parametrize(
    "load",
    [
        likewise.SimilarityMatrix.load,
        likewise.LayerMatrix.load,
        likewise.classes.ClassSimilarity.load,
    ],
)
def test_no_matrix_is_read_from_a_pipe(tmp_path: Path, load: Any) -> None:
    os.mkfifo(tmp_path / "m")
    sentence = f"{tmp_path / 'm'} is a pipe, not a file. Give the path of a file."
    assert refusal(load, tmp_path / "m") == sentence
    assert refusal(load, tmp_path / "n") == (f"there is no file {tmp_path / 'n'}. Check the path.")


def test_a_pipe_among_images_is_named(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    os.mkfifo(tmp_path / "cat" / "1.png")
    data = likewise.dataset(f"imagefolder:{tmp_path}")
    assert refusal(data.inputs.pictures, slice(1)) == refusal(lambda: data.inputs.shape)
    assert refusal(lambda: data.probe) == (
        f"{tmp_path / 'cat' / '1.png'} is a pipe, not a file. Give the path of a file."
    )


def test_empty_and_foreign_torch_files_are_not_called_pickles(tmp_path: Path) -> None:
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "text.pt").write_text("root:x:0:0\n")
    for name, what in (
        ("empty.pt", "is empty"),
        ("text.pt", "is not a whole torch file: it begins like none"),
    ):
        sentence = f"{tmp_path / name} {what}. Fetch it again."
        assert refusal(read_arrays, [str(tmp_path / name)]) == sentence
        assert refusal(likewise.network, f"zoo:lenet@{tmp_path / name}") == sentence


# Sizes


def header(shape: str, dtype: str = "<f8") -> bytes:
    words = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words


def test_a_header_that_claims_terabytes_is_refused_by_its_claim(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(header("(1000000, 1000000)") + bytes(8))
    assert refusal(read_arrays, [str(path)]) == (
        f"cannot read '{path}': its header claims an array (1000000, 1000000) of float64 "
        "(8,000,000,000,000 bytes), and 8 bytes follow. Save the array again."
    )


@pytest.mark.parametrize(("shape", "count"), [("(2, 3)", 7), ("(2, 3)", 5), ("(-1, 3)", 6), ("(2, 3, 0)", 1)])
def test_a_header_has_to_agree_with_what_follows(tmp_path: Path, shape: str, count: int) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(header(shape) + bytes(8 * count))
    assert refusal(read_arrays, [str(path)]).startswith(f"cannot read '{path}': its header claims ")


def test_a_small_archive_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from likewise.cli import main

    path, small = tmp_path / "bomb.npz", tmp_path / "a.npy"
    np.savez_compressed(path, a=np.zeros((30_000, 100)))
    np.save(small, X)
    assert path.stat().st_size < 100_000
    sentence = f"'{path}' would take 24 MB of memory, and the limit is 12 MB. Save fewer rows or columns."
    assert refusal(read_arrays, [str(path)], memory=12_000_000) == sentence
    with pytest.raises(SystemExit):
        main(["compare", str(path), str(small), "--memory", "12MB"])
    assert capsys.readouterr().err == f"likewise: {sentence}\n"
    assert read_arrays([str(path)])["bomb"].shape == (30_000, 100)


@pytest.mark.parametrize("ending", [".npz", ".pt"])
def test_an_archive_larger_than_memory_is_refused_before_it_is_read(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"bomb{ending}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(5_000_000))
    monkeypatch.setattr("likewise._base.formats.array_files.free_memory", lambda: 4_000_000)
    assert refusal(read_arrays, [str(path)]) == (
        f"'{path}' would take 5 MB of memory, and 4 MB are free. Save fewer rows or columns."
    )


def test_a_tensor_that_repeats_one_number_a_million_times_is_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save(torch.zeros(1).expand(1_000_000), tmp_path / "a.pt")
    monkeypatch.setattr("likewise._base.formats.array_files.free_memory", lambda: 3_000_000)
    assert refusal(read_arrays, [str(tmp_path / "a.pt")]) == (
        f"'{tmp_path / 'a.pt'}' would take 4 MB of memory, and 3 MB are free. Save fewer rows or columns."
    )


def test_a_tensor_without_numbers_of_its_own_is_refused(tmp_path: Path) -> None:
    torch.save(torch.eye(3).to_sparse(), tmp_path / "a.pt")
    assert refusal(read_arrays, [str(tmp_path / "a.pt")]) == (
        f"{tmp_path / 'a.pt'} is not a whole torch file: it holds a tensor of layout "
        "torch.sparse_coo, not plain numbers. Fetch it again."
    )


def test_a_table_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dev.tsv.gz"
    path.write_bytes(gzip.compress(b"sentence\tlabel\n" + b"a\t1\n" * 2_000_000))
    monkeypatch.setattr("likewise.data.sources.tables.free_memory", lambda: 8_000_000)
    assert refusal(likewise.dataset, f"sst2:{tmp_path}/:dev") == (
        f"{path} unpacks to more than 0.001 GB, more than is read of it. Save fewer lines."
    )


def test_an_image_too_narrow_for_a_square_is_refused(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "cat").mkdir()
    Image.new("RGB", (40_000, 1)).save(tmp_path / "cat" / "1.png")
    data = likewise.dataset(f"imagefolder:{tmp_path}", size=64)
    assert refusal(data.inputs.__getitem__, slice(1)) == (
        f"{tmp_path / 'cat' / '1.png'} is 40000 × 1 pixels, too narrow to take a square from its middle. Remove it."
    )


# Arrays are read as numpy reads them


@pytest.mark.parametrize(
    "array",
    [
        X,
        np.asfortranarray(X),
        X.astype(">f4"),
        np.zeros((0, 3)),
        np.array(3.5),
        np.array("words"),
        np.arange(6, dtype=np.int8).reshape(1, 2, 3),
        X > 0,
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", a=array)
    np.savez_compressed(tmp_path / "b.npz", a=array)
    for found in (
        read_npy(tmp_path / "a.npy"),
        read_npz(tmp_path / "a.npz")["a"],
        read_npz(tmp_path / "b.npz", ["a", "b"])["a"],
    ):
        expected = np.load(tmp_path / "a.npy")
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype.newbyteorder("=")
        assert np.array_equal(found, expected)


def test_an_archive_whose_list_was_lost_is_not_an_empty_one(tmp_path: Path) -> None:
    """The record at its end says how long the list is: zeroed or shortened, arrays would be missing without a word."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(6.0), b=np.ones(3))
    whole = path.read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    size = int.from_bytes(whole[end + 12 : end + 16], "little")
    first, second = whole.index(b"PK\x01\x02"), whole.rindex(b"PK\x01\x02")
    broken = [whole[: end + 12] + kept.to_bytes(4, "little") + bytes(4) + whole[end + 20 :] for kept in (0, size // 2)]
    # the second entry as a comment on the first
    broken.append(whole[: first + 32] + (end - second).to_bytes(2, "little") + whole[first + 34 :])
    for data in broken:
        path.write_bytes(data)
        with pytest.raises(InputError) as error:
            read_arrays([str(path)])
        assert str(error.value) == (
            f"cannot read '{path}': its list of arrays is empty, not whole or does not belong to it. "
            "Save the array again."
        )


def test_an_archive_of_torch_without_checksums_is_read(tmp_path: Path) -> None:
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"a": torch.eye(3)}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(before)
    assert torch.equal(read_arrays([str(tmp_path / "a.pt")])["a"], torch.eye(3))


# Checksums


def test_one_changed_bit_of_saved_weights_is_found(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save(likewise.network("zoo:lenet"), path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    sentence = f"{path} is not a whole safetensors file. Fetch it again."
    assert refusal(likewise.network, str(path)) == sentence
    assert refusal(likewise.network, f"zoo:lenet@{path}") == sentence


@pytest.mark.parametrize("word", [b'"checksum"', b'"sealed"'])
def test_a_damaged_checksum_does_not_pass_for_none(tmp_path: Path, word: bytes) -> None:
    path = tmp_path / "w.safetensors"
    save(likewise.network("zoo:lenet"), path)
    content = path.read_bytes()
    assert content.count(word) == 1
    path.write_bytes(content.replace(word, word.replace(b"e", b"E", 1)))
    sentence = f"{path} is not a whole safetensors file. Fetch it again."
    assert refusal(likewise.network, str(path)) == sentence


def test_weights_without_a_checksum_are_read(tmp_path: Path) -> None:
    net = likewise.network("zoo:lenet", seed=3)
    save(net, tmp_path / "ours.safetensors")
    about = {"likewise": json.dumps({"network": "zoo:lenet"})}
    save_file(load_file(tmp_path / "ours.safetensors"), tmp_path / "old.safetensors", about)
    again = likewise.network(str(tmp_path / "old.safetensors"))
    assert torch.equal(again.fc.weight, net.fc.weight)


# Data


def test_sparse_features_whose_indices_lead_outside_are_refused(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    matrix.indices[0] = 10**6  # scipy itself would write there
    path = tmp_path / "ind.cora.x"
    path.write_bytes(pickle.dumps(matrix, protocol=2))
    sentence = refusal(planetoid._read_part, path)
    assert sentence.startswith(f"{path} is not a file of Planetoid: ")


def test_a_graph_kept_as_a_pickle_is_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch_geometric")
    next(kind for kind in KINDS if kind.name == "flickr").write(tmp_path)
    (tmp_path / "processed").mkdir()

    class Harm:
        def __reduce__(self) -> Any:
            return Path(tmp_path / "ran").touch, ()

    torch.save(Harm(), tmp_path / "processed" / "data.pt")
    assert len(likewise.dataset(f"flickr:{tmp_path}/:all")) == 30
    assert not (tmp_path / "ran").exists()


def test_a_list_of_images_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    next(kind for kind in KINDS if kind.name == "tiny-imagenet").write(tmp_path)
    table = tmp_path / "val" / "val_annotations.txt"
    table.write_text("../../../secret.png\tn02123045\n")
    assert refusal(likewise.dataset, f"tiny-imagenet:{tmp_path}:val") == (
        f"{table} names '../../../secret.png', which is no file beside it. Fetch it again."
    )


def test_a_line_without_a_label_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mnli_validation_matched.tsv.gz"
    path.write_bytes(gzip.compress(b"premise\thypothesis\tlabel\na\tb\t1\nc\n"))
    assert refusal(likewise.dataset, f"mnli:{tmp_path}/:dev") == (
        f"line 3 of {path} is too short. Give premise, hypothesis, label in every line, with tabs between."
    )


def test_a_damaged_checkpoint_is_named_and_not_trained_on(tmp_path: Path) -> None:
    how = {"epochs": 1, "out": tmp_path}
    likewise.train("zoo:mlp", "digits:train[:40]", **how)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.warns(DamagedStoreWarning) as warnings:
        likewise.train("zoo:mlp", "digits:train[:40]", **how)
    assert str(warnings[0].message) == (
        f"{path} is no checkpoint of a training, or it is damaged; the training starts over."
    )


def test_a_note_of_a_store_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    net, data = likewise.network("zoo:mlp,size=8,channels=1"), likewise.dataset("digits:test[:20]")
    view = likewise.extract(net, data, store=tmp_path / "store")
    (note,) = (tmp_path / "store" / "views").glob("*.json")
    precious = tmp_path / "precious.safetensors"
    precious.write_bytes(b"precious")
    for name in ("../../precious.safetensors", str(precious), "9" * 400):
        files = dict.fromkeys(json.loads(note.read_text()), name)
        note.write_text(json.dumps(files))
        again = likewise.extract(net, data, store=tmp_path / "store")
        assert np.array_equal(np.asarray(again), np.asarray(view))
    assert precious.read_bytes() == b"precious"


def test_a_leftover_without_a_process_is_left_alone(tmp_path: Path) -> None:
    import socket

    (tmp_path / "views").mkdir()
    odd = tmp_path / "views" / f"{socket.gethostname()}-x-y.partial"
    odd.touch()
    net, data = likewise.network("zoo:mlp,size=8,channels=1"), likewise.dataset("digits:test[:20]")
    likewise.extract(net, data, store=tmp_path)
    assert odd.exists()


def test_an_archive_that_unpacks_to_a_thousand_times_its_size_is_refused_without_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    words = header(f"({2**29 // 8},)")
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w") as file,
    ):
        file.write(words)
        for _ in range(2**29 // 2**24):
            file.write(bytes(2**24))
    sentence = refusal(read_arrays, [str(path)])
    assert sentence.startswith(f"'{path}' has ")
    assert sentence.endswith(
        " and would unpack to 537 MB, more than such a file holds. Save it without compression where you trust it."
    )
    assert refusal(likewise.SimilarityMatrix.load, path) == sentence
