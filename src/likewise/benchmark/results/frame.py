"""Results of the benchmark: one row per grounding, metric, form and measure; from one run or from many.

A run keeps them as `results.csv`, with its networks beside it as `networks.csv`. Whatever reads results (tables, ranks,
the comparison with the paper, advice) reads them from here, so a damaged file is refused in one place. The paper's
own figures come in the same form, see `likewise.benchmark.results.paper`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import is_folder, reading, write_whole
from likewise.benchmark.groundings import FORMS, GROUNDINGS
from likewise.errors import InputError, MissingDataError, brief, quoted_list

if TYPE_CHECKING:
    import pandas as pd

RESULTS, NETWORKS = "results.csv", "networks.csv"
EVIDENCE = Path(__file__).parent / "evidence"  # tables that ship with the package
WORDS = ("domain", "data", "network", "preset", "grounding", "metric", "variant", "measure", "measure_variant", "ties")
NUMBERS = ("seed", "value", "chance", "low", "high", "p", "coverage", "networks", "n", "seconds")
COLUMNS = (
    *("domain", "data", "network", "preset", "seed", "grounding", "metric", "variant", "measure", "measure_variant"),
    *("value", "chance", "low", "high", "p", "coverage", "ties", "networks", "n", "valid", "seconds"),
)
OPTIONAL = ("value", "chance", "low", "high", "p", "ties", "valid", "seconds", "n", "networks")  # cells may be empty
NETWORK_COLUMNS = ("name", "group", "groundings", "seed", "accuracy")
CELL = ("domain", "data", "network")
ROW = (*CELL, "preset", "seed", "grounding", "metric", "variant", "measure", "measure_variant", "ties")
TRUTH = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
MAIN_METRICS = {"predictions": ("spearman", "spearman_jsd", "spearman_disagreement"), "groups": ("auprc",)}


@dataclass(frozen=True, eq=False)
class Results:
    """Results in a frame with the columns `COLUMNS`, and the networks they are of.

    value     higher is better; empty where the measure is undefined
    valid     whether the groups behave as they were made to; empty where a grounding has none
    networks  one row per network of each run, if the runs kept them: name, group, groundings, seed, accuracy
    """

    frame: pd.DataFrame
    networks: pd.DataFrame | None = None
    sources: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def load(cls, *folders: str | os.PathLike[str]) -> Results:
        """The results of one or more runs, by their folders; a `results.csv` will do for a folder."""
        if not folders:
            raise InputError("no run was given. Give the folder of one or more.")
        found = [_load(Path(folder)) for folder in folders]
        return cls.joined(found)

    @classmethod
    def joined(cls, parts: Iterable[Results]) -> Results:
        """Several results as one; the same row may not come from two of them."""
        import pandas as pd

        parts = list(parts)
        frames = [part.frame for part in parts if len(part.frame)]
        frame = pd.concat(frames, ignore_index=True) if frames else parts[0].frame
        twice = frame[frame.duplicated(list(ROW))]
        if len(twice):
            row = twice.iloc[0]
            where = " and ".join(source for part in parts for source in part.sources if _holds(part, row))
            raise InputError(
                f"{where} hold the same result twice: {row['measure']} by {row['grounding']} on {row['data']} with "
                f"{row['network']} and seed {int(row['seed'])}. Give each run once."
            )
        networks = [part.networks for part in parts if part.networks is not None]
        return cls(
            frame,
            pd.concat(networks, ignore_index=True) if networks else None,
            tuple(source for part in parts for source in part.sources),
        )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, source: str = "the frame") -> Results:
        """Results from a frame of your own, checked as a file is."""
        return cls(_checked(frame, source), sources=(source,))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `results.csv` into a folder, whole or not at all."""
        path = Path(folder) / RESULTS
        write_whole(path, self.frame[list(COLUMNS)].to_csv(index=False, lineterminator="\n").encode())
        return path

    def only(self, **wanted: Any) -> Results:
        """The rows with these values, one or several per column: `results.only(domain="graph", data=["cora"])`."""
        frame = self.frame
        for column, values in wanted.items():
            if column not in COLUMNS:
                raise InputError(f"results have no column {column!r}. They have {', '.join(COLUMNS)}.")
            if values is None:
                continue
            chosen = [values] if isinstance(values, (str, int, float)) else list(values)
            known = frame[column].dropna().unique().tolist()
            missing = [value for value in chosen if value not in known]
            if missing:
                raise InputError(
                    f"no result has the {column} {brief(missing[0])}. There are {quoted_list([str(k) for k in known])}."
                )
            frame = frame[frame[column].isin(chosen)]
        return replace(self, frame=frame.reset_index(drop=True))

    def form(self, variant: str = "published", ties: str = "conform") -> Results:
        """One form of the evaluation; of the published conformities the one that counts ties so."""
        from likewise.benchmark.evaluation import TIES

        if variant not in FORMS:
            raise InputError(f"no form named {variant!r}. Choose {quoted_list(FORMS)}.")
        if ties not in TIES:
            raise InputError(f"ties are {brief(ties)}. Choose {quoted_list(list(TIES))}.")
        frame = self.frame[self.frame["variant"] == variant]
        if variant == "published":
            frame = frame[frame["ties"].isna() | (frame["ties"] == ties)]
        return replace(self, frame=frame.reset_index(drop=True))

    def main(self) -> Results:
        """The metrics the paper ranks by: AUPRC of groups, rank correlations of all others."""
        wanted = [
            metric in main_metrics(grounding)
            for grounding, metric in zip(self.frame["grounding"], self.frame["metric"], strict=True)
        ]
        return replace(self, frame=self.frame[np.array(wanted, dtype=bool)].reset_index(drop=True))

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        cells = self.frame[list(CELL)].drop_duplicates()
        return f"Results({len(self.frame)} rows of {len(cells)} cells, {self.frame['measure'].nunique()} measures)"


def main_metrics(grounding: str) -> tuple[str, ...]:
    """What a grounding is judged by where one figure has to do; one of others, by all it has but conformity."""
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
    shown = next((alias for alias in aliases if alias in RESI), name) + bracket + options
    return f"{shown}[{form}]" if form else shown


def _holds(part: Results, row: pd.Series) -> bool:
    same = [
        part.frame[name].isna() if row[name] != row[name] or row[name] is None else part.frame[name] == row[name]
        for name in ROW
    ]
    return bool(np.logical_and.reduce(same).any())


def _load(path: Path) -> Results:
    folder = path if is_folder(path) else path.parent
    file = path / RESULTS if is_folder(path) else path
    if not file.exists():
        raise MissingDataError(
            f"{path} holds no {RESULTS}, so it is no finished run. Give the folder of `likewise benchmark run --out`."
        )
    frame = _checked(_read(file, f"Run the benchmark again with --out {folder}."), str(file))
    networks = _networks(folder / NETWORKS, frame) if (folder / NETWORKS).exists() else None
    return Results(frame, networks, (str(path),))


def _read(file: Path, remedy: str) -> pd.DataFrame:
    import pandas as pd

    with reading(file, f"{file} is no table ({{reason}}). {remedy}"):
        return pd.read_csv(file, dtype=str, encoding="utf-8-sig", encoding_errors="strict", keep_default_na=False)


def _checked(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """The frame with its columns in order, numbers as numbers; anything odd is refused with its place."""
    import pandas as pd

    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"{source} has no column {missing[0]!r}. Results have the columns {', '.join(COLUMNS)}.")
    frame = frame[list(COLUMNS)].reset_index(drop=True)
    out: dict[str, pd.Series] = {}
    for name in COLUMNS:
        column = frame[name].astype(object).where(frame[name].notna() & (frame[name].astype(str) != ""), None)
        empty = column.isna().to_numpy()
        if name not in OPTIONAL and empty.any():
            raise InputError(f"{source} has no {name} in row {int(np.argmax(empty)) + 1}. Repair it or run again.")
        if name in NUMBERS:
            column = _numbers(column, empty, name, source)
        elif name == "valid":
            column = _truths(column, empty, source)
        out[name] = column
    made = pd.DataFrame(out)
    _check_words(made, "variant", FORMS, source)
    _check_words(made, "measure_variant", FORMS, source)
    return _check_ranges(made, source)


def _numbers(column: pd.Series, empty: Any, name: str, source: str) -> pd.Series:
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    odd = np.flatnonzero(numbers.isna().to_numpy() & ~empty & (column.astype(str).str.lower() != "nan").to_numpy())
    if len(odd):
        raise InputError(
            f"{source} has {column.iloc[odd[0]]!r} as {name} in row {odd[0] + 1}, which is no number. Repair it or "
            "run again."
        )
    return numbers


def _truths(column: pd.Series, empty: Any, source: str) -> pd.Series:
    words = column.astype(str).str.lower()
    odd = np.flatnonzero(~empty & ~words.isin([*TRUTH, "nan", "none"]).to_numpy())
    if len(odd):
        raise InputError(
            f"{source} has {column.iloc[odd[0]]!r} as valid in row {odd[0] + 1}. Write true, false or nothing."
        )
    return words.map(TRUTH).astype(object)


def _check_words(frame: pd.DataFrame, name: str, known: Iterable[str], source: str) -> None:
    odd = np.flatnonzero(~frame[name].isin(list(known)).to_numpy())
    if len(odd):
        raise InputError(
            f"{source} has {frame[name].iloc[odd[0]]!r} as {name} in row {odd[0] + 1}. Choose "
            f"{quoted_list(list(known))}."
        )


def _check_ranges(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    for name, low in (("value", -1.0), ("coverage", 0.0)):
        numbers = frame[name].to_numpy()
        odd = np.flatnonzero((numbers < low - 1e-9) | (numbers > 1 + 1e-9))
        if len(odd):
            raise InputError(
                f"{source} has {numbers[odd[0]]:g} as {name} in row {odd[0] + 1}, beyond {low:g} to 1. Repair it or "
                "run again."
            )
    twice = np.flatnonzero(frame.duplicated(list(ROW)).to_numpy())
    if len(twice):
        row = frame.iloc[twice[0]]
        raise InputError(
            f"{source} holds {row['measure']} by {row['grounding']} and {row['metric']} twice, the second time in row "
            f"{twice[0] + 1}. Run again."
        )
    return frame


def _networks(file: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """The networks of a run, with the domain, data and network of its results where these are one."""
    import pandas as pd

    table = _read(file, "Run the benchmark again.")
    missing = [name for name in NETWORK_COLUMNS if name not in table.columns]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}. It needs {', '.join(NETWORK_COLUMNS)}.")
    accuracy = pd.to_numeric(table["accuracy"], errors="coerce")
    odd = np.flatnonzero(accuracy.isna().to_numpy() & ~table["accuracy"].isin(["", "nan"]).to_numpy())
    if len(odd):
        raise InputError(
            f"{file} has {table['accuracy'].iloc[odd[0]]!r} as accuracy of {table['name'].iloc[odd[0]]!r}, which is no "
            "number. Run the benchmark again."
        )
    known = {name: frame[name].iloc[0] for name in CELL if name not in table.columns and frame[name].nunique() == 1}
    return table.assign(accuracy=accuracy, **known)
