from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise._base import folders, manifest, sealed
from likewise._base.files import write_whole
from likewise._base.folders import claim, clear, file_of, read_bytes, read_json, read_text, remove
from likewise._base.manifest import MANIFEST, listed
from likewise.errors import StoreError


def refusal(function: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(StoreError) as error:
        function(*arguments, **options)
    return str(error.value)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder of ours with a table below it."""
    folder = tmp_path / "run"
    claim(folder)
    write_whole(folder / "rows" / "a.csv", b"x,y\n1,2\n")
    return folder


def test_an_empty_folder_is_claimed_and_one_of_ours_again(tmp_path: Path) -> None:
    for _ in range(2):
        claim(tmp_path)
    assert (tmp_path / MANIFEST).is_file()
    claim(tmp_path / "inside")  # covered by the manifest above it
    assert not (tmp_path / "inside" / MANIFEST).exists()


def test_a_folder_with_files_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.py").write_text("code")
    assert refusal(claim, tmp_path) == (
        f"{tmp_path} holds files that likewise did not write. Name a new or an empty folder, as in "
        f"{tmp_path / 'likewise'}."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["precious.py"]
    assert (
        refusal(claim, tmp_path / "precious.py")
        == f"{tmp_path / 'precious.py'} is a file, not a folder. Name a folder."
    )


def test_a_folder_of_an_earlier_version_is_claimed_by_its_files(tmp_path: Path) -> None:
    sealed.write(tmp_path / "networks" / "a" / "weights", {"a": np.ones(3)}, {})
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "x.csv").write_text("1")
    (tmp_path / "checks").mkdir()
    older = ["rows/*.csv", "checks/*"]
    for foreign in ("rows/x.txt", "rows/deep/x.csv", "x.csv", "checks/deep/er/x", "weights.safetensors"):
        (tmp_path / foreign).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / foreign).write_text("mine")
        assert "holds files that likewise did not write" in refusal(claim, tmp_path, older=older)
        (tmp_path / foreign).unlink()
        for folder in ("rows/deep", "checks/deep/er", "checks/deep"):
            (tmp_path / folder).rmdir() if (tmp_path / folder).exists() else None
    claim(tmp_path, older=older)
    for name in ("rows/x.csv", "networks/a/weights.safetensors"):
        write_whole(tmp_path / name, b"2")
    assert read_bytes(tmp_path, "rows/x.csv") == b"2"


def test_names_alone_do_not_make_a_folder_ours(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("mine")
    assert "holds files that likewise did not write" in refusal(claim, tmp_path, older=["results.csv"])
    (tmp_path / "results.csv").unlink()
    (tmp_path / "weights.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")  # of another program
    assert "holds files that likewise did not write" in refusal(claim, tmp_path)
    (tmp_path / "weights.safetensors").unlink()
    (tmp_path / "link").symlink_to(tmp_path.parent)
    assert "holds files that likewise did not write" in refusal(claim, tmp_path, older=["*"])


def test_only_listed_files_are_removed(run: Path, tmp_path: Path) -> None:
    (run / "rows" / "mine.txt").write_text("mine")
    for name in ("likewise.json", "scores"):
        write_whole(run / "store" / name, b"{}")
    (tmp_path / "elsewhere").mkdir()
    write_whole(run / "linked" / "b.csv", b"ours")
    (run / "linked").rename(run / "moved")
    (tmp_path / "elsewhere" / "b.csv").write_text("mine")
    (run / "linked").symlink_to(tmp_path / "elsewhere")
    remove(run / "rows" / "mine.txt")
    clear(run)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {
        *(f"run/{name}" for name in (MANIFEST, "rows/mine.txt", "store/likewise.json", "store/scores", "moved/b.csv")),
        "elsewhere/b.csv",
    }


def test_a_manifest_that_does_not_fit_on_the_disk_lists_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, content: write(file, content[:10]))
        assert "no room to write" in refusal(write_whole, run / "b.csv", b"1")
    assert not (run / "b.csv").exists()
    write_whole(run / "b.csv", b"1")
    assert read_bytes(run, "b.csv", required=True) == b"1"


def test_a_link_in_place_of_the_manifest_claims_nothing(tmp_path: Path) -> None:
    target, folder = tmp_path / "target", tmp_path / "folder"
    folder.mkdir()
    target.write_text("mine")
    (folder / MANIFEST).symlink_to(target)
    assert "holds files that likewise did not write" in refusal(claim, folder)
    assert target.read_text() == "mine"


def test_files_of_somebody_else_in_a_folder_of_ours_stay(run: Path) -> None:
    (run / "notes.txt").write_text("mine")
    assert refusal(write_whole, run / "notes.txt", b"ours") == (
        f"cannot write {run / 'notes.txt'}: likewise did not write what is there. Move it, and run again."
    )
    assert (run / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in run.iterdir()) == [MANIFEST, "notes.txt", "rows"]
    assert listed(run / MANIFEST) == [run / "rows" / "a.csv"]


def test_a_link_below_a_folder_of_ours_leads_nowhere(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "out").symlink_to(tmp_path / "elsewhere")
    assert "leads out of" in refusal(write_whole, run / "out" / "a", b"x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("position", range(8))
def test_any_changed_byte_of_a_listed_file_is_found(run: Path, position: int) -> None:
    path = run / "rows" / "a.csv"
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))
    sentence = f"{path} is damaged: it does not match its checksum. Run again what wrote it."
    for read in (read_bytes, read_text, file_of):
        assert refusal(read, run, "rows/a.csv") == sentence
    write_whole(path, b"x,y\n3,4\n")
    assert read_text(run, "rows/a.csv") == "x,y\n3,4\n"


def test_every_moment_of_a_kill_leaves_a_file_that_matches(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)  # after the new version was listed, before it has its name
        with pytest.raises(KeyboardInterrupt):
            write_whole(run / "rows" / "a.csv", b"new")
    assert read_bytes(run, "rows/a.csv") == b"x,y\n1,2\n"
    with (run / MANIFEST).open("ab") as file:
        file.write(b"0123 torn lin")
    write_whole(run / "rows" / "a.csv", b"new")
    assert read_bytes(run, "rows/a.csv") == b"new"


def test_files_that_only_we_write_have_to_be_listed(run: Path) -> None:
    (run / "rows" / "b.csv").write_text("1")
    assert read_text(run, "rows/b.csv") == "1"
    assert "does not match its checksum" in refusal(read_text, run, "rows/b.csv", required=True)
    (run / MANIFEST).unlink()
    assert read_text(run, "rows/b.csv", required=True) == "1"  # of an earlier version


def test_files_that_carry_their_own_checksum_are_listed_as_such(run: Path) -> None:
    path = sealed.write(run / "x", {"a": np.ones(3)}, {})
    assert file_of(run, "x.safetensors", required=True) == path
    assert set(listed(run / MANIFEST)) == {run / "rows" / "a.csv", path}


@pytest.mark.parametrize("name", ["../a", "/etc/hostname", "rows/../../a", "out/a", "loop/a"])
def test_names_that_lead_out_of_a_folder_are_refused(run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("secret")
    (run / "out").symlink_to(tmp_path)
    (run / "loop").symlink_to(run / "loop")
    for read in (read_bytes, file_of):
        assert refusal(read, run, name) == (
            f"{run / name} leads out of {run}, whose files may only be read inside of it. Copy it there."
        )


@pytest.mark.parametrize("name", [None, 3, [], "", "a\0b"])
def test_what_is_no_name_is_refused(run: Path, name: object) -> None:
    assert refusal(file_of, run, name) == f"{run} names {name!r} as a file. Give the name of a file inside of it."


def test_pipes_folders_and_large_files_are_refused(run: Path) -> None:
    os.mkfifo(run / "pipe")
    assert refusal(read_text, run, "pipe") == f"{run / 'pipe'} is a pipe, not a file. Give the path of a file."
    assert refusal(file_of, run, "rows") == f"{run / 'rows'} is a folder, not a file. Give the path of a file."
    assert refusal(file_of, run, "none") == f"there is no file {run / 'none'}. Check the path."
    assert refusal(file_of, run, "rows/a.csv", limit=7) == (
        f"{run / 'rows' / 'a.csv'} has 8 bytes, more than the 7 that such a file may have."
    )
    assert refusal(read_bytes, run, "rows/a.csv", limit=7) == (
        f"{run / 'rows' / 'a.csv'} has more than the 7 bytes that such a file may have."
    )


@pytest.mark.parametrize(
    ("text", "what"), [("{", "it is no JSON"), ("[" * 100_000, "it is no JSON"), ("[1]", "it holds [1]")]
)
def test_a_record_that_is_none_is_refused(run: Path, text: str, what: str) -> None:
    write_whole(run / "run.json", text.encode())
    assert refusal(read_json, run, "run.json") == f"{run / 'run.json'} is damaged: {what}. Run again what wrote it."
    write_whole(run / "run.json", b'{"a": 1}')
    assert read_json(run, "run.json") == {"a": 1}


# --- several processes at once ----------------------------------------------------------------------


def test_two_processes_may_write_one_new_file(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, plain = run / "rows" / "b.csv", manifest._entries

    def entries(listed: Path) -> dict[str, tuple[str, ...]]:
        monkeypatch.setattr(manifest, "_entries", plain)
        before = plain(listed)
        write_whole(path, b"of another process")  # once this one has read the list
        return before

    monkeypatch.setattr(manifest, "_entries", entries)
    write_whole(path, b"of this one")
    assert read_bytes(run, "rows/b.csv") == b"of this one"


def test_a_file_that_another_process_writes_anew_is_not_taken_for_damaged(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plain = run / "rows" / "a.csv", folders.checksum_of

    def checksum_of(file: Path) -> str:
        write_whole(path, b"x,y\n3,4\n")
        return plain(file)

    monkeypatch.setattr(folders, "checksum_of", checksum_of)
    assert file_of(run, "rows/a.csv") == path


def test_a_file_that_goes_while_it_is_looked_at_is_said_to_be_missing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "is_file", lambda path: path.unlink() is None)
    assert refusal(file_of, run, "rows/a.csv") == f"there is no file {run / 'rows' / 'a.csv'}. Check the path."
