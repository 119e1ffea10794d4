"""Where views and scores are kept: nothing is computed twice, and a killed run goes on.

A store is a folder: `scores.sqlite` (write-ahead log, one row a score, safe for several processes),
`views/` (safetensors named by their content), and `likewise.json`, which says that the folder is ours. Every
score is a committed row the moment it exists; every file appears whole or not at all. Rows and files carry
checksums: what does not match is named in a warning and computed anew. Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import time
import uuid
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file

from likewise._base.files import check_regular, guarded, replace_whole, write_whole
from likewise._base.hashing import digest, value_digest
from likewise.errors import DamagedStoreWarning, StoreError
from likewise.measures.facts import Measure
from likewise.views import Activations, Outputs
from likewise.views.sinks import mapped

FORMAT = 1
# what reading a damaged view may raise, among them that its values are not finite
_DAMAGE = (OSError, ValueError, LookupError, TypeError, RuntimeError)
SCHEMA = """
CREATE TABLE IF NOT EXISTS scores (
    key TEXT PRIMARY KEY, value REAL, reason TEXT, measure TEXT, a TEXT, b TEXT, run TEXT, at REAL, seal TEXT
) WITHOUT ROWID
"""


def score_key(a: Activations, b: Activations, measure: Measure) -> str:
    """What a score depends on: both views' values, the measure, its variant, options and version."""
    return pair_key(a.digest, b.digest, measure_key(measure), measure.info.symmetric)


def pair_key(a: str, b: str, measure: str, symmetric: bool) -> str:
    """The key of a score from the digests of both views and the measure's key."""
    first, second = (b, a) if symmetric and b < a else (a, b)
    return digest([f"{first} {second} {measure}"])


def measure_key(measure: Measure) -> str:
    """A hash of everything about a measure that its scores depend on."""
    options = {name: _plain(value) for name, value in sorted(measure.resolved.items())}
    # a function of the user's goes by what it computes, for want of a version; its name says nothing
    name, code = (measure.name, "") if measure.built_in else ("", value_digest(measure.given))
    facts = [name, measure.info.variant, measure.info.version, options, code]
    return digest([json.dumps(facts, sort_keys=True)])


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value_digest(value)


class Store:
    """A folder of views and scores."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.run = uuid.uuid4().hex
        with guarded(self.path):
            self._claim()
        self._lock = threading.RLock()  # one connection serves all threads, one at a time
        self._database = self._open()

    @property
    def _scores(self) -> Path:
        return self.path / "scores.sqlite"

    def _claim(self) -> None:
        """Make the folder ours, or see that it is."""
        marker = self.path / "likewise.json"
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file, not a store. Name a folder.")
        check_regular(marker, StoreError)
        if marker.exists():
            try:
                found = json.loads(marker.read_text())["format"]
            except (ValueError, LookupError, TypeError):
                found = None
            if not isinstance(found, int):
                raise StoreError(
                    f"{marker} is damaged. Remove it and run again: the scores and views beside it "
                    "have checksums of their own."
                )
            if found != FORMAT:
                raise StoreError(
                    f"{self.path} is a store of another version (format {found}, this is {FORMAT}). "
                    "Name another folder."
                )
            return
        if self.path.exists() and not all(_ours(path) for path in self.path.iterdir()):
            raise StoreError(f"{self.path} is not a store: it holds other files. Name a new or an empty folder.")
        with guarded(self.path):
            (self.path / "views").mkdir(parents=True, exist_ok=True)
            write_whole(marker, json.dumps({"format": FORMAT, "made by": "likewise"}).encode())

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connected()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(f"cannot open {self._scores}: {error}.") from error
        aside = self._scores.with_suffix(f".damaged-{int(time.time())}")
        self._scores.rename(aside)
        warnings.warn(
            f"{self._scores} is damaged. It was set aside as {aside.name}; its scores are computed anew.",
            DamagedStoreWarning,
            stacklevel=4,
        )
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._scores, timeout=60, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute(SCHEMA)
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("quick check failed")
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return int(self._database.execute("SELECT count(*) FROM scores").fetchone()[0])

    # --- scores -----------------------------------------------------------------------------------

    def find(self, keys: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Value and reason of those keys that are stored and intact."""
        wanted, found = list(keys), {}
        for i in range(0, len(wanted), 500):
            part = wanted[i : i + 500]
            marks = ",".join("?" * len(part))
            try:
                with self._lock:
                    rows = self._database.execute(
                        f"SELECT key, value, reason, seal FROM scores WHERE key IN ({marks})", part
                    ).fetchall()
            except sqlite3.DatabaseError as error:
                raise StoreError(f"cannot read {self._scores}: {error}.") from error
            for key, value, reason, seal in rows:
                if seal == _seal(key, value, reason):
                    found[key] = (float("nan") if value is None else float(value), reason)
                else:
                    self._discard(key)
        return found

    def _discard(self, key: str) -> None:
        warnings.warn(
            f"a score in {self._scores} does not match its checksum (key {key[:12]}); it is computed anew.",
            DamagedStoreWarning,
            stacklevel=4,
        )
        with self._lock:
            self._database.execute("DELETE FROM scores WHERE key = ?", (key,))

    def put(self, key: str, value: float, reason: str, measure: str, a: str, b: str) -> None:
        """Keep a score; a second process that computed it too changes nothing."""
        stored = None if value != value else value
        row = (
            key,
            stored,
            reason,
            measure,
            a,
            b,
            self.run,
            time.time(),
            _seal(key, stored, reason),
        )
        try:
            with self._lock:
                self._database.execute("INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"cannot write to {self._scores}: {error}. The {len(self)} scores in it are safe; make "
                "room and run again to go on."
            ) from error

    # --- views ------------------------------------------------------------------------------------

    def view_path(self, digest: str) -> Path:
        """The file of the view with this content."""
        return self.path / "views" / f"{digest}.safetensors"

    def save_view(self, view: Activations) -> Path:
        """Write a view under the hash of its content, unless it is there."""
        path = self.view_path(view.digest)
        if path.exists():
            if self._intact(path, view.digest):
                return path
            warnings.warn(
                f"{path} does not match its checksum; it is written anew.",
                DamagedStoreWarning,
                stacklevel=3,
            )
        tensors = {"values": view.values.cpu().contiguous()}
        if view.outputs is not None:
            tensors["logits"] = view.outputs.logits.cpu().contiguous()
            if view.outputs.labels is not None:
                tensors["labels"] = view.outputs.labels.cpu().contiguous()
        facts = {
            "name": view.name,
            "probe": view.probe or "",
            "about": json.dumps(dict(view.about)),
        }

        def write_to(part: Path) -> None:
            try:
                save_file(tensors, part, metadata=facts)
            except SafetensorError as error:  # it wraps the operating system's error in words
                raise OSError(errno.ENOSPC, str(error)) from error

        replace_whole(path, write_to)
        return path

    def load_view(self, digest: str) -> Activations:
        """Read a view back; a damaged one is refused."""
        path = self.view_path(digest)
        try:
            view = read_view(path)
        except _DAMAGE as error:
            raise StoreError(f"cannot read {path}: {error}. Extract the view again.") from error
        if view.digest != digest:
            raise StoreError(f"{path} does not match its checksum. Extract the view again.")
        return view

    def _intact(self, path: Path, digest: str) -> bool:
        try:
            return read_view(path).digest == digest
        except _DAMAGE:
            return False


def read_view(path: Path) -> Activations:
    """A view from a file of a store: mapped, so that what memory it takes can be given back."""
    tensors, facts = mapped(path)
    outputs = Outputs(tensors["logits"], tensors.get("labels")) if "logits" in tensors else None
    return Activations(
        tensors["values"],
        name=facts.get("name", ""),
        probe=facts.get("probe") or None,
        outputs=outputs,
        about=json.loads(facts.get("about", "{}")),
    )


def _ours(path: Path) -> bool:
    """What another process may have begun to put here."""
    return path.name == "views" or path.name.startswith(("likewise.json", "scores."))


def _seal(key: str, value: float | None, reason: str) -> str:
    return digest([f"{key}{value!r}{reason}"])[:16]
