"""Read matrices and tables: saved files, folders of a run, and CSV."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise._base.files import is_folder, reading
from likewise._base.folders import file_of, folder_of, read_at
from likewise._base.formats.tables import MATRIX as MATRIX_TABLE
from likewise._base.formats.tables import table
from likewise.errors import InputError, quoted_list
from likewise.matrices.labelled import NPZ, SAFETENSORS
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    import pandas as pd

CSV = (".csv", ".tsv")


def read_matrix(path: str | os.PathLike[str], *, larger_is: str = "more alike") -> SimilarityMatrix:
    """Read a similarity matrix.

    Args:
        path: A saved file, a folder that `likewise transfer` or `likewise compare` wrote, or a square CSV with the
            names of the networks in its first row and column.
        larger_is: What a larger number in a CSV means, "more alike" or "less alike".

    Raises:
        InputError: The file is no square matrix of numbers, or the folder holds none or several.
        StoreError: The file is damaged.
    """
    source = Path(path)
    if is_folder(source):
        return _matrix_in_folder(source)
    if source.suffix.lower() not in CSV:
        return SimilarityMatrix.load(source)
    frame = read_table(source)
    names, rows = [str(name) for name in frame.columns], [str(name) for name in frame.index]
    if sorted(names) != sorted(rows):
        raise InputError(
            f"{source} is no square matrix: it has {len(rows)} rows and {len(names)} columns, and their names are to "
            "be the same. Put the names of the networks into the first row and the first column."
        )
    with reading(source, f"{source} has entries that are no numbers ({{reason}}). Repair them, or leave them empty."):
        values = frame.to_numpy(dtype=np.float64)
    order = [rows.index(name) for name in names]
    return SimilarityMatrix(names, values[order], measure=source.stem, larger_is=larger_is)


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table with one row per network, named in the first column.

    Args:
        path: A CSV or TSV file.
    """
    source = Path(path)
    with reading(source, f"{source} is no table ({{reason}}). Give a CSV file with the networks in its first column."):
        content = read_at(source, limit=MATRIX_TABLE)
        names = content.partition(b"\n")[0]
        elsewhere = b";" in names and b"," not in names  # as Excel writes it where a number is 0,5
        separator = "\t" if source.suffix.lower() == CSV[1] else ";" if elsewhere else ","
        decimal = "," if elsewhere and not re.search(rb"\d\.\d", content) else "."
        options = {"encoding": "utf-8-sig", "encoding_errors": "strict", "decimal": decimal}
        frame = table(content, separator, index_col=0, **options)
    frame.index = frame.index.astype(str)
    if not frame.size:
        raise InputError(f"{source} is an empty table. Give one row per network, with its name first.")
    return frame


def _matrix_in_folder(folder: Path) -> SimilarityMatrix:
    from likewise.transfer.matrix import ANSWERS, MATRIX, load

    if os.path.lexists(folder / MATRIX):
        return load(folder) if os.path.lexists(folder / ANSWERS) else SimilarityMatrix.load(file_of(folder, MATRIX))
    inner = folder_of(folder, "matrices") or folder
    files = sorted(path for kind in (SAFETENSORS, NPZ) for path in inner.glob(f"*{kind}"))
    if len(files) != 1:
        holds = f"several matrices, {quoted_list([str(path) for path in files])}" if files else "no matrix"
        raise InputError(f"{folder} holds {holds}. Give the file of one.")
    return SimilarityMatrix.load(file_of(inner, files[0].name))
