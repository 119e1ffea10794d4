"""`gguf:FILE`: language models in one file of llama.cpp, whose quantised weights transformers unpacks.

What runs is the network of transformers with the numbers that the file's weights stand for, in float32 unless
`dtype=` says otherwise: its answers are those of the quantised weights, not of another program's arithmetic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from likewise._base.optional import require
from likewise.errors import InputError, MissingDataError
from likewise.networks.sources.base import Loaded, Request, source
from likewise.networks.sources.repository import Repository
from likewise.networks.sources.transformers import Transformers

_MAGIC = b"GGUF"


@dataclass(frozen=True)
class GGUFFile(Repository):
    """One file that holds configuration, weights and tokenizer."""

    def tokenizer(self, other: str | None = None) -> Any:
        """The tokenizer in the file, or that of another folder or name."""
        if other is not None:
            return super().tokenizer(other)
        return self.read(import_module("transformers").AutoTokenizer)

    def file(self, name: str) -> str | None:
        """None: there are no files beside it."""
        return None

    def facts(self, kind: Any, method: str) -> tuple[Repository, Mapping[str, Any]] | None:
        """None: it has no processor."""
        return None


@source("gguf")
class GGUF(Transformers):
    """Language models in files of llama.cpp."""

    has_revisions: ClassVar[bool] = False
    allowed_in_headers: ClassVar[Collection[str] | None] = None
    takes_adapters: ClassVar[bool] = False

    def build(self, request: Request) -> Loaded:
        require("gguf", extra="language", to=f"load {request.address}")
        return super().build(request)

    def locate(self, request: Request, revision: str | None, subfolder: str | None, trusted: bool) -> Repository:
        """The file, which has to begin as files of its kind do."""
        path = Path(request.name).expanduser()
        if not path.is_file():
            raise MissingDataError(f"there is no file {str(path)!r}. Give the path of a file: gguf:PATH.gguf.")
        with path.open("rb") as file:
            if file.read(4) != _MAGIC:
                raise InputError(f"{path} is no file of GGUF. Give one that llama.cpp reads.")
        options = {"gguf_file": path.name, "trust_remote_code": False, "local_files_only": True}
        return GGUFFile(str(path.parent), request.address, options, None)
