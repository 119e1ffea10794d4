"""Controlled networks: each trained in a folder of its own, with a record of what it learned.

A folder goes by the hash of all that the weights depend on. A training that was killed is resumed there; one that has
its record (`network.json`) is never run again. Networks are trained side by side on any engine that has processes:
on threads of one process they would share one stream of random numbers, so there they come one after another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from likewise._base.files import reading, write_whole
from likewise._base.progress import Progress
from likewise.benchmark.domains import Case, Domain, Spec, Stack
from likewise.data import Data
from likewise.errors import InputError, WorkerError
from likewise.networks import evaluate, train
from likewise.networks import network as load_network
from likewise.networks.training.checkpoints import CHECKPOINT
from likewise.views import Activations
from likewise.work.engines import Engine, Local
from likewise.work.engines.base import WorkerDied

RECORD = "network.json"
CHECKS = ("fit", "shortcut", "augmented")
Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One network to make, in its folder under `out`; its layers are looked at too if `layered`."""

    domain: Domain
    case: Case
    spec: Spec
    out: Path
    layered: bool = False
    threads: int = 1

    @property
    def folder(self) -> Path:
        """Where the network is, or will be."""
        return self.out / "networks" / self.spec.folder

    @property
    def store(self) -> Path:
        """Where its views are kept."""
        return self.out / "store"


def read_record(folder: Path) -> Record | None:
    """What is known of a network that was made; None before that."""
    path = folder / RECORD
    if not path.exists():
        return None
    with reading(path, f"{path} is damaged: {{reason}}. Remove it, and the network is made again."):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record["accuracy"], float):
            raise ValueError("it has no accuracy")
        return dict(record)


def make(task: Task) -> Record:
    """Train a network, look at it on the probe, and record what it learned."""
    known = read_record(task.folder)
    if known is not None:
        return known
    spec, domain = task.spec, task.domain
    with _threads(task.threads):
        cpu, wall = time.process_time(), time.perf_counter()
        data = domain.train_data(spec)
        net = domain.build(spec, data)
        validation = domain.validation_data(spec)
        train(net, data, domain.settings(spec), out=task.folder, validation=validation, progress=False)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        probe = domain.probe(spec, task.case)
        view_of(task, net)
        if task.layered:
            stack_of(task, net)
        record = {"name": spec.name, "key": spec.key, "accuracy": evaluate(net, probe)[1], **spent}
        record |= {"chance": _chance(probe), "fit_chance": _chance(data)}
        record |= {name: evaluate(net, data)[1] for name, data in domain.checks(spec, task.case).items()}
    write_whole(task.folder / RECORD, json.dumps(record, indent=1).encode())
    (task.folder / CHECKPOINT).unlink(missing_ok=True)  # three times the weights, and no longer needed
    return record


def _chance(data: Data) -> float:
    """How often the most frequent label is right."""
    counts = torch.bincount(data.need_labels("score a network"))
    return float(counts.max() / counts.sum())


def view_of(task: Task, net: nn.Module | None = None) -> Activations:
    """A network on the probe, from the store where it was looked at before."""
    probe = task.domain.probe(task.spec, task.case)
    how = {"store": task.store, "name": task.spec.name, "progress": False}
    return task.domain.view(net or load_network(str(task.folder)), probe, **how)


def stack_of(task: Task, net: nn.Module | None = None) -> Stack:
    """The layers of a network on the probe, from the store where they were looked at before."""
    probe = task.domain.probe(task.spec, task.case)
    how = {"store": task.store, "name": task.spec.name, "progress": False}
    return task.domain.stack(net or load_network(str(task.folder)), probe, task.case, **how)


def make_all(tasks: Sequence[Task], engine: Engine, progress: bool) -> dict[str, Record]:
    """The records of all networks by key; those that are missing are trained, as many at a time as the engine runs."""
    found = {task.spec.key: read_record(task.folder) for task in tasks}
    records = {key: record for key, record in found.items() if record is not None}
    todo = [task for task in tasks if task.spec.key not in records]
    lost: list[str] = []
    with Progress(len(tasks), "training", shown=progress) as bar:
        bar.advance(len(tasks) - len(todo))
        for task, record in _made(todo, engine):
            if isinstance(record, WorkerDied):
                lost.append(f"{task.spec.name} ({record.reason})")
            else:
                records[task.spec.key] = record
            bar.advance()
    if lost:
        raise WorkerError(
            f"{len(lost)} of {len(tasks)} networks were not made, {lost[0]} first. Run again to make the rest; fewer "
            "processes need less memory."
        )
    return records


def _made(tasks: Iterable[Task], engine: Engine) -> Iterator[tuple[Task, Record | WorkerDied]]:
    if isinstance(engine, Local):
        yield from ((task, make(task)) for task in tasks)
        return
    with closing(engine.run(make, tasks)) as results:
        yield from results


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Keep torch to so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_folder(out: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a folder that holds another run."""
    path = out / "run.json"
    if not path.exists():
        return
    with reading(path, f"{path} is no record of a run: {{reason}}. Name another folder."):
        there = json.loads(path.read_text(encoding="utf-8"))["settings"]
    differ = [name for name in settings if there.get(name) != settings[name]]
    if differ:
        name = differ[0]
        raise InputError(
            f"{out} holds a run with another {name} ({there.get(name)!r} there, {settings[name]!r} here). Name another "
            "folder."
        )
