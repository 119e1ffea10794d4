"""One of each (measure, data set, source, grounding, domain, command, ...) is added by touching one file.

Each is really added, twice: to a copy of the package, in the file that CONTRIBUTING names, and as a plug-in, a module
with an entry point. Then each is used through the public call. Two fresh processes import torch, which takes seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import likewise

SOURCE = Path(likewise.__file__).parent


@dataclass(frozen=True)
class Addition:
    """What is added: in which file of the package, as which entry point, by which code, and how it is used."""

    file: str
    group: str
    code: str
    use: str
    result: Any


ADDITIONS = {
    "measure": Addition(
        "measures/families/statistics.py",
        "likewise.measures",
        """
from likewise.measures.registry import measure

@measure(name="spread-gap", family="statistics", larger_is="less alike", bounds=(0, None), identity=0, paired=False,
         invariant_to={"rotation", "shift"}, metric=False, source="here")
def spread_gap(x, y):
    \"\"\"How much further the inputs of one network lie from their mean.\"\"\"
    return abs(x.var(axis=0).sum() - y.var(axis=0).sum())
""",
        "[float(likewise.compare(X, 2 * X, 'spread-gap') / X.var(axis=0).sum()),"
        " likewise.testing.check_measure('spread-gap', strict=False).lies]",
        [pytest.approx(3), []],
    ),
    "data": Addition(
        "data/sources/stripes.py",
        "likewise.data",
        """
import torch
from likewise.data import Data, data_source

@data_source(name="stripes", domain="image", splits=("all",))
def stripes(split, root=None):
    \"\"\"Images that are dark or bright.\"\"\"
    images = torch.linspace(0, 1, 6)[:, None, None, None].expand(6, 1, 8, 8)
    return Data(f"stripes:{split}", "image", images, [0, 0, 0, 1, 1, 1], ("dark", "bright"))
""",
        "len(likewise.dataset('stripes[:4]'))",
        4,
    ),
    "architecture": Addition(
        "networks/zoo/averages.py",
        "likewise.networks",
        """
from torch import nn
from likewise.networks.zoo.registry import architecture

@architecture("averages", summary="one linear layer on the image")
def averages(size: int = 8, channels: int = 1, classes: int = 2):
    \"\"\"A linear layer on the flattened image.\"\"\"
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))
""",
        "likewise.network('zoo:averages,classes=5')[1].out_features",
        5,
    ),
    "source": Addition(
        "networks/sources/attic.py",
        "likewise.sources",
        """
from torch import nn
from likewise.networks.sources.base import NetworkInfo, Loaded, Source, source

@source("attic")
class Attic(Source):
    \"\"\"Networks of this file.\"\"\"

    def build(self, request):
        return Loaded(nn.Sequential(nn.Flatten(), nn.Linear(64, int(request.options.get("width", 3)))))

    def names(self):
        yield NetworkInfo("attic:box", "image", "a box")
""",
        "[tuple(likewise.network('attic:box,width=4')(torch.zeros(2, 1, 8, 8)).shape),"
        " [one.address for one in likewise.networks.list_networks('attic:*')]]",
        [[2, 4], ["attic:box"]],
    ),
    "index": Addition(
        "classes/indices.py",
        "likewise.indices",
        """
from likewise.classes.epoch_report import index

@index(name="first_class", label="first class", headline=True)
def first_class(epoch):
    \"\"\"share of inputs of the first class\"\"\"
    return float(epoch.table[0].sum() / epoch.table.sum())
""",
        "inspected()",
        0.25,
    ),
    "attack": Addition(
        "attacks/night.py",
        "likewise.attacks",
        """
from likewise.attacks.registry import Adversarial, attack

@attack(name="night", norm="Linf", source="here")
def night(net, images, labels=None):
    \"\"\"Every image turned dark.\"\"\"
    return Adversarial(0 * images, labels, 0 * labels)
""",
        "likewise.attacks.night(torch.nn.Identity(), torch.ones(2, 3), torch.zeros(2))[0].tolist()",
        [[0.0] * 3] * 2,
    ),
    "grounding": Addition(
        "benchmark/groundings.py",
        "likewise.groundings",
        """
from likewise.benchmark.evaluation import conformity
from likewise.benchmark.groundings import grounding

@grounding(name="same-seed", title="same seed", kind="groups")
def same_seed(evidence):
    \"\"\"Are networks of one seed more alike?\"\"\"
    return [conformity(evidence)]
""",
        "grounded('same-seed', np.kron(np.eye(2), np.ones((2, 2))), ('a', 'a', 'b', 'b'))",
        [1.0],
    ),
    "domain": Addition(
        "benchmark/domains/tiny.py",
        "likewise.domains",
        """
from likewise.benchmark.domains import domain
from likewise.benchmark.domains.base import Preset
from likewise.benchmark.domains.vision import Vision

@domain("tiny")
class Tiny(Vision):
    \"\"\"Digits, by three networks each.\"\"\"
    data = ("digits",)

    def preset(self, name, data, network):
        return Preset(seeds=3)
""",
        "planned('tiny', 'digits', 'mlp')",
        ["standard/0", "standard/1", "standard/2"],
    ),
    "engine": Addition(
        "work/engines/turns.py",
        "likewise.engines",
        """
import os
from likewise.work.engines.base import Local, engine

@engine("turns")
def turns(argument):
    os.environ["TURNS"] = argument
    return Local(1)
""",
        "[float(likewise.compare({'a': X, 'b': 2 * X}, 'cka', engine='turns:slow', progress=False)['a', 'b']),"
        " os.environ['TURNS']]",
        [1.0, "slow"],
    ),
    "command": Addition(
        "cli/hello.py",
        "likewise.commands",
        """
import typer

def hello(name: str) -> None:
    \"\"\"Greet someone.\"\"\"
    typer.echo(f"hello {name}")
""",
        "printed('hello', 'you')",
        "hello you\n",
    ),
}
PROGRAM = """
import contextlib, io, json, os
import numpy as np
import torch
import likewise
from likewise.cli import main

X = np.random.default_rng(0).normal(size=(20, 5))

def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main(list(words))
    return out.getvalue()

def inspected():
    inspector = likewise.Inspector(2)
    inspector.update(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 1]))
    return inspector.report()["first_class"]

def grounded(name, values, groups):
    from likewise.benchmark.evaluation import Evidence
    from likewise.benchmark.groundings import GROUNDINGS
    found = GROUNDINGS.get(name).evaluate(Evidence("made", "more alike", True, values, groups))
    return [one.value for one in found]

def planned(name, data, network):
    from likewise.benchmark import DOMAINS
    found = DOMAINS.get(name)
    return [spec.name for spec in found.specs("accuracy", found.experiment(data, network, "small"))]

"""


def results(path: Path) -> dict[str, Any]:
    """What every use gives, in a fresh process that finds its packages in `path` first."""
    uses = ", ".join(f"{kind!r}: {addition.use}" for kind, addition in ADDITIONS.items())
    program = f"{PROGRAM}\nprint(json.dumps({{{uses}, 'help': printed('--help'), 'home': likewise.__file__}}))"
    paths = os.pathsep.join([str(path), str(SOURCE.parent)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


@pytest.fixture(scope="module")
def in_the_package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each addition at the end of one file of a copy of the package, which may be new."""
    path = tmp_path_factory.mktemp("copy")
    shutil.copytree(SOURCE, path / "likewise", ignore=shutil.ignore_patterns("__pycache__"))
    for addition in ADDITIONS.values():
        with (path / "likewise" / addition.file).open("a") as file:
            file.write(addition.code)
    found = results(path)
    assert found["home"] == str(path / "likewise" / "__init__.py")
    return found


@pytest.fixture(scope="module")
def as_a_plug_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each addition as a module of its own, and a distribution that names them all as entry points."""
    path = tmp_path_factory.mktemp("plug-in")
    points = []
    for kind, addition in ADDITIONS.items():
        (path / f"added_{kind}.py").write_text(addition.code)
        target = f"added_{kind}:hello" if kind == "command" else f"added_{kind}"
        points.append(f"[{addition.group}]\n{'hello' if kind == 'command' else kind} = {target}\n")
    (path / "additions-1.dist-info").mkdir()
    (path / "additions-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: additions\nVersion: 1\n")
    (path / "additions-1.dist-info" / "entry_points.txt").write_text("\n".join(points))
    return results(path)


@pytest.mark.parametrize("kind", ADDITIONS)
def test_one_file_of_the_package_adds_one(in_the_package: dict[str, Any], kind: str) -> None:
    assert in_the_package[kind] == ADDITIONS[kind].result


@pytest.mark.parametrize("kind", ADDITIONS)
def test_one_module_with_an_entry_point_adds_one(as_a_plug_in: dict[str, Any], kind: str) -> None:
    assert as_a_plug_in[kind] == ADDITIONS[kind].result


def test_a_command_that_is_added_stands_in_the_help(
    in_the_package: dict[str, Any], as_a_plug_in: dict[str, Any]
) -> None:
    for outcome in (in_the_package, as_a_plug_in):
        assert "Greet someone." in outcome["help"]
        assert "Compare networks" in outcome["help"]
