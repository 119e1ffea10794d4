"""Writing: whole or not at all, with a sentence where it cannot be, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise._base import files
from likewise._base.files import replace_whole, write_whole
from likewise._base.manifest import MANIFEST, is_regular
from likewise.classes import Inspector, animate
from likewise.errors import InputError, LikewiseError, StoreError
from likewise.networks import save


def refusal(function: Any, *given: Any, **options: Any) -> str:
    with pytest.raises(LikewiseError) as error:
        function(*given, **options)
    return str(error.value)


def in_another_process(code: str) -> str:
    """What a Python process prints last, whether it fails or not."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


SMALL_FILES = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""


def test_a_training_without_room_says_so(tmp_path: Path) -> None:
    told = in_another_process(
        SMALL_FILES + "import sys; from likewise.cli import main\n"
        f"main(['train', 'zoo:mlp', 'digits:train[:40]', '--epochs', '1', '--out', '{tmp_path}'])"
    )
    assert told == (
        f"likewise: no room to write {tmp_path / 'checkpoint.safetensors'}. Nothing of it was kept; "
        "make room and run again to resume."
    )
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


@pytest.mark.parametrize(
    ("out", "reason"), [("/proc/nowhere", "No such file or directory"), ("a" * 300, "File name too long")]
)
def test_a_training_that_cannot_write_says_so_before_it_starts(out: str, reason: str) -> None:
    sentence = f"cannot write {out}: {reason}."
    assert refusal(likewise.train, "zoo:mlp", "digits:train[:40]", epochs=1, out=out) == sentence
    assert refusal(Inspector, 3, out=out) == sentence
    assert refusal(likewise.SimilarityMatrix(["a"], [[1]]).save, f"{out}/m") == sentence


def test_an_empty_folder_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from likewise.cli import main

    for words in (["--out", ""], ["--out="]):
        with pytest.raises(SystemExit):
            main(["train", "zoo:mlp", "digits", *words])
        assert capsys.readouterr().err == "likewise: --out is empty. Give it a value, or leave it out.\n"
    sentence = "out is empty. Name a folder."
    assert refusal(likewise.train, "zoo:mlp", "digits:train[:40]", epochs=1, out="") == sentence
    assert refusal(Inspector, 3, out="") == sentence


def test_a_name_that_is_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from likewise.cli import main

    name = os.fsdecode(b"bad\xff.npy")
    with pytest.raises(SystemExit):
        main(["compare", name, name])
    sentence = "'bad\\udcff.npy' is no name in UTF-8. Rename it."
    assert capsys.readouterr().err == f"likewise: {sentence}\n"
    assert refusal(write_whole, tmp_path / name / "x", b"") == (
        f"{str(tmp_path / name)!r} is no name in UTF-8. Rename it."
    )
    (tmp_path / os.fsdecode(b"cat\xff")).mkdir()
    assert refusal(likewise.dataset, f"imagefolder:{tmp_path}").endswith("no name in UTF-8. Rename it.")


def test_a_writer_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    net = likewise.network("zoo:lenet")
    net.broken = torch.nn.UninitializedParameter()
    with pytest.raises(ValueError, match="uninitialized"):
        save(net, tmp_path / "w.safetensors")

    def fails(part: Path) -> None:
        part.write_bytes(b"half")
        raise InterruptedError

    with pytest.raises(StoreError):
        replace_whole(tmp_path / "a", fails)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
from pathlib import Path
from likewise._base.files import replace_whole
def forever(part):
    part.write_bytes(b'half')
    print('writing', flush=True)
    time.sleep(3600)
replace_whole(Path(sys.argv[1]), forever)
"""


def test_what_a_killed_writer_left_is_removed_and_a_living_ones_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [sys.executable, "-c", KILLED]
    writers = [subprocess.Popen([*words, str(tmp_path / name)], stdout=subprocess.PIPE) for name in "ab"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
    writers[0].send_signal(signal.SIGKILL)
    writers[0].communicate()
    assert len(list(tmp_path.glob(".*.part"))) == 2
    monkeypatch.setattr(files, "_cleaned", set())
    (tmp_path / f".{files._machine()}-x-y.part").touch()  # somebody else's: no process is named
    write_whole(tmp_path / "c", b"whole")
    left = {path.name for path in tmp_path.iterdir()}
    assert len(left) == 3
    assert {"c", f".{files._machine()}-x-y.part"} < left
    assert any(f"-{writers[1].pid}-" in name for name in left)
    writers[1].kill()
    writers[1].communicate()


CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*CONTAINER, "true"], stderr=subprocess.DEVNULL).returncode != 0,
    reason="a container cannot be made here",
)
def test_containers_of_one_host_name_leave_each_others_files_alone(tmp_path: Path) -> None:
    writing = files.part_name(tmp_path)  # of this process, whose number means another or none in there
    writing.write_bytes(b"half")
    write = "import sys; from pathlib import Path; from likewise._base.files import write_whole\n"
    code = write + "write_whole(Path(sys.argv[1]) / 'whole', b'of a container')"
    subprocess.run([*CONTAINER, sys.executable, "-c", code, str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {writing.name, "whole"}


def test_a_name_of_the_greatest_length_can_be_written(tmp_path: Path) -> None:
    write_whole(tmp_path / ("a" * 255), b"x")
    assert (tmp_path / ("a" * 255)).read_bytes() == b"x"


def test_a_folder_is_looked_through_once_per_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_cleaned", set())
    looked: list[str] = []
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda self, p: looked.append(p) or glob(self, p))
    for name in "abc":
        write_whole(tmp_path / name, b"x")
    assert len(looked) == 1


def test_a_class_named_like_markup_leaves_the_film_whole(tmp_path: Path) -> None:
    names = ["<!--<script>", "</script><b>", "cat"]
    inspector = Inspector(names)
    inspector.update(np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1]))
    inspector.report([[1.0, 0.2], [0.9, 0.3], [-1.0, 0.0]])
    page = animate(inspector, tmp_path / "film.html", title="<!--<script>").read_text()
    script = page[page.index("<script>") + 8 : page.rindex("</script>")]
    data = script[script.index("const data = ") : script.index("\n", script.index("const data"))]
    assert "<" not in data
    assert "\\u003c!--\\u003cscript>" in data
    assert page.count("</script>") == 1


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("zoo:lenet,classes=-1", "classes of zoo:lenet is -1. Give at least 1."),
        ("zoo:lenet,classes=abc", "classes of zoo:lenet is 'abc'. Give a whole number of at least 1."),
        ("zoo:lenet,classes=1e9", "classes of zoo:lenet is 1000000000.0. Give a whole number of at least 1."),
        (
            "zoo:lenet,classes=" + "9" * 100_000,
            f"'zoo:lenet,classes={'9' * 22}'… has 100,018 signs, and an address has at most 4,096. Shorten it.",
        ),
        (
            "timm:hf-hub:../../x",
            "timm:hf-hub:../../x cannot be built: Repo id must be in the form 'repo_name' or "
            "'namespace/repo_name': '../../x'. Use `repo_type` argument if needed. Check its name "
            "and options.",
        ),
        (f"zoo:lenet@{'a' * 300}.pt", f"there are no weights at {'a' * 300}.pt. Give the path of a file."),
    ],
)
def test_an_address_that_cannot_be_built_is_refused(address: str, sentence: str, vision: None) -> None:
    assert refusal(likewise.network, address) == sentence


def test_a_network_larger_than_memory_is_refused_before_it_is_built() -> None:
    start = time.process_time()
    with pytest.raises(InputError) as error:
        likewise.network("zoo:lenet,size=100000000")
    assert str(error.value).startswith("zoo:lenet,size=100000000 would take 4,799,998,848 GB of ")
    assert str(error.value).endswith(" GB are free. Choose smaller options.")
    assert time.process_time() - start < 5


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    sentence = f"{tmp_path / 'pipe.safetensors'} is a pipe, not a file. Give the path of a file."
    assert refusal(write_whole, tmp_path / "pipe.safetensors", b"x") == sentence
    assert refusal(likewise.SimilarityMatrix(["a"], [[1]]).save, tmp_path / "pipe") == sentence
    assert [path.is_fifo() for path in tmp_path.iterdir()] == [True]


def test_a_file_that_is_replaced_at_this_moment_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"x")
    looks: list[int] = []
    plain = Path.stat

    def look(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        seen = plain(path, follow_symlinks=follow_symlinks)
        looks.append(0)
        return os.stat_result([0o644, *seen[1:]]) if len(looks) % 3 else seen

    monkeypatch.setattr(Path, "stat", look)
    files.check_regular(tmp_path / "a")
    assert is_regular(tmp_path / "a")
    assert len(looks) == 6
