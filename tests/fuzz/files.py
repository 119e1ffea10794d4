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
import random
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import LikewiseError
from tests.fuzz.damage import WAYS
from tests.fuzz.file_kinds import KINDS, FileKind

SECONDS = 60  # without an answer for so long, a file is counted as hanging
OUTCOMES = ("refused", "warned", "same", "unnoticed", "wrong", "foreign")


@dataclass(frozen=True)
class DamagedFile:
    """One damaged file and what reading it came to."""

    kind: str
    way: str
    seed: str
    outcome: str
    detail: str = ""


def fuzz(kind: FileKind, each: int, seed: int) -> Iterator[DamagedFile]:
    """Damage the files of one kind in `each` ways; the same seed gives the same damage."""
    with tempfile.TemporaryDirectory() as root:
        intact = Path(root) / "intact"
        intact.mkdir()
        kind.write(intact)
        expected = kind.read(intact)
        files = sorted(path for path in intact.rglob("*") if path.is_file() and kind.damages(path))
        for number in range(each):
            name = f"{kind.name}-{seed}-{number}"
            chance = random.Random(name)
            broken = Path(root) / "broken"
            shutil.copytree(intact, broken)
            way, file = WAYS[number % len(WAYS)], broken / chance.choice(files).relative_to(intact)
            before = file.read_bytes()
            after = way(before, chance)
            file.write_bytes(after)
            outcome, detail = _outcome(kind, broken, expected)
            yield DamagedFile(kind.name, way.__name__, name, outcome, detail)
            shutil.rmtree(broken)


def _outcome(kind: FileKind, folder: Path, expected: Any) -> tuple[str, str]:
    try:
        with warnings.catch_warnings(record=True) as warned, _in_time():
            warnings.simplefilter("always")
            found = kind.read(folder)
    except LikewiseError as error:
        return "refused", str(error)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
        return "foreign", detail
    if same(found, expected):
        return "same", ""
    if warned:
        return "warned", str(warned[0].message)
    return ("wrong" if kind.checked else "unnoticed"), ""


@contextmanager
def _in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
            if case.outcome in ("wrong", "foreign"):
                print(f"  {case.outcome} {case.seed} {case.way}: {case.detail}", flush=True)
    row = "".join(f"{total[name]:11}" for name in OUTCOMES)
    print(f"{'all':32}{row}\n{total.total()} damaged files")
    sys.exit(1 if total["wrong"] or total["foreign"] else 0)


if __name__ == "__main__":
    main()
