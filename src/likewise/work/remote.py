"""Artifacts at an address such as s3://bucket/folder, by fsspec: whole or not there, copied to a folder when read."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from likewise._base.files import replace_whole
from likewise._base.optional import require
from likewise.errors import InputError, StoreError, first_line


class RemoteFolder:
    """Files below an address; each gets its name when it is whole, so that machines do not disturb each other."""

    def __init__(self, address: str) -> None:
        library = require("fsspec", extra="remote", to=f"keep artifacts at {address}")
        if "://" not in address:
            raise InputError(f"{address!r} is no address. Give one like 's3://bucket/folder'.")
        try:
            files, self._folder = library.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise InputError(f"{address!r} cannot be used for artifacts: {first_line(error)}.") from error
        self._files: Any = files
        self._address = address

    def get(self, path: Path) -> bool:
        """Copy a file to the path whose name it has; whether there is one."""
        source = f"{self._folder}/{path.name}"
        try:
            if not self._files.exists(source):
                return False
            replace_whole(path, lambda unfinished: self._files.get_file(source, str(unfinished)))
        except FileNotFoundError:
            return False
        except StoreError:
            raise
        except Exception as error:  # whatever the library of an address raises
            raise StoreError(f"cannot read {self._address}/{path.name}: {first_line(error)}.") from error
        return True

    def put(self, path: Path) -> None:
        """Copy a file there, over what has its name."""
        target = f"{self._folder}/{path.name}"
        unfinished = f"{self._folder}/.{uuid.uuid4().hex}.part"
        try:
            self._files.makedirs(self._folder, exist_ok=True)
            self._files.put_file(str(path), unfinished)
            self._files.mv(unfinished, target)
        except Exception as error:
            with suppress(Exception):  # it may be that nothing was written
                self._files.rm_file(unfinished)
            raise StoreError(f"cannot write {self._address}/{path.name}: {first_line(error)}.") from error
