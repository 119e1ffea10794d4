"""What runs hold: each folder and file is recognised by what lies in it, whichever command wrote it.

| who wrote it | what tells |
|---|---|
| `likewise compare --out` | `matrices/`, with similarity matrices |
| `likewise classes --out` | `matrices/`, with class similarities |
| `likewise transfer --out` | `sat.safetensors`, `answers.safetensors` |
| `likewise layerwise --out` | `layerwise.safetensors` |
| `likewise inspect --out`, `Inspector(out=)` | `curves.csv` and one file per epoch |
| `likewise zeroshot --out` | `zeroshot.csv` and one file per network |
| `likewise benchmark run --out` | `results.csv` |
| `likewise compare --inputs`, `influence(...).save` | `inputs.safetensors` |
| anybody | `components.csv`, one row per network; saved matrices; a square CSV |

A folder may hold several of these, and a folder that holds none is looked into: its folders are runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._base.files import is_file, is_folder, reading
from likewise.analysis.files import CSV, read_matrix, read_table
from likewise.benchmark.results.frame import RESULTS, Results
from likewise.classes.inspector import Inspector
from likewise.classes.records import CURVES, REFERENCE
from likewise.classes.similarity import ClassSimilarity
from likewise.comparison.influence import INPUTS, Influence
from likewise.errors import InputError, StoreError
from likewise.matrices.labelled import NPZ, SAFETENSORS
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.similarity import SimilarityMatrix
from likewise.networks.training.checkpoints import WEIGHTS
from likewise.transfer.matrix import ANSWERS, MATRIX, TransferMatrix, load
from likewise.zeroshot.result import ZeroShot

if TYPE_CHECKING:
    import pandas as pd

COMMAND, COMPONENTS, TABLE = "command.txt", "components.csv", "zeroshot.csv"
_PASSED_OVER = ("store", "networks", "epochs")


@dataclass
class Runs:
    """Results of any kind; what there is none of is empty. `sources` says what was found where, in words."""

    matrices: list[SimilarityMatrix] = field(default_factory=list)
    transfers: list[TransferMatrix] = field(default_factory=list)
    layers: list[LayerMatrix] = field(default_factory=list)
    classes: dict[str, ClassSimilarity] = field(default_factory=dict)
    inspections: dict[str, Inspector] = field(default_factory=dict)
    zeroshot: list[ZeroShot] = field(default_factory=list)
    benchmark: Results | None = None
    inputs: list[Influence] = field(default_factory=list)
    components: pd.DataFrame | None = None
    sources: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def note(self, path: Path, what: str) -> None:
        """Write down what was found."""
        self.sources.append((str(path), what))

    def add_matrix(self, matrix: SimilarityMatrix, path: Path) -> None:
        """Take a matrix in; attack transfer is kept with its rates too."""
        self.matrices.append(matrix)
        if isinstance(matrix, TransferMatrix):
            self.transfers.append(matrix)
        self.note(path, f"{matrix.measure or 'a matrix'} of {len(matrix)} networks")


def read_runs(*paths: str | os.PathLike[str]) -> Runs:
    """Everything that folders and files hold; a path that holds no result is refused, and so is a damaged one."""
    if not paths:
        raise InputError("no run was given. Give folders that commands wrote by --out, or saved matrices.")
    found = Runs()
    for path in map(Path, paths):
        if is_folder(path):
            if not _folder(path, found) and not any(_folder(inner, found) for inner in _folders(path)):
                raise InputError(_empty(path))
            for inner in _folders(path):  # what lies beside the results of the folder itself
                if not any(
                    source.startswith(f"{inner}{os.sep}") or source == str(inner) for source, _ in found.sources
                ):
                    _folder(inner, found)
        elif is_file(path):
            _file(path, found)
        else:
            raise InputError(f"there is no folder or file {path}. Give what a command wrote by --out.")
    return found


def _empty(path: Path) -> str:
    if (path / "history.json").exists() or (path / WEIGHTS).exists():
        return (
            f"{path} holds a training, which alone shows nothing. Look at it by likewise inspect {path} --data ... "
            "--out FOLDER, or compare its network with others."
        )
    return (
        f"{path} holds no results. Give a folder that likewise compare, transfer, layerwise, inspect, classes, "
        f"zeroshot "
        "or benchmark wrote by --out."
    )


def _folders(path: Path) -> list[Path]:
    inner = (each for each in sorted(path.iterdir()) if each.is_dir() and not each.name.startswith("."))
    return [each for each in inner if each.name not in (*_PASSED_OVER, "matrices")]


def _folder(folder: Path, found: Runs) -> bool:
    """Take in whatever a folder holds; whether there was anything."""
    before = len(found.sources)
    for name, read in _PARTS.items():
        if (folder / name).exists():
            read(folder, found)
    if len(found.sources) == before:  # files of matrices, as a comparison is saved
        for file in _saved(folder):
            _file(file, found)
    if len(found.sources) > before and (folder / COMMAND).exists():
        found.commands.append((folder / COMMAND).read_text(encoding="utf-8", errors="replace").strip())
    return len(found.sources) > before


def _saved(folder: Path) -> list[Path]:
    """Files that say of themselves that they are a matrix."""
    files = sorted(path for kind in (SAFETENSORS, NPZ) for path in folder.glob(f"*{kind}") if path.name != WEIGHTS)
    return [path for path in files if path.suffix == NPZ or {"facts", "csm", "rows"} & set(_metadata(path))]


def _metadata(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with (
        reading(
            path, f"{path} is no file of results, or it is damaged ({{reason}}). Run again what wrote it.", StoreError
        ),
        safe_open(path, framework="numpy") as file,
    ):
        return dict(file.metadata() or {})


def _file(path: Path, found: Runs) -> None:
    if path.name == RESULTS:
        _benchmark(path, found)
    elif path.suffix.lower() in CSV:
        found.add_matrix(read_matrix(path), path)
    elif path.name == INPUTS:
        _inputs(path.parent, found)
    else:
        _by_kind(path, found)


def _by_kind(path: Path, found: Runs) -> None:
    """A file that says in its header which kind of matrix it holds."""
    header = {} if path.suffix == NPZ else _metadata(path)
    facts: dict[str, Any] = json.loads(header.get("facts", "{}"))
    if "seeds" in facts:
        _zeroshot([path], found)
    elif facts.get("matrix") == LayerMatrix.KIND or "rows" in header:
        found.layers.append(LayerMatrix.load(path))
        found.note(path, "layers of two networks")
    elif facts.get("matrix") == ClassSimilarity.KIND or "csm" in header:
        found.classes[path.stem] = ClassSimilarity.load(path)
        found.note(path, f"class similarity of {path.stem}")
    elif path.name == MATRIX:
        found.add_matrix(TransferMatrix.load(path), path)
    else:
        found.add_matrix(SimilarityMatrix.load(path), path)


def _transfer(folder: Path, found: Runs) -> None:
    matrix = load(folder) if (folder / ANSWERS).exists() else TransferMatrix.load(folder / MATRIX)
    found.add_matrix(matrix, folder)


def _matrices(folder: Path, found: Runs) -> None:
    files = _saved(folder / "matrices")
    if not files:
        raise InputError(f"{folder / 'matrices'} holds no saved matrices. Run again what wrote the folder.")
    for file in files:
        _file(file, found)


def _inspection(folder: Path, found: Runs) -> None:
    first = next(iter(sorted(folder.glob("[0-9]*.safetensors"))), None)
    if first is None:
        raise InputError(f"{folder} has curves of an inspection and no epoch of it. Run likewise inspect again.")
    with reading(
        first, f"{first} is no epoch of an inspection, or it is damaged. Run likewise inspect again.", StoreError
    ):
        classes = json.loads(_metadata(first)["inspection"])["classes"]
    reference = ClassSimilarity.load(folder / REFERENCE) if (folder / REFERENCE).exists() else None
    name = folder.name if folder.name not in found.inspections else str(folder)
    found.inspections[name] = Inspector(list(classes), reference=reference, out=folder)
    found.note(folder, f"an inspection of {len(found.inspections[name].records.reports)} epochs")


def _zeroshot(files: Sequence[Path], found: Runs) -> None:
    for path in files:
        found.zeroshot.append(ZeroShot.load(path))
        found.note(path, f"Raw Zero-Shot of {found.zeroshot[-1].network}")


def _benchmark(folder: Path, found: Runs) -> None:
    own = Results.load(folder)
    found.benchmark = own if found.benchmark is None else Results.joined([found.benchmark, own])
    found.note(folder, f"a benchmark of {own.frame['measure'].nunique()} measures")


def _inputs(folder: Path, found: Runs) -> None:
    found.inputs.append(Influence.load(folder / INPUTS))
    found.note(folder / INPUTS, "which inputs networks differ on")


def _layerwise(folder: Path, found: Runs) -> None:
    _by_kind(folder / LAYERWISE, found)


def _components(folder: Path, found: Runs) -> None:
    import pandas as pd

    table = read_table(folder / COMPONENTS)
    found.components = table if found.components is None else pd.concat([found.components, table])
    found.components = found.components[~found.components.index.duplicated(keep="last")]
    found.note(folder / COMPONENTS, f"components of {len(table)} networks")


LAYERWISE = "layerwise.safetensors"
_PARTS: dict[str, Callable[[Path, Runs], None]] = {
    MATRIX: _transfer,
    LAYERWISE: _layerwise,
    "matrices": _matrices,
    CURVES: _inspection,
    TABLE: lambda folder, found: _zeroshot(sorted(folder.glob("[0-9]*.safetensors")), found),
    RESULTS: _benchmark,
    INPUTS: _inputs,
    COMPONENTS: _components,
}
