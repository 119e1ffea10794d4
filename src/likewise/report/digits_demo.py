"""The demo: ten small networks learn the digits inside the package, and are compared by every view there is.

Three learn the same from other seeds, four are of other kinds, one learns random labels, one is offered a shortcut and
one is trained against attacks: a measure worth its name should tell. Every step keeps its results in a folder of its
own, under a key of what it was made from: run again, it is read.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from likewise import __version__
from likewise._base.files import make_folder, write_whole
from likewise._base.hashing import facts_digest
from likewise.analysis.families import sklearn
from likewise.classes.inspector import Inspector
from likewise.comparison.compare import compare
from likewise.comparison.influence import INPUTS, influence
from likewise.comparison.layerwise import layerwise
from likewise.data import Data, dataset
from likewise.data.changes import add_shortcut, randomise_labels
from likewise.networks import network, train
from likewise.report.contents import Contents, contents
from likewise.report.page import render
from likewise.report.runs import COMPONENTS, TABLE, read_runs
from likewise.transfer import sat
from likewise.views.extract import extract
from likewise.zeroshot import means, run

MEASURES = ("cka-debiased", "procrustes", "jaccard", "disagreement", "jsd", "class-alignment")
LOOKED_INTO = ("pnka", "cka-debiased")  # for inputs that networks differ on
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
Say = Callable[[str], None]


def demo(folder: str | Path = "demo", *, say: Say = print, students: tuple[Student, ...] = STUDENTS) -> Contents:
    """Train, watch, attack and compare small networks in a folder, and write `report.html` there."""
    sklearn("cluster")  # before any network is trained
    place, began = Path(folder), time.perf_counter()
    make_folder(place)
    probe, threads = dataset("digits:test"), torch.get_num_threads()
    torch.set_num_threads(1)  # the networks are too small to share
    try:
        networks = _train(place, students, dataset("digits:train"), probe, say)
        work = _Work(place, students, say)
        work.do(
            "compared",
            "comparing them by representations, answers and classes",
            lambda to: _compare(networks, probe, to),
        )
        work.do("attacked", "attacking each and showing all the examples", lambda to: _attack(networks, probe, to))
        work.do("layers", "comparing two of them layer by layer", lambda to: _layers(networks, probe, to))
        work.do(
            "unseen",
            f"training one without each class in turn ({students[3].name})",
            lambda to: _unseen(students[3], to),
        )
    finally:
        torch.set_num_threads(threads)
    _write_components(place, students)
    say("writing the report")
    found = contents(read_runs(place))
    write_whole(place / "report.html", render(found, "Ten small networks that learned the digits").encode())
    say(f"done in {time.perf_counter() - began:.0f} s")
    return found


@dataclass(frozen=True)
class _Work:
    """Steps that are done once: each in a folder of its own, with a key of what it was made from."""

    place: Path
    students: tuple[Student, ...]
    say: Say

    def do(self, name: str, what: str, step: Callable[[Path], object]) -> None:
        """Take a step, unless it was taken for the same networks before."""
        recipe = {"students": list(map(repr, self.students)), "settings": repr(_settings())}
        key = facts_digest(recipe | {"likewise": __version__, "torch": torch.__version__})
        done = self.place / name / "done.txt"
        if done.exists() and done.read_text(encoding="utf-8") == key:
            self.say(f"{what}: read from {self.place / name}")
            return
        self.say(what)
        for old in (self.place / name).glob("*"):  # of other networks or settings; the store is keyed by itself
            if old.name != "store":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        step(self.place / name)
        write_whole(done, key.encode())


def _settings() -> list[Any]:
    return [list(MEASURES), list(LOOKED_INTO), ATTACK, SHUFFLES, LEFT_OUT, STEPS]


def _train(place: Path, students: tuple[Student, ...], digits: Data, probe: Data, say: Say) -> dict[str, str]:
    """The networks, each trained in its own folder; the first is watched."""
    data = {
        "random labels": lambda: randomise_labels(digits, 1.0, seed=0),
        "shortcut": lambda: add_shortcut(digits, 0.8, seed=0),
    }
    found = {}
    for number, student in enumerate(students):
        out = place / "networks" / student.name
        weights = out / "weights.safetensors"
        learned = data[student.training]() if student.training in data else digits
        say(f"network {number + 1} of {len(students)}: {student.name} ({student.training}, {student.epochs} epochs)")
        watch = [Inspector(probe, out=place / f"watched {student.name}")] if number == 0 else []
        net = network(student.address, data=learned, seed=student.seed)
        how: dict[str, Any] = {**STEPS, **student.settings, "epochs": student.epochs, "seed": student.seed}
        done = train(net, learned, out=out, validation=probe, callbacks=watch, **how)
        right = done.history[-1]["validation_accuracy"]
        say(f"  {100 * right:.1f} % right on {len(probe)} digits it did not learn from")
        found[student.name] = f"{student.address}@{weights}"
    return found


def _compare(networks: Mapping[str, str], probe: Data, to: Path) -> None:
    views: dict[str, Any] = {name: extract(address, probe, name=name) for name, address in networks.items()}
    found = compare(views, list(MEASURES), calibrate=SHUFFLES, intervals=True, store=to / "store")
    found.save(to / "matrices")
    influence(views, list(LOOKED_INTO), data=probe, tried=LEFT_OUT).save(to / INPUTS)


def _attack(networks: Mapping[str, str], probe: Data, to: Path) -> None:
    import warnings

    with warnings.catch_warnings():  # accuracies are far apart on purpose, and the report says so
        warnings.simplefilter("ignore")
        sat(dict(networks), probe, store=to / "store", **ATTACK).save_run(to)


def _layers(networks: Mapping[str, str], probe: Data, to: Path) -> None:
    first, second = list(networks)[:2]
    replace(layerwise(networks[first], networks[second], probe), a=first, b=second).write(to)


def _unseen(student: Student, to: Path) -> None:
    result = run(student.address, "digits", preset="small", store=to / "store")
    make_folder(to)
    means([result]).to_csv(to / TABLE)
    result.save(to / "0.safetensors")


def _write_components(place: Path, students: tuple[Student, ...]) -> None:
    rows = [f"{each.name},{each.address.removeprefix('zoo:')},{each.training}" for each in students]
    write_whole(place / COMPONENTS, "\n".join(["network,architecture,training", *rows, ""]).encode())
