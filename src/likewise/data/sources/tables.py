"""Texts in files: tables (csv, tsv, parquet, JSON lines) and plain text, one text per line.

Which column holds what is settled in `likewise.data.sources.columns`. A file is read no further than memory can hold: a
few kilobytes of gzip or parquet may unpack to any size.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from likewise._base.files import reading
from likewise._base.machine import free_memory
from likewise._base.optional import require
from likewise._base.progress import warn
from likewise.data.address import data_source
from likewise.data.inputs import Data
from likewise.data.sources.columns import Table, from_table
from likewise.errors import InputError, quoted_list

_BEGINNING = 2**16  # letters of a csv that show what separates its columns
_OBJECT = 64  # bytes that Python takes for a text beside its letters
_STRINGS = ("string", "large_string", "dictionary<values=string", "dictionary<values=large_string")
_USUAL, _RATIO = 2**28, 200  # bytes that any file of gzip may unpack to, and how many times its size a larger one may
_DAMAGED = "{path} is no whole table: {{reason}}. Save it again."
Columns = Mapping[str, Sequence[Any]]


@data_source(
    name="table",
    domain="text",
    splits=("all",),
    needs_path=True,
    aliases=("csv", "tsv", "parquet", "jsonl"),
    libraries=("pandas", "pyarrow", "polars"),
    endings=(".csv", ".tsv", ".parquet", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz"),
)
def table(
    split: str, root: Any, text: str | None = None, pair: str | None = None, label: str | bool | None = None
) -> Data:
    """Texts in a table (csv, tsv, parquet, jsonl): text=COLUMN, pair=COLUMN, label=COLUMN."""
    return from_table(read_table(root) if isinstance(root, str) else _frame(root), text, pair, label)


@data_source(
    name="lines", domain="text", splits=("all",), needs_path=True, aliases=("text",), endings=(".txt", ".txt.gz")
)
def lines(split: str, root: str) -> Data:
    """Texts in a plain file, one per line; blank lines are left out."""
    path = Path(root).expanduser()
    with reading(path, f"{path} cannot be read: {{reason}}. Save it again."):
        texts = [line for line in _lines(path) if line.strip()]
    if not texts:
        raise InputError(f"{path} holds no text. Write one text per line.")
    return Data(f"lines:{root}", "text", texts)


def read_table(root: str, name: str = "") -> Table:
    """A table in a file, by its ending."""
    path = Path(root).expanduser()
    ending = "".join(path.suffixes).lower()
    read = next((reader for kind, reader in _READERS.items() if ending.removesuffix(".gz").endswith(kind)), None)
    if read is None or ending.endswith(".parquet.gz"):
        raise InputError(
            f"{path} is no table that is known by its ending. Give {', '.join(_READERS)} (.gz but parquet)."
        )
    with reading(path, _DAMAGED.format(path=path)):
        return read(path, name or f"table:{root}")


def unpacked(path: Path) -> bytes:
    """The bytes of a file, of gzip read to its checksum, and no more of them than memory can hold."""
    room = free_memory() // 8  # as texts, they take several times as much
    if path.suffix == ".gz":
        room = min(room, _USUAL + _RATIO * path.stat().st_size)
    content = bytearray()
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        while chunk := file.read(2**20):
            content += chunk
            if len(content) > room:
                raise _too_large(path, room)
    return bytes(content)


def _lines(path: Path) -> list[str]:
    """Lines by their ends alone: other signs that part lines may stand within a text."""
    return [line.removesuffix("\r") for line in _text(path).split("\n")]


def _text(path: Path) -> str:
    """What a file holds, in UTF-8; where it is in another encoding, the sentence says how to convert it."""
    content = unpacked(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
        convert = f"iconv -f {encoding} -t utf-8 '{path}' > 'utf8{path.suffix}'"
        raise InputError(
            f"{path} is no text in UTF-8: byte {error.start} is {content[error.start]:#04x}. Save it as UTF-8 ('CSV "
            f"UTF-8' in Excel){'' if path.suffix == '.gz' else f', or convert it: {convert}'}."
        ) from error


def _separator(text: str) -> str:
    """What separates the columns of a csv: the first sign by which all rows have as many columns, and more than one.

    Where there is none, some text holds the sign itself, and most rows are as wide as the first line.

    >>> _separator("text;label\\ngood, very good;pos\\n"), _separator("text\\ngood; very good\\n")
    (';', ',')
    """
    beginning = text[:_BEGINNING].splitlines()[: -1 if len(text) > _BEGINNING else None]
    shares = {",": 0.0}
    for separator in ",;\t|":
        widths = [len(row) for row in csv.reader(beginning, delimiter=separator) if row]
        if widths and widths[0] > 1:
            shares[separator] = widths.count(widths[0]) / len(widths)
    return max(shares, key=lambda separator: shares[separator])


def _check_widths(path: Path, text: str, separator: str, *, quotes: bool) -> None:
    """Refuse the first row that is wider than the first line."""
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    )
    width = 0
    for row in rows:
        width = width or len(row)
        if len(row) > width:
            remedy = f"Put texts that hold {separator!r} into double quotes" if quotes else "Take those in texts out"
            raise InputError(
                f"line {rows.line_num} of {path} has {len(row)} columns and the first line {width}, separated by "
                f"{separator!r}. {remedy}."
            )


def _separated(path: Path, name: str, *, separator: str | None, quotes: bool) -> Table:
    import pandas as pd

    text = _text(path)
    options: Any = {"header": None, "dtype": str, "na_filter": False, "quoting": 0 if quotes else 3}
    if quotes and (declared := re.match(r'"?sep=(.)"?\r?\n', text)):  # a line of Excel's own, above the names
        separator, text = declared[1], text[declared.end() :]
    separator = separator or _separator(text)
    try:
        frame = pd.read_csv(io.StringIO(text, newline=""), sep=separator, **options)
    except pd.errors.ParserError:
        _check_widths(path, text, separator, quotes=quotes)
        raise
    first, *rows = frame.to_numpy().tolist()
    if len(set(first)) != len(first):
        raise InputError(f"{path} has two columns of one name in its first line. Rename one.")
    if rows and 0 < sum(map(_is_number, first)) < len(first):
        warn(
            f"the first line of {path} ({quoted_list(first)}) is taken for names of columns. If it is a row, write "
            "names above it, such as 'text' and 'label'."
        )
    columns = {str(column): [row[i] or None for row in rows] for i, column in enumerate(first)}
    texts = [column for column, values in columns.items() if not rows or not all(map(_is_number, values))]
    return _held(name, columns, texts)


def _json_lines(path: Path, name: str) -> Table:
    rows = []
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            rows.append(json.loads(line))
            if not isinstance(rows[-1], dict):
                raise InputError(
                    f"line {number} of {path} is no object in braces. Write one per line, as in JSON lines."
                )
    columns = {
        column: [row.get(column) for row in rows] for column in dict.fromkeys(key for row in rows for key in row)
    }
    return _held(name, columns, _of_text(columns))


def _parquet(path: Path, name: str) -> Table:
    parquet: Any = require("pyarrow.parquet", extra="report", to=f"read {path.name}")
    with parquet.ParquetFile(path) as file:
        kinds = {column.name: str(column.type) for column in file.schema_arrow}
    texts = [column for column, kind in kinds.items() if kind.startswith(_STRINGS)]
    return Table(name, list(kinds), texts, partial(_parquet_columns, path))


def _parquet_columns(path: Path, columns: Sequence[str]) -> Columns:
    parquet: Any = require("pyarrow.parquet", extra="report", to=f"read {path.name}")
    values: dict[str, list[Any]] = {column: [] for column in columns}
    room, used = free_memory() // 2, 0
    with reading(path, _DAMAGED.format(path=path)), parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=4096, columns=list(values)):
            used += batch.nbytes + _OBJECT * len(batch) * len(values)
            if used > room:
                raise _too_large(path, room)
            for column in values:
                values[column] += batch.column(column).to_pylist()
    return values


def _frame(frame: Any) -> Table:
    """A data frame of pandas, pyarrow or polars, or one column of it."""
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    frame = frame.to_frame("text" if frame.name is None else str(frame.name)) if frame.ndim == 1 else frame
    columns = {str(column): frame[column].tolist() for column in frame.columns}
    return Table("data frame", list(columns), _of_text(columns), lambda _: columns, is_address=False)


def _of_text(columns: Columns) -> list[str]:
    return [column for column, values in columns.items() if any(isinstance(value, str) for value in values)]


def _held(name: str, columns: Columns, texts: Sequence[str]) -> Table:
    return Table(name, list(columns), texts, lambda _: columns)


def _is_number(value: str | None) -> bool:
    try:
        return value is None or float(value) is not None
    except ValueError:
        return False


def _too_large(path: Path, room: int) -> InputError:
    return InputError(f"{path} unpacks to more than {room / 1e9:.3g} GB, more than is read of it. Save fewer lines.")


_READERS: dict[str, Callable[[Path, str], Table]] = {
    ".csv": partial(_separated, separator=None, quotes=True),
    ".tsv": partial(_separated, separator="\t", quotes=False),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}
