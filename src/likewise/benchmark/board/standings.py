"""The board: measures ranked on the same cached views, by question and domain, with intervals.

Within a cell measures are ranked by their value, 1 is best, equal ones share the mean of their ranks, and undefined
ones share the last. A standing is the mean rank over the cells of a question and a domain. Its interval is the
jackknife's: Student's at 95 %, from the ranks of all measures without each network in turn, which is left out of all
cells of its run at once. It says what other networks of these kinds and data would change, not what other data would.
Cells whose groups are not valid are left out; measures that lack a cell of a question are not ranked in it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.benchmark.board.submissions import Cell, Submission, load_rows
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.frame import EVIDENCE, label
from likewise.errors import InputError

ALL = "all"
OURS = EVIDENCE / "board.json"  # the rows of our measures, which ship with the package


@dataclass(frozen=True)
class Standing:
    """How one measure stands among those that have the same cells.

    Attributes:
        submission: The row.
        rank: Its mean rank over cells, 1 is best.
        low: The lower end of the interval of the rank.
        high: Its upper end.
        value: The mean over the cells in which it is defined.
        value_low: The lower end of the interval of that.
        value_high: Its upper end.
        cells: How many cells there are.
        undefined: In how many it is undefined.
    """

    submission: Submission
    rank: float
    low: float
    high: float
    value: float
    value_low: float
    value_high: float
    cells: int
    undefined: int

    @property
    def label(self) -> str:
        """The paper's abbreviation where there is one."""
        return self.submission.measure if self.submission.submitter else label(self.submission.measure)


@dataclass(frozen=True, eq=False)
class Board:
    """Rows on the same cached views.

    Attributes:
        rows: One per measure.
    """

    rows: Sequence[Submission]

    def __post_init__(self) -> None:
        if not self.rows:
            raise InputError("there are no rows. Make some by `likewise benchmark submit`.")
        for row in self.rows:
            if row.views != self.rows[0].views:
                raise InputError(
                    f"{row.measure!r} was evaluated on the cached views {row.views}, and {self.rows[0].measure!r} on "
                    f"{self.rows[0].views}. Give rows of the same views."
                )
        names = [(row.measure, row.submitter) for row in self.rows]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            by = f" of {twice[1]}" if twice[1] else ""
            raise InputError(f"there are two rows of {twice[0]!r}{by}. Give each measure once.")
        self._check_validity()

    def _check_validity(self) -> None:
        """Refuse rows that disagree on which groups are valid: one could make cells count that only it has."""
        said: dict[tuple[Any, ...], tuple[bool, str]] = {}
        for row in self.rows:
            for cell in row.cells:
                valid = cell.valid is not False
                before, first = said.setdefault(cell.place, (valid, row.measure))
                if before != valid:
                    one, other = (first, row.measure) if before else (row.measure, first)
                    raise InputError(
                        f"{one!r} has valid groups for {cell.grounding!r} of {cell.data!r}, and {other!r} says they "
                        "are not. Evaluate both again on the cached views."
                    )

    @classmethod
    def load(cls, *paths: str | os.PathLike[str], ours: bool = True) -> Board:
        """Load rows.

        Args:
            *paths: Files of rows.
            ours: Whether the rows that ship with the package are shown beside them.

        Raises:
            InputError: A file holds no rows, or they are of other views, or have cells that these views do not give.
        """
        rows = [row for path in paths for row in load_rows(path)]
        shipped = load_rows(OURS) if ours and OURS.exists() else []
        board = cls([*shipped, *rows])
        places = {cell.place for row in shipped for cell in row.cells}
        for row in rows if shipped else ():
            for cell in row.cells:
                if cell.place not in places:
                    raise InputError(
                        f"the row of {row.measure!r} has a cell of {cell.grounding!r} on {cell.data!r}, which the "
                        f"cached views {row.views} do not give. Evaluate it again on them."
                    )
        return board

    @property
    def questions(self) -> list[str]:
        """The groundings there are cells of, "all" first."""
        return [ALL, *_unique(cell.grounding for cell in self._cells())]

    @property
    def domains(self) -> list[str]:
        """The domains there are cells of, "all" first."""
        return [ALL, *_unique(cell.domain for cell in self._cells())]

    def standings(self, question: str = ALL, domain: str = ALL) -> list[Standing]:
        """Measures by their mean rank over the valid cells of a question and a domain, best first.

        Args:
            question: A grounding, or "all".
            domain: A domain, or "all".

        Raises:
            InputError: No valid cell is of both.
        """
        by_place: dict[tuple[Any, ...], dict[int, Cell]] = {}
        for number, row in enumerate(self.rows):
            for cell in row.cells:
                if cell.valid is not False and question in (ALL, cell.grounding) and domain in (ALL, cell.domain):
                    by_place.setdefault(cell.place, {})[number] = cell
        if not by_place:
            raise InputError(f"no valid cell is of the question {question!r} and the domain {domain!r}.")
        able = [number for number in range(len(self.rows)) if all(number in cells for cells in by_place.values())]
        if not able:
            raise InputError(f"no measure has all cells of the question {question!r} and the domain {domain!r}.")
        cells = [[by_cell[number] for number in able] for by_cell in by_place.values()]
        standings = _standings([self.rows[number] for number in able], cells)
        return sorted(standings, key=lambda one: (one.rank, one.label))

    def _cells(self) -> Iterable[Cell]:
        return (cell for row in self.rows for cell in row.cells if cell.valid is not False)

    def __repr__(self) -> str:
        return f"Board({len(self.rows)} measures, views={self.rows[0].views!r})"


def question_title(question: str) -> str:
    """What a question is called."""
    return GROUNDINGS.get(question).title if question in GROUNDINGS else question


def _standings(rows: Sequence[Submission], cells: Sequence[Sequence[Cell]]) -> Iterable[Standing]:
    """Standings from cells, each of all measures."""
    values = np.array([[_number(cell.value) for cell in row] for row in cells])
    ranks, means = _ranks(values).mean(axis=0), _means(values)
    fewer = list(_without_each(cells, values))
    ends = [
        _interval(center, np.array([of(changed) for _, changed in fewer]), [count for count, _ in fewer], bounds)
        for of, center, bounds in (
            (lambda one: _ranks(one).mean(axis=0), ranks, (1, len(rows))),
            (_means, means, (-1, 1)),
        )
    ]
    for i, row in enumerate(rows):
        (low, high), (value_low, value_high) = (pair[:, i].tolist() for pair in ends)
        undefined = int(np.isnan(values[:, i]).sum())
        standing = (float(ranks[i]), low, high, float(means[i]), value_low, value_high)
        yield Standing(row, *standing, cells=len(cells), undefined=undefined)


def _without_each(cells: Sequence[Sequence[Cell]], values: Array) -> Iterable[tuple[int, Array]]:
    """Per network the number of networks of its run, and the values that all cells have without it."""
    runs: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    for number, row in enumerate(cells):
        for name in row[0].without:
            runs.setdefault(row[0].run, {}).setdefault(name, []).append(number)
    for networks in runs.values():
        for name, numbers in networks.items():
            changed = values.copy()
            for number in numbers:
                changed[number] = [_number(cell.without.get(name, cell.value)) for cell in cells[number]]
            yield len(networks), changed


def _interval(center: Array, fewer: Array, counts: Sequence[int], bounds: tuple[float, float]) -> Array:
    """Lower and upper ends, `(2, measures)`, by the jackknife over networks within runs."""
    from scipy.stats import t

    weights = np.array([(count - 1) / count for count in counts])[:, None]
    variance = (weights * (fewer - center) ** 2).sum(axis=0)
    free = sum(1 - 1 / count for count in counts)  # networks less runs
    half = float(t.ppf(0.975, max(1.0, free))) * np.sqrt(variance)
    return np.clip([center - half, center + half], *bounds)


def _ranks(values: Array) -> Array:
    """Ranks within each row, 1 for the largest; equal values share the mean, undefined ones the last."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(np.where(np.isnan(values), np.inf, -np.round(values, 7)), axis=1))


def _means(values: Array) -> Array:
    """The mean over the cells in which a measure is defined."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(defined, values, 0).sum(axis=0) / defined.sum(axis=0))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def to_plain(board: Board) -> dict[str, Any]:
    """All standings as plain values: rows of facts, and per question and domain who stands where."""
    facts = [
        {
            **{"measure": row.measure, "submitter": row.submitter, "family": row.family, "on": row.on},
            **{"symmetric": row.symmetric, "ignores": list(row.invariant_to), "cost": row.times_cka},
            **{"direction": row.larger_is, "source": row.source, "seconds": row.seconds},
        }
        for row in board.rows
    ]
    numbers = {id(row): number for number, row in enumerate(board.rows)}
    tables: dict[str, Any] = {}
    for question in board.questions:
        for domain in board.domains:
            try:
                standings = board.standings(question, domain)
            except InputError:
                continue
            tables[f"{question} {domain}"] = [
                [numbers[id(one.submission)], one.label, *map(_plain, _columns(one)), one.cells, one.undefined]
                for one in standings
            ]
    return {"facts": facts, "tables": tables}


def _columns(one: Standing) -> tuple[float, ...]:
    return one.rank, one.low, one.high, one.value, one.value_low, one.value_high


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
