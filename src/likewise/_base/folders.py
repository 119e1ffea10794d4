"""One door for folders of results: which may be written to, and how a file of one comes in.

A folder may have been sent by anybody. `file_of` gives a file of it: inside the folder wherever links lead, a regular
file, of a bounded size, and as it was written where a manifest lists it. Whatever reads a folder goes through it, or
through `read_bytes`, `read_text` and `read_json`, which hold the content they checked. A file that the user named
comes in by `file_at` or `read_at`, which follow links.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from likewise._base.files import check_regular, is_file, is_part, make_folder, reading, write_guard
from likewise._base.formats.records import parse
from likewise._base.manifest import (
    MANIFEST,
    SEALED,
    STORE_MARKER,
    append,
    checksum,
    checksum_of,
    checksums,
    in_store,
    is_regular,
    is_sealed,
    listed,
    manifest_of,
)
from likewise.errors import FileError, StoreError

TEXT = 2**26  # bytes of a table or a record
ARRAYS = 2**40  # of a file that is mapped, or whose reader checks sizes itself


def claim(folder: Path, *, older: Collection[str] = ()) -> None:
    """Make a folder ours, or see that it is: an empty one, one with a manifest, or one inside of such or of a store.

    Earlier versions wrote no manifest. A folder of theirs holds nothing but files that carry our checksum, a store, and
    beside these what `older` names.

    Args:
        folder: The folder to write to.
        older: The other files that earlier versions wrote there, as patterns such as "rows/*.csv".

    Raises:
        StoreError: It holds files of somebody else, or cannot be written to.
    """
    if is_file(folder):
        raise StoreError(f"{folder} is a file, not a folder. Name a folder.")
    make_folder(folder)
    manifest = folder / MANIFEST
    if manifest_of(manifest) is not None or in_store(folder):
        return
    names = _older_files(folder, older)
    if is_regular(manifest):  # another process claimed it meanwhile
        return
    if names is None or os.path.lexists(manifest):
        raise StoreError(
            f"{folder} holds files that likewise did not write. Name a new or an empty folder, as in "
            f"{folder / 'likewise'}."
        )
    with write_guard(manifest):
        append(manifest, {".": "claimed"} | {name: _current(folder / name) for name in names})


def _older_files(folder: Path, older: Collection[str]) -> list[str] | None:
    """The files of a folder, if an earlier version wrote them all: some are sealed or in a store, the rest is named."""
    names: list[str] = []
    ours = is_regular(folder / "store" / STORE_MARKER)
    for root, folders, files in os.walk(folder):
        inner = Path(root).relative_to(folder).as_posix()
        if inner == "." and "store" in folders:
            folders.remove("store")  # which is claimed by itself
        if inner != "." and not folders and not files and not any(_fits(f"{inner}/", text) for text in older):
            return None
        for path in (Path(root, name) for name in [*files, *folders]):
            if is_part(path) or (path.is_dir() and not path.is_symlink()):
                continue
            name, sealed = path.relative_to(folder).as_posix(), is_sealed(path)
            if not sealed and not (is_regular(path) and any(_fits(name, text) for text in older)):
                return None
            ours = ours or sealed
            names.append(name)
    return names if ours or not names else None


def _fits(name: str, pattern: str) -> bool:
    """Whether a path fits a pattern, level by level; that of a folder, which ends in a slash, its start."""
    levels, patterns = name.rstrip("/").split("/"), pattern.split("/")
    fitting = len(levels) < len(patterns) if name.endswith("/") else len(levels) == len(patterns)
    return fitting and all(map(fnmatchcase, levels, patterns))


def _current(path: Path) -> str:
    return SEALED if is_sealed(path) else checksum_of(path)


def check_replaceable(path: Path, mark: bytes, what: str) -> None:
    """Refuse to write over a file of somebody else, which does not have `mark` in it; a manifest says so by itself.

    Args:
        path: A file that the user named to be written.
        mark: What all files of its kind hold, in their first 64 MB.
        what: What they are called, such as "page of a board".

    Raises:
        FileError: It is something else.
    """
    if not os.path.lexists(path) or manifest_of(path) is not None:
        return
    with file_at(path).open("rb") as file:
        content = file.read(TEXT)
    if content and mark not in content:
        raise FileError(f"{path} is no {what}, and is not replaced. Name another file.")


def remove(path: Path) -> None:
    """Remove a file that we wrote; one of somebody else stays."""
    if checksums(path) != set():
        path.unlink(missing_ok=True)


def files_of(folder: Path) -> list[str]:
    """The names of the files below a folder that we wrote, but for those in stores and behind links."""
    manifest, top = manifest_of(folder / MANIFEST), folder.absolute()
    paths = [] if manifest is None else [path for path in listed(manifest) if path.is_relative_to(top)]
    inside = [path for path in paths if path.parent.resolve().is_relative_to(top.resolve())]
    return [path.relative_to(top).as_posix() for path in inside if not in_store(path.parent)]


def clear(folder: Path) -> None:
    """Remove the files below a folder that we wrote; stores and files of somebody else stay."""
    for name in files_of(folder):
        (folder / name).unlink(missing_ok=True)


def file_of(folder: Path, name: object, *, limit: int = ARRAYS, required: bool = False) -> Path:
    """A file of a folder, to be opened by a reader of its kind.

    Args:
        folder: The folder.
        name: The file's path inside of it, with forward slashes; it may come from a list that a stranger wrote.
        limit: The most bytes it may have.
        required: If the folder has a manifest, the file has to be on it: only we write such files.

    Raises:
        FileError: It leads out of the folder, is no regular file, is too large, or does not match its checksum.
    """
    return file_at(_inside(folder, name), limit=limit, required=required)


def file_at(path: str | os.PathLike[str], *, limit: int = ARRAYS, required: bool = False) -> Path:
    """A file that the user named, checked as `file_of` checks it; it may be a link to anywhere."""
    path = Path(path)
    check_regular(path, FileError)
    if not is_file(path):
        raise FileError(f"there is no file {path}. Check the path.")
    with reading(path, f"{path} cannot be read ({{reason}}).", FileError):
        if (size := path.stat().st_size) > limit:
            raise FileError(f"{path} has {size:,} bytes, more than the {limit:,} that such a file may have.")
        sums = checksums(path)
        if sums is not None and (sums or required) and SEALED not in sums:
            content = checksum_of(path)
            _check(path, content, checksums(path) or sums)  # those of now: another process may have written it anew
    return path


def folder_of(folder: Path, name: str) -> Path | None:
    """A folder inside of a folder; None where there is none, or where it leads out."""
    path = folder / name
    try:
        inside = path.is_dir() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    return path if inside else None


def read_bytes(folder: Path, name: object, *, limit: int = TEXT, required: bool = False) -> bytes:
    """The content of a file of a folder, checked as `file_of` checks it, and read once."""
    return read_at(_inside(folder, name), limit=limit, required=required)


def read_at(path: str | os.PathLike[str], *, limit: int = TEXT, required: bool = False) -> bytes:
    """The content of a file that the user named, checked as `file_at` checks it, and read once."""
    path = Path(path)
    with reading(path, f"{path} cannot be read ({{reason}}).", FileError), path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise FileError(f"{path} has more than the {limit:,} bytes that such a file may have.")
    sums = checksums(path)
    if sums is not None and (sums or required):
        _check(path, checksum(content), sums)
    return content


def read_text(folder: Path, name: object, *, limit: int = TEXT, required: bool = False) -> str:
    """The text of a file of a folder; what is not UTF-8 is marked."""
    return read_bytes(folder, name, limit=limit, required=required).decode("utf-8", errors="replace")


def read_json(folder: Path, name: object, *, limit: int = TEXT, required: bool = False) -> dict[str, Any]:
    """The record in a JSON file of a folder: a mapping, or it is refused."""
    content = read_bytes(folder, name, limit=limit, required=required)
    try:
        return parse(content)
    except ValueError as error:
        raise FileError(f"{folder / str(name)} is damaged: {error}. Run again what wrote it.") from error


def _inside(folder: Path, name: object) -> Path:
    if not isinstance(name, str) or not name or "\0" in name:
        raise FileError(f"{folder} names {name!r} as a file. Give the name of a file inside of it.")
    pure = PurePosixPath(name)
    path = folder / pure
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that is too long, links in a circle
        inside = False
    if pure.is_absolute() or ".." in pure.parts or not inside:
        raise FileError(f"{path} leads out of {folder}, whose files may only be read inside of it. Copy it there.")
    return path


def _check(path: Path, content: str, sums: Collection[str]) -> None:
    if SEALED not in sums and content not in sums:
        raise FileError(f"{path} is damaged: it does not match its checksum. Run again what wrote it.")
