"""Sealed files: tensors of any dtype come back, damage anywhere is noticed, files of before are read."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import likewise
from likewise._base.hashing import as_bytes
from likewise._base.sealed import Stream, Writer, read, read_metadata, verify, write
from likewise.errors import StoreError
from likewise.work.store import Store
from tests.helpers import sentence

OLD = Path(__file__).parent / "old_seals"  # written by the two forms of before, at commit bfeb874
TENSORS = {
    "labels": torch.arange(5),
    "half": torch.arange(3).half(),
    "values": torch.arange(15.0).view(5, 3),
    "wide": torch.arange(15.0).double().view(3, 5).T,
    "count": torch.tensor(7),
    "mask": torch.tensor([True, False, True]),
    "empty": torch.zeros(0, 4),
    "eighth": torch.arange(3.0).to(torch.float8_e5m2),
    "complex": torch.tensor([1 + 2j]),
}
NO_MATCH = "it does not match its checksum"


def test_the_disk_has_a_file_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, int]] = []
    named: list[tuple[int, int]] = []
    sync, rename = os.fsync, Path.replace

    def note_sync(file: int) -> None:
        sync(file)
        synced.append((os.fstat(file).st_ino, os.fstat(file).st_size))

    def note_name(path: Path, target: Path) -> Path:
        named.append((path.stat().st_ino, path.stat().st_size))
        assert named[-1] in synced
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_name)
    with Store(tmp_path / "store") as store:
        store.artifacts("draws").put("key", {"scores": torch.eye(3)}, {})
    likewise.extract("zoo:mlp,size=8,channels=1", "digits:test[:20]", store=tmp_path / "views")
    assert len(named) >= 4  # of both stores the marker, an artifact, a view and its note


def test_tensors_of_every_dtype_come_back_with_their_metadata(tmp_path: Path) -> None:
    facts = {"attack": "pgd", "note": "ü" * 3000}
    path = write(tmp_path / "key", TENSORS, facts)
    assert path == tmp_path / "key.safetensors"
    tensors, metadata = read(path)
    assert metadata == verify(path) == read_metadata(path) == facts
    for stored in (tensors, load_file(path)):  # other tools read it too
        assert set(stored) == set(TENSORS)
        for name, values in TENSORS.items():
            assert (stored[name].dtype, stored[name].shape) == (values.dtype, values.shape)
            assert as_bytes(stored[name]) == as_bytes(values)


def test_arrays_of_numpy_and_tensors_that_share_memory_are_written(tmp_path: Path) -> None:
    rows = np.arange(6.0).reshape(2, 3).T
    rows.flags.writeable = False
    shared = torch.arange(4)
    tensors, _ = read(write(tmp_path / "a.safetensors", {"rows": rows, "one": shared, "two": shared[1:]}, {}))
    np.testing.assert_array_equal(tensors["rows"].numpy(), rows)
    assert (tensors["one"].tolist(), tensors["two"].tolist()) == ([0, 1, 2, 3], [1, 2, 3])


def test_many_tensors_have_room_in_the_header(tmp_path: Path) -> None:
    many = {f"layer{i}.{'x' * 60}": torch.full((2, 2), float(i)) for i in range(300)}
    tensors, _ = read(write(tmp_path / "net", many, {}))
    assert len(tensors) == 300
    assert all(torch.equal(values, many[name]) for name, values in tensors.items())


def test_a_header_that_outgrows_its_room_is_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {}, Writer(tmp_path))
    stream.append("values", torch.zeros(2, 2))
    with pytest.raises(StoreError) as caught:
        stream.finish(tmp_path / "a", {"long": "x" * 5000})
    stream.abort()
    assert str(caught.value).startswith(f"the header of {tmp_path / 'a'} takes ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_grow_by_rows(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {"layer": "0"}, Writer(tmp_path))
    for rows in torch.arange(30.0).view(10, 3).split(4):
        stream.append("values", rows)
    stream.append("labels", torch.arange(10).int())
    assert not (tmp_path / "grown").exists()
    stream.finish(tmp_path / "grown", {"probe": "p"})
    tensors, metadata = read(tmp_path / "grown")
    assert torch.equal(tensors["values"], torch.arange(30.0).view(10, 3))
    assert tensors["labels"].tolist() == list(range(10))
    assert metadata == {"layer": "0", "probe": "p"}
    assert [path.name for path in tmp_path.iterdir()] == ["grown"]


def test_a_dtype_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    assert sentence(StoreError, write, tmp_path / "key", {"values": torch.zeros(2, dtype=torch.complex128)}, {}) == (
        "cannot store 'values': it is of torch.complex128. Give real or whole numbers."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=["now", "blake2b", "crc32"])
def sealed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with a checksum of each form, to be damaged."""
    path = tmp_path / "file.safetensors"
    tensors = {"values": torch.arange(15.0).view(5, 3), "labels": torch.arange(5)}
    if request.param == "now":
        return write(path, tensors, {"facts": "as before"})
    path.write_bytes((OLD / f"{request.param}.safetensors").read_bytes())
    return path


def test_files_of_every_form_are_read(sealed: Path) -> None:
    tensors, metadata = read(sealed)
    assert metadata == verify(sealed) == {"facts": "as before"}
    assert torch.equal(tensors["values"], torch.arange(15.0).view(5, 3))
    assert tensors["labels"].tolist() == [0, 1, 2, 3, 4]


def test_one_changed_bit_anywhere_is_noticed(sealed: Path) -> None:
    content = sealed.read_bytes()
    spaces = len(content) - 100 - len(content[:-100].rstrip())  # behind the header, before 100 bytes of values
    for i in [*range(len(content) - 100 - spaces), *range(len(content) - 100, len(content))]:
        sealed.write_bytes(content[:i] + bytes([content[i] ^ (1 << i % 8)]) + content[i + 1 :])
        if content[i : i + 1] == b" ":  # a blank of JSON: nothing it says has changed
            continue
        with pytest.raises(ValueError, match=NO_MATCH):
            verify(sealed, required=True)


@pytest.mark.parametrize("content", [b"", b"\x08", b"\xff" * 40, b"\x02\0\0\0\0\0\0\0[]", b"\x04\0\0\0\0\0\0\0null"])
def test_what_is_no_such_file_has_no_checksum(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert verify(tmp_path / "a") == {}  # for safetensors to refuse
    with pytest.raises(ValueError, match=NO_MATCH):
        read(tmp_path / "a")


@pytest.mark.parametrize("metadata", [None, {"checksum": "sha256:ab"}, {"seal": "ours"}])
def test_a_file_of_another_program_passes_where_no_checksum_is_required(
    tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    save_file({"a": torch.eye(2)}, tmp_path / "a", metadata)
    verify(tmp_path / "a")
    with pytest.raises(ValueError, match=NO_MATCH):
        verify(tmp_path / "a", required=True)
