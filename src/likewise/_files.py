"""Files that are there entirely or not at all."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

from likewise.errors import StoreError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class guarded:  # noqa: N801
    """Says what to do when the disk is full or closed to us, instead of a bare OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            if error.errno in FULL:
                raise StoreError(
                    f"no room to write {self.path}. Nothing of it was kept; make room and run again "
                    "to go on."
                ) from error
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there entirely or not at all."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    with guarded(path):
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
