"""Every reader, with a small example: damaged and hostile files are refused in a sentence, or give what was saved.

A reader is a function that lets a file in: one that calls the door (`likewise._base.folders`), reads a sealed file or
works inside `reading`. Registering one is adding a kind of file to `tests.fuzz.file_kinds.KINDS` or to `RESULTS`: which
functions it reaches is seen by running it, so that no list has to be kept in step.

    python -m tests.contract.battery.readers [--seed 0] [--volume 5000] [--only demo]
"""

from __future__ import annotations

import argparse
import ast
import collections
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from likewise.errors import LikewiseError
from tests.contract.battery.hostile import HOSTILE
from tests.contract.battery.result_files import RESULTS
from tests.fuzz.file_kinds import KINDS, FileKind
from tests.fuzz.files import BAD, DamagedFile, fuzz

READERS: tuple[FileKind, ...] = (*KINDS, *RESULTS)
DOOR = {"file_of", "file_at", "read_bytes", "read_at", "read_text", "read_json", "reading"}


def cases(seed: int, volume: int, readers: Iterable[FileKind] = READERS) -> Iterator[DamagedFile]:
    """About `volume` damaged and hostile files, as many of every kind."""
    readers = list(readers)
    for reader in readers:
        each = max(1, -(-volume // len(readers)))
        harmed = -(-each // 2)
        yield from fuzz(reader, harmed, seed)
        yield from fuzz(reader, each - harmed, seed, HOSTILE)


def run(seed: int, volume: int) -> dict[str, int]:
    """How many files came to what; those that went wrong are printed."""
    counts: collections.Counter[str] = collections.Counter()
    for case in cases(seed, volume):
        counts[case.outcome] += 1
        if case.outcome in BAD:
            print(f"{case.outcome} {case.seed} {case.way}: {case.detail}", flush=True)
    return dict(counts)


def reader_functions(package: Path) -> set[tuple[str, str]]:
    """The functions of a package that let a file in, as (file, name)."""
    functions = set()
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            calls = (call for call in ast.walk(node) if isinstance(call, ast.Call))
            if isinstance(node, ast.FunctionDef) and node.name not in DOOR and any(map(_opens, calls)):
                functions.add((path.relative_to(package).as_posix(), node.name))
    return functions


def _opens(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in DOOR
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(of, ast.Name) and of.id == "sealed" and call.func.attr in ("read", "verify", "read_metadata")  # type: ignore[attr-defined]


def reached(package: Path, readers: Iterable[FileKind] = READERS) -> set[tuple[str, str]]:
    """The functions of a package that reading intact files runs through, as (file, name)."""
    from likewise.benchmark.results import advice, paper

    for kept in (advice._read, paper._figures):  # other tests may have read what ships with the package
        kept.cache_clear()
    seen: set[tuple[str, str]] = set()
    for reader in readers:
        with tempfile.TemporaryDirectory() as root:
            reader.write(Path(root))
            with _traced(package, seen):
                try:
                    reader.read(Path(root))
                except LikewiseError as error:
                    raise AssertionError(f"{reader.name} refuses its own example: {error}") from error
    return seen


@contextmanager
def _traced(package: Path, seen: set[tuple[str, str]]) -> Iterator[None]:
    top = f"{package}/"

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(top):
            seen.add((name.removeprefix(top), frame.f_code.co_name))

    before = sys.gettrace()
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(before)


def main() -> None:
    """Run the readers' part of the battery."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--volume", type=int, default=5000, help="damaged and hostile files, about")
    parser.add_argument("--only", nargs="*", help="names of kinds; all without it")
    options = parser.parse_args()
    readers = [reader for reader in READERS if not options.only or reader.name in options.only]
    total: collections.Counter[str] = collections.Counter()
    for case in cases(options.seed, options.volume, readers):
        total[case.outcome] += 1
        if case.outcome in BAD:
            print(f"{case.outcome} {case.seed} {case.way}: {case.detail}", flush=True)
    print(f"{total.total()} damaged or hostile files of {len(readers)} kinds: {dict(total)}")
    sys.exit(1 if any(total[outcome] for outcome in BAD) else 0)


if __name__ == "__main__":
    main()
