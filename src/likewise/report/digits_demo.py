"""The demo: ten small networks learn the digits inside the package, and are compared by every view there is.

Three learn the same from different seeds, four have other architectures, one learns random labels, one is offered a
shortcut and one is trained against attacks: a good measure should tell them apart. Every step writes its results to its
own folder, with a key of its settings and a list of its files, and is skipped when the demo runs again and all of them
are as they were written. On an engine, networks and data are addresses, and the folder is one that its workers see.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from likewise import __version__
from likewise._base import sealed
from likewise._base.files import write_whole
from likewise._base.folders import claim, clear, file_of, files_of, read_json
from likewise._base.hashing import facts_digest
from likewise._base.machine import check_device, one_thread
from likewise._base.names import csv_text
from likewise.analysis.families import sklearn
from likewise.classes.inspector import Inspector
from likewise.comparison.compare import compare
from likewise.comparison.influence import INPUTS, influence
from likewise.comparison.layerwise import layerwise
from likewise.data import dataset
from likewise.data.changes import add_shortcut, randomise_labels
from likewise.errors import StoreError
from likewise.networks import network, train
from likewise.networks.training.checkpoints import WEIGHTS
from likewise.report.page import Contents, contents, render
from likewise.report.runs import COMPONENTS, TABLE, read_runs
from likewise.transfer import sat
from likewise.views.extract import extract
from likewise.work.engines import engine_of
from likewise.work.tasks import Call, is_remote, make, run_calls
from likewise.zeroshot import means, run

MEASURES = ("cka-debiased", "procrustes", "jaccard", "disagreement", "jsd", "class-alignment")
INPUT_MEASURES = ("pnka", "cka-debiased")  # for inputs that networks differ on
ATTACK: dict[str, Any] = {"attack": "pgd", "eps": 0.1, "iterations": 10}
SHUFFLES, LEFT_OUT = 99, 60
STEPS: dict[str, Any] = {"optimiser": "adam", "lr": 2e-3}


@dataclass(frozen=True)
class Student:
    """A network of the demo: what it is, what it learns, and how."""

    name: str
    address: str
    seed: int
    epochs: int = 20
    training: str = "digits"
    settings: Mapping[str, Any] = field(default_factory=dict)


STUDENTS = (
    Student("lenet-0", "zoo:lenet", 0),
    Student("lenet-1", "zoo:lenet", 1),
    Student("lenet-2", "zoo:lenet", 2),
    Student("mlp-0", "zoo:mlp", 0),
    Student("mlp-1", "zoo:mlp", 1),
    Student("conv-mlp", "zoo:conv-mlp", 0),
    Student("resnet20", "zoo:resnet20", 0, epochs=5),
    Student("lenet-random-labels", "zoo:lenet", 3, training="random labels"),
    Student("lenet-shortcut", "zoo:lenet", 4, training="shortcut"),
    Student(
        "lenet-robust",
        "zoo:lenet",
        5,
        training="against attacks",
        settings={"adversarial": {"attack": "pgd", "eps": 0.1, "iterations": 4}},
    ),
)
DONE = "done.json"
DATA, PROBE = "digits:train", "digits:test"
Say = Callable[[str], None]


def demo(
    folder: str | Path = "demo",
    *,
    say: Say = print,
    students: tuple[Student, ...] = STUDENTS,
    device: str | None = None,
    engine: Any = None,
    workers: int | None = None,
    engine_options: Mapping[str, Any] | str | None = None,
) -> Contents:
    """Train, watch, attack and compare small networks, and write `report.html`.

    Args:
        folder: A new or an empty folder; rerun with it to resume. What is damaged or missing is made again.
        say: What receives a line for every step.
        students: The networks.
        device: Where they run, such as "cuda:0"; by default they are trained on the CPU.
        engine: Where they are trained, compared and attacked: None for this process, "processes", "dask", "ray",
            "slurm" or an executor.
        workers: How many tasks run at a time, where the engine leaves it open.
        engine_options: What the engine's library takes for every task.

    Returns:
        What the report shows: `findings` and `panels`.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
        StoreError: The folder holds files that likewise did not write.
    """
    sklearn("cluster")  # before any network is trained
    where = engine_of(engine, workers=workers, options=engine_options)
    on: dict[str, Any] = {"engine": where} if is_remote(where) else {}
    folder, began = Path(folder), time.perf_counter()
    folder = folder.absolute() if on else folder
    if device is not None:
        check_device(device)
        on["device"] = device
    claim(folder)
    with one_thread():  # the networks are too small to share
        networks = _train(folder, students, say, on)
        steps = _Steps(folder, students, say)
        steps.run("compared", "comparing them by representations, answers and classes", _compare, networks, on)
        steps.run("attacked", "attacking each and showing all the examples", _attack, networks, on)
        steps.run("layers", "comparing two of them layer by layer", _layers, networks, on)
        steps.run("unseen", f"training one without each class in turn ({students[3].name})", _unseen, students[3], on)
    _write_components(folder, students)
    say("writing the report")
    page = contents(read_runs(folder))
    write_whole(folder / "report.html", render(page, "Ten small networks that learned the digits").encode())
    say(f"done in {time.perf_counter() - began:.0f} s")
    return page


@dataclass(frozen=True)
class _Steps:
    """Steps that run once: each in its own folder, with a key of its settings."""

    folder: Path
    students: tuple[Student, ...]
    say: Say

    def run(self, name: str, what: str, step: Callable[..., object], *arguments: object) -> None:
        """Run a step into its folder, unless it was run for the same networks before."""
        settings = [list(MEASURES), list(INPUT_MEASURES), ATTACK, SHUFFLES, LEFT_OUT, STEPS]
        recipe = {"students": list(map(repr, self.students)), "settings": repr(settings)}
        key = facts_digest(recipe | {"likewise": __version__, "torch": torch.__version__})
        folder = self.folder / name
        record = _record(folder)
        if record.get("key") == key and "files" in record and _are_intact(folder, record["files"]):
            self.say(f"{what}: read from {folder}")
            return
        self.say(what)
        if record.get("key") != key:
            clear(folder)  # of other networks or settings; the store is keyed by itself
            write_whole(folder / DONE, json.dumps({"key": key}).encode())
        step(*arguments, folder)
        files = sorted(set(files_of(folder)) - {DONE})
        write_whole(folder / DONE, json.dumps({"key": key, "files": files}).encode())


def _record(folder: Path) -> dict[str, Any]:
    """The settings of a step that was begun, and the files of one that is done."""
    try:
        return read_json(folder, DONE, required=True)
    except StoreError:
        return {}


def _are_intact(folder: Path, names: Sequence[str]) -> bool:
    """Whether files are there and as they were written."""
    try:
        for name in names:
            path = file_of(folder, name, required=True)
            if path.suffix == sealed.ENDING:
                sealed.verify(path, required=True)
    except (StoreError, OSError, ValueError):
        return False
    return True


def _train(folder: Path, students: tuple[Student, ...], say: Say, on: Mapping[str, Any]) -> dict[str, str]:
    """The addresses of the networks, each trained in its own folder; the first is watched."""
    at = on.get("device")
    calls = [Call(student.name, _learn, (folder, student, not number, at)) for number, student in enumerate(students)]
    if "engine" in on:
        say(f"training {len(students)} networks on the engine")
    accuracies = (
        iter(run_calls(calls, on["engine"], "training", progress=False)) if "engine" in on else map(make, calls)
    )
    for number, student in enumerate(students):
        say(f"network {number + 1} of {len(students)}: {student.name} ({student.training}, {student.epochs} epochs)")
        say(f"  {100 * next(accuracies):.1f} % right on {len(dataset(PROBE))} digits it did not learn from")
    return {student.name: f"{student.address}@{_folder(folder, student) / WEIGHTS}" for student in students}


def _folder(folder: Path, student: Student) -> Path:
    return folder / "networks" / student.name


def _learn(folder: Path, student: Student, watched: bool, device: str | None) -> float:
    """Train a network, or read one that is trained; its accuracy on digits that it did not learn from."""
    data, probe = dataset(DATA), dataset(PROBE)
    if student.training == "random labels":
        data = randomise_labels(data, 1.0, seed=0)
    if student.training == "shortcut":
        data = add_shortcut(data, 0.8, seed=0)
    options: dict[str, Any] = {**STEPS, **student.settings, "epochs": student.epochs, "seed": student.seed}
    options["device"] = device
    with one_thread():
        net = network(student.address, data=data, seed=student.seed)
        watch = [Inspector(probe, out=folder / f"watched {student.name}")] if watched else []
        training = train(net, data, out=_folder(folder, student), validation=probe, callbacks=watch, **options)
    return float(training.history[-1]["validation_accuracy"])


def _compare(networks: Mapping[str, str], on: Mapping[str, Any], out: Path) -> None:
    store = out / "store"
    views = extract(dict(networks), PROBE, **({"store": store, **on} if "engine" in on else on))
    comparison = compare(views, list(MEASURES), calibrate=SHUFFLES, intervals=True, store=store, **on)
    comparison.save(out / "matrices")
    influence(views, list(INPUT_MEASURES), data=dataset(PROBE), tried=LEFT_OUT).save(out / INPUTS)


def _attack(networks: Mapping[str, str], on: Mapping[str, Any], out: Path) -> None:
    import warnings

    with warnings.catch_warnings():  # accuracies are far apart on purpose, and the report says so
        warnings.simplefilter("ignore")
        sat(dict(networks), PROBE, store=out / "store", **ATTACK, **on).save_run(out)


def _layers(networks: Mapping[str, str], on: Mapping[str, Any], out: Path) -> None:
    first, second = list(networks)[:2]
    replace(layerwise(networks[first], networks[second], PROBE, **on), a=first, b=second).write(out)


def _unseen(student: Student, on: Mapping[str, Any], out: Path) -> None:
    result = run(student.address, "digits", preset="small", store=out / "store", **on)
    result = replace(result, network=student.name)
    write_whole(out / TABLE, csv_text(means([result])).encode())
    result.save(out / "0.safetensors")


def _write_components(folder: Path, students: tuple[Student, ...]) -> None:
    import pandas as pd

    rows = [(s.address.removeprefix("zoo:"), s.training) for s in students]
    names = pd.Index([s.name for s in students], name="network")
    frame = pd.DataFrame(rows, index=names, columns=["architecture", "training"])
    write_whole(folder / COMPONENTS, csv_text(frame).encode())
