"""The store: killed runs go on, two processes share, damage is noticed, a full disk loses nothing."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise._base.files import part_name
from likewise.errors import DamagedStoreWarning, StoreError
from likewise.views.cache import read_view
from likewise.work.store import Store, intact, read
from tests.helpers import sentence as refusal

SCRIPT = """
import os, signal, sys, numpy as np, likewise
from likewise.work.store import Store
put = Store.put_many

def put_and_end(self, scores):
    put(self, scores)
    if len(self) >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

Store.put_many = put_and_end
rng = np.random.default_rng(0)
views = {f"n{i}": rng.normal(size=(700, 160)) for i in range(9)}
result = likewise.compare(views, ["cka", "pwcca", "gulp", "hard-correlation"], store=sys.argv[1])
np.savez(sys.argv[2], **{k: m.values for k, m in result.items()})
"""
# 36 pairs; pwcca both ways; the diagonal of hard-correlation is computed too
TOTAL = 36 + 72 + 36 + (36 + 9)


def start(tmp_path, name, out, end=TOTAL + 1):
    """A run that kills itself when so many scores are kept."""
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    return subprocess.Popen([sys.executable, str(script), str(tmp_path / name), str(tmp_path / out), str(end)])


def rows(folder):
    path = folder / "scores.sqlite"
    if not path.exists():
        return []
    database = sqlite3.connect(path, timeout=30)
    try:
        return database.execute("SELECT key, value, run, at FROM scores").fetchall()
    except sqlite3.OperationalError:  # the table is not there yet
        return []
    finally:
        database.close()


def loaded(path):
    return dict(np.load(path))


def test_a_killed_run_goes_on_without_computing_a_stored_score_again(tmp_path) -> None:
    assert start(tmp_path, "killed", "killed.npz", TOTAL // 3).wait() == -signal.SIGKILL
    before = {key: row for key, *row in rows(tmp_path / "killed")}
    assert TOTAL // 3 <= len(before) < TOTAL
    assert start(tmp_path, "killed", "killed.npz").wait() == 0
    after = {key: row for key, *row in rows(tmp_path / "killed")}
    assert len(after) == TOTAL
    assert {key: after[key] for key in before} == before  # same value, run and time: not touched
    assert start(tmp_path, "whole", "whole.npz").wait() == 0
    whole, resumed = loaded(tmp_path / "whole.npz"), loaded(tmp_path / "killed.npz")
    for name, values in whole.items():
        assert resumed[name] == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_two_processes_on_one_store_end_with_every_score_once(tmp_path) -> None:
    both = [start(tmp_path, "shared", f"{i}.npz") for i in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    found = rows(tmp_path / "shared")
    assert len(found) == len({key for key, *_ in found}) == TOTAL
    first, second = (loaded(tmp_path / f"{i}.npz") for i in range(2))
    for name, values in first.items():
        assert second[name] == pytest.approx(values, rel=1e-9, abs=1e-12)


@pytest.fixture
def views():
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=(40, 6)) for name in "abc"}


def test_a_second_run_computes_nothing(tmp_path, views, monkeypatch) -> None:
    first = likewise.compare(views, ["cka", "jaccard"], store=tmp_path / "s")
    from likewise.measures.function import Measure

    def refuse(self, pair):
        raise AssertionError("computed again")

    monkeypatch.setattr(Measure, "score", refuse)
    again = likewise.compare(views, ["cka", "jaccard"], store=tmp_path / "s")
    assert np.array_equal(again["cka"].values, first["cka"].values)
    renamed = {f"my {name}": view for name, view in views.items()}
    likewise.compare(renamed, "cka", store=tmp_path / "s")  # names do not matter, content does


def test_options_variants_and_content_are_told_apart(tmp_path, views) -> None:
    from likewise import measures

    with Store(tmp_path / "s") as store:
        for measure in ("jaccard", measures.get("jaccard", k=5), measures.get("jaccard", variant="resi")):
            likewise.compare({k: views[k] for k in "ab"}, measure, store=store)
        assert len(store) == 3
        likewise.compare({"a": views["a"], "b": views["b"] + 1e-9}, "jaccard", store=store)
        assert len(store) == 4
        likewise.compare({"b": views["b"], "a": views["a"]}, "jaccard", store=store)  # symmetric
        assert len(store) == 4


def test_undefined_pairs_are_kept_with_their_reason(tmp_path, views) -> None:
    views["dead"] = np.zeros((40, 3))
    likewise.compare(views, "cka", store=tmp_path / "s")
    again = likewise.compare(views, "cka", store=tmp_path / "s")
    assert "constant" in again.reasons["a", "dead"]


def test_a_damaged_score_is_named_and_computed_again(tmp_path, views) -> None:
    first = likewise.compare(views, "cka", store=tmp_path / "s")
    database = sqlite3.connect(tmp_path / "s" / "scores.sqlite")
    key = database.execute("SELECT min(key) FROM scores").fetchone()[0]
    database.execute("UPDATE scores SET value = 0.123 WHERE key = ?", (key,))
    database.commit()
    database.close()
    with pytest.warns(DamagedStoreWarning) as caught:
        again = likewise.compare(views, "cka", store=tmp_path / "s")
    assert str(caught[0].message) == (
        f"a score in {tmp_path / 's' / 'scores.sqlite'} does not match its checksum (key {key[:12]}); "
        "it is computed anew."
    )
    assert again.values == pytest.approx(first.values)


def test_a_damaged_database_is_set_aside_and_computed_again(tmp_path, views) -> None:
    first = likewise.compare(views, "cka", store=tmp_path / "s")
    path = tmp_path / "s" / "scores.sqlite"
    path.write_bytes(b"not a database at all, " * 400)
    with pytest.warns(DamagedStoreWarning, match="is damaged. It was set aside as scores.damaged-"):
        again = likewise.compare(views, "cka", store=tmp_path / "s")
    assert again.values == pytest.approx(first.values)
    assert len(list((tmp_path / "s").glob("scores.damaged-*"))) == 1


def test_a_folder_of_other_files_is_no_store(tmp_path, views) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")
    assert refusal(StoreError, likewise.compare, views, "cka", store=tmp_path) == (
        f"{tmp_path} is not a store: it holds other files. Name a new or an empty folder."
    )
    file = tmp_path / "photo.jpg"
    assert refusal(StoreError, Store, file) == f"{file} is a file, not a store. Name a folder."


def test_a_store_that_another_process_is_making_is_no_folder_of_other_files(tmp_path, monkeypatch) -> None:
    part_name(tmp_path).write_bytes(b"a marker being writ")
    Store(tmp_path).close()
    assert (tmp_path / "likewise.json").is_file()
    folder = tmp_path / "next"
    (folder / "adversarial").mkdir(parents=True)
    listing = Path.iterdir

    def made_meanwhile(self: Path):
        (folder / "likewise.json").write_text('{"format": 1}')
        return listing(self)

    monkeypatch.setattr(Path, "iterdir", made_meanwhile)
    with Store(folder) as store:
        assert len(store) == 0


OPENING = """
import sys, time
from likewise.work.store import Store
while time.time() < float(sys.argv[2]): pass
for i in range(20): Store(f"{sys.argv[1]}/{i}").close()
"""


def test_processes_that_open_new_stores_at_one_moment_all_get_them(tmp_path) -> None:
    begin = str(time.time() + 2)
    command = [sys.executable, "-c", OPENING, str(tmp_path), begin]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[1] for process in processes] == ["", "", ""]


def test_a_store_of_another_version_is_refused(tmp_path) -> None:
    Store(tmp_path / "s").close()
    (tmp_path / "s" / "likewise.json").write_text('{"format": 99}')
    assert refusal(StoreError, Store, tmp_path / "s") == (
        f"{tmp_path / 's'} is a store of another version (format 99, this reads 1 and 2). Name another folder."
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "1"}', "\udcff"])
def test_a_damaged_marker_is_called_damaged_and_can_be_removed(tmp_path, views, content) -> None:
    first = likewise.compare(views, "cka", store=tmp_path / "s")
    marker = tmp_path / "s" / "likewise.json"
    marker.write_bytes(content.encode(errors="surrogateescape"))
    assert refusal(StoreError, Store, tmp_path / "s") == (
        f"{marker} is damaged. Remove it and run again: the scores and views beside it have checksums of their own."
    )
    marker.unlink()
    with Store(tmp_path / "s") as store:
        assert len(store) == 3
        again = likewise.compare(views, "cka", store=store)
    assert np.array_equal(again.values, first.values)


def test_one_store_serves_several_threads(tmp_path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        rng = np.random.default_rng(seed)
        own = {name: rng.normal(size=(40, 6)) for name in "abcd"}
        return likewise.compare(own, ["cka", "rsa"], store=store, progress=False)["rsa"].values

    with Store(tmp_path / "s") as store, ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(8)))
        assert len(store) == 8 * 2 * 6
        again = [work(seed) for seed in range(8)]
    assert np.array_equal(together, again)


FULL_DISK = """
import resource, signal, sys, numpy as np, likewise
from likewise.errors import StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
views = {k: np.random.default_rng(i).normal(size=(400, 200)) for i, k in enumerate("ab")}
likewise.compare({k: v[:50, :3] for k, v in views.items()}, "cka", store=sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # no file may grow beyond
try:
    likewise.compare(views, "cka", store=sys.argv[1])
except StoreError as error:
    print(error)
"""


def test_a_full_disk_is_said_and_nothing_is_half_written(tmp_path) -> None:
    folder = tmp_path / "s"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(folder)], capture_output=True, text=True, check=True)
    sentence = done.stdout.strip()
    assert sentence.startswith(f"no room to write {folder / 'views'}{os.sep}")
    assert sentence.endswith(".safetensors. Nothing of it was kept; make room and run again to resume.")
    names = sorted(path.suffix for path in (folder / "views").iterdir())
    assert names == [".safetensors", ".safetensors"]  # those of the first comparison, no part file
    with Store(folder) as store:
        assert len(store) == 1
    for path in Path(folder / "views").iterdir():
        assert read_view([path]).n == 50


def test_a_full_database_says_that_its_scores_are_safe(tmp_path, views) -> None:
    store = Store(tmp_path / "s")
    likewise.compare(views, "cka", store=store)
    pages = store._scores._connection.execute("PRAGMA page_count").fetchone()[0]
    store._scores._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [likewise.measures.get("jaccard", k=k) for k in range(1, 39)]
    with pytest.raises(StoreError) as caught:
        likewise.compare(views, many, store=store)
    kept = len(store)
    assert str(caught.value) == (
        f"cannot write to {tmp_path / 's' / 'scores.sqlite'}: database or disk is full. The {kept} scores "
        "in it are safe; make room and run again to resume."
    )
    store.close()


# Artifacts


def test_many_scores_are_kept_at_once_or_not_at_all(tmp_path) -> None:
    scores = [(f"key {i}", i / 7, "", "cka", "a", "b") for i in range(1000)]
    with Store(tmp_path) as store:
        store.put("key 3", 0.5, "", "cka", "a", "b")
        store.put_many([*scores, ("empty", float("nan"), "no reason", "cka", "a", "b")])
        assert store.find(["key 3", "key 8"]) == {"key 3": (0.5, ""), "key 8": (8 / 7, "")}
        assert np.isnan(store.find(["empty"])["empty"][0])
        with pytest.raises(sqlite3.Error):
            store.put_many([("new", 1.0, "", "cka", "a", "b"), ("newer", 1.0, "", "cka", "a", [])])
        assert len(store) == 1001
        store.put("new", 1.0, "", "cka", "a", "b")  # nothing is left open
        assert len(store) == 1002


def test_an_artifact_is_found_by_its_key(tmp_path) -> None:
    with Store(tmp_path / "s") as store:
        folder = store.artifacts("examples")
        path = folder.put("key", {"values": torch.eye(3)}, {"attack": "pgd"})
        assert torch.equal(folder.find("key")["values"], torch.eye(3))
        assert folder.find("another") is None
    assert path == tmp_path / "s" / "examples" / "key.safetensors"
    assert read(path)[1] == intact(path) == {"attack": "pgd"}


def test_a_damaged_artifact_is_noticed_and_a_missing_one_is_named(tmp_path) -> None:
    with Store(tmp_path / "s") as store:
        folder = store.artifacts("examples")
        path = folder.put("key", {"values": torch.arange(5.0)}, {"layer": "0"})
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.warns(DamagedStoreWarning) as caught:
            assert folder.find("key") is None
    assert str(caught[0].message) == f"{path} does not match its checksum; it is computed anew."
    path.unlink()
    assert intact(path) is None
    assert refusal(StoreError, read, path) == (
        f"{path} is no file of a store, or it is damaged. Remove it, and run again."
    )
