"""Artifacts: any tensors by key, mapped back; damaged ones are noticed."""

import pytest
import torch

from likewise.errors import DamagedStoreWarning, StoreError
from likewise.work.artifacts import intact, read
from likewise.work.store import Store


def test_an_artifact_is_found_by_its_key(tmp_path) -> None:
    with Store(tmp_path / "s") as store:
        folder = store.artifacts("examples")
        path = folder.put("key", {"values": torch.eye(3)}, {"attack": "pgd"})
        assert torch.equal(folder.find("key")["values"], torch.eye(3))
        assert folder.find("another") is None
    assert path == tmp_path / "s" / "examples" / "key.safetensors"
    assert read(path)[1] == intact(path) == {"attack": "pgd"}


def test_a_damaged_artifact_is_noticed_and_a_missing_one_is_named(tmp_path) -> None:
    with Store(tmp_path / "s") as store:
        folder = store.artifacts("examples")
        path = folder.put("key", {"values": torch.arange(5.0)}, {"layer": "0"})
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.warns(DamagedStoreWarning) as caught:
            assert folder.find("key") is None
    assert str(caught[0].message) == f"{path} does not match its checksum; it is computed anew."
    path.unlink()
    assert intact(path) is None
    with pytest.raises(StoreError) as refused:
        read(path)
    assert str(refused.value) == f"{path} is no file of a store, or it is damaged. Remove it, and run again."
