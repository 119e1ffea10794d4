"""What every store holds to, the one of a machine and the one of a shared disk; and artifacts at addresses."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.errors import DamagedStoreWarning, InputError, StoreError
from likewise.work import journal
from likewise.work.store import Store
from tests.helpers import sentence

KINDS = ["local", "shared"]
FACTS = ("", "cka", "a", "b")


@pytest.fixture(params=KINDS)
def shared(request: pytest.FixtureRequest) -> bool:
    return request.param == "shared"


def test_scores_come_back_with_their_reasons(tmp_path: Path, shared: bool) -> None:
    with Store(tmp_path, shared=shared) as store:
        store.put("one", 0.1 + 0.2, *FACTS)
        store.put_many([("none", float("nan"), "no reason", "cka", "a", "b"), ("whole", 1, *FACTS)])
        store.put("large", np.float64(1e308), *FACTS)
        assert len(store) == 4
    with Store(tmp_path) as again:  # the folder says which kind it is
        scores = again.find(["one", "none", "whole", "large", "missing"])
        assert len(again) == 4
    value, reason = scores.pop("none")
    assert np.isnan(value)
    assert reason == "no reason"
    assert scores == {"one": (0.1 + 0.2, ""), "whole": (1.0, ""), "large": (1e308, "")}


def test_a_second_score_of_a_key_changes_nothing_and_others_see_the_first(tmp_path: Path, shared: bool) -> None:
    with Store(tmp_path, shared=shared) as first, Store(tmp_path) as second:
        first.put("key", 1.0, *FACTS)
        assert second.find(["key"]) == {"key": (1.0, "")}
        second.put("key", 2.0, *FACTS)
        assert first.find(["key"]) == second.find(["key"]) == {"key": (1.0, "")}
        assert len(first) == len(second) == 1
    with Store(tmp_path) as third:
        assert third.find(["key"]) == {"key": (1.0, "")}


def test_comparisons_resume_and_compute_nothing_twice(tmp_path: Path, shared: bool, monkeypatch) -> None:
    views = {name: np.random.default_rng(i).normal(size=(40, 6)) for i, name in enumerate("abc")}
    Store(tmp_path, shared=shared).close()
    first = likewise.compare(views, ["rsa", "jaccard"], store=tmp_path, progress=False)
    from likewise.measures.function import Measure

    def refuse(self: Measure, pair: object) -> float:
        raise AssertionError("computed again")

    monkeypatch.setattr(Measure, "score", refuse)
    again = likewise.compare(views, ["rsa", "jaccard"], store=tmp_path, progress=False)
    for name in ("rsa", "jaccard"):
        assert np.array_equal(again[name].values, first[name].values)


WRITERS = """
import os, signal, sys, time
from pathlib import Path
from likewise.work.store import Store
folder, notes = Path(sys.argv[1]), Path(sys.argv[2])
def write(me):
    with Store(folder) as store, (notes / str(me)).open("a", buffering=1) as note:
        for i in range(40):
            store.put(f"{me} {i}", float(i), "", "m", "a", "b")
            store.put(f"everybody {i}", float(i), "", "m", "a", "b")
            print(i, file=note)  # it was accepted
            if me == 3 and i == 20: signal.pause()
pids = []
for me in range(8):
    pids.append(os.fork())
    if pids[-1] == 0:
        write(me)
        os._exit(0)
while not (notes / "3").exists() or len((notes / "3").read_text().split()) < 5: time.sleep(0.001)
os.kill(pids[3], signal.SIGKILL)
statuses = [os.waitpid(pid, 0)[1] for pid in pids]
print([status for me, status in enumerate(statuses) if me != 3])
"""


def test_eight_writers_of_whom_one_is_killed_lose_nothing_that_was_accepted(tmp_path: Path, shared: bool) -> None:
    folder, notes = tmp_path / "store", tmp_path / "notes"
    notes.mkdir()
    Store(folder, shared=shared).close()
    command = [sys.executable, "-c", WRITERS, str(folder), str(notes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert (done.stderr, done.stdout) == ("", f"{[0] * 7}\n")
    accepted = {me: [int(i) for i in (notes / str(me)).read_text().split()] for me in range(8)}
    assert [len(accepted[me]) for me in range(8) if me != 3] == [40] * 7
    assert 5 <= len(accepted[3]) <= 21
    with Store(folder) as store:
        keys = {f"{me} {i}": float(i) for me, numbers in accepted.items() for i in numbers}
        keys |= {f"everybody {i}": float(i) for i in range(40)}
        assert {key: value for key, (value, _) in store.find(keys).items()} == keys
        store.put("after", 1.0, *FACTS)
        assert store.find(["after"]) == {"after": (1.0, "")}


def test_a_store_stays_what_it_was_made_as(tmp_path: Path, shared: bool) -> None:
    Store(tmp_path, shared=shared).close()
    kind = "several machines" if shared else "one machine"
    assert sentence(StoreError, Store, tmp_path, shared=not shared) == (
        f"{tmp_path} was made as a store for {kind}. Name another folder."
    )
    (tmp_path / "likewise.json").unlink()
    with Store(tmp_path) as again:
        assert again._scores.path == tmp_path / ("scores" if shared else "scores.sqlite")


# --- shared disks -------------------------------------------------------------------------------------


def lines_of(folder: Path) -> Path:
    [path] = (folder / "scores").iterdir()
    return path


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_short_counts_as_absent(tmp_path: Path, cut: int) -> None:
    with Store(tmp_path, shared=True) as store:
        store.put("first", 1.0, *FACTS)
        store.put("second", 2.0, *FACTS)
    path = lines_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    with Store(tmp_path) as again:
        assert again.find(["first", "second"]) == {"first": (1.0, "")}
        again.put("second", 2.0, *FACTS)
        assert again.find(["second"]) == {"second": (2.0, "")}


@pytest.mark.parametrize("text", [b"[]", b"{}", b"[[1]]", b"[[" * 50_000, b"null", b'[["k",1,"","","","","",0.0,""]]'])
def test_a_damaged_line_is_named_and_its_scores_are_computed_anew(tmp_path: Path, text: bytes) -> None:
    import zlib

    with Store(tmp_path, shared=True) as store:
        store.put("first", 1.0, *FACTS)
        store.put("second", 2.0, *FACTS)
    path = lines_of(tmp_path)
    content = path.read_bytes()
    changed = content.replace(b"second", b"sekond")
    path.write_bytes(changed)
    with Store(tmp_path) as again, pytest.warns(DamagedStoreWarning) as caught:
        assert again.find(["first", "second", "sekond"]) == {"first": (1.0, "")}
    assert str(caught[0].message) == (
        f"{path} holds a line that does not match its checksum; its scores are computed anew."
    )
    path.write_bytes(content + f"{zlib.crc32(text):08x} ".encode() + text + b"\n")  # of a stranger, with a checksum
    if text == b"[]":
        assert len(Store(tmp_path)) == 2
        return
    with Store(tmp_path) as again, pytest.warns(DamagedStoreWarning):
        assert set(again.find(["first", "second", "k"])) == {"first", "second"}


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_only_files_of_the_folder_are_read(tmp_path: Path, kind: str) -> None:
    Store(tmp_path / "s", shared=True).close()
    path = tmp_path / "s" / "scores" / "other.scores"
    (tmp_path / "diary").write_text("precious")
    path.symlink_to(tmp_path / "diary") if kind == "link" else os.mkfifo(path)
    with Store(tmp_path / "s") as store:
        assert sentence(StoreError, store.find, ["key"]) == (
            f"{path} is {'a link' if kind == 'link' else 'no file'}, and a store holds files of its own. Remove it, or "
            "name another folder."
        )


def test_a_disk_of_another_machine_gets_a_store_for_several(tmp_path: Path, monkeypatch) -> None:
    assert not journal.is_shared(tmp_path / "new" / "store")
    kinds = {line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines()}
    monkeypatch.setattr(journal, "NETWORK", kinds)  # as if each of them were one
    with Store(tmp_path / "new" / "store") as store:
        store.put("key", 1.0, *FACTS)
    assert [path.suffix for path in (tmp_path / "new" / "store" / "scores").iterdir()] == [".scores"]


# --- artifacts at addresses ---------------------------------------------------------------------------


@pytest.fixture(params=["memory", "file"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}" if request.param == "memory" else (tmp_path / "elsewhere").as_uri()


def test_artifacts_at_an_address_are_found_by_another_machine(tmp_path: Path, address: str) -> None:
    with Store(tmp_path / "here", artifacts=address) as here, Store(tmp_path / "there", artifacts=address) as there:
        assert there.artifacts("draws").find("key") is None
        here.artifacts("draws").put("key", {"scores": torch.eye(3)}, {"measure": "cka"})
        assert torch.equal(there.artifacts("draws").find("key")["scores"], torch.eye(3))
        assert there.artifacts("views").find("key") is None
        there.artifacts("draws").put("key", {"scores": torch.eye(3)}, {"measure": "cka"})
    assert (tmp_path / "there" / "draws" / "key.safetensors").is_file()
    assert not list(tmp_path.rglob("*.part"))


def test_a_damaged_artifact_at_an_address_is_named_and_written_again(tmp_path: Path) -> None:
    far = tmp_path / "elsewhere"
    with Store(tmp_path / "here", artifacts=far.as_uri()) as here:
        here.artifacts("draws").put("key", {"scores": torch.eye(3)}, {})
    path = far / "draws" / "key.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with Store(tmp_path / "there", artifacts=far.as_uri()) as there:
        with pytest.warns(DamagedStoreWarning, match="does not match its checksum"):
            assert there.artifacts("draws").find("key") is None
        there.artifacts("draws").put("key", {"scores": torch.eye(3)}, {})
    with Store(tmp_path / "third", artifacts=far.as_uri()) as third:
        assert torch.equal(third.artifacts("draws").find("key")["scores"], torch.eye(3))


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "a", artifacts="bucket") as store:
        assert sentence(InputError, store.artifacts, "draws") == (
            "'bucket/draws' is no address. Give one like 's3://bucket/folder'."
        )
    with Store(tmp_path / "a", artifacts="nosuch://bucket") as store:
        assert sentence(InputError, store.artifacts, "draws") == (
            "'nosuch://bucket/draws' cannot be used for artifacts: Protocol not known: nosuch."
        )
