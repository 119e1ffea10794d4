"""The list of files that we wrote into a folder, each with its checksum: `likewise.manifest`.

It says two things. A file on it is ours, so that it may be replaced and removed; any other belongs to somebody else.
And a file on it has to match: a changed digit in a table is found when the table is read.

One line per version of a file, appended before the file gets its name: whatever a kill interrupts, a file matches one
of its lines. Several processes may append at once. A line carries a checksum of its own, so that a damaged one counts
as absent. The list covers the folders below it, but for stores, which keep checksums of their own.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from likewise.errors import StoreError

MANIFEST, STORE_MARKER = "likewise.manifest", "likewise.json"
SEALED = "sealed"  # in place of a checksum: the file carries its own
_DEEPEST = 6  # levels above a file in which its manifest is looked for
_LARGEST, _CHUNK = 2**26, 2**22


def manifest_of(path: Path) -> Path | None:
    """The manifest that covers a file: the nearest above it, unless the file is in a store."""
    for folder in list(path.absolute().parents)[:_DEEPEST]:
        if is_regular(folder / STORE_MARKER):
            return None
        if is_regular(folder / MANIFEST):
            return folder / MANIFEST
    return None


def mode_of(path: Path, *, follow: bool = True) -> int:
    """The mode of what has a name; 0 where nothing has it.

    Some file systems give what another process replaces or removes at this moment no type: it is looked at again.
    """
    for _ in range(1000):
        try:
            mode = path.stat(follow_symlinks=follow).st_mode
        except (OSError, ValueError):
            return 0
        if stat.S_IFMT(mode):
            return mode
    return 0


def is_regular(path: Path) -> bool:
    """Whether a path is a file itself: no link, no pipe."""
    return stat.S_ISREG(mode_of(path, follow=False))


def checksums(path: Path) -> set[str] | None:
    """What the content of a file may sum up to; None where no manifest covers it, empty where one does not list it."""
    manifest = manifest_of(path)
    return None if manifest is None else set(_entries(manifest).get(_name(manifest, path), ()))


def checksum(content: bytes) -> str:
    """The checksum of a file's content, as a manifest holds it."""
    return f"{zlib.crc32(content):08x}-{len(content)}"


def checksum_of(path: Path) -> str:
    """The checksum of a file, which is read once and not held."""
    value = size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value, size = zlib.crc32(chunk, value), size + len(chunk)
    return f"{value:08x}-{size}"


def list_file(path: Path, content: str) -> None:
    """List a file with the checksum of what it is about to hold; refuse to replace one of somebody else.

    Nothing happens where no manifest covers it: single files may be written anywhere.
    """
    manifest = manifest_of(path)
    if manifest is None:
        return
    if not path.parent.resolve().is_relative_to(manifest.parent.resolve()):
        raise StoreError(f"cannot write {path}: it leads out of {manifest.parent}. Name a new or an empty folder.")
    exists = os.path.lexists(path)  # first: what another process of ours puts there meanwhile is listed before
    entries = _entries(manifest).get(_name(manifest, path), ())
    if exists and not entries:
        raise StoreError(f"cannot write {path}: likewise did not write what is there. Move it, and run again.")
    if content not in entries:
        append(manifest, {_name(manifest, path): content})


def append(manifest: Path, contents: Mapping[str, str]) -> None:
    """Add a line per file to a manifest, which is made where there is none; in one write, so that a kill leaves all."""
    texts = [f"{content} {json.dumps(name)}".encode() for name, content in contents.items()]
    lines = b"".join(b"%08x %b\n" % (zlib.crc32(text), text) for text in texts)
    descriptor = os.open(manifest, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        end = os.fstat(descriptor).st_size
        lines = b"\n" + lines if end > 0 and not _ends_line(manifest, end) else lines
        if os.write(descriptor, lines) < len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_sealed(path: Path) -> bool:
    """Whether a file carries the mark of those that we write with a checksum inside, damaged or not."""
    if path.suffix != ".safetensors" or not is_regular(path):
        return False
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            metadata = json.loads(file.read(min(length, _LARGEST)))["__metadata__"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False
    return isinstance(metadata, dict) and ("sealed" in metadata or len(str(metadata.get("seal", ""))) == 64)


def in_store(folder: Path) -> bool:
    """Whether a folder is one of a store, or inside of one."""
    return any(is_regular(above / STORE_MARKER) for above in [folder.absolute(), *folder.absolute().parents][:_DEEPEST])


def listed(manifest: Path) -> list[Path]:
    """The files that a manifest lists and that are there."""
    paths = (manifest.parent / name for name in _entries(manifest) if name != ".")
    return [path for path in paths if os.path.lexists(path)]


def _name(manifest: Path, path: Path) -> str:
    return path.absolute().relative_to(manifest.parent).as_posix()


def _ends_line(manifest: Path, end: int) -> bool:
    with manifest.open("rb") as file:
        file.seek(end - 1)
        return file.read(1) == b"\n"


def _entries(manifest: Path) -> dict[str, tuple[str, ...]]:
    status = manifest.stat()
    return _read(manifest, status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=32)
def _read(manifest: Path, size: int, _time: int, _inode: int) -> dict[str, tuple[str, ...]]:
    """The checksums of each file by name; read anew when the manifest has changed."""
    if size > _LARGEST:
        raise StoreError(f"{manifest} is too large for a list of files. Name a new or an empty folder.")
    entries: dict[str, list[str]] = {}
    for name, content in _lines(manifest.read_bytes()):
        entries.setdefault(name, []).append(content)
    return {name: tuple(contents) for name, contents in entries.items()}


def _lines(text: bytes) -> Iterator[tuple[str, str]]:
    """Name and checksum on each line; one that is damaged, or that we did not write, counts as absent."""
    for line in text.split(b"\n"):
        own, _, rest = line.partition(b" ")
        if own != f"{zlib.crc32(rest):08x}".encode():
            continue
        content, _, quoted = rest.partition(b" ")
        try:
            name = json.loads(quoted)
        except (ValueError, RecursionError):
            continue
        if isinstance(name, str) and content.isascii():
            yield name, content.decode()
