"""Benchmark results as one tidy frame: one row per grounding, metric, form and measure; from one run or from many.

A run keeps it as `results.csv`, with its networks beside it as `networks.csv`. Whatever reads results (tables, ranks,
the comparison with the paper, advice) reads them from here: the names of columns are defined once, and a damaged file
is refused in one place. The paper's own figures come in the same form, see `likewise.benchmark.results.paper`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import is_folder, reading, write_whole
from likewise._base.folders import claim, read_at, read_bytes
from likewise._base.formats.tables import table
from likewise._base.names import csv_text
from likewise.benchmark.evaluation import TIES
from likewise.benchmark.groundings import FORMS, GROUNDINGS
from likewise.errors import InputError, MissingDataError, brief, quoted_list

if TYPE_CHECKING:
    import pandas as pd

RESULTS, NETWORKS = "results.csv", "networks.csv"
EVIDENCE = Path(__file__).parent / "evidence"  # tables that ship with the package
SETTING = ("domain", "data", "network")  # where measures are compared
REPETITION = (*SETTING, "preset", "seed")
CELL = (*SETTING, "preset", "grounding", "metric")  # what measures are ranked in, over repetitions
ROW = (*CELL, "seed", "variant", "measure", "measure_variant", "ties")  # no two rows agree in all of these
COLUMNS = (
    *(*REPETITION, "grounding", "metric", "variant", "measure", "measure_variant"),
    *("value", "chance", "low", "high", "p", "coverage", "ties", "networks", "n", "valid", "seconds"),
)
NUMBERS = ("seed", "value", "chance", "low", "high", "p", "coverage", "networks", "n", "seconds")
OPTIONAL = ("value", "chance", "low", "high", "p", "ties", "valid", "seconds", "n", "networks")  # cells may be empty
NETWORK_COLUMNS = ("name", "group", "groundings", "seed", "accuracy")
TRUTH = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
MAIN_METRICS = {"predictions": ("spearman", "spearman_jsd", "spearman_disagreement"), "groups": ("auprc",)}


@dataclass(frozen=True, eq=False)
class Results:
    """Results in a frame with the columns `COLUMNS`, and the networks they are of.

    Attributes:
        frame: One row per result. `value` is better if higher, and empty where the measure is undefined; `valid` says
            whether the groups behave as they were made to, and is empty where a grounding has none.
        networks: One row per network of each run, if the runs kept them: name, group, groundings, seed, accuracy.
        sources: Where the results were read from.
    """

    frame: pd.DataFrame
    networks: pd.DataFrame | None = None
    sources: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def load(cls, *folders: str | os.PathLike[str]) -> Results:
        """Load the results of one or more runs.

        Args:
            *folders: The folders of runs, or their `results.csv`.

        Raises:
            MissingDataError: A folder holds no results.
            InputError: A file is damaged, or the same result is in two of them.
        """
        if not folders:
            raise InputError("no run was given. Give the folder of one or more.")
        return cls.joined([_load(Path(folder)) for folder in folders])

    @classmethod
    def joined(cls, results: Iterable[Results]) -> Results:
        """Join several results.

        Args:
            results: Results of different runs.
        """
        import pandas as pd

        several = list(results)
        frames = [one.frame for one in several if len(one.frame)]
        frame = pd.concat(frames, ignore_index=True) if frames else several[0].frame
        twice = frame[frame.duplicated(list(ROW))]
        if len(twice):
            row = twice.iloc[0]
            holders = " and ".join(source for one in several for source in one.sources if _holds(one.frame, row))
            raise InputError(
                f"{holders} hold the same result twice: {row['measure']} by {row['grounding']} on {row['data']} with "
                f"{row['network']} and seed {int(row['seed'])}. Give each run once."
            )
        networks = [one.networks for one in several if one.networks is not None]
        sources = tuple(source for one in several for source in one.sources)
        return cls(frame, pd.concat(networks, ignore_index=True) if networks else None, sources)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, source: str = "the frame") -> Results:
        """Make results from a frame of your own, checked as a file is.

        Args:
            frame: One row per result, with the columns `COLUMNS`.
            source: What error messages call it.

        Raises:
            InputError: A column is missing, or a row holds what a result cannot be.
        """
        return cls(_checked(frame, source), sources=(source,))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `results.csv` into a folder, whole or not at all; returns its path.

        Args:
            folder: A new or an empty folder, or one that likewise wrote.
        """
        path = Path(folder) / RESULTS
        claim(path.parent)
        write_whole(path, csv_text(self.frame[list(COLUMNS)], index=False, lineterminator="\n").encode())
        return path

    def only(self, **values: Any) -> Results:
        """Select rows by their values: `results.only(domain="graph", data=["cora"])`.

        Args:
            **values: One or several values per column; None selects all.
        """
        frame = self.frame
        for column, selected in values.items():
            if column not in COLUMNS:
                raise InputError(f"results have no column {column!r}. They have {', '.join(COLUMNS)}.")
            if selected is None:
                continue
            selected = [selected] if isinstance(selected, (str, int, float)) else list(selected)
            present = frame[column].dropna().unique().tolist()
            missing = [value for value in selected if value not in present]
            if missing:
                choices = quoted_list([str(value) for value in present])
                raise InputError(f"no result has the {column} {brief(missing[0])}. There are {choices}.")
            frame = frame[frame[column].isin(selected)]
        return self._with(frame)

    def form(self, variant: str = "published", ties: str = "conform") -> Results:
        """Select one form of the evaluation.

        Args:
            variant: "published" or "resi".
            ties: What equal values count as in the published conformity: "conform", "half" or "violate".
        """
        if variant not in FORMS:
            raise InputError(f"no form named {variant!r}. Choose {quoted_list(FORMS)}.")
        if ties not in TIES:
            raise InputError(f"ties are {brief(ties)}. Choose {quoted_list(list(TIES))}.")
        frame = self.frame[self.frame["variant"] == variant]
        if variant == "published":
            frame = frame[frame["ties"].isna() | (frame["ties"] == ties)]
        return self._with(frame)

    def main(self) -> Results:
        """Select the metrics the paper ranks by: AUPRC of groups, rank correlations of all others."""
        columns = zip(self.frame["grounding"], self.frame["metric"], strict=True)
        return self._with(self.frame[np.array([metric in main_metrics(name) for name, metric in columns], dtype=bool)])

    def valid(self) -> Results:
        """Select what is not of groups that do not behave as they were made to."""
        return self._with(self.frame[self.frame["valid"].ne(False)])

    def means(self, keys: Iterable[str] = CELL) -> pd.DataFrame:
        """The mean of each measure over repetitions: `value`, and `undefined`, the share of rows without one.

        Args:
            keys: Columns that rows are averaged within.
        """
        frame = self.frame.assign(undefined=self.frame["value"].isna().astype(float))
        return frame.groupby([*keys, "measure"], sort=False)[["value", "undefined"]].mean().reset_index()

    def _with(self, frame: pd.DataFrame) -> Results:
        return replace(self, frame=frame.reset_index(drop=True))

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        settings = self.frame[list(SETTING)].drop_duplicates()
        return f"Results({len(self.frame)} rows of {len(settings)} cells, {self.frame['measure'].nunique()} measures)"


def main_metrics(grounding: str) -> tuple[str, ...]:
    """The metrics that rank measures by a grounding; an unknown one has all but conformity."""
    kind = GROUNDINGS.get(grounding).kind if grounding in GROUNDINGS else "predictions"
    return MAIN_METRICS.get(kind, ("spearman",))


def label(measure: str, form: str | None = None) -> str:
    """A measure as tables name it: by the paper's abbreviation where it has one, options behind it.

    >>> label("procrustes"), label("jaccard[k=5]"), label("nbs"), label("cka", "resi")
    ('OrthProc', 'Jaccard[k=5]', 'nbs', 'CKA[resi]')
    """
    from likewise.measures.registry import MEASURES, RESI

    name, bracket, options = measure.partition("[")
    aliases = MEASURES.get(name).info.aliases if name in MEASURES else ()
    short = next((alias for alias in aliases if alias in RESI), name) + bracket + options
    return f"{short}[{form}]" if form else short


def read_table(folder: Path, name: str, refusal: str, *, required: bool = True, **options: Any) -> pd.DataFrame:
    """A CSV file of a folder; a damaged one is refused with this sentence, which may name the `{reason}`.

    In a folder with a manifest it has to be listed there if `required`: a changed digit is damage too.
    """
    with reading(folder / name, refusal):
        return table(read_bytes(folder, name, required=required), **options)


def package_table(path: Path, **options: Any) -> pd.DataFrame:
    """A CSV file that ships with the package."""
    with reading(path, f"{path} is damaged ({{reason}}). Install likewise again."):
        return table(read_at(path), **options)


def read_text_table(folder: Path, name: str, remedy: str) -> pd.DataFrame:
    """A CSV file of a folder with every cell as text, to be checked."""
    refusal = f"{folder / name} is no table ({{reason}}). {remedy}"
    options: dict[str, Any] = {"encoding": "utf-8-sig", "encoding_errors": "strict"}
    options |= {"required": name in (RESULTS, NETWORKS)}
    return read_table(folder, name, refusal, dtype=str, keep_default_na=False, **options)


def _holds(frame: pd.DataFrame, row: pd.Series) -> bool:
    same = [
        frame[name].isna() if row[name] != row[name] or row[name] is None else frame[name] == row[name] for name in ROW
    ]
    return bool(np.logical_and.reduce(same).any())


def _load(path: Path) -> Results:
    folder, file = (path, path / RESULTS) if is_folder(path) else (path.parent, path)
    if not os.path.lexists(file):
        raise MissingDataError(
            f"{path} holds no {RESULTS}, so it is no finished run. Give the folder of `likewise benchmark run --out`."
        )
    remedy = f"Run the benchmark again with --out {folder}."
    frame = _checked(read_text_table(folder, file.name, remedy), str(file))
    networks = _networks(folder, frame) if os.path.lexists(folder / NETWORKS) else None
    return Results(frame, networks, (str(path),))


def _first(marked: Any) -> int | None:
    """The first row that is marked, if any is."""
    return next(iter(np.flatnonzero(np.asarray(marked, dtype=bool)).tolist()), None)


def _checked(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """The frame with its columns in order, numbers as numbers; anything odd is refused with its row."""
    import pandas as pd

    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"{source} has no column {missing[0]!r}. Results have the columns {', '.join(COLUMNS)}.")
    frame = frame[list(COLUMNS)].reset_index(drop=True)
    checked = pd.DataFrame({name: _column(frame[name], name, source) for name in COLUMNS})
    if (i := _first(checked.duplicated(list(ROW)))) is not None:
        raise InputError(
            f"{source} holds {checked['measure'][i]} by {checked['grounding'][i]} and {checked['metric'][i]} "
            f"twice, the second time in row {i + 1}. Run again."
        )
    return checked


def _column(values: pd.Series, name: str, source: str) -> pd.Series:
    import pandas as pd

    column = values.astype(object).where(values.notna() & (values.astype(str) != ""), None)
    empty, words = column.isna(), column.astype(str).str.lower()

    def refuse(rows: Any, why: str, show: Callable[[Any], str] = repr) -> None:
        if (i := _first(rows)) is not None:
            raise InputError(f"{source} has {show(column[i])} as {name} in row {i + 1}{why}")

    if name not in OPTIONAL and (i := _first(empty)) is not None:
        raise InputError(f"{source} has no {name} in row {i + 1}. Repair it or run again.")
    if name in ("variant", "measure_variant"):
        refuse(~column.isin(list(FORMS)), f". Choose {quoted_list(list(FORMS))}.")
    if name == "valid":
        refuse(~empty & ~words.isin([*TRUTH, "nan", "none"]), ". Write true, false or nothing.")
        return words.map(TRUTH).astype(object)
    if name not in NUMBERS:
        return column
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    refuse(numbers.isna() & ~empty & (words != "nan"), ", which is no number. Repair it or run again.")
    low = {"value": -1.0, "coverage": 0.0}.get(name)
    if low is not None:
        outside = (numbers < low - 1e-9) | (numbers > 1 + 1e-9)
        refuse(outside, f", beyond {low:g} to 1. Repair it or run again.", lambda cell: f"{float(cell):g}")
    return numbers


def _networks(folder: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """The networks of a run, with the domain, data and network of its results where these are one."""
    import pandas as pd

    file, networks = folder / NETWORKS, read_text_table(folder, NETWORKS, "Run the benchmark again.")
    missing = [name for name in NETWORK_COLUMNS if name not in networks.columns]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}. It needs {', '.join(NETWORK_COLUMNS)}.")
    accuracy = pd.to_numeric(networks["accuracy"], errors="coerce")
    if (i := _first(accuracy.isna() & ~networks["accuracy"].isin(["", "nan"]))) is not None:
        raise InputError(
            f"{file} has {networks['accuracy'][i]!r} as accuracy of {networks['name'][i]!r}, which is no number. Run "
            "the benchmark again."
        )
    setting = {name: frame[name].iloc[0] for name in SETTING if name not in networks and frame[name].nunique() == 1}
    return networks.assign(accuracy=accuracy, **setting)
