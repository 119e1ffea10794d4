"""Safetensors files with a checksum over every byte of them, so that damage is found when they are read.

The checksum stands among the metadata, under "seal"; it is taken over the whole file with zeros in its
own place. A second word among the metadata says that there is one, so that damage to the checksum itself
does not pass for a file without. Those, of other programs or of earlier versions, are read as they are.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import IO

_EMPTY = "0" * 64
OPEN_SEAL = {"seal": _EMPTY, "sealed": "likewise"}  # what the metadata hold until it is known
_PLACE, _WORD = re.compile(rb'"seal":"([^"]{64})"'), b'"sealed":"likewise"'
_LONGEST_HEADER = 100_000_000  # what safetensors itself accepts
_CHUNK = 2**22


def seal_file(path: Path) -> None:
    """Write the checksum into a file whose metadata hold `OPEN_SEAL`, and have it on disk."""
    with path.open("r+b") as file:
        place, _, found = _examined(file)
        if place is None:
            raise ValueError(f"{path} has no place for a checksum.")
        file.seek(place)
        file.write(found.encode())
        file.flush()
        os.fsync(file.fileno())


def seal_bytes(content: bytes) -> bytes:
    """The same for a file that is still in memory."""
    match = _PLACE.search(content)
    if match is None:
        raise ValueError("there is no place for a checksum.")
    start, end = match.span(1)
    return content[:start] + _hash(content).hexdigest().encode() + content[end:]


def check_seal(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is not as it was written; one without a checksum passes.

    Call it within `reading`, which says so in a sentence with the file's name.
    """
    with Path(path).open("rb") as file:
        _, stated, found = _examined(file)
    if stated != found:
        raise ValueError("it does not match its checksum")


def _examined(file: IO[bytes]) -> tuple[int | None, str, str]:
    """Where the checksum stands, what it says, and what it should say."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    header = file.read(length) if length <= _LONGEST_HEADER else b""
    match = _PLACE.search(header)
    if match is None:
        return None, "damaged" if _WORD in header else "", ""
    content = _hash(start + header)
    while chunk := file.read(_CHUNK):
        content.update(chunk)
    stated = match[1].decode(errors="replace") if _WORD in header else "damaged"
    return 8 + match.start(1), stated, content.hexdigest()


def _hash(content: bytes) -> hashlib.blake2b:
    """A hash of content with zeros where the checksum stands."""
    match = _PLACE.search(content)
    start, end = match.span(1) if match else (0, 0)
    found = hashlib.blake2b(content[:start], digest_size=32)
    found.update(_EMPTY.encode() if match else b"")
    found.update(content[end:])
    return found
