"""The files Planetoid was published in, `ind.cora.x` and its seven sisters.

They are pickles, and a pickle may run anything. So they are not read by `pickle.load` but by a
reader that knows the few classes these files are made of (sparse matrices, arrays, dictionaries)
and refuses all else.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from likewise._base.arrays import Array
from likewise._base.files import reading
from likewise._base.formats.array_files import check_room

_MOST_NODES = 10**8
PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
# The modules' names of Python 2 and of older releases, in which the files were written.
_SAFE = {
    ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("__builtin__", "object"): object,
    ("builtins", "object"): object,
}
_SAFE_BY_NAME = {  # looked up where they live now, under whichever name they were written
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("copy_reg", "_reconstructor"),
    ("copyreg", "_reconstructor"),
    ("_codecs", "encode"),
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _SAFE:
            return _SAFE[module, name]
        if (module, name) in _SAFE_BY_NAME:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def read(folder: Path, name: str) -> dict[str, Array]:
    """Features, edges, labels and masks of `ind.NAME.*` in a folder."""
    parts = {ending: _read_part(folder / f"ind.{name}.{ending}") for ending in PARTS}
    some = folder / f"ind.{name}.allx"
    with reading(some, f"{folder} holds no whole graph of Planetoid: {{reason}}. Fetch it again."):
        return _arrays(parts)


def _arrays(parts: dict[str, Any]) -> dict[str, Array]:
    order = np.sort(parts["test.index"])
    tx, ty = parts["tx"], parts["ty"]
    if not 0 <= order[0] <= order[-1] < _MOST_NODES:
        raise ValueError(f"its test nodes run from {order[0]} to {order[-1]}")
    if len(order) != order[-1] - order[0] + 1:  # Citeseer: 15 test nodes have no features
        tx, ty = _with_gaps(tx, order), _with_gaps(ty, order)
    x, y = np.vstack([parts["allx"], tx]), np.vstack([parts["ally"], ty])
    x[parts["test.index"]], y[parts["test.index"]] = x[order], y[order]
    train = len(parts["y"])
    return {
        "x": x.astype(np.float32),
        "y": y.argmax(axis=1),
        "edge_index": _edges(parts["graph"]),
        "train_mask": _mask(len(x), np.arange(train)),
        "val_mask": _mask(len(x), np.arange(train, train + 500)),
        "test_mask": _mask(len(x), order),
    }


def _read_part(path: Path) -> Any:
    damaged = f"{path} is not a file of Planetoid: {{reason}}. Fetch it again from its source."
    with reading(path, damaged):
        if path.name.endswith("test.index"):
            return np.loadtxt(path, dtype=np.int64, ndmin=1)
        with path.open("rb") as file:
            content = _Reader(file, encoding="latin1").load()
        return _dense(content, path) if scipy.sparse.issparse(content) else content


def _dense(sparse: Any, path: Path) -> Array:
    """A sparse matrix as an array; scipy believes its indices, so they are checked first."""
    matrix = scipy.sparse.csr_matrix((sparse.data, sparse.indices, sparse.indptr), shape=sparse.shape)
    matrix.check_format(full_check=True)
    check_room(int(np.prod(matrix.shape)) * matrix.dtype.itemsize, path, on_disk=0)
    return np.asarray(matrix.toarray())


def _with_gaps(rows: Array, order: Array) -> Array:
    filled = np.zeros((order[-1] - order[0] + 1, rows.shape[1]), dtype=rows.dtype)
    filled[order - order[0]] = rows
    return filled


def _edges(graph: dict[int, list[int]]) -> Array:
    """Sorted, without doubles and self loops."""
    pairs = {(a, b) for a, others in graph.items() for b in others if a != b}
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T


def _mask(n: int, rows: Array) -> Array:
    mask = np.zeros(n, dtype=bool)
    mask[rows[rows < n]] = True
    return mask
