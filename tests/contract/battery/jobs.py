"""Every long job under every fault: a disk full at each write in turn, a kill, Ctrl-C, a second driver, a lost worker.

A job registers with a small example by a `LongJob` of `job_examples`.
After a fault there is one sentence of ours or the exit code of Ctrl-C, and no file that is half written; run again, the
job ends with what an undisturbed one gives, and files of the user beside it are as they were.

    python -m tests.contract.battery.jobs [--seed 0] [--volume 500] [--only train]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from likewise._base.manifest import MANIFEST
from likewise.errors import LikewiseError
from likewise.work.engines import engine_of
from tests.contract.battery.faults import Strike, striking
from tests.contract.battery.job_examples import JOBS, WORKERS, LongJob

FAULTS = ("full", "io", "denied", "kill", "interrupt", "killed at a moment", "two drivers")
LOST_WORKER = "lost worker"  # of jobs that take an engine
BAD = ("foreign", "lost", "wrong", "touched", "left over", "unfinished")
TIMES = {"seconds", "cpu", "wall"}
UNLIKE = ("command.txt", "checkpoint-before.safetensors")  # the clock decides when a training keeps a checkpoint


def snapshot(out: Path) -> dict[str, str]:
    """What a job wrote: a hash per file of all that does not depend on the clock; the name alone of others."""
    beside = sorted(out.parent.glob(f"{out.name}.*"))
    below = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        path.relative_to(out.parent).as_posix().removeprefix(out.name): _digest(path)
        for path in [*beside, *below]
        if path.name not in (MANIFEST, "my notes.txt", *UNLIKE) and "scores.sqlite" not in path.name
    }


def _digest(path: Path) -> str:
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        arrays = load_file(path)
        return _hash(*(part for name in sorted(arrays) for part in (name.encode(), arrays[name].tobytes())))
    if path.suffix == ".json":
        return _hash(json.dumps(_timeless(json.loads(path.read_bytes())), sort_keys=True).encode())
    if path.suffix == ".csv":
        import pandas as pd

        frame = pd.read_csv(path)
        return _hash(frame[[name for name in frame if name not in TIMES]].to_csv().encode())
    return _hash(path.read_bytes())


def _timeless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _timeless(entry) for name, entry in value.items() if name not in TIMES}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def _hash(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run gives, how many writes it takes, and how long."""

    files: Mapping[str, str | None]
    writes: int
    seconds: float


@cache
def reference(job: LongJob) -> Reference:
    """Two undisturbed runs; a file that differs between them is compared by its name alone."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "one"), Path(folder, "two")
        _quietly(job, first)
        strike = Strike(second, "none", 0)
        begin = time.perf_counter()
        with striking(strike):
            _quietly(job, second)
        seconds = time.perf_counter() - begin
        files, others = snapshot(first), snapshot(second)
        assert files.keys() == others.keys(), files.keys() ^ others.keys()
        agreed = {name: digest if others[name] == digest else None for name, digest in files.items()}
        return Reference(agreed, strike.writes, seconds)


def _quietly(job: LongJob, out: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job.run(out)


def disturb(job: LongJob, fault: str, k: int, rng: random.Random) -> tuple[str, str]:
    """One fault at the k-th write, and the run that resumes; what came of it, and in which words.

    A worker is lost at a drawn moment, or with a `k` of 0 as soon as there is one.
    """
    with tempfile.TemporaryDirectory() as name:
        out, mine = Path(name, "out"), Path(name, "mine.txt")
        mine.write_text("mine")
        outcome, detail = _strike(job, fault, k, out, rng)
        if outcome in BAD:
            return outcome, detail
        if fault not in ("kill", "killed at a moment") and (left := _unfinished(out)):
            return "left over", str(left)
        notes = out / "my notes.txt"
        users = [mine, notes] if (out / MANIFEST).is_file() else [mine]
        for path in users:
            path.write_text("mine")
        try:
            with _new_process():
                _quietly(job, out)
        except (Exception, SystemExit) as error:
            return "lost", f"{type(error).__name__}: {error}"
        if [path.is_file() and path.read_text() for path in users] != ["mine"] * len(users):
            return "touched", str(users)
        if left := _unfinished(out):
            return "left over", str(left)
        return _compared(reference(job).files, snapshot(out)) or (outcome, detail)


def _compared(expected: Mapping[str, str | None], files: Mapping[str, str]) -> tuple[str, str] | None:
    if missing := sorted(expected.keys() - files.keys()):
        return "lost", str(missing[:3])
    wrong = [name for name, digest in expected.items() if digest is not None and files[name] != digest]
    extra = [name for name in files.keys() - expected.keys() if ".damaged-" not in name]
    return ("wrong", str((wrong + extra)[:3])) if wrong or extra else None


def _unfinished(out: Path) -> list[str]:
    return [path.name for path in out.rglob(".*.part")]


@contextlib.contextmanager
def _new_process() -> Iterator[None]:
    """As in a process of its own, which removes what dead ones left."""
    from likewise._base import files

    before = set(files._cleaned)
    files._cleaned.clear()
    try:
        yield
    finally:
        files._cleaned.update(before)


def _strike(job: LongJob, fault: str, k: int, out: Path, rng: random.Random) -> tuple[str, str]:
    if fault == LOST_WORKER:
        return _lose_worker(job, out, rng, at_once=k == 0)
    if fault in ("kill", "killed at a moment"):
        child = _fork(job, out, Strike(out, "kill", k if fault == "kill" else 0))
        if fault != "kill":
            child.join(rng.uniform(0, reference(job).seconds))
            child.kill()
        child.join()
        return ("ended" if child.exitcode == 0 else "killed", "")
    if fault == "two drivers":
        children = [_fork(job, out, Strike(out, "none", 0)) for _ in range(2)]
        for child in children:
            child.join()
        codes = [child.exitcode for child in children]
        return ("ended", "") if codes == [0, 0] else ("unfinished", f"exit codes {codes}")
    try:
        with striking(Strike(out, fault, k)):
            _quietly(job, out)
    except LikewiseError as error:
        return ("refused", str(error)) if str(error).count("\n") == 0 else ("foreign", str(error))
    except KeyboardInterrupt:
        return ("interrupted", "") if fault == "interrupt" else ("foreign", "KeyboardInterrupt")
    except BaseException as error:
        return "foreign", f"{type(error).__name__}: {error}"
    return "ended", ""


def _lose_worker(job: LongJob, out: Path, rng: random.Random, *, at_once: bool) -> tuple[str, str]:
    """The job on worker processes, one of which is killed at a moment: its result is whole without another run."""
    assert job.on_workers is not None
    ended = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while not (workers := _workers()):
            if ended.wait(0.01):
                return
        wait = 0.0 if at_once else rng.uniform(0, reference(job).seconds)
        if not ended.wait(wait) and (workers := _workers()):
            killed.append(rng.choice(workers))
            os.kill(killed[0], signal.SIGKILL)

    reference(job)
    if rng.random() < 0.75:  # the others are killed while they start
        list(engine_of(WORKERS).run(str, range(4)))
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        _quietly(replace(job, run=job.on_workers), out)
    except LikewiseError as error:
        return ("refused", str(error)) if str(error).count("\n") == 0 else ("foreign", str(error))
    except BaseException as error:
        return "foreign", f"{type(error).__name__}: {error}"
    finally:
        ended.set()
        killer.join()
    return _compared(reference(job).files, snapshot(out)) or ("went on without" if killed else "ended", "")


def _workers() -> list[int]:
    """The worker processes that this one has started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    lines = {int(child): Path(f"/proc/{child}/cmdline") for child in children}
    return [child for child, line in lines.items() if line.exists() and b"popen_loky" in line.read_bytes()]


def _fork(job: LongJob, out: Path, strike: Strike) -> Any:
    """The job in a process of its own."""

    def work() -> None:
        with striking(strike), Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
            _quietly(job, out)

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    return child


def cases(seed: int, volume: int, jobs: Iterable[LongJob] = JOBS) -> Iterator[tuple[LongJob, str, int]]:
    """About `volume` faults: the disk full at every write of each job first, then the others at random ones."""
    rng = random.Random(seed)
    jobs = list(jobs)
    share = max(1, volume // len(jobs))
    for job in jobs:
        writes = reference(job).writes
        every = [("full", k) for k in range(1, writes + 1)]
        every = (
            every if len(every) <= share // 2 or (volume >= 500 and not job.costly) else rng.sample(every, share // 2)
        )
        others = [fault for fault in FAULTS if fault != "full"] + [LOST_WORKER] * (job.on_workers is not None)
        rest = [(rng.choice(others) if i >= len(others) else others[i], rng.randint(1, writes)) for i in range(share)]
        for fault, k in [*every, *rest[: max(1, share - len(every)) if volume < 500 else share // 2]]:
            yield job, fault, k


def run(seed: int, volume: int, jobs: Iterable[LongJob] = JOBS) -> dict[str, int]:
    """How many faults came to what; those that went wrong are printed, and how many every job had."""
    counts: Counter[str] = Counter()
    rng = random.Random(seed)
    for name, faults in groupby(cases(seed, volume, jobs), key=lambda case: case[0].name):
        before = counts.total()
        for job, fault, k in faults:
            outcome, detail = disturb(job, fault, k, rng)
            counts[outcome] += 1
            if outcome in BAD:
                print(f"{outcome}: {name}, {fault} at write {k} of {reference(job).writes}: {detail}", flush=True)
        print(f"{name}: {counts.total() - before} faults", flush=True)
    return dict(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--volume", type=int, default=500)
    parser.add_argument("--only")
    options = parser.parse_args()
    jobs = [job for job in JOBS if options.only in (None, job.name)]
    counts = run(options.seed, options.volume, jobs)
    print(f"{sum(counts.values())} faults in {len(jobs)} jobs: {dict(sorted(counts.items()))}")
    sys.exit(any(counts.get(outcome) for outcome in BAD))


if __name__ == "__main__":
    main()
