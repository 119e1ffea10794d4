"""Artifacts: any tensors by key, whole or absent, mapped back, damage noticed."""

import pytest
import torch
from safetensors.torch import load_file

from likewise.errors import StoreError
from likewise.work.artifacts import Artifacts, Stream, Writer, intact, read
from likewise.work.store import Store

TENSORS = {
    "labels": torch.arange(5),
    "half": torch.arange(3).half(),
    "values": torch.arange(15.0).view(5, 3),
    "wide": torch.arange(15.0).double().view(3, 5).T,
    "count": torch.tensor(7),
    "mask": torch.tensor([True, False, True]),
    "empty": torch.zeros(0, 4),
}


def test_tensors_of_every_kind_come_back_with_their_facts(tmp_path) -> None:
    with Store(tmp_path / "s") as store:
        folder = store.artifacts("examples")
        path = folder.put("key", TENSORS, {"attack": "pgd", "note": "ü" * 3000})
    assert path == tmp_path / "s" / "examples" / "key.safetensors"
    tensors, facts = read(path)
    assert facts == intact(path) == {"attack": "pgd", "note": "ü" * 3000}
    for found in (tensors, load_file(path)):  # other tools read it too
        assert set(found) == set(TENSORS)
        for name, values in TENSORS.items():
            assert found[name].dtype == values.dtype
            assert torch.equal(found[name], values)


def test_many_tensors_have_room_in_the_header(tmp_path) -> None:
    many = {f"layer{i}.{'x' * 60}": torch.full((2, 2), float(i)) for i in range(300)}
    path = Artifacts(tmp_path).put("net", many, {})
    assert all(torch.equal(values, many[name]) for name, values in read(path)[0].items())
    assert len(read(path)[0]) == 300


def test_a_header_that_outgrows_its_room_is_refused(tmp_path) -> None:
    stream = Stream(tmp_path, {}, Writer(tmp_path))
    stream.append("values", torch.zeros(2, 2))
    with pytest.raises(StoreError) as caught:
        stream.finish(tmp_path / "a", {"long": "x" * 5000})
    stream.abort()
    assert str(caught.value).startswith(f"the header of {tmp_path / 'a'} takes ")
    assert list(tmp_path.iterdir()) == []


def test_an_artifact_may_grow_by_rows(tmp_path) -> None:
    stream = Stream(tmp_path, {"layer": "0"}, Writer(tmp_path))
    for rows in torch.arange(30.0).view(10, 3).split(4):
        stream.append("values", rows)
    stream.append("labels", torch.arange(10).int())
    assert not (tmp_path / "grown").exists()
    stream.finish(tmp_path / "grown", {"probe": "p"})
    tensors, facts = read(tmp_path / "grown")
    assert torch.equal(tensors["values"], torch.arange(30.0).view(10, 3))
    assert tensors["labels"].tolist() == list(range(10))
    assert facts == {"layer": "0", "probe": "p"}
    assert [path.name for path in tmp_path.iterdir()] == ["grown"]


def test_a_dtype_that_cannot_be_written_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(StoreError) as caught:
        Artifacts(tmp_path).put("key", {"values": torch.zeros(2, dtype=torch.complex64)}, {})
    assert str(caught.value) == "cannot store 'values': it is of torch.complex64. Give real or whole numbers."
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_artifact_is_noticed_and_a_missing_one_is_named(tmp_path) -> None:
    path = Artifacts(tmp_path).put("key", {"values": torch.arange(5.0)}, {"layer": "0"})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert intact(path) is None
    path.unlink()
    assert intact(path) is None
    with pytest.raises(StoreError) as caught:
        read(path)
    assert str(caught.value) == f"{path} is no file of a store, or it is damaged. Remove it, and run again."
