"""The database of scores: what is not ours is refused before a byte is written, and several drivers may meet damage."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.errors import DamagedStoreWarning, StoreError
from likewise.work import database
from likewise.work.store import Store
from tests.helpers import sentence

TABLE = "CREATE TABLE scores (key TEXT PRIMARY KEY, value REAL)"
OURS = database.SCHEMA.replace("IF NOT EXISTS ", "")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
COLUMNS = "hex(i) AS key, 1.0 AS value, '' AS reason, '' AS measure, '' AS a, '' AS b, '' AS run, 0.0 AS at, '' AS seal"
STRANGERS = {
    "another table": "CREATE TABLE diary (day TEXT)",
    "other columns": TABLE,
    "an endless view": f"CREATE VIEW scores AS {ENDLESS.replace('SELECT i FROM', f'SELECT {COLUMNS} FROM')}",
    "a trigger": f"{OURS}; CREATE TRIGGER no BEFORE INSERT ON scores BEGIN SELECT RAISE(ABORT, 'no'); END",
    "a view beside": f"{OURS}; CREATE VIEW others AS {ENDLESS}",
    "an index": f"{OURS}; CREATE INDEX others ON scores (value)",
    "a generated column": OURS.replace("seal TEXT", "seal TEXT AS (upper(key))"),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with one score."""
    with Store(tmp_path / "s") as store:
        store.put("key", 0.5, "", "cka", "a", "b")
    return tmp_path / "s"


@pytest.mark.parametrize("kind", STRANGERS)
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_with_other_things_than_scores_is_refused_without_a_write(
    folder: Path, kind: str, mode: str
) -> None:
    path = folder / "scores.sqlite"
    path.unlink()
    stranger = sqlite3.connect(path)
    stranger.execute(f"PRAGMA journal_mode={mode}")
    stranger.executescript(STRANGERS[kind])
    stranger.close()
    before = contents(folder)
    views = {name: np.random.default_rng(0).normal(size=(20, 3)) for name in "ab"}
    assert sentence(StoreError, likewise.compare, views, "cka", store=folder) == (
        f"{path} is no database of a store: it holds other things than a table of scores. Name another folder."
    )
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["scores.sqlite", "scores.sqlite-wal", "scores.sqlite-shm"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder"])
def test_only_a_file_of_the_folder_is_opened(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    diary, path = tmp_path / "diary.sqlite", folder / name
    elsewhere = sqlite3.connect(diary)
    elsewhere.executescript("CREATE TABLE diary (day TEXT)")
    elsewhere.close()
    before = diary.read_bytes()
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"link": diary, "dangling link": tmp_path / "new", "device": Path("/dev/zero")}[kind])
    what = "a link" if path.is_symlink() else "no file"
    assert sentence(StoreError, Store, folder) == (
        f"{path} is {what}, and a store holds files of its own. Remove it, or name another folder."
    )
    assert diary.read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir()} == {"s", "diary.sqlite"}


def test_a_journal_that_may_name_files_elsewhere_is_refused(folder: Path) -> None:
    journal = folder / "scores.sqlite-journal"
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"/precious/file" * 9)
    assert sentence(StoreError, Store, folder) == (
        f"{journal} is no file of a store. Remove it, or name another folder."
    )


@pytest.mark.parametrize("kind", ["pipe", "link", "large"])
def test_a_marker_that_is_no_small_file_is_refused(folder: Path, tmp_path: Path, kind: str) -> None:
    marker = folder / "likewise.json"
    marker.rename(tmp_path / "elsewhere.json")
    if kind == "pipe":
        os.mkfifo(marker)
    elif kind == "link":
        marker.symlink_to(tmp_path / "elsewhere.json")
    else:
        marker.write_text('{"format": 1, "more": "' + "x" * 5000 + '"}')
    assert (
        sentence(StoreError, Store, folder)
        == {
            "pipe": f"{marker} is a pipe, not a file. Give the path of a file.",
            "link": f"{marker} leads out of {folder}, whose files may only be read inside of it. Copy it there.",
            "large": f"{marker} has more than the 4,096 bytes that such a file may have.",
        }[kind]
    )


def test_artifacts_lead_nowhere_else(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "draws").symlink_to(tmp_path / "elsewhere")
    (folder / "views").mkdir()
    (folder / "views" / "key.safetensors").symlink_to(tmp_path / "elsewhere" / "x.safetensors")
    (tmp_path / "elsewhere" / "x.safetensors").write_bytes(b"")
    with Store(folder) as store:
        assert sentence(StoreError, store.artifacts, "draws") == (
            f"{folder / 'draws'} leads out of {folder}. Remove the link, or name another folder."
        )
        assert sentence(StoreError, store.artifacts("views").find, "key") == (
            f"{folder / 'views' / 'key.safetensors'} leads out of {folder / 'views'}, whose files may only be read "
            "inside of it. Copy it there."
        )


@pytest.mark.parametrize("value", ["'0.5'", "x'00ff'", "'nonsense'", "NULL", "cast(x'ff' as text)"])
@pytest.mark.parametrize("column", ["value", "reason", "seal"])
def test_a_value_of_another_type_is_computed_anew(folder: Path, column: str, value: str) -> None:
    connection = sqlite3.connect(folder / "scores.sqlite")
    connection.execute(f"UPDATE scores SET {column} = {value}")
    connection.commit()
    connection.close()
    same = column == "value" and value == "'0.5'"  # which the column makes a number of
    with Store(folder) as store:
        if same:
            assert store.find(["key"]) == {"key": (0.5, "")}
            return
        with pytest.warns(DamagedStoreWarning, match="does not match its checksum"):
            assert store.find(["key"]) == {}
        assert len(store) == 0


def test_a_statement_without_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LONGEST", 0.2)
    with Store(folder) as store, pytest.raises(StoreError) as caught, store._scores._using("read") as connection:
        connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchall()
    assert str(caught.value) == f"cannot read {folder / 'scores.sqlite'}: no end within 0.2 seconds."


def test_a_signal_ends_a_statement(folder: Path) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def count(connection: sqlite3.Connection) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchall()

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Store(folder) as store, pytest.raises(KeyboardInterrupt), store._scores._using("read") as connection:
            count(connection)
    finally:
        signal.signal(signal.SIGALRM, old)


# --- damage, met by several ---------------------------------------------------------------------------

DRIVERS = """
import os, sys, time, warnings
from pathlib import Path
from likewise.work.store import Store
warnings.simplefilter("ignore")
folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
for i in range(rounds):
    Store(folder / str(i)).close()
    (folder / str(i) / "scores.sqlite").write_bytes(b"not a database at all, " * 400)
begin = time.time() + 0.5
def drive(me):
    for i in range(rounds):
        while time.time() < begin + i * 0.1: pass
        with Store(folder / str(i)) as store:
            store.put(f"{me} first", 1.0, "", "m", "a", "b")
            store.put(f"{me} second", 2.0, "", "m", "a", "b")
for me in range(4):
    if os.fork() == 0:
        try:
            drive(me)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
sys.exit(any([os.wait()[1] for _ in range(4)]))
"""


def test_drivers_that_meet_a_damaged_database_at_once_lose_no_score(tmp_path: Path) -> None:
    rounds = 40
    command = [sys.executable, "-c", DRIVERS, str(tmp_path), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    keys = [f"{me} {which}" for me in range(4) for which in ("first", "second")]
    for i in range(rounds):
        with Store(tmp_path / str(i)) as store:
            assert set(store.find(keys)) == set(keys)
        assert len(list((tmp_path / str(i)).glob("scores.damaged-*"))) == 1


def test_a_driver_follows_when_another_sets_its_database_aside(folder: Path) -> None:
    with Store(folder) as first:
        first.put("before", 1.0, "", "m", "a", "b")
        path = folder / "scores.sqlite"
        path.rename(folder / "copy")
        path.write_bytes(b"not a database at all, " * 400)
        with pytest.warns(DamagedStoreWarning, match="is damaged. It was set aside as scores.damaged-"):
            second = Store(folder)
        first.put("after", 2.0, "", "m", "a", "b")
        second.put("other", 3.0, "", "m", "a", "b")
        assert (
            first.find(["after", "other"])
            == second.find(["after", "other"])
            == {"after": (2.0, ""), "other": (3.0, "")}
        )
        second.close()
    with Store(folder) as again:
        assert set(again.find(["after", "other"])) == {"after", "other"}


def test_a_log_that_another_process_removes_at_this_moment_is_no_foreign_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, plain = folder / "scores.sqlite-wal", Path.stat
    log.touch()

    def look(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        seen = plain(path, follow_symlinks=follow_symlinks)
        return os.stat_result([0o644, *seen[1:]]) if path == log else seen

    monkeypatch.setattr(Path, "stat", look)
    Store(folder).close()
