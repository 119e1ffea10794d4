"""Tables of results like the paper's 3 and 7 to 19: one row per measure, one column per metric, data and network.

A cell is the mean over repetitions with its range, the share of pairs on which the measure is defined where that is
not all of them, and a dash where it is undefined. The last row is what a measure that knows nothing gets. Columns
whose groups do not behave as they were made to are marked. pandas writes CSV and LaTeX; Markdown is written here,
since pandas needs one more library for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._base.files import write_whole
from likewise._base.names import csv_text, visible
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.frame import Results, label
from likewise.errors import InputError
from likewise.matrices.heatmap import Heatmap, heatmaps
from likewise.matrices.tables import escape_latex, escape_markdown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEVELS = ["grounding", "metric", "preset", "data", "network"]
METRICS = {
    "spearman": "Spearman",
    "spearman_jsd": "Spearman, JSD",
    "spearman_disagreement": "Spearman, disagreement",
    "auprc": "AUPRC",
    "conformity": "conformity",
}
CHANCE, NOT_VALID, UNDEFINED = "chance", "†", "–"
FORM_WORDS = {"published": "evaluated as in the paper's equations", "resi": "evaluated as by the reference"}
TIE_WORDS = {"conform": "a tie conforms", "half": "a tie conforms half", "violate": "a tie violates"}
Wrap = Callable[[str], str]


@dataclass(frozen=True, eq=False)
class Table:
    """Measures by columns of results.

    Attributes:
        title: What all cells share.
        cells: One row per measure and column: label, measure, column (its number), value (mean over repetitions), low,
            high, repetitions, defined, coverage.
        header: One row per column: its names by level, `chance` (NaN where there is no chance level), and `invalid`, in
            how many repetitions its groups are not valid.
        levels: The levels by which columns differ.
        notes: What the marks in the table mean.
    """

    title: str
    cells: pd.DataFrame
    header: pd.DataFrame
    levels: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The names of each column, one per level."""
        return tuple(self.header[list(self.levels)].itertuples(index=False, name=None))

    @property
    def values(self) -> pd.DataFrame:
        """The means as numbers, measures by columns."""
        import pandas as pd

        wide = self.cells.pivot(index="label", columns="column", values="value")
        wide = wide.reindex(index=self._labels, columns=self.header.index)
        return wide.set_axis(pd.MultiIndex.from_tuples(self.columns, names=self.levels), axis=1)

    @property
    def _labels(self) -> list[str]:
        return list(dict.fromkeys(self.cells["label"]))

    def text(self, bold: Wrap | None = None, escape: Wrap = str) -> pd.DataFrame:
        """The cells as text, with the row of chance.

        Args:
            bold: Marks the best of each column.
            escape: What every cell and name goes through.
        """
        import pandas as pd

        best = self.cells.groupby("column")["value"].transform("max").round(2).eq(self.cells["value"].round(2))
        texts = self.cells.assign(text=[escape(_cell(cell)) for cell in self.cells.to_dict("records")])
        texts["text"] = texts["text"].mask(best, texts["text"].map(bold)) if bold else texts["text"]
        texts = texts.pivot(index="label", columns="column", values="text")
        texts = texts.reindex(index=self._labels, columns=self.header.index)
        texts = pd.concat([texts, self.header["chance"].map("{:.2f}".format, na_action="ignore").to_frame(CHANCE).T])
        texts = texts.fillna(UNDEFINED)
        names, last = self.header[list(self.levels)], self.header[self.levels[-1]]
        names = names.assign(
            **{self.levels[-1]: last.mask(self.header["invalid"] > 0, last.map(f"{{}} {NOT_VALID}".format))}
        )
        several = len(self.levels) > 1
        texts.columns = pd.MultiIndex.from_frame(names) if several else pd.Index(names[self.levels[0]])
        return texts.rename_axis(index=None).rename(index=escape, columns=escape)

    def __str__(self) -> str:
        texts = self.text()
        blocks = [texts.iloc[:, start : start + 9].to_string(justify="right") for start in range(0, texts.shape[1], 9)]
        lines = [self.title, "", *"\n\n".join(blocks).splitlines(), "", *self.notes]
        return "\n".join(map(visible, lines)).rstrip()

    def to_markdown(self) -> str:
        """A table of Markdown; the levels of a column in one name."""
        texts = self.text(lambda text: f"**{text}**", escape_markdown)
        header = ["measure", *(" · ".join(column) if len(self.levels) > 1 else column for column in texts.columns)]
        rows = [[str(name), *map(str, row)] for name, row in zip(texts.index, texts.to_numpy(), strict=True)]
        lines = [header, ["---"] + ["---:"] * texts.shape[1], *rows]
        notes = [f"{escape_markdown(note)}  " for note in self.notes]
        return "\n".join(
            [f"**{escape_markdown(self.title)}**", "", *("| " + " | ".join(row) + " |" for row in lines), "", *notes]
        ).strip()

    def to_latex(self) -> str:
        """A table of LaTeX with booktabs, written by pandas."""
        texts = self.text(lambda text: rf"\textbf{{{text}}}", escape_latex)
        body: str = texts.to_latex(
            caption=escape_latex(" ".join([f"{self.title}.", *self.notes])),
            escape=False,
            multicolumn_format="c",
            column_format="l" + "r" * texts.shape[1],
            position="htb",
        )
        return body.replace(f"{CHANCE} &", f"\\midrule\n{CHANCE} &", 1)

    def to_csv(self) -> str:
        """One row per measure and column, with everything that is known of it."""
        header = self.header[[*self.levels, "chance"]].assign(valid=self.header["invalid"] == 0)
        rows = self.cells.join(header, on="column").drop(columns="column")
        others = [name for name in rows if name not in self.levels]
        text: str = csv_text(rows[[*self.levels, *others]], index=False, lineterminator="\n", float_format="%.6g")
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table in the format of the ending: .csv, .md, .tex, or text for any other.

        Args:
            path: The file.
        """
        file = Path(path)
        write = {".csv": self.to_csv, ".md": self.to_markdown, ".tex": self.to_latex}.get(file.suffix, self.__str__)
        write_whole(file, (write().rstrip("\n") + "\n").encode())

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw heat maps, one per grounding and metric; bright is good, grey is undefined.

        Of one run, whose groundings and metrics have one column each, these are the columns of one map.

        Args:
            path: Where the figure is saved, if given.
        """
        above = [level for level in self.levels if level in ("grounding", "metric")]
        below = [level for level in self.levels if level not in above]
        titles = self.header[above].agg(", ".join, axis=1) if above else self.header["chance"].map(lambda _: self.title)
        maps = [self._heatmap(title, columns, below) for title, columns in self.header.groupby(titles, sort=False)]
        widest = titles.value_counts().max()
        if widest == 1:
            named = self.header.assign(**{self.levels[-1]: titles}) if above else self.header
            return heatmaps([self._heatmap(self.title, named, [self.levels[-1]])], path)
        return heatmaps(maps, path, across=max(1, min(len(maps), 20 // widest)))

    def _heatmap(self, title: str, columns: pd.DataFrame, below: list[str]) -> Heatmap:
        names = [
            " ".join([*names, NOT_VALID] if invalid else names)
            for names, invalid in zip(columns[below].to_numpy().tolist(), columns["invalid"], strict=True)
        ]
        numbers = self.values.iloc[:, columns.index].to_numpy()
        low = -1.0 if (numbers < 0).any() else 0.0
        notes = [note for note in self.notes if note.startswith(NOT_VALID)]
        return Heatmap(numbers, self._labels, names, title, bounds=(low, 1.0), notes=notes, most_numbers=50)


def table(
    results: Results,
    grounding: str | Sequence[str] | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    variant: str = "published",
    measure_variant: str | None = None,
    ties: str = "conform",
) -> Table:
    """Make a table of results: of one grounding like the paper's 7 to 19, or of several side by side like its table 3.

    What all columns share goes into the title. Repetitions are runs of one preset that differ in the seed.

    Args:
        results: Results of one or more runs.
        grounding: Some groundings only.
        metric: Some metrics only.
        variant: The form of the evaluation, "published" or "resi".
        measure_variant: The form of the measures; both if there are both.
        ties: What equal values count as: "conform", "half" or "violate".

    Returns:
        The table, which prints itself and writes text, Markdown, LaTeX and CSV.
    """
    names = [grounding] if isinstance(grounding, str) else grounding
    names = None if names is None else [GROUNDINGS.get(name).name for name in names]
    frame = results.form(variant, ties).only(grounding=names, metric=metric, measure_variant=measure_variant).frame
    if not len(frame):
        raise InputError(f"there are no results in the form {variant!r}. Choose another, or run the benchmark.")
    header = _columns(frame)
    frame = frame.assign(label=_labels(frame)).merge(header.rename_axis("column").reset_index(), on=LEVELS, how="left")
    levels = tuple(level for level in LEVELS if header[level].nunique() > 1) or ("metric",)
    words = header.apply(lambda names: names.map(lambda name: _word(str(names.name), name)))
    by_column = frame.groupby("column")
    chance = by_column["chance"].median()
    invalid = frame["seed"].where(frame["valid"].eq(False)).groupby(frame["column"]).nunique()
    cells, seeds = _cells(frame), int(by_column["seed"].nunique().max())
    return Table(
        _title(words, levels, variant, frame),
        cells,
        words.assign(chance=chance, invalid=invalid),
        levels,
        _notes(cells, int(invalid.max()), seeds),
    )


def _columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns there are: groundings and metrics in the order of the registry, then as the results have them."""
    import pandas as pd

    first = {name: number for number, name in enumerate(GROUNDINGS.names())}
    metrics = {name: number for number, name in enumerate(METRICS)}
    unique = list(dict.fromkeys(frame[LEVELS].itertuples(index=False, name=None)))
    settings = list(dict.fromkeys(column[3:] for column in unique))

    def order(column: tuple[str, ...]) -> tuple[Any, ...]:
        grounding, metric, preset, *setting = column
        return first.get(grounding, 99), metrics.get(metric, 99), preset, settings.index(tuple(setting))

    ordered = sorted(unique, key=order)
    return pd.DataFrame(ordered, columns=LEVELS)


def _labels(frame: pd.DataFrame) -> list[str]:
    """Measures as they are named, with their form if some measure is there in both."""
    both = frame.groupby("measure")["measure_variant"].nunique().max() > 1
    columns = zip(frame["measure"], frame["measure_variant"], strict=True)
    return [label(name, "resi" if both and form == "resi" else None) for name, form in columns]


def _cells(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per measure and column; the paper's measures first, then by name."""
    from likewise.measures.registry import RESI

    groups = frame.groupby(["label", "measure", "measure_variant", "column"], sort=False)
    cells = groups["value"].agg(value="mean", low="min", high="max", repetitions="size", defined="count")
    cells = cells.assign(coverage=groups["coverage"].mean()).reset_index()
    beyond = ~cells["label"].str.partition("[")[0].isin(list(RESI))
    order = cells.assign(beyond=beyond, lower=cells["label"].str.lower())
    order = order.sort_values(["beyond", "lower", "column"], kind="stable")
    return order.drop(columns=["beyond", "lower"]).reset_index(drop=True)


def _cell(cell: Mapping[Any, Any]) -> str:
    """The mean over repetitions, [least, largest], and how much is defined where not all is."""
    defined, repetitions, coverage = cell["defined"], cell["repetitions"], cell["coverage"]
    if not defined:
        return UNDEFINED
    text = f"{cell['value']:.2f}"
    text += f" [{cell['low']:.2f}, {cell['high']:.2f}]" if repetitions > 1 else ""
    text += f" ({defined} of {repetitions})" if defined < repetitions else ""
    return text + (f" ({min(0.99, coverage):.0%})" if coverage < 1 else "")


def _word(level: str, name: str) -> str:
    if level == "grounding" and name in GROUNDINGS:
        return GROUNDINGS.get(name).title
    return METRICS.get(name, name) if level == "metric" else name


def _title(words: pd.DataFrame, levels: Sequence[str], variant: str, frame: pd.DataFrame) -> str:
    """What all columns share, the form of the evaluation, and what a tie counts as."""
    shared = words.iloc[0].drop(list(levels))
    named = [f"preset {word}" if level == "preset" else word for level, word in shared.items()]
    ties = [TIE_WORDS[name] for name in sorted(frame["ties"].dropna().unique())]
    return "; ".join([", ".join(named) or "all groundings", FORM_WORDS[variant], *ties[:1]])


def _notes(cells: pd.DataFrame, invalid: int, seeds: int) -> tuple[str, ...]:
    notes = []
    if seeds > 1:
        notes.append(f"Mean over {seeds} repetitions, [least, largest].")
    if (cells["defined"] < cells["repetitions"]).any():
        notes.append(f"{UNDEFINED}: the measure is undefined there.")
    if ((cells["coverage"] < 1) & (cells["defined"] > 0)).any():
        notes.append("(%): the share of pairs on which the measure is defined, where not all.")
    if invalid:
        often = f" in {invalid} of {seeds} repetitions" if seeds > 1 else ""
        notes.append(f"{NOT_VALID} groups not valid{often}: their networks do not behave as they were made to.")
    return tuple(notes)
