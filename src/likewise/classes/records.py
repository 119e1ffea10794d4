"""Epochs on disk: one safetensors file each, and all their reports as a table beside them.

The number of an epoch is its file's name, so an epoch that is trained again replaces itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import distributed

from likewise._base import sealed
from likewise._base.files import is_folder, reading, write_whole
from likewise._base.folders import claim, file_of, remove
from likewise._base.formats.records import check, parse
from likewise._base.names import csv_text
from likewise._base.progress import warn
from likewise.classes.batches import in_parallel
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import DamagedStoreWarning, InputError, StoreError

if TYPE_CHECKING:
    import pandas as pd

CURVES, REFERENCE = "curves.csv", "reference.safetensors"


@dataclass(frozen=True, eq=False)
class Epoch:
    """What is kept of an epoch: its report, its matrices, and its confusion matrices by split."""

    number: int
    report: dict[str, float]
    matrices: dict[str, ClassSimilarity]
    tables: dict[str, np.ndarray]


class Records:
    """The epochs of one run, in memory or in a folder."""

    def __init__(self, folder: Path | None, classes: tuple[str, ...]) -> None:
        self.folder, self.classes = folder, classes
        self.reports: dict[int, dict[str, float]] = {}
        self.damaged: set[int] = set()
        self._held: dict[int, Epoch] = {}
        if folder is None:
            return
        epochs = sorted(folder.glob("[0-9]*.safetensors")) if is_folder(folder) else []
        files = [path for path in epochs if path.stem.isdecimal()]
        if not files:
            self._claim()
        for path in files:
            if (facts := _facts_or_warning(path)) is None:
                self.damaged.add(int(path.stem))
                continue
            if tuple(facts["classes"]) != classes:
                raise InputError(
                    f"{folder} holds an inspection of other classes ({len(facts['classes'])}, first "
                    f"{facts['classes'][0]!r}). Give another folder."
                )
            self.reports[facts["epoch"]] = facts["report"]

    def _claim(self) -> None:
        """Make the folder ours, if it is to be written to: reading an inspection writes nothing."""
        if self.folder is not None:
            claim(self.folder, older=[CURVES, "curves.png", "film.html", "command.txt"])

    def keep(self, epoch: Epoch, reference: ClassSimilarity | None) -> None:
        """Store an epoch, in place of an earlier one of the same number."""
        self.reports[epoch.number] = epoch.report
        if not _first_process():
            return
        if self.folder is None:
            self._held[epoch.number] = epoch
            return
        self._claim()
        if reference is not None and not (self.folder / REFERENCE).exists():
            reference.save(self.folder / REFERENCE)
        _write(self._path(epoch.number), epoch, self.classes)
        self.write_curves()

    def write_curves(self) -> None:
        """Write one row per epoch, where there is a folder."""
        if self.folder is not None:
            write_whole(self.folder / CURVES, csv_text(self.frame()).encode())

    def _path(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{number:04d}.safetensors"

    def frame(self) -> pd.DataFrame:
        """One row per epoch."""
        import pandas as pd

        numbers = sorted(self.reports)
        index = pd.Index(numbers, name="epoch")
        return pd.DataFrame([self.reports[number] for number in numbers], index=index)

    def epoch(self, number: int) -> Epoch:
        """An epoch as it was kept."""
        if number in self._held:
            return self._held[number]
        if number not in self.reports or self.folder is None:
            kept = self._held if self.folder is None else self.reports
            raise InputError(f"epoch {number} was not kept. There are: {', '.join(map(str, sorted(kept))) or 'none'}.")
        return _read(self._path(number))

    def go_back_to(self, reports: dict[int, dict[str, float]]) -> None:
        """Drop epochs that are not among these, here and on disk, and restore these."""
        for number in set(self.reports) - set(reports):
            self._held.pop(number, None)
            if self.folder is not None and _first_process():
                remove(self._path(number))
        self.reports = reports
        if _first_process():
            self.write_curves()


def _write(path: Path, epoch: Epoch, classes: tuple[str, ...]) -> None:
    arrays = {f"matrix {k}": m.values.astype(np.float32) for k, m in epoch.matrices.items()}
    arrays |= {f"table {k}": np.asarray(t) for k, t in epoch.tables.items()}
    facts = {
        "epoch": epoch.number,
        "report": {k: v if np.isfinite(v) else None for k, v in epoch.report.items()},
        "classes": list(classes),
        "matrices": {k: m.metadata() for k, m in epoch.matrices.items()},
    }
    sealed.write(path, arrays, {"inspection": json.dumps(facts)})


_FACTS = {
    "epoch": int,
    "classes": list[str],
    "report": dict[str, float | None],
    "matrices": dict[str, dict[str, Any]],
}
_DAMAGED = "{path} is no epoch of an inspection, or it is damaged. Run likewise inspect again with its folder."


def _facts_or_warning(path: Path) -> dict[str, Any] | None:
    """What an epoch's file says of itself; None where it is damaged, so that the epoch counts as missing."""
    try:
        return _facts(path)
    except StoreError:
        if not path.exists():  # another process dropped it meanwhile
            return None
        warn(f"{path} is no epoch of an inspection, or it is damaged; it is left out.", DamagedStoreWarning)
        return None


def _facts(path: Path) -> dict[str, Any]:
    """What an epoch's file says of itself: its number, its classes, its report."""
    with reading(path, _DAMAGED.format(path=path), StoreError):
        facts = parse(sealed.verify(file_of(path.parent, path.name))["inspection"])
        check(facts, _FACTS)
        if not facts["classes"] or facts["epoch"] != int(path.stem):
            raise ValueError("it is of no classes, or of another epoch than its name says")
        return facts | {"report": {k: np.nan if v is None else float(v) for k, v in facts["report"].items()}}


def _read(path: Path) -> Epoch:
    facts = _facts(path)
    with reading(path, _DAMAGED.format(path=path), StoreError):
        arrays = {name: tensor.numpy() for name, tensor in sealed.read(path, required=False)[0].items()}
        for about in facts["matrices"].values():
            check(about, {"classes": list[str], "kind": str, "about": dict[str, Any]})
        matrices = {k: ClassSimilarity(arrays[f"matrix {k}"], **about) for k, about in facts["matrices"].items()}
        tables = {k[6:]: v for k, v in arrays.items() if k.startswith("table ")}
        side = len(facts["classes"])
        if any(array.shape != (side, side) for array in arrays.values()):
            raise ValueError("its arrays are of other classes")
        return Epoch(facts["epoch"], facts["report"], matrices, tables)


def _first_process() -> bool:
    """Of several processes that train together, only the first writes."""
    return not in_parallel() or distributed.get_rank() == 0
