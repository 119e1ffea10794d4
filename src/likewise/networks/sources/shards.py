"""The weights of a network of transformers tensor by tensor: from one file of safetensors or from its shards.

A file is open only while some of its tensors are read, so that nothing of it stays in memory once they are let go.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from likewise._base.files import reading
from likewise.errors import InputError, MissingDataError
from likewise.networks.sources.repository import Repository

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_DAMAGED = "{path} is damaged: {{reason}}. Fetch it again."


class Shards:
    """Which file of a repository has which tensor.

    Attributes:
        address: The address of the network, for messages.
        files: The path of the file that every tensor is in.
        size: How many bytes all files have.
    """

    def __init__(self, repository: Repository) -> None:
        self.address = repository.address
        self.files = _files(repository)
        self.size = sum(path.stat().st_size for path in set(self.files.values()))

    def read(self, names: Collection[str]) -> dict[str, Tensor]:
        """Some tensors, in the precision of the file."""
        tensors: dict[str, Tensor] = {}
        for path in sorted({self.files[name] for name in names}):
            with reading(path, _DAMAGED.format(path=path)), safe_open(path, framework="pt") as file:
                tensors |= {name: file.get_tensor(name) for name in names if self.files[name] == path}
        return tensors


def _files(repository: Repository) -> dict[str, Path]:
    """The path of the file of every tensor."""
    whole = repository.file(_WHOLE)
    if whole is not None:
        path = Path(whole)
        with reading(path, _DAMAGED.format(path=path)), safe_open(path, framework="pt") as file:
            return dict.fromkeys(file.keys(), path)
    index = repository.file(_INDEX)
    if index is None:
        raise MissingDataError(
            f"{repository.address} has no weights in safetensors ({_WHOLE}, whole or in shards), and no others can be "
            "read block by block. Load them with transformers and save_pretrained them anew, or leave blockwise out."
        )
    with reading(index, _DAMAGED.format(path=index)):
        names = {str(key): str(name) for key, name in json.loads(Path(index).read_text())["weight_map"].items()}
    paths = {name: _shard(repository, name, index) for name in sorted(set(names.values()))}
    return {key: paths[name] for key, name in names.items()}


def _shard(repository: Repository, name: str, index: str) -> Path:
    """One file of those that an index names, which lies beside it."""
    if Path(name).name != name:
        raise InputError(f"{index} names {name!r}, which is no file beside it. Fetch it again.")
    path = repository.file(name)
    if path is None:
        raise MissingDataError(f"{repository.address} lacks {name!r}, which its {_INDEX} names. Fetch it again.")
    return Path(path)
