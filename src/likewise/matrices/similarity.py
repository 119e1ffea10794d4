"""A measure over many networks, with their names. Everything after it takes any such matrix.

† marks a score that any network of that width would get; * one that is more alike than chance, with the false
discovery rate over all pairs held at 5 %.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from likewise._base.files import check_name
from likewise._base.folders import claim, file_of
from likewise._base.names import short_names, visible
from likewise._base.registry import normal
from likewise.errors import InputError, UnknownNameError, did_you_mean
from likewise.matrices.heatmap import SATURATED, Heatmap, heatmaps
from likewise.matrices.labelled import (
    ACCURACIES,
    COMMITS,
    NPZ,
    SAFETENSORS,
    Labelled,
    Pairs,
    cell,
    distances,
    leaf_order,
    position,
)
from likewise.matrices.notebook import as_html, colours
from likewise.matrices.score import LEVEL, Bounds
from likewise.matrices.tables import as_latex, fit_width

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALIKE = "*"
DIRECTIONS = ("more alike", "less alike")


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityMatrix(Labelled):
    """How alike m networks are by one measure: `values[i, j]` is measure(names[i], names[j]).

    Attributes:
        names: What the networks are called; names must differ.
        values: The m x m scores, NaN where undefined.
        measure: The name of the measure, or the measure itself, which also tells `larger_is`, `bounds` and `aliases`.
        larger_is: What a larger value says: "more alike" or "less alike".
        reasons: Why pairs are undefined, by their names.
        extra: More m x m arrays by name, such as "q" of a calibration.
        about: What else is recorded of the comparison.
        saturated: Why any network of that width would get the score, by pair; such scores are marked with †.
        bounds: The range of the measure, None where it has no end.
        aliases: What else the measure is called.

    Raises:
        InputError: Names and values do not fit together, or the direction of the measure is missing.

    Example:
        >>> import likewise
        >>> cka = likewise.measures.get("cka")
        >>> matrix = likewise.SimilarityMatrix(names=["a", "b"], values=[[1, 0.2], [0.2, 1]], measure=cka)
        >>> matrix["a", "b"], matrix["a"]
        (0.2, {'a': 1.0, 'b': 0.2})
    """

    KIND = "similarity matrix"
    LABEL = "network"

    names: Sequence[str]
    values: Any
    measure: str = ""
    larger_is: str = ""
    reasons: Pairs = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    saturated: Pairs = field(default_factory=dict)
    bounds: Bounds = (None, None)
    aliases: Sequence[str] = ()

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        values = np.array(self.values, dtype=np.float64)
        if values.shape != (len(names), len(names)):
            raise InputError(f"{len(names)} names need a {len(names)} x {len(names)} matrix, got {values.shape}.")
        if len(set(names)) < len(names):
            repeated = next(name for i, name in enumerate(names) if name in names[:i])
            raise InputError(f"the name {repeated!r} is given twice. Names must differ.")
        for name in (*names, str(self.measure)):
            check_name(name)
        values.setflags(write=False)
        info = getattr(self.measure, "info", None)  # a measure rather than its name
        facts = {
            "names": names,
            "values": values,
            "measure": str(getattr(self.measure, "key", self.measure)),
            "larger_is": self.larger_is or (info.larger_is if info else "" if self.measure else DIRECTIONS[0]),
            "bounds": tuple(info.bounds if info else self.bounds),
            "aliases": tuple(info.aliases if info else self.aliases),
        }
        for name, fact in facts.items():
            object.__setattr__(self, name, fact)
        if self.larger_is not in DIRECTIONS:
            raise InputError(
                f"nothing says whether a larger {self.measure or 'value'} is more or less alike. Pass "
                "larger_is='more alike' or 'less alike', or the measure itself: measure=likewise.measures.get(...)."
            )

    @property
    def axes(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of the rows and of the columns: the networks twice."""
        return self.names, self.names

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        undefined = int(np.isnan(self.values).sum())
        note = f", {undefined} undefined" if undefined else ""
        return f"SimilarityMatrix({self.measure!r}, {len(self)} networks{note})"

    def _title(self) -> str:
        return f"{self!r}, larger is {self.larger_is}"

    @property
    def symmetric(self) -> bool:
        """Whether the matrix is its own mirror image."""
        return np.array_equal(self.values, self.values.T, equal_nan=True)

    def marks(self) -> dict[tuple[int, int], str]:
        """What is written behind numbers: † if any network of that width would get them, * if beyond chance."""
        marks = super().marks()
        for i, j in np.argwhere(np.asarray(self.extra.get("q", np.nan)) <= LEVEL).tolist():
            marks[i, j] = marks.get((i, j), "") + ALIKE
        return marks

    def legend(self) -> list[str]:
        """One line per mark that is in use."""
        count = int((~np.isnan(np.asarray(self.extra.get("q", np.nan)))).sum()) // (2 if self.symmetric else 1)
        return super().legend() + ([f"{ALIKE} {self._significance(count)}"] if count else [])

    def _significance(self, count: int) -> str:
        groups, shuffles = (int(self.about.get(name, 0)) for name in ("groups", "permutations"))
        within = f" within {groups} classes" if groups else ""
        needed = math.ceil(1 / LEVEL - 1 / count)
        return (
            f"more alike than chance: q <= {LEVEL} over {count} pair{'' if count == 1 else 's'}, "
            f"from {shuffles} shuffles of the {self.about.get('units', 'inputs')}{within}"
            + (f"; {self.about['null']}" if self.about.get("null") else "")
            + (f"; one pair alone would need calibrate={needed}" if shuffles < needed else "")
        )

    def distances(self) -> np.ndarray:
        """The matrix as symmetric distances from 0: similarities inverted, NaN as the largest."""
        return distances(self.values, self.larger_is)

    def order(self) -> list[str]:
        """Names with alike networks side by side (average linkage, leaves ordered best)."""
        return leaf_order(self.names, self.distances())

    def sorted(self) -> Self:
        """The same matrix in the order of `order()`."""
        return self.reordered(self.order())

    def reordered(self, names: Sequence[str]) -> Self:
        """The same matrix with its networks in another order.

        Args:
            names: The networks in their new order; networks that are not named are left out.
        """
        index = [position(self.names, name, self.LABEL) for name in names]
        extra = {k: np.asarray(v)[np.ix_(index, index)] for k, v in self.extra.items()}
        reasons = {pair: reason for pair, reason in self.reasons.items() if set(pair) <= set(names)}
        fields = {"extra": extra, "reasons": reasons, **self._reordered_fields(index, names)}
        return replace(self, names=list(names), values=self.values[np.ix_(index, index)], **fields)

    def _reordered_fields(self, index: list[int], names: Sequence[str]) -> dict[str, Any]:
        """The fields that a matrix has beside these, for networks in another order."""
        return {}

    def to_frame(self, *, long: bool = False) -> pd.DataFrame:
        """A square frame with names on both sides.

        Args:
            long: One row per pair instead, with reasons.
        """
        import pandas as pd

        return pd.DataFrame(list(self._rows())) if long else super().to_frame()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for i, a in enumerate(self.names):
            for j, b in enumerate(self.names):
                row = {"a": a, "b": b, "measure": self.measure, "value": float(self.values[i, j])}
                row |= {name: float(np.asarray(grid)[i, j]) for name, grid in self.extra.items()}
                row |= {"larger_is": self.larger_is, "reason": self.reasons.get((a, b), "")}
                row |= {"saturated": self.saturated.get((a, b), "")}
                commits, right = self.about.get(COMMITS), self.about.get(ACCURACIES)
                row |= {"accuracy_a": right.get(a), "accuracy_b": right.get(b)} if right else {}
                yield row | ({"commit_a": commits.get(a, ""), "commit_b": commits.get(b, "")} if commits else {})

    def heatmap(self, title: str | None = None) -> Heatmap:
        """The matrix as a heat map.

        Args:
            title: The line above; by default the measure and its direction.
        """
        return Heatmap(
            self.values,
            *self.axes,
            title or f"{self.measure}\n(larger is {self.larger_is})",
            larger_is=self.larger_is,
            bounds=self.bounds,
            marks=self.marks(),
            notes=[*self.legend(), *(shorten(line, 160, placeholder=" …") for line in self.notes())],
        )


class Comparison(Mapping[str, SimilarityMatrix]):
    """Several measures over the same networks, by the name of the measure.

    Args:
        matrices: One matrix per measure.
    """

    def __init__(self, matrices: Mapping[str, SimilarityMatrix]) -> None:
        self._matrices = dict(matrices)

    def __getitem__(self, name: str) -> SimilarityMatrix:
        """The matrix of a measure, by its key, its name or an alias, where only one is meant."""
        if name in self._matrices:
            return self._matrices[name]
        alias, _, options = name.partition("[")
        matches = []
        for key, matrix in self._matrices.items():
            official, _, key_options = key.partition("[")
            if normal(alias) in map(normal, (official, *matrix.aliases)) and options in ("", key_options):
                matches.append(matrix)
        if len(matches) == 1:
            return matches[0]
        raise UnknownNameError(f"no measure {name!r} in this comparison.{did_you_mean(name, self._matrices)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __len__(self) -> int:
        return len(self._matrices)

    def __repr__(self) -> str:
        networks = len(next(iter(self._matrices.values())))
        return f"Comparison({len(self)} measures, {networks} networks)"

    def __str__(self) -> str:
        notes = map(visible, [*self.legend(), *self.notes()])
        return "\n".join([visible(repr(self)), fit_width(self.pairs(), most=12), *notes])

    def _repr_html_(self) -> str:
        frame = self.pairs()
        frame.insert(0, "larger is", [matrix.larger_is for matrix in self.values()])
        return as_html(repr(self), frame, [*self.legend(), *self.notes()], self._colours())

    def _colours(self) -> list[list[str]]:
        """Of the cells of `pairs`, each measure by its own range; the direction before them stays white."""
        symmetric = all(matrix.symmetric for matrix in self.values())
        rows = []
        for matrix in self.values():
            shades = colours(matrix.heatmap())
            rows.append(["#ffffff", *(shades[i][j] for i, j in _index_pairs(len(matrix), symmetric))])
        return rows

    def to_latex(self, digits: str = ".3f") -> str:
        """A table for a paper, one row per measure and one column per pair, with rules of the package booktabs.

        Args:
            digits: How numbers are formatted.
        """
        frame = self.pairs(digits)
        frame.insert(0, "larger is", [matrix.larger_is for matrix in self.values()])
        return as_latex(frame, [repr(self), *self.legend(), *self.notes()])

    def notes(self) -> list[str]:
        """What has to be known of the networks to read the numbers, one line each."""
        return list(dict.fromkeys(line for matrix in self.values() for line in matrix.notes()))

    def legend(self) -> list[str]:
        """One line per mark that is in use."""
        lines = [line for matrix in self.values() for line in matrix.legend()]
        first = {mark: next((line for line in lines if line[0] == mark), "") for mark in (SATURATED, ALIKE)}
        return [line for line in first.values() if line]

    def pairs(self, digits: str = ".4g") -> pd.DataFrame:
        """One row per measure and one column per pair, as text; both directions where a measure is not symmetric.

        Args:
            digits: How numbers are formatted.
        """
        import pandas as pd

        names = short_names(next(iter(self.values())).names)
        symmetric = all(matrix.symmetric for matrix in self.values())
        pairs, sign = list(_index_pairs(len(names), symmetric)), " ~ " if symmetric else " → "
        rows = []
        for matrix in self.values():
            marks = matrix.marks()
            rows.append([cell(matrix.values[pair], marks.get(pair, ""), digits) for pair in pairs])
        columns = pd.Index([f"{names[i]}{sign}{names[j]}" for i, j in pairs], name="pair")
        return pd.DataFrame(rows, index=pd.Index(list(self), name="measure"), columns=columns)

    def numbers(self) -> pd.DataFrame:
        """One row per measure and pair, without words; both directions where a measure is not symmetric."""
        import pandas as pd

        frames = []
        for matrix in self.values():
            words = ["larger_is", "reason", "saturated", "commit_a", "commit_b", "accuracy_a", "accuracy_b"]
            frame = matrix.to_frame(long=True).drop(columns=words, errors="ignore")
            frames.append(frame.iloc[[i * len(matrix) + j for i, j in _index_pairs(len(matrix), matrix.symmetric)]])
        return pd.concat(frames)

    def to_frame(self) -> pd.DataFrame:
        """One row per measure and ordered pair: a, b, measure, value, larger_is, reason, saturated, and what is known.

        That is the accuracies of both networks and the commits they were read from.
        """
        import pandas as pd

        return pd.DataFrame([row for matrix in self.values() for row in matrix._rows()])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """All matrices in one picture, in the order of their names.

        Args:
            path: Where the picture is saved, if anywhere.
        """
        maps = [matrix.heatmap() for matrix in self.values()]
        return heatmaps(maps, path, across=min(4, math.ceil(math.sqrt(len(maps)))))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write one file per measure, and return the folder.

        Args:
            folder: A new or an empty folder, or one that likewise wrote.
        """
        target = Path(folder)
        claim(target)
        for name, matrix in self.items():
            matrix.save(target / f"{file_name(name)}{SAFETENSORS}")
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Comparison:
        """Read what `save` wrote.

        Args:
            folder: Where the matrices are.
        """
        folder = Path(folder)
        paths = [path for kind in (NPZ, SAFETENSORS) for path in folder.glob(f"*{kind}")]
        if not paths:
            raise InputError(f"{folder} holds no saved matrices.")
        latest = {path.stem: path for path in paths}  # where an earlier version wrote npz, what replaces it
        matrices = [SimilarityMatrix.load(file_of(folder, latest[stem].name)) for stem in sorted(latest)]
        return cls({matrix.measure: matrix for matrix in matrices})


def _index_pairs(count: int, symmetric: bool) -> Iterable[tuple[int, int]]:
    """Pairs of different networks, once where the order does not matter."""
    return ((i, j) for i in range(count) for j in range(count) if (i < j if symmetric else i != j))


def file_name(name: str) -> str:
    """A name without the signs that no file may have."""
    return "".join(c if c.isalnum() or c in "-=." else "_" for c in name).strip("_")
