"""Damaged files of every kind that is read: is each one named, and does none give a wrong result?

Every case writes intact files, damages one of them and reads them again. What may follow: an error of
ours, a warning, or the same result as before. A foreign exception, or a minute without an answer, is
counted as foreign. A result that differs without a word is wrong where the format carries a checksum;
formats without one (npy, old torch files, safetensors of others, JPEG, plain text) cannot tell a changed
number from the one that was saved, and such cases are counted as unnoticed.

    python -m tests.fuzz.files [--each 120] [--seed 0] [--only npy]
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise.errors import LikewiseError
from tests.fuzz.damage import WAYS, Damage
from tests.fuzz.file_kinds import KINDS, FileKind

SECONDS = 60  # of work without an answer, after which a file is counted as hanging
PATIENCE = 900  # of waiting, as for a pipe, on a busy machine
OUTCOMES = ("refused", "warned", "same", "unnoticed", "wrong", "foreign", "outside")
BAD = ("wrong", "foreign", "outside")
Hostile = Callable[[Path, random.Random, Path], None]  # a file to change, chance, a folder outside


@dataclass(frozen=True)
class DamagedFile:
    """One damaged file and what reading it came to."""

    kind: str
    way: str
    seed: str
    outcome: str
    detail: str = ""


def fuzz(kind: FileKind, each: int, seed: int, hostile: Sequence[Hostile] = ()) -> Iterator[DamagedFile]:
    """Damage the files of one kind in `each` ways, or by `hostile` ones; the same seed gives the same damage.

    What is read lies where the intact files were read, since some results name their folder.
    """
    with tempfile.TemporaryDirectory() as root:
        intact, broken, outside = (Path(root).resolve() / name for name in ("intact", "broken", "outside"))
        broken.mkdir()
        outside.mkdir()
        np.save(outside / "secret.npy", np.eye(4))
        kind.write(broken)
        shutil.copytree(broken, intact)
        expected = kind.read(broken)
        files = sorted(path.relative_to(intact) for path in intact.rglob("*") if path.is_file() and kind.damages(path))
        for number in range(each):
            name = f"{kind.name}-{seed}-{number}{'-hostile' * bool(hostile)}"
            chance = random.Random(name)
            shutil.rmtree(broken)
            shutil.copytree(intact, broken)
            ways = hostile or [_by_content(way) for way in WAYS]
            way, file = ways[number % len(ways)], broken / chance.choice(files)
            way(file, chance, outside)
            outcome, detail = _outcome(kind, broken, expected, forged=bool(hostile))
            yield DamagedFile(kind.name, way.__name__, name, outcome, detail)


def _by_content(way: Damage) -> Hostile:
    def damage(path: Path, chance: random.Random, outside: Path) -> None:
        path.write_bytes(way(path.read_bytes(), chance))

    damage.__name__ = way.__name__
    return damage


def _outcome(kind: FileKind, folder: Path, expected: Any, *, forged: bool) -> tuple[str, str]:
    """What reading came to. Forged files may say something else; only what reads outside or breaks is wrong."""
    opened: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as warned, _in_time(), watched(folder, opened):
            warnings.simplefilter("always")
            found = kind.read(folder)
    except LikewiseError as error:
        return ("outside", opened[0]) if opened and kind.folder else ("refused", str(error))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
        return "foreign", detail
    if opened and kind.folder:
        return "outside", opened[0]
    if same(found, expected):
        return "same", ""
    if warned:
        return "warned", str(warned[0].message)
    return ("wrong" if kind.checked and not forged else "unnoticed"), ""


_ALLOWED = tuple(
    os.path.realpath(path)
    for path in (
        *(sys.prefix, sys.base_prefix, Path(likewise.__file__).parents[2], "/proc", "/sys", "/usr", "/dev/null"),
        *(Path.home() / ".cache", Path.home() / ".config"),
    )
)
_watch: list[tuple[str, list[str]]] = []  # folders that reads may not leave, and what was opened elsewhere


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watch or event not in (
        "open",
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
        "sqlite3.connect",
    ):
        return
    folder, opened = _watch[-1]
    if event in ("open", "sqlite3.connect"):
        if not isinstance(arguments[0], (str, bytes)) or arguments[0] == ":memory:":
            return
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith((folder, *_ALLOWED)):
            return
    opened.append(f"{event} {arguments!r}"[:300])


@contextmanager
def watched(folder: Path, opened: list[str]) -> Iterator[None]:
    """Note whatever Python opens outside of a folder, but for itself, and every connection and program."""
    if not _hooked:
        sys.addaudithook(_audit)  # for the rest of the process: hooks cannot be taken away
        _hooked.append(True)
    _watch.append((os.path.realpath(folder), opened))
    try:
        yield
    finally:
        _watch.pop()


_hooked: list[bool] = []


@contextmanager
def _in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer within {SECONDS} seconds")

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, SECONDS), signal.ITIMER_REAL: (signal.SIGALRM, PATIENCE)}
    before = {number: signal.signal(number, stop) for number, _ in timers.values()}
    for timer, (_, seconds) in timers.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal, arrays to the last bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(*pair) for pair in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and repr(a) == repr(b)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=120, help="damaged files of every kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="names of kinds; all without it")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if not options.only or kind.name in options.only]
    total: collections.Counter[str] = collections.Counter()
    print(f"{'kind':22}{'checksum':10}" + "".join(f"{name:>11}" for name in OUTCOMES), flush=True)
    for kind in kinds:
        cases = list(fuzz(kind, options.each, options.seed))
        counts = collections.Counter(case.outcome for case in cases)
        total += counts
        row = "".join(f"{counts[name]:11}" for name in OUTCOMES)
        print(f"{kind.name:22}{'yes' if kind.checked else 'no':10}{row}", flush=True)
        for case in cases:
            if case.outcome in BAD:
                print(f"  {case.outcome} {case.seed} {case.way}: {case.detail}", flush=True)
    row = "".join(f"{total[name]:11}" for name in OUTCOMES)
    print(f"{'all':32}{row}\n{total.total()} damaged files")
    sys.exit(1 if any(total[outcome] for outcome in BAD) else 0)


if __name__ == "__main__":
    main()
