"""Comparisons that are under way: each leaves a note in its store until it is done, so that a killed one can be read.

A note is a matrix without scores, one per measure, with the keys by which the store holds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from likewise._base.files import reading, write_guard
from likewise._base.folders import file_of, folder_of
from likewise._base.formats.records import check
from likewise._base.hashing import digest
from likewise.comparison.schedule import Job, measure_key, pair_key, view_key
from likewise.errors import StoreError
from likewise.matrices.labelled import SAFETENSORS
from likewise.matrices.similarity import SimilarityMatrix
from likewise.work.store import Store

FOLDER = "unfinished"
_RECORD = {"measure": str, "views": list[str], "symmetric": bool, "wanted": list[str]}
REASON = "the run was stopped before this pair"


def begin(store: Store, job: Job, about: Mapping[str, Any], wanted: Collection[str]) -> list[Path]:
    """Leave a note per measure of a comparison that `wanted` chance or intervals too; the files, for `end`."""
    paths = []
    for measure in job.measures:
        views = [view_key(view, measure) for view in job.views]
        key = measure_key(measure)
        record = {"measure": key, "views": views, "symmetric": measure.info.symmetric, "wanted": sorted(wanted)}
        paths.append(job.matrix(measure, {**about, FOLDER: record}).save(store.path / FOLDER / digest([key, *views])))
    return paths


def end(paths: list[Path]) -> None:
    """Remove the notes of a comparison that is done."""
    for path in paths:
        with write_guard(path):
            path.unlink(missing_ok=True)


def unfinished(folder: Path) -> Iterator[SimilarityMatrix]:
    """The matrices of comparisons that were stopped, with the scores that the store holds.

    `about["unfinished"]` says how many `pairs` of how many have one, and what was `wanted` besides.
    """
    notes = folder_of(folder, FOLDER)
    names = [] if notes is None else sorted(path.name for path in notes.glob(f"*{SAFETENSORS}"))
    if notes is None or not names or not (folder / "likewise.json").exists():
        return
    with Store(folder) as store:
        for name in names:
            yield _read(file_of(notes, name), store)


def _read(path: Path, store: Store) -> SimilarityMatrix:
    matrix = SimilarityMatrix.load(path)
    record = matrix.about.get(FOLDER)
    with reading(path, f"{path} is no note of a comparison. Remove it, and run the comparison again.", StoreError):
        check({FOLDER: record}, {FOLDER: dict[str, Any]})
        assert isinstance(record, dict)
        check(record, _RECORD)
        if len(record["views"]) != len(matrix):
            raise ValueError("its views are others")
    views, symmetric = record["views"], record["symmetric"]
    places = [(i, j) for i in range(len(views)) for j in range(len(views)) if (i < j if symmetric else i != j)]
    keys = [pair_key(views[i], views[j], record["measure"], symmetric) for i, j in places]
    scores, values = store.find(keys), np.array(matrix.values)
    reasons: dict[tuple[str, str], str] = {}
    for (i, j), key in zip(places, keys, strict=True):
        value, reason = scores.get(key, (float("nan"), REASON))
        for a, b in ((i, j), (j, i)) if symmetric else ((i, j),):
            values[a, b] = value
            reasons |= {(matrix.names[a], matrix.names[b]): reason} if reason else {}
    done = {"pairs": len(scores), "of": len(places), "wanted": record["wanted"]}
    facts = {name: getattr(matrix, name) for name in ("measure", "larger_is", "bounds", "aliases")}
    return SimilarityMatrix(matrix.names, values, reasons=reasons, about={**matrix.about, FOLDER: done}, **facts)
