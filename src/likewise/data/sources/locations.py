"""Where data is looked for and where it is downloaded to.

A folder the user names comes first; else LIKEWISE_DATA, then this library's cache. Downloads go to the
cache. Whatever goes wrong on the way becomes one sentence that says what to put where.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from likewise._base.files import is_folder
from likewise.errors import InputError, LikewiseError, MissingDataError


def cache_folder() -> Path:
    """Where downloads are kept; LIKEWISE_DATA is only read."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "likewise"


def search_folders() -> list[Path]:
    """Every folder that is searched, the first first."""
    folder = os.environ.get("LIKEWISE_DATA")
    return [*([Path(folder).expanduser()] if folder else []), cache_folder()]


def find(*names: str, root: str | None = None, also: Sequence[Path] = ()) -> Path | None:
    """The first of these files or folders that exists: below `root` alone, or where data is searched and `also`."""
    folders = [Path(root).expanduser()] if root else [*search_folders(), *also]
    return next((folder / name for folder in folders for name in names if (folder / name).exists()), None)


def existing_folder(path: str, name: str) -> Path:
    """A folder the user named, or an error that says what should be there."""
    folder = Path(path).expanduser()
    if not is_folder(folder):
        raise MissingDataError(
            f"{folder} is no folder, so {name} cannot be read from it. Give the folder of the images: {name}:PATH."
        )
    return folder


def missing(name: str, what: str, reason: object = None) -> MissingDataError:
    """The error where nothing was found and nothing could be downloaded."""
    folders = " or ".join(dict.fromkeys(str(folder) for folder in search_folders()))
    why = f" and could not be downloaded ({reason})" if reason else ""
    return MissingDataError(
        f"{name} was not found in {folders}{why}. Put {what} there, or set LIKEWISE_DATA to the folder that holds it."
    )


@contextmanager
def downloading(name: str, what: str) -> Iterator[None]:
    """Let a library download; a failure becomes the sentence that says what to put where."""
    try:
        yield
    except LikewiseError:
        raise
    except (OSError, RuntimeError) as error:  # libraries raise either, by what failed
        raise missing(name, what, str(error).split("\n")[0]) from error
    except Exception as error:
        raise InputError(
            f"the files of {name} are damaged ({type(error).__name__}: {error}). Remove them, and "
            "they are fetched again."
        ) from error
