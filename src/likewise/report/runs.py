"""What runs hold: each folder and file is recognised by what is in it, whichever command wrote it.

| written by | recognised by |
|---|---|
| `likewise compare --out` | `matrices/`, with similarity matrices |
| `likewise classes --out` | `matrices/`, with class similarities |
| `likewise transfer --out` | `sat.safetensors`, `answers.safetensors` |
| `likewise layerwise --out` | `layerwise.safetensors` |
| `likewise inspect --out`, `Inspector(out=)` | `curves.csv` and one file per epoch |
| `likewise zeroshot --out` | `zeroshot.csv` and one file per network |
| `likewise benchmark run --out` | `results.csv` |
| `likewise compare --inputs`, `influence(...).save` | `inputs.safetensors` |
| `likewise compare --out` that was stopped | `store/`, with a note of what was under way |
| anyone | `components.csv`, one row per network; saved matrices; a square CSV |

A folder may hold several of these, and folders that hold them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._base import sealed
from likewise._base.files import is_file, is_folder, reading
from likewise._base.folders import file_at, file_of, folder_of, read_text
from likewise._base.formats.records import check, parse
from likewise._base.progress import warn
from likewise.analysis.files import CSV, read_matrix, read_table
from likewise.benchmark.results.frame import RESULTS, Results
from likewise.classes.inspector import Inspector
from likewise.classes.records import CURVES, REFERENCE
from likewise.classes.similarity import ClassSimilarity
from likewise.comparison.influence import INPUTS, Influence
from likewise.comparison.resuming.unfinished import FOLDER as UNFINISHED
from likewise.comparison.resuming.unfinished import unfinished
from likewise.errors import InputError, StoreError
from likewise.matrices.labelled import NPZ, SAFETENSORS
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.similarity import SimilarityMatrix
from likewise.networks.training.checkpoints import WEIGHTS
from likewise.report.words import listed
from likewise.transfer.matrix import ANSWERS, MATRIX, TransferMatrix, load
from likewise.zeroshot.result import ZeroShot

if TYPE_CHECKING:
    import pandas as pd

COMMAND, COMPONENTS, TABLE = "command.txt", "components.csv", "zeroshot.csv"
LAYERWISE, STORE = "layerwise.safetensors", "store"
_LONGEST_COMMAND = 2**20
_SKIPPED = ("store", "networks", "epochs", "matrices")


@dataclass
class Runs:
    """Results of any kind; empty where there are none.

    Attributes:
        matrices: Similarity matrices of networks, attack transfer among them.
        transfers: Matrices of attack transfer, with their rates.
        layers: Matrices of the layers of two networks.
        classes: Class similarities, by the name of the network.
        inspections: Trainings that were watched, by name.
        zeroshot: Raw Zero-Shot results, one per network.
        benchmark: Results of a benchmark.
        inputs: The inputs that networks differ on.
        components: One row per network.
        sources: What was read from where, in words.
        commands: The commands that wrote the runs.
        missing: What runs that were not finished lack, one sentence each.
    """

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
    missing: list[str] = field(default_factory=list)

    def _note(self, path: Path, content: str) -> None:
        self.sources.append((str(path), content))

    def _add_matrix(self, matrix: SimilarityMatrix, path: Path) -> None:
        """Add a matrix; attack transfer is kept with its rates too."""
        self.matrices.append(matrix)
        if isinstance(matrix, TransferMatrix):
            self.transfers.append(matrix)
        self._note(path, f"{matrix.measure or 'a matrix'} of {len(matrix)} networks")


def read_runs(*paths: str | os.PathLike[str]) -> Runs:
    """Read everything that folders and files hold.

    Args:
        *paths: Folders that commands wrote by --out, folders of such folders, saved matrices, square CSV files.

    Returns:
        The results, by kind.

    Raises:
        InputError: A path does not exist or holds no results.
        StoreError: A file is damaged.
    """
    if not paths:
        raise InputError("no run was given. Give folders that commands wrote by --out, or saved matrices.")
    runs = Runs()
    for path in map(Path, paths):
        if is_folder(path):
            _read_tree(path, runs)
        elif is_file(path):
            _read_file(path, runs)
        else:
            raise InputError(f"there is no folder or file {path}. Give what a command wrote by --out.")
    return runs


def _read_tree(folder: Path, runs: Runs) -> None:
    """Read a folder and the folders in it, but for those that were read before."""
    has_results = _read_folder(folder, runs)
    for inner in sorted(folder.iterdir()):
        if not is_folder(inner) or inner.name.startswith(".") or inner.name in _SKIPPED:
            continue
        if folder_of(folder, inner.name) is None:
            warn(f"{inner} leads out of {folder} and is not read. Give it by its own path.")
            continue
        read_before = any(Path(source).is_relative_to(inner) for source, _ in runs.sources)
        has_results = read_before or _read_folder(inner, runs) or has_results
    if not has_results:
        raise InputError(_empty(folder))


def _empty(path: Path) -> str:
    if is_folder(path / STORE):
        return f"{path} holds a run that was stopped before its first result. Run the same command again: it resumes."
    if (path / "history.json").exists() or (path / WEIGHTS).exists():
        return (
            f"{path} holds a training, which alone shows nothing. Look at it by likewise inspect {path} --data ... "
            "--out FOLDER, or compare its network with others."
        )
    return (
        f"{path} holds no results. Give a folder that likewise compare, transfer, layerwise, inspect, classes, "
        "zeroshot or benchmark wrote by --out."
    )


def _read_folder(folder: Path, runs: Runs) -> bool:
    """Read whatever a folder holds, and say whether there was anything."""
    before = len(runs.sources)
    for name, read in _READERS.items():
        if os.path.lexists(folder / name):
            read(folder, runs)
    if len(runs.sources) == before:  # files of matrices, as a comparison is saved
        for file in _saved(folder):
            _read_file(file, runs)
    if len(runs.sources) > before and os.path.lexists(folder / COMMAND):
        runs.commands.append(read_text(folder, COMMAND, limit=_LONGEST_COMMAND).strip())
    return len(runs.sources) > before


def _saved(folder: Path) -> list[Path]:
    """Files that say of themselves that they are a matrix."""
    names = sorted(path.name for kind in (SAFETENSORS, NPZ) for path in folder.glob(f"*{kind}"))
    files = [file_of(folder, name) for name in names if name != WEIGHTS]
    return [path for path in files if path.suffix == NPZ or {"facts", "csm", "rows"} & set(_metadata(path))]


def _metadata(path: Path) -> dict[str, str]:
    """What a file says of itself, which matches its checksum."""
    sentence = f"{path} is no file of results, or it is damaged ({{reason}}). Run again what wrote it."
    with reading(path, sentence, StoreError):
        return sealed.read(file_at(path), required=False)[1]


def _read_file(path: Path, runs: Runs) -> None:
    if path.name == RESULTS:
        _benchmark(path, runs)
    elif path.suffix.lower() in CSV:
        runs._add_matrix(read_matrix(path), path)
    elif path.name == INPUTS:
        _inputs(path.parent, runs)
    else:
        _read_matrix(path, runs)


def _read_matrix(path: Path, runs: Runs) -> None:
    """A file that says in its header which kind of matrix it holds."""
    header = {} if path.suffix == NPZ else _metadata(path)
    with reading(path, f"{path} is damaged ({{reason}}). Run again what wrote it.", StoreError):
        facts = parse(header.get("facts", "{}"))
    if "seeds" in facts:
        _zeroshot([path], runs)
    elif facts.get("matrix") == LayerMatrix.KIND or "rows" in header:
        runs.layers.append(LayerMatrix.load(path))
        runs._note(path, "layers of two networks")
    elif facts.get("matrix") == ClassSimilarity.KIND or "csm" in header:
        runs.classes[path.stem] = ClassSimilarity.load(path)
        runs._note(path, f"class similarity of {path.stem}")
    elif path.name == MATRIX:
        runs._add_matrix(TransferMatrix.load(path), path)
    else:
        runs._add_matrix(SimilarityMatrix.load(path), path)


def _unfinished(folder: Path, runs: Runs) -> None:
    """The scores of a comparison that was stopped, where none in this folder was finished."""
    store = folder_of(folder, STORE)
    measures: dict[str, list[str]] = {}
    for matrix in [] if store is None else unfinished(store):
        done = matrix.about[UNFINISHED]
        measures.setdefault(_reached(done), []).append(matrix.measure)
        if done["pairs"] and not os.path.lexists(folder / "matrices"):
            runs._add_matrix(matrix, folder)
    for reached, names in measures.items():
        text = f"the comparison by {listed(sorted(names))} in {folder} was stopped: {reached}."
        runs.missing.append(f"{text} The same command resumes it.")


def _reached(done: dict[str, Any]) -> str:
    """How far a comparison came, in words."""
    wanted = " and ".join(done["wanted"])
    lacks = f"; {wanted} {'was' if len(done['wanted']) == 1 else 'were'} not reached" if wanted else ""
    return f"{done['pairs']} of {done['of']} pairs {'has' if done['pairs'] == 1 else 'have'} a score{lacks}"


def _transfer(folder: Path, runs: Runs) -> None:
    answered = os.path.lexists(folder / ANSWERS)
    matrix = load(folder) if answered else TransferMatrix.load(file_of(folder, MATRIX))
    runs._add_matrix(matrix, folder)


def _matrices(folder: Path, runs: Runs) -> None:
    inner = folder_of(folder, "matrices")
    files = [] if inner is None else _saved(inner)
    if not files:
        raise InputError(f"{folder / 'matrices'} holds no saved matrices. Run again what wrote the folder.")
    for file in files:
        _read_file(file, runs)


def _inspection(folder: Path, runs: Runs) -> None:
    epochs = sorted(path for path in folder.glob("[0-9]*.safetensors") if path.stem.isdecimal())
    first = next(iter(epochs), None)
    if first is None:
        raise InputError(f"{folder} has curves of an inspection and no epoch of it. Run likewise inspect again.")
    sentence = f"{first} is no epoch of an inspection, or it is damaged. Run likewise inspect again."
    with reading(first, sentence, StoreError):
        facts = parse(_metadata(file_of(folder, first.name))["inspection"])
        check(facts, {"classes": list[str]})
    has_reference = os.path.lexists(folder / REFERENCE)
    reference = ClassSimilarity.load(file_of(folder, REFERENCE)) if has_reference else None
    name = folder.name if folder.name not in runs.inspections else str(folder)
    runs.inspections[name] = Inspector(facts["classes"], reference=reference, out=folder)
    runs._note(folder, f"an inspection of {len(runs.inspections[name].records.reports)} epochs")


def _zeroshots(folder: Path, runs: Runs) -> None:
    names = sorted(path.name for path in folder.glob("[0-9]*.safetensors"))
    _zeroshot([file_of(folder, name) for name in names], runs)


def _zeroshot(files: Sequence[Path], runs: Runs) -> None:
    for path in files:
        runs.zeroshot.append(ZeroShot.load(path))
        runs._note(path, f"Raw Zero-Shot of {runs.zeroshot[-1].network}")


def _benchmark(folder: Path, runs: Runs) -> None:
    results = Results.load(folder)
    runs.benchmark = results if runs.benchmark is None else Results.joined([runs.benchmark, results])
    runs._note(folder, f"a benchmark of {results.frame['measure'].nunique()} measures")


def _inputs(folder: Path, runs: Runs) -> None:
    runs.inputs.append(Influence.load(file_of(folder, INPUTS)))
    runs._note(folder / INPUTS, "which inputs networks differ on")


def _components(folder: Path, runs: Runs) -> None:
    import pandas as pd

    table = read_table(file_of(folder, COMPONENTS))
    runs.components = table if runs.components is None else pd.concat([runs.components, table])
    runs.components = runs.components[~runs.components.index.duplicated(keep="last")]
    runs._note(folder / COMPONENTS, f"components of {len(table)} networks")


_READERS: dict[str, Callable[[Path, Runs], None]] = {
    MATRIX: _transfer,
    LAYERWISE: lambda folder, runs: _read_matrix(file_of(folder, LAYERWISE), runs),
    "matrices": _matrices,
    CURVES: _inspection,
    TABLE: _zeroshots,
    RESULTS: _benchmark,
    INPUTS: _inputs,
    COMPONENTS: _components,
    STORE: _unfinished,
}
