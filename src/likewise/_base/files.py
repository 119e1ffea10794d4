"""Files: written entirely or not at all, and read under a guard that names a damaged one.

A file may be damaged anywhere, and libraries raise whatever a damaged byte leads them to. So every
reader here works inside `reading`, which turns all of that into one sentence with the file's name,
and refuses what is no file at all: a pipe would wait for ever, a device never end.
"""

from __future__ import annotations

import errno
import io
import os
import re
import socket
import stat
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from likewise._base.manifest import checksum_of, list_file, manifest_of, mode_of
from likewise.errors import InputError, LikewiseError, StoreError, first_line

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_OURS = (errno.EACCES, errno.EPERM)
_PROCESS_NUMBERS = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid")  # what a process number is unique within
_cleaned: set[tuple[int, str]] = set()


class write_guard:  # noqa: N801
    """Says what to do when the disk is full or closed to us, instead of a bare OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            if error.errno in FULL:
                raise StoreError(
                    f"no room to write {self.path}. Nothing of it was kept; make room and run again to resume."
                ) from error
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there entirely or not at all."""

    def write_to(unfinished: Path) -> None:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    replace_whole(path, write_to)


def replace_whole(path: Path, write_to: Callable[[Path], object]) -> None:
    """Have `write_to` fill a file beside `path`, then give it that name; on failure nothing stays."""
    make_folder(path.parent)
    remove_leftovers(path.parent)
    with write_guard(path), whole_file(path) as unfinished:
        write_to(unfinished)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The name of a file beside `path` to fill inside; it gets that name, and on failure nothing stays."""
    unfinished = part_name(path.parent)
    try:
        yield unfinished
        give_name(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def give_name(unfinished: Path, path: Path, content: str = "") -> None:
    """Rename what was written; in a folder of ours it is listed before, by its checksum or as one that has its own."""
    if not is_folder(path):
        check_regular(path, StoreError)  # renaming would put a file in the place of a device
    if manifest_of(path) is not None:
        list_file(path, content or checksum_of(unfinished))
    unfinished.replace(path)


@cache
def _machine() -> str:
    """The host's name, and a number of what runs here: containers of one name do not see each other's processes."""
    host = re.sub(r"[^A-Za-z0-9.]", "", socket.gethostname())[:60]
    boot, processes = map(Path, _PROCESS_NUMBERS)
    try:
        within = boot.read_text() + str(processes.stat().st_ino)
    except OSError:
        within = str(uuid.getnode())
    return f"{host}.{zlib.crc32(within.encode()):08x}"


def part_name(folder: Path) -> Path:
    """A new name in a folder for what is being written; its length is the same for every file."""
    return folder / f".{_machine()}-{os.getpid()}-{uuid.uuid4().hex}.part"


def is_part(path: Path) -> bool:
    """Whether a file is one that is being written, by whichever machine."""
    return path.name.startswith(".") and path.suffix == ".part"


def save_figure(figure: Any, path: Path) -> None:
    """A picture of matplotlib, in the format its ending names."""
    if is_folder(path):
        raise InputError(f"{path} is a folder. Give the name of a picture, as in {path / 'picture.png'}.")
    content = io.BytesIO()
    kind = path.suffix.removeprefix(".").lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise InputError(f"{path} is no picture: it ends in {path.suffix!r}. Give .png or .pdf.")
    figure.savefig(content, dpi=150, format=kind)
    write_whole(picture_path(path), content.getvalue())


def picture_path(path: Path) -> Path:
    """Where a picture is written: PNG where its name has no ending."""
    return path if path.suffix else path.with_name(f"{path.name}.png")


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, or say why that cannot be."""
    check_name(folder)
    with write_guard(folder):
        folder.mkdir(parents=True, exist_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes of this machine or container were writing; once per folder and process."""
    process_and_folder = (os.getpid(), str(folder.absolute()))
    if process_and_folder in _cleaned:
        return
    _cleaned.add(process_and_folder)
    for unfinished in folder.glob(f".{_machine()}-*.part"):
        pid = unfinished.name.split("-")[-2]
        if pid.isdecimal() and not is_alive(int(pid)):
            unfinished.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine runs."""
    if os.name == "nt":  # there, os.kill ends the process whatever the signal
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def reading(path: str | os.PathLike[str], sentence: str, kind: type[LikewiseError] = InputError) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into `sentence`, in which {reason} may stand."""
    check_regular(path, kind)
    try:
        yield
    except LikewiseError:
        raise
    except FileNotFoundError as error:
        raise kind(f"there is no file {path}. Check the path.") from error
    except OSError as error:
        if error.errno in _NOT_OURS:
            raise kind(f"cannot read {path}: {error.strerror}. Check its permissions.") from error
        raise kind(sentence.replace("{reason}", first_line(error))) from error
    except Exception as error:
        raise kind(sentence.replace("{reason}", first_line(error))) from error


def check_regular(path: str | os.PathLike[str], kind: type[LikewiseError] = InputError) -> None:
    """Refuse folders, pipes and devices by what they are; what is not there is left to the reader."""
    check_name(path, kind)
    mode = mode_of(Path(path))
    if mode and not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        what = kinds.get(stat.S_IFMT(mode), "a device")
        raise kind(f"{os.fspath(path)} is {what}, not a file. Give the path of a file.")


def check_name(path: str | os.PathLike[str], kind: type[LikewiseError] = InputError) -> None:
    """Refuse a name that is no text: it could not be printed, hashed or written into a file."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        raise kind(f"{os.fspath(path)!r} is no name in UTF-8. Rename it.") from error


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder; False also for a name no folder can have."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):  # too long, or with a zero byte in it
        return False


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a file; False also for a name no file can have."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a zero byte in it
        return False
