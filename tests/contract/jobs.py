"""A slice of every long job, in this process and on an engine, where a worker is killed from outside in each job.

Prints which results are the same, and which jobs went on after their worker was killed. A script of its own.

Arguments: the name of an engine, or "dask-cluster" for one of two workers that is reached by its address; a folder;
some of the jobs, else all.
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise import benchmark, classes, networks, transfer, zeroshot
from likewise.report import digits_demo
from likewise.report.digits_demo import Student
from likewise.work.engines import Remote, engine_of

DATA, NETWORK, TRAINING = "digits:test[:40]", "zoo:mlp,size=8,channels=1", "digits:train[:100]"
ATTACK: dict[str, Any] = {"attack": "fgsm", "eps": 0.1}
PRESET = {"seeds": 3, "group": 2, "layered": 2, "probe": 30, "train": 60, "training": {"epochs": 1}}
STUDENTS = tuple(Student(f"mlp-{seed}", "zoo:mlp", seed, epochs=1) for seed in range(4))
WAIT = 300.0  # seconds; a busy machine starts a worker late
Job = Callable[[Path, list[str], dict[str, Any]], Any]


def compare(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """Matrices with their nulls and intervals, of networks by address."""
    keys = ["jaccard", "cka-debiased", "disagreement"]
    found = likewise.compare(addresses, keys, data=DATA, calibrate=19, intervals=True, store=folder, **on)
    return [grid for matrix in found.values() for grid in (matrix.values, *matrix.extra.values())]


def layerwise(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """Layers of two networks."""
    return [likewise.layerwise(*addresses[:2], DATA, **on).values]


def diff(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """What changed between two networks."""
    return str(likewise.diff(*addresses[:2], DATA, **on))


def train(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """A training with all its epochs."""
    done = networks.train(NETWORK, TRAINING, out=folder, epochs=2, keep_epochs=True, **on)
    records = [{name: value for name, value in record.items() if "second" not in name} for record in done.history]
    return [*(weights.detach().numpy() for weights in done.net.parameters()), np.array(repr(records))]


def inspect(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """The epochs of a training, which is here."""
    networks.train(NETWORK, TRAINING, out=folder / "run", epochs=2, keep_epochs=True, progress=False)
    inspected = classes.inspect(folder / "run", DATA, out=folder / "inspect", **on)
    return repr(inspected.curves().drop(columns="seconds", errors="ignore").to_dict())


def attack(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """How often an attack fools a network."""
    rate = transfer.success(addresses[0], DATA, **ATTACK, store=folder, **on)
    return [rate.rate, rate.low, rate.high, rate.count]


def sat(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """Attack transfer, of both sides and of one."""
    both = transfer.sat(addresses, DATA, **ATTACK, store=folder, **on)
    one = transfer.one_sided(addresses[0], addresses[1:], DATA, **ATTACK, store=folder / "one", **on)
    return [both.values, np.array(repr(one.scores))]


def unseen(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """Trainings without each class."""
    result = zeroshot.run("zoo:mlp", TRAINING, preset="small", epochs=1, store=folder, **on)
    return [result.dbi().values, result.accuracy, list(result.full), list(result.held_out)]


def evaluate(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """Measures on networks of known similarity."""
    options: dict[str, Any] = {"preset": PRESET, "groundings": ["accuracy", "layers"], "measures": ["cka", "rsa"]}
    run = benchmark.run("vision", "digits", "mlp", out=folder, **options, **on)
    return run.results.drop(columns="seconds").to_csv()


def demo(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """The tables that the demo leaves."""
    small = {"MEASURES": ("cka",), "INPUT_MEASURES": ("pnka",), "ATTACK": ATTACK, "SHUFFLES": 9, "LEFT_OUT": 5}
    vars(digits_demo).update(small)
    page = digits_demo.demo(folder, say=lambda line: None, students=STUDENTS, engine=on["engine"])
    tables = {path.relative_to(folder).as_posix(): path for path in folder.glob("[!n]*/*.csv")}
    return [repr([finding.text for finding in page.findings]), *(tables[name].read_text() for name in sorted(tables))]


def extract(folder: Path, addresses: list[str], on: dict[str, Any]) -> Any:
    """Views of networks."""
    return [np.asarray(view) for view in likewise.extract(addresses, DATA, store=folder, **on).values()]


JOBS: tuple[Job, ...] = (extract, compare, layerwise, diff, train, inspect, attack, sat, unseen, evaluate, demo)


def equal(a: Any, b: Any) -> bool:
    """Whether two results are the same, to the last bit."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a == b)


# --- a worker that is killed ------------------------------------------------------------------------------------------


def stall(marker: str, call: Callable[..., Any], function: Callable[..., Any], task: Any) -> Any:
    """A task that waits to be killed, and is run when it is sent again."""
    tries = Path(marker)
    again = tries.exists()
    with tries.open("a") as file:
        print(os.getpid(), file=file)
    if not again:
        time.sleep(WAIT)
        raise TimeoutError("nobody killed this worker")
    return call(function, task)


def losing(engine: Remote, marker: Path) -> Remote:
    """The same engine, but for its first task, which stalls."""
    first: list[Any] = []

    def submit(call: Callable[..., Any], function: Callable[..., Any], task: Any) -> Any:
        first[:] = first or [task]
        if task is first[0]:
            return engine._submit(stall, str(marker), call, function, task)
        return engine._submit(call, function, task)

    return Remote(submit, engine.workers, engine._close, apart=engine._apart, quick=engine.quick)


def kill(marker: Path, over: threading.Event) -> None:
    """Kill the worker that stalls, from outside."""
    while not (marker.exists() and marker.read_text().endswith("\n")):
        if over.wait(0.05):
            return
    os.kill(int(marker.read_text().split()[0]), signal.SIGKILL)


def run_killed(job: Job, folder: Path, addresses: list[str], engine: Remote) -> tuple[Any, int]:
    """The result of a job one of whose workers is killed, and how often the task of that worker was tried."""
    marker, over = folder.with_suffix(".tries"), threading.Event()
    killer = threading.Thread(target=kill, args=(marker, over))
    killer.start()
    try:
        result = job(folder, addresses, {"engine": losing(engine, marker), "progress": False})
    finally:
        over.set()
        killer.join()
    return result, len(marker.read_text().split()) if marker.exists() else 0


def main(name: str, folder: Path, *jobs: str) -> None:
    """Print the jobs whose results are the same, those whose lost task was tried twice, and all others."""
    warnings.simplefilter("ignore")
    addresses = []
    for seed in range(3):
        out = folder / f"weights {seed}"
        networks.train(NETWORK, TRAINING, out=out, epochs=1, seed=seed, progress=False)
        addresses.append(f"{NETWORK}@{out}/weights.safetensors")
    same, twice, other = [], [], []
    with _cluster(name) as address:
        for job in [job for job in JOBS if not jobs or job.__name__ in jobs]:
            (folder / job.__name__).mkdir()
            here = job(folder / job.__name__ / "here", addresses, {"engine": None, "progress": False})
            engine = engine_of(address)
            assert isinstance(engine, Remote)
            there, tries = run_killed(job, folder / job.__name__ / "there", addresses, engine)
            same += [job.__name__] if equal(here, there) else []
            twice += [job.__name__] if tries == 2 else []
            other += [] if tries == 2 and equal(here, there) else [f"{job.__name__} ({tries} tries)"]
            print(f"{job.__name__}: {tries} tries", file=sys.stderr, flush=True)
    print("same:", *same)
    print("killed once, tried twice:", *twice)
    print("other:", *other)


def _cluster(name: str) -> Any:
    """What gives the name of the engine, and keeps its cluster while it is used."""
    if name != "dask-cluster":
        return nullcontext(name)
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})  # a busy machine starts a lost worker late

    class Cluster(LocalCluster):
        def __enter__(self) -> str:
            super().__enter__()
            return f"dask:{self.scheduler_address}"

    return Cluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")


if __name__ == "__main__":
    from tests.contract.jobs import main as run  # under a name that workers can import

    run(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
