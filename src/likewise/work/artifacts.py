"""Tensors on disk by key, with facts beside them: whole or absent, mapped rather than read, with a checksum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from likewise._base.files import make_folder, remove_leftovers
from likewise._base.sealed import read_metadata, verify, write
from likewise._base.warnings import warn
from likewise.errors import DamagedStoreWarning, StoreError


class Artifacts:
    """A folder of artifacts, each in a file named by its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        remove_leftovers(folder)

    def path(self, key: str) -> Path:
        """Where the artifact of a key is, or would be."""
        return self.folder / f"{key}.safetensors"

    def find(self, key: str) -> dict[str, Tensor] | None:
        """The tensors of a key, mapped; None where there are none, with a warning where they are damaged."""
        path = self.path(key)
        if not path.exists():
            return None
        if intact(path) is None:
            warn(f"{path} does not match its checksum; it is computed anew.", DamagedStoreWarning)
            return None
        return read(path)[0]

    def put(self, key: str, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> Path:
        """Write an artifact, over what is there."""
        return write(self.path(key), tensors, facts, durable=False)


def intact(path: Path) -> dict[str, str] | None:
    """The facts of an artifact that matches its checksum, for which it is read once; None of any other."""
    try:
        return verify(path, required=True)
    except (OSError, ValueError):
        return None


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of an artifact, mapped rather than read, and its facts."""
    try:
        return load_file(path), read_metadata(path)
    except Exception as error:  # whatever a damaged byte leads to
        raise StoreError(f"{path} is no file of a store, or it is damaged. Remove it, and run again.") from error
