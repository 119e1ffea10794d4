"""Tables: which column holds the texts, which the labels, and what their classes are.

Files of tables, data frames and the datasets of Hugging Face are all read by these rules, so that a table gives the
same data whatever it is kept in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from likewise._base.progress import warn
from likewise.data.inputs import Data
from likewise.errors import InputError, brief, did_you_mean, quoted_list

TEXTS = ("text", "sentence", "caption")  # taken where there are other columns of text
LABELS = ("label", "labels")
_MOST_CLASSES = 10_000


@dataclass(frozen=True)
class Table:
    """Columns that are read when asked for; `texts` names those that hold texts.

    `typed` is the table as it may be typed with options behind it: an address, or the name of a variable.
    """

    name: str
    columns: Sequence[str]
    texts: Sequence[str]
    read: Callable[[Sequence[str]], Mapping[str, Sequence[Any]]]
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of columns whose labels have names
    is_address: bool = True
    pairs: bool = True  # whether a second column may stand beside the first

    def remedy(self, option: str, value: str) -> str:
        """What to type to choose a column."""
        return f"'{self.name},{option}={value}'" if self.is_address else f"likewise.dataset(data, {option}={value!r})"


def from_table(table: Table, text: str | None = None, pair: str | None = None, label: str | bool | None = None) -> Data:
    """The texts of a table as data: of the column `text` (with those of `pair` beside them), labelled by `label`.

    Without names the texts are in the column `text`, `sentence`, `caption` or the only one of text, the labels in
    `label` or `labels`; `label=False` leaves them out.

    >>> rows = {"text": ["good", "bad"], "label": ["pos", "neg"]}
    >>> from_table(Table("reviews", list(rows), ["text", "label"], lambda columns: rows)).classes
    ('neg', 'pos')
    """
    columns = [_text_column(table, text, _label_column(table, label))] + ([check_column(table, pair)] if pair else [])
    values = table.read(columns)
    texts = [check_texts(values[column], f"column {column!r} of {table.name}") for column in columns]
    inputs: list[Any] = list(zip(*texts, strict=True)) if pair else texts[0]
    if not inputs:
        raise InputError(f"{table.name} has no rows. Give at least two.")
    return Data(table.name, "text", inputs, *read_labels(table, label))


def read_labels(table: Table, asked: str | bool | None) -> tuple[list[int] | None, tuple[str, ...]]:
    """The labels in the column asked for, or called so, and their classes; None where there is none."""
    label = _label_column(table, asked)
    if label is None:
        return None, ()
    what = f"column {label!r} of {table.name}"
    return labels_of(table.read([label])[label], table.classes.get(label, ()), what)


def _label_column(table: Table, asked: str | bool | None) -> str | None:
    if asked is not None and not isinstance(asked, bool):
        return check_column(table, asked)
    columns = [column for column in table.columns if column.lower() in LABELS] or list(table.classes)
    return columns[0] if len(columns) == 1 and asked is not False else None


def _text_column(table: Table, asked: str | None, label: str | None) -> str:
    if asked is not None:
        return check_column(table, asked)
    texts = [column for column in table.texts if column != label]
    texts = [column for column in texts if column.lower() in TEXTS] or texts
    if len(texts) == 1:
        return texts[0]
    if not texts:
        raise InputError(
            f"{table.name} has no column of text. Its columns are {quoted_list(list(table.columns))}. Give one that "
            "has, or batches of what the network takes."
        )
    raise InputError(
        f"{table.name} has {len(texts)} columns of text ({quoted_list(texts)}). Name the one to show: "
        f"{table.remedy('text', texts[0])}{', and a second beside it with pair=' if table.pairs else ''}."
    )


def check_column(table: Table, column: str) -> str:
    """The name of a column, or that there is none of that name."""
    column = str(column)  # of an address it may be a number
    if column not in table.columns:
        raise InputError(
            f"{table.name} has no column {column!r}.{did_you_mean(column, table.columns)} It has "
            f"{quoted_list(list(table.columns))}."
        )
    return column


def check_texts(values: Sequence[Any], what: str) -> list[str]:
    """Texts as a list, or which entry is none."""
    texts = list(values)
    for row, value in enumerate(texts):
        if not isinstance(value, str):
            remedy = "Give one text per row" if isinstance(value, (list, tuple)) else "Leave such rows out"
            raise InputError(f"{what} holds {brief(value)} in row {row}, not text. {remedy}.")
    return texts


def labels_of(values: Sequence[Any], names: Sequence[str], what: str) -> tuple[list[int] | None, tuple[str, ...]]:
    """Labels as class indices, and the names of the classes.

    Whole numbers from 0 are indices already; any other values are classes in sorted order. None, nothing and -1
    (as in test splits) are no labels, and where some are missing, all are left out.

    >>> labels_of(["pos", "neg", "pos"], (), "it")
    ([1, 0, 1], ('neg', 'pos'))
    >>> labels_of([2, 0], (), "it"), labels_of([5, 1], (), "it")
    (([2, 0], ('0', '1', '2')), ([1, 0], ('1', '5')))
    """
    values = [_plain(value) for value in values]
    missing = sum(value in (None, "", -1) for value in values)
    if missing:
        if missing < len(values):
            warn(f"{what} has no label in {missing} of {len(values)} rows, so none is used.")
        return None, ()
    whole = [value for value in values if isinstance(value, int)]
    if len(whole) == len(values) and (names or min(whole) == 0) and max(whole) < _MOST_CLASSES:
        return whole, tuple(names or map(str, range(max(whole) + 1)))
    if any(isinstance(value, float) for value in values):
        warn(f"{what} holds numbers, not classes, so no labels are used.")
        return None, ()
    kinds = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    index = {kind: number for number, kind in enumerate(kinds)}
    return [index[value] for value in values], tuple(map(str, kinds))


def _plain(value: Any) -> str | int | float | None:
    """A label as a number where it is written as one; None for what is missing."""
    if value is None or isinstance(value, bool):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value).strip()
    if number != number:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
