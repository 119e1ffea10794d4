"""Where data is looked for: LIKEWISE_DATA, then this library's cache; downloads go to the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from likewise._base.files import is_folder
from likewise.errors import MissingDataError


def cache_folder() -> Path:
    """Where downloads are kept; LIKEWISE_DATA is only read."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "likewise"


def folders() -> Iterator[Path]:
    """Every place that is searched, the first first."""
    if named := os.environ.get("LIKEWISE_DATA"):
        yield Path(named).expanduser()
    yield cache_folder()


def find(*names: str) -> Path | None:
    """The first of these files or folders that exists in any of the places."""
    for folder in folders():
        for name in names:
            if (folder / name).exists():
                return folder / name
    return None


def given(path: str, name: str) -> Path:
    """A folder the user named, or an error that says what should lie there."""
    folder = Path(path).expanduser()
    if not is_folder(folder):
        raise MissingDataError(
            f"{folder} is no folder, so {name} cannot be read from it. Give the folder of the images: {name}:PATH."
        )
    return folder


def missing(name: str, wanted: str, reason: object = None) -> MissingDataError:
    """The error where nothing was found and nothing could be downloaded."""
    places = " or ".join(dict.fromkeys(str(folder) for folder in folders()))
    why = f" and could not be downloaded ({reason})" if reason else ""
    return MissingDataError(
        f"{name} was not found in {places}{why}. Put {wanted} there, or set LIKEWISE_DATA to the folder that holds it."
    )
