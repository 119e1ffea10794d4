"""Controlled networks: each trained in a folder of its own, with a record of what it learned.

The name of a folder holds the hash of all that the weights depend on. A training that was killed is resumed there; one
that has its record (`network.json`) is never run again. Networks are trained side by side on any engine with processes:
on threads of one process they would share one stream of random numbers, so there they come one after another.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from likewise._base.files import reading, write_whole
from likewise._base.folders import file_of, read_bytes, remove
from likewise._base.formats.records import check, parse
from likewise._base.progress import Progress, warn
from likewise._base.sealed import verify
from likewise.benchmark.domains import Domain, Experiment, LayerViews, NetworkSpec
from likewise.data import Data
from likewise.errors import DamagedStoreWarning, FileError, WorkerError
from likewise.networks import evaluate, train
from likewise.networks import network as load_network
from likewise.networks.building import on_device
from likewise.networks.training.checkpoints import CHECKPOINT, EARLIER, WEIGHTS
from likewise.views import Activations
from likewise.work.engines import Engine, Local
from likewise.work.engines.base import WorkerDied

RECORD = "network.json"
CHECKS = ("fit", "shortcut", "augmented")
_NUMBERS = ("accuracy", "cpu", "chance", "fit_chance")
Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One network to make, in its folder under `out`; its layers are looked at too if `layered`."""

    domain: Domain
    experiment: Experiment
    spec: NetworkSpec
    out: Path
    layered: bool = False
    threads: int = 1
    device: Any = None  # by default the accelerator, if there is one

    @property
    def folder(self) -> Path:
        """Where the network is, or will be."""
        return self.out / "networks" / self.spec.folder

    @property
    def show(self) -> dict[str, Any]:
        """How its views are made: under its name, and kept in the store of the run."""
        return {"store": self.out / "store", "name": self.spec.name, "progress": False}


def read_record(folder: Path) -> Record | None:
    """What is known of a network that was made; None before that, and where its record is damaged."""
    path = folder / RECORD
    if not os.path.lexists(path):
        return None
    try:
        with reading(path, "", FileError):
            record = parse(read_bytes(folder, RECORD, required=True))
            check(record, {"name": str, "key": str, **dict.fromkeys(_NUMBERS, float)})
            check(record, dict.fromkeys(CHECKS, float), optional=True)
            return record
    except FileError:
        warn(f"{path} does not match its checksum; the network is made anew.", DamagedStoreWarning)
        return None


def _made(folder: Path) -> Record | None:
    """What is known of a network that was made; where its weights are lost or damaged, it is not, and they go."""
    record, path = read_record(folder), folder / WEIGHTS
    if record is None:
        return None
    if os.path.lexists(path):
        file_of(folder, WEIGHTS)  # a link or a pipe of a stranger's is refused
        try:
            with reading(path, "", FileError):
                verify(path, required=True)  # every training writes one
            return record
        except FileError:
            remove(path)
    warn(f"{path} is missing or does not match its checksum; the network is made anew.", DamagedStoreWarning)
    return None


def make(task: Task) -> Record:
    """Train a network, look at it on the probe, and record what it learned."""
    record = _made(task.folder)
    if record is not None:
        return record
    spec, domain = task.spec, task.domain
    with _threads(task.threads):
        cpu, wall = time.process_time(), time.perf_counter()
        data = domain.train_data(spec)
        net = on_device(domain.build(spec, data), task.device)
        validation = domain.validation_data(spec)
        train(net, data, domain.settings(spec), out=task.folder, validation=validation, progress=False)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        probe = domain.probe(spec, task.experiment)
        make_view(task, net)
        if task.layered:
            make_layer_views(task, net)
        record = {"name": spec.name, "key": spec.key, "accuracy": evaluate(net, probe)[1], **spent}
        record |= {"chance": _chance(probe), "fit_chance": _chance(data)}
        record |= {name: evaluate(net, data)[1] for name, data in domain.checks(spec, task.experiment).items()}
    write_whole(task.folder / RECORD, json.dumps(record, indent=1).encode())
    for name in (CHECKPOINT, EARLIER):
        remove(task.folder / name)  # three times the weights, and no longer needed
    return record


def _chance(data: Data) -> float:
    """How often the most frequent label is right."""
    counts = torch.bincount(data.need_labels("score a network"))
    return float(counts.max() / counts.sum())


def make_view(task: Task, net: nn.Module | None = None) -> Activations:
    """A network on the probe, from the store if it is there."""
    return task.domain.view(*_network_and_probe(task, net), **task.show)


def make_layer_views(task: Task, net: nn.Module | None = None) -> LayerViews:
    """The layers of a network on the probe, from the store if they are there."""
    return task.domain.layer_views(*_network_and_probe(task, net), task.experiment, **task.show)


def _network_and_probe(task: Task, net: nn.Module | None) -> tuple[nn.Module, Data]:
    if net is None:
        file_of(task.out, f"networks/{task.spec.folder}/{WEIGHTS}")  # which may be a stranger's
        net = on_device(load_network(str(task.folder)), task.device)
    return net, task.domain.probe(task.spec, task.experiment)


def make_all(tasks: Sequence[Task], engine: Engine, progress: bool) -> dict[str, Record]:
    """The records of all networks by key; those that are missing are trained, as many at a time as the engine runs."""
    records = {task.spec.key: record for task in tasks if (record := _made(task.folder)) is not None}
    todo = [task for task in tasks if task.spec.key not in records]
    lost: list[str] = []
    with Progress(len(tasks), "training", show=progress) as bar:
        bar.advance(len(tasks) - len(todo))
        for task, outcome in _train_all(todo, engine):
            if isinstance(outcome, WorkerDied):
                lost.append(f"{task.spec.name} ({outcome.reason})")
            else:
                records[task.spec.key] = outcome
            bar.advance()
    if lost:
        raise WorkerError(
            f"{len(lost)} of {len(tasks)} networks were not made, {lost[0]} first. Run again to make the rest; fewer "
            "processes need less memory."
        )
    return records


def _train_all(tasks: Iterable[Task], engine: Engine) -> Iterator[tuple[Task, Record | WorkerDied]]:
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
