"""Tables of results like the paper's 3 and 7 to 19: measures down the side, metric, data and network across.

A cell is the mean over repetitions with its range, the share of pairs on which the measure is defined where that is
not all of them, and a dash where it is undefined. The last row is what a measure that knows nothing gets. Columns
whose groups do not behave as they were made to are marked. pandas writes CSV and LaTeX; Markdown is written here,
since pandas needs one more library for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import write_whole
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.frame import Results, label
from likewise.errors import InputError
from likewise.matrices.heatmap import Heatmap, heatmaps

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEVELS = ("grounding", "metric", "preset", "data", "network")
METRICS = {
    "spearman": "Spearman",
    "spearman_jsd": "Spearman, JSD",
    "spearman_disagreement": "Spearman, disagreement",
    "auprc": "AUPRC",
    "conformity": "conformity",
}
CHANCE, NOT_VALID, UNDEFINED = "chance", "†", "–"
Wrap = Callable[[str], str]


@dataclass(frozen=True, eq=False)
class Table:
    """Measures by columns of results.

    title    what all cells share
    cells    one row per measure and column: value (mean over repetitions), low, high, repetitions, defined, coverage
    columns  the columns in order, one tuple of names each; `levels` says what the names are of
    chance   per column, NaN where there is no chance level
    invalid  per column, in how many repetitions the groups are not valid
    """

    title: str
    cells: pd.DataFrame
    levels: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    chance: tuple[float, ...]
    invalid: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> pd.DataFrame:
        """The means as numbers, measures by columns."""
        import pandas as pd

        order = list(dict.fromkeys(self.cells["label"]))
        wide = self.cells.pivot(index="label", columns="column", values="value").reindex(order)
        wide = wide.reindex(columns=range(len(self.columns)))
        return wide.set_axis(pd.MultiIndex.from_tuples(self.columns, names=self.levels), axis=1)

    def text(self, bold: Wrap | None = None) -> pd.DataFrame:
        """The cells as text, with the row of chance; `bold` marks the best of each column."""
        import pandas as pd

        order = list(dict.fromkeys(self.cells["label"]))
        shown = pd.DataFrame(UNDEFINED, index=[*order, CHANCE], columns=range(len(self.columns)), dtype=object)
        best = self.cells.groupby("column")["value"].max()
        cells: Iterable[Any] = self.cells.itertuples()
        for cell in cells:
            text = _cell(cell)
            is_best = bold is not None and round(cell.value, 2) == round(best[cell.column], 2)
            shown.loc[cell.label, cell.column] = bold(text) if bold and is_best else text
        shown.loc[CHANCE] = [UNDEFINED if np.isnan(level) else f"{level:.2f}" for level in self.chance]
        names = [
            (*column[:-1], column[-1] + (f" {NOT_VALID}" if invalid else ""))
            for column, invalid in zip(self.columns, self.invalid, strict=True)
        ]
        several = len(self.levels) > 1
        shown.columns = (
            pd.MultiIndex.from_tuples(names, names=self.levels)
            if several
            else pd.Index([name for (name,) in names], name=self.levels[0])
        )
        return shown

    def __str__(self) -> str:
        shown = self.text()
        blocks = [shown.iloc[:, start : start + 9].to_string(justify="right") for start in range(0, shown.shape[1], 9)]
        return "\n".join([self.title, "", *"\n\n".join(blocks).splitlines(), "", *self.notes]).rstrip()

    def to_markdown(self) -> str:
        """A table of Markdown; the levels of a column in one name."""
        shown = self.text(lambda text: f"**{text}**")
        header = ["measure", *(" · ".join(column) if len(self.levels) > 1 else column for column in shown.columns)]
        rows = [[str(name), *map(str, row)] for name, row in zip(shown.index, shown.to_numpy(), strict=True)]
        lines = [header, ["---"] + ["---:"] * shown.shape[1], *rows]
        notes = [f"{note}  " for note in self.notes]
        return "\n".join(
            [f"**{self.title}**", "", *("| " + " | ".join(row) + " |" for row in lines), "", *notes]
        ).strip()

    def to_latex(self) -> str:
        """A table of LaTeX with booktabs, written by pandas."""
        shown = self.text(lambda text: rf"\textbf{{{text}}}").map(_escaped)
        shown = shown.rename(index=_escaped, columns=_escaped)
        caption = _escaped(" ".join([f"{self.title}.", *self.notes]))
        body: str = shown.to_latex(
            caption=caption,
            escape=False,
            multicolumn_format="c",
            column_format="l" + "r" * shown.shape[1],
            position="htb",
        )
        return body.replace(f"{CHANCE} &", f"\\midrule\n{CHANCE} &", 1)

    def to_csv(self) -> str:
        """One row per measure and column, with everything that is known of it."""
        names = {
            level: [self.columns[i][place] for i in self.cells["column"]] for place, level in enumerate(self.levels)
        }
        chance = [self.chance[i] for i in self.cells["column"]]
        valid = [not self.invalid[i] for i in self.cells["column"]]
        rows = self.cells.drop(columns="column").assign(**names, chance=chance, valid=valid)
        text: str = rows[[*self.levels, *(c for c in rows.columns if c not in self.levels)]].to_csv(
            index=False, lineterminator="\n", float_format="%.6g"
        )
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as the ending says: .csv, .md, .tex, or text for any other."""
        place = Path(path)
        write = {".csv": self.to_csv, ".md": self.to_markdown, ".tex": self.to_latex}.get(place.suffix, self.__str__)
        write_whole(place, (write().rstrip("\n") + "\n").encode())

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A heat map, one part per grounding and metric; bright is good, grey is undefined."""
        values = self.values
        above = [place for place, level in enumerate(self.levels) if level in ("grounding", "metric")]
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, column in enumerate(self.columns):
            groups.setdefault(tuple(column[place] for place in above), []).append(i)
        maps = [self._heatmap(values, list(name), chosen, above) for name, chosen in groups.items()]
        widest = max(len(chosen) for chosen in groups.values())
        return heatmaps(maps, path, across=max(1, min(len(maps), 20 // widest)))

    def _heatmap(self, values: pd.DataFrame, name: list[str], chosen: list[int], above: list[int]) -> Heatmap:
        names = [
            " ".join(word for place, word in enumerate(self.columns[i]) if place not in above)
            + (f" {NOT_VALID}" if self.invalid[i] else "")
            for i in chosen
        ]
        numbers = values.iloc[:, chosen].to_numpy()
        defined = numbers[~np.isnan(numbers)]
        low = 0.0 if not len(defined) or defined.min() >= 0 else -1.0
        title = ", ".join(name) or self.title
        notes = [note for note in self.notes if note.startswith(NOT_VALID)]
        return Heatmap(numbers, list(values.index), names, title, bounds=(low, 1.0), notes=notes, most_numbers=50)


def table(
    results: Results,
    grounding: str | Sequence[str] | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    variant: str = "published",
    measure_variant: str | None = None,
    ties: str = "conform",
) -> Table:
    """A table of results: of one grounding like the paper's 7 to 19, or of several side by side like its table 3.

    What all columns share goes into the title. `variant` is the form of the evaluation, `measure_variant` that of the
    measures (both if there are both); repetitions are runs of one preset that differ in the seed.
    """
    wanted = [grounding] if isinstance(grounding, str) else grounding
    names = None if wanted is None else [GROUNDINGS.get(name).name for name in wanted]
    chosen = results.form(variant, ties).only(grounding=names, metric=metric, measure_variant=measure_variant)
    frame = chosen.frame
    if not len(frame):
        raise InputError(f"there are no results in the form {variant!r}. Choose another, or run the benchmark.")
    both = frame.groupby("measure")["measure_variant"].nunique().max() > 1
    forms = frame["measure_variant"].where(frame["measure_variant"] == "resi") if both else [None] * len(frame)
    labels = [
        label(name, form if isinstance(form, str) else None) for name, form in zip(frame["measure"], forms, strict=True)
    ]
    columns = _columns(frame)
    levels = tuple(level for place, level in enumerate(LEVELS) if len({column[place] for column in columns}) > 1)
    levels = levels or ("metric",)
    kept = [LEVELS.index(level) for level in levels]
    order = {column: place for place, column in enumerate(columns)}
    placed = frame.assign(
        label=labels, column=[order[row] for row in frame[list(LEVELS)].itertuples(index=False, name=None)]
    )
    cells = _cells(placed)
    by_column = placed.groupby("column")
    seeds = by_column["seed"].nunique()
    invalid = [_invalid(by_column.get_group(i)) for i in range(len(columns))]
    return Table(
        _title(columns, levels, variant, chosen.frame, ties),
        cells,
        tuple(levels),
        tuple(_shown([column[place] for place in kept], levels) for column in columns),
        tuple(by_column["chance"].median().reindex(range(len(columns))).tolist()),
        tuple(invalid),
        _notes(cells, invalid, int(seeds.max())),
    )


def _columns(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """The columns there are: groundings and metrics in the order of the registry, then as the results have them."""
    known = GROUNDINGS.names()
    first = {name: place for place, name in enumerate(known)}
    found = list(dict.fromkeys(frame[list(LEVELS)].itertuples(index=False, name=None)))
    metrics = {name: place for place, name in enumerate(METRICS)}
    nets = list(dict.fromkeys(zip(frame["domain"], frame["data"], frame["network"], strict=True)))
    place = {(data, network): i for i, (_, data, network) in enumerate(nets)}
    return sorted(
        found,
        key=lambda c: (first.get(c[0], len(first)), metrics.get(c[1], len(metrics)), c[2], place[c[3], c[4]]),
    )


def _cells(placed: pd.DataFrame) -> pd.DataFrame:
    found = placed.groupby(["label", "measure", "measure_variant", "column"], sort=False)
    cells = found["value"].agg(value="mean", low="min", high="max", repetitions="size", defined="count")
    cells["coverage"] = found["coverage"].mean()
    from likewise.measures.registry import RESI

    rows = cells.reset_index()
    own = ~rows["label"].str.partition("[")[0].isin(list(RESI))
    order = rows.assign(own=own, lower=rows["label"].str.lower()).sort_values(["own", "lower", "column"], kind="stable")
    return order.drop(columns=["own", "lower"]).reset_index(drop=True)


def _invalid(column: pd.DataFrame) -> int:
    """In how many repetitions the groups are not valid."""
    return int(column[column["valid"].eq(False)]["seed"].nunique())


def _cell(cell: Any) -> str:
    """The mean over repetitions, [least, largest], and how much is defined where not all is."""
    if not cell.defined:
        return UNDEFINED
    text = f"{cell.value:.2f}"
    text += f" [{cell.low:.2f}, {cell.high:.2f}]" if cell.repetitions > 1 else ""
    text += f" ({cell.defined} of {cell.repetitions})" if cell.defined < cell.repetitions else ""
    return text + (f" ({min(0.99, cell.coverage):.0%})" if cell.coverage < 1 else "")


def _shown(names: list[str], levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(_word(level, name) for level, name in zip(levels, names, strict=True))


def _word(level: str, name: str) -> str:
    if level == "grounding" and name in GROUNDINGS:
        return GROUNDINGS.get(name).title
    return METRICS.get(name, name) if level == "metric" else name


def _title(columns: list[tuple[str, ...]], levels: Sequence[str], variant: str, frame: pd.DataFrame, ties: str) -> str:
    shared = [level for level in LEVELS if level not in levels]
    words = _shown([columns[0][LEVELS.index(level)] for level in shared], shared)
    named = [f"preset {word}" if level == "preset" else word for level, word in zip(shared, words, strict=True)]
    form = "evaluated as in the paper's equations" if variant == "published" else "evaluated as by the reference"
    counted = {"conform": "a tie conforms", "half": "a tie conforms half", "violate": "a tie violates"}
    tied = [counted[word] for word in sorted(frame["ties"].dropna().unique())]
    return "; ".join([", ".join(named) or "all groundings", form, *tied[:1]])


def _notes(cells: pd.DataFrame, invalid: list[int], seeds: int) -> tuple[str, ...]:
    notes = []
    if seeds > 1:
        notes.append(f"Mean over {seeds} repetitions, [least, largest].")
    if (cells["defined"] < cells["repetitions"]).any():
        notes.append(f"{UNDEFINED}: the measure is undefined there.")
    if ((cells["coverage"] < 1) & (cells["defined"] > 0)).any():
        notes.append("(%): the share of pairs on which the measure is defined, where not all.")
    if any(invalid):
        often = f" in {max(invalid)} of {seeds} repetitions" if seeds > 1 else ""
        notes.append(f"{NOT_VALID} groups not valid{often}: their networks do not behave as they were made to.")
    return tuple(notes)


def _escaped(text: str) -> str:
    """Text as LaTeX takes it; what is bold stays bold."""
    inner = text.removeprefix(r"\textbf{").removesuffix("}") if text.startswith(r"\textbf{") else text
    for sign, written in (
        ("%", r"\%"),
        ("_", r"\_"),
        ("&", r"\&"),
        ("#", r"\#"),
        (NOT_VALID, r"$\dagger$"),
        ("–", "--"),
    ):
        inner = inner.replace(sign, written)
    return rf"\textbf{{{inner}}}" if inner is not text and text.startswith(r"\textbf{") else inner
