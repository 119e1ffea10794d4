"""The package as it is installed: what the wheel holds, and what a bare install can do and says of the rest.

The environment of a bare install is made from packages that are here: links to those that the wheel requires, and to
theirs, in an empty folder; nothing else can be imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = """
import json, sys
import numpy as np
import likewise
from likewise.errors import LikewiseError

x, y = np.random.default_rng(0).normal(size=(2, 50, 8))
digits = likewise.dataset("digits:test[:20]")
net = likewise.network("zoo:mlp", data=digits, seed=0)
matrix = likewise.compare({"a": x, "b": y, "c": x + y}, ["cka", "procrustes"], progress=False)

def said(call):
    try:
        call()
    except LikewiseError as error:
        return str(error)
    return "no error"

tries = {
    "rtd": lambda: likewise.compare(x, y, "rtd"),
    "timm": lambda: likewise.network("timm:resnet18"),
    "torchvision": lambda: likewise.network("torchvision:resnet18"),
    "hf": lambda: likewise.network("hf:gpt2"),
    "bert": lambda: likewise.network("zoo:bert-tiny"),
    "gcn": lambda: likewise.network("zoo:gcn", features=4),
    "clusters": lambda: likewise.analysis.clusters(matrix["cka"], 2, method="spectral"),
    "lightning": lambda: likewise.Inspector(digits).lightning(),
    "parquet": lambda: likewise.dataset("table.parquet"),
    "dask": lambda: likewise.compare({"a": x, "b": y}, "cka", engine="dask", progress=False),
}
open("table.parquet", "wb").write(b"PAR1")
matrix.plot("matrix.png")
matrix.to_latex()
print(json.dumps({
    "home": likewise.__file__,
    "score": float(likewise.compare(x, y)),
    "measures": len(likewise.measures.names()),
    "html": matrix._repr_html_()[:20],
    "diff": likewise.diff(net, net, digits, transfer=False, progress=False).verdict,
    "said": {name: said(call) for name, call in tries.items()},
}))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def required(names: list[str]) -> dict[str, list[Path]]:
    """The files of distributions and of all that they require, on this machine."""
    from packaging.requirements import Requirement

    found: dict[str, list[Path]] = {}
    todo = [Requirement(name) for name in names]
    while todo:
        wanted = todo.pop()
        if wanted.name.lower() in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        try:
            here = distribution(wanted.name)
        except PackageNotFoundError:  # a part for other machines
            continue
        tops = {file.parts[0] for file in here.files or () if file.parts[0] not in ("..", "__pycache__")}
        found[wanted.name.lower()] = [Path(str(here.locate_file(top))) for top in sorted(tops)]
        todo += [Requirement(text) for text in here.requires or ()]
    return found


@pytest.fixture(scope="module")
def bare(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of everything that a bare install brings, and nothing else."""
    pytest.importorskip("packaging")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for paths in required(needs).values():
        for path in paths:
            if not (site / path.name).exists() and path.exists():
                (site / path.name).symlink_to(path)
    return site


def run(site: Path, program: str, cwd: Path) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    start = f"import sys; sys.path.insert(0, {str(site)!r})\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + program],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=own | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_module_and_the_sdist_builds_it(built: Path) -> None:
    source = ROOT / "src"
    wanted = {str(path.relative_to(source)) for path in (source / "likewise").rglob("*") if path.is_file()}
    wanted = {name for name in wanted if "__pycache__" not in name}
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert wanted - names == set()
    assert {name.split("/")[0] for name in names - wanted} == {"likewise-0.1.0.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/likewise/__init__.py"} <= inside


def test_a_bare_install_compares_arrays_and_says_what_the_rest_needs(bare: Path, tmp_path: Path) -> None:
    found = json.loads(run(bare, PROGRAM, tmp_path).splitlines()[-1])
    assert found["home"] == str(bare / "likewise" / "__init__.py")
    assert abs(found["score"]) < 0.1
    assert found["measures"] > 40
    assert found["html"].startswith("<p>Comparison")
    assert found["diff"] == "identical"

    def needs(to: str, library: str, extra: str) -> str:
        return f"to {to}, {library} is needed: pip install 'likewise[{extra}]'."

    assert found["said"] == {
        "rtd": needs("compute rtd", "ripser", "measures"),
        "timm": needs("load timm:resnet18", "torchvision", "vision"),
        "torchvision": needs("load torchvision:resnet18", "torchvision.models", "vision"),
        "hf": needs("load hf:gpt2", "transformers", "language"),
        "bert": needs("build zoo:bert-tiny", "transformers", "language"),
        "gcn": needs("build GCN", "torch_geometric", "graph"),
        "clusters": needs("analyse a matrix", "sklearn.cluster", "analysis"),
        "lightning": needs("inspect a training with Lightning", "lightning", "lightning"),
        "parquet": needs("read table.parquet", "pyarrow.parquet", "report"),
        "dask": needs("run on Dask", "distributed", "dask"),
    }


def test_a_bare_install_lists_measures_on_the_command_line(bare: Path, tmp_path: Path) -> None:
    printed = run(bare, "from likewise.cli import main; main(['measures'])", tmp_path)
    assert printed.splitlines()[-1].endswith(" measures. `likewise measures NAME` prints a recipe.")
