"""A measure over the layers of two networks: as numbers with names, a frame, a picture, a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import check_name, write_whole
from likewise._base.folders import claim
from likewise._base.formats.records import check
from likewise._base.names import csv_text
from likewise.errors import InputError
from likewise.matrices.heatmap import Heatmap
from likewise.matrices.labelled import Labelled, Pairs
from likewise.matrices.score import LEVEL, Bounds

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class LayerMatrix(Labelled):
    """A measure over the layers of two networks: `values[i, j]` compares `rows[i]` of a with `columns[j]` of b.

    Attributes:
        a: The name of the first network.
        b: The name of the second network.
        rows: Layers of the first.
        columns: Layers of the second.
        values: The scores, NaN where undefined.
        measure: The name of the measure, with its variant and options.
        about: What else is recorded of the comparison.
        reasons: Why pairs are undefined, by (row, column).
        saturated: Why any layers of these widths would get the score, by (row, column); marked with † or a cross.
        larger_is: What a larger value says: "more alike", "less alike", or empty where unknown.
        bounds: The range of the measure, None where it has no end.
        extra: More arrays of that shape by name, such as "calibrated" and "p".
        maximum: The most alike layers compared with the most alike ones of shuffled inputs: `row`, `column`, `value`,
            `null_mean`, `null_quantile`, `calibrated`, `p` and the number of `permutations`.

    Example:
        >>> LayerMatrix("a", "b", ["x"], ["y", "z"], [[1.0, 0.5]], "cka").to_frame().loc["x", "z"]
        np.float64(0.5)
    """

    KIND = "layer matrix"
    LABEL = "layer"

    a: str
    b: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Any
    measure: str
    about: Mapping[str, Any] = field(default_factory=dict)
    reasons: Pairs = field(default_factory=dict)
    saturated: Pairs = field(default_factory=dict)
    larger_is: str = ""
    bounds: Bounds = (None, None)
    extra: Mapping[str, Any] = field(default_factory=dict)
    maximum: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.shape != (len(self.rows), len(self.columns)):
            raise InputError(
                f"{len(self.rows)} rows and {len(self.columns)} columns were named for values of "
                f"shape {values.shape}. Name every layer once."
            )
        for name in (self.a, self.b, *self.rows, *self.columns):
            check_name(str(name))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "bounds", tuple(self.bounds))

    @property
    def axes(self) -> tuple[Sequence[str], Sequence[str]]:
        """Layers of a, and layers of b."""
        return self.rows, self.columns

    def to_frame(self) -> pd.DataFrame:
        """A frame: layers of a down, layers of b across."""
        return super().to_frame().rename_axis(index=self.a, columns=self.b)

    def legend(self) -> list[str]:
        """One line per mark that is in use, and one on the most alike layers where they were compared with chance."""
        if not self.maximum:
            return super().legend()
        most, verdict = self.maximum, "" if self.maximum["p"] <= LEVEL else "no "
        return [
            *super().legend(),
            f"most alike: {most['row']} and {most['column']}, {most['value']:.4g}, {verdict}more than chance over all "
            f"{self.values.size} pairs of layers: the most alike of shuffled {self.about.get('units', 'inputs')} have "
            f"{most['null_mean']:.4g} (95 %: {most['null_quantile']:.4g}); calibrated {most['calibrated']:.4g}, "
            f"p = {most['p']:.3g} from {most['permutations']} shuffles",
        ]

    def heatmap(self, title: str | None = None) -> Heatmap:
        """The matrix as a heat map: a's layers upwards, b's to the right.

        Args:
            title: The line above; by default the measure.
        """
        direction = f"\n(larger is {self.larger_is})" if self.larger_is else ""
        return Heatmap(
            self.values,
            *self.axes,
            title or f"{self.measure}{direction}",
            larger_is=self.larger_is,
            bounds=self.bounds,
            marks=self.marks(),
            notes=[*self.legend(), *self.notes()],
            sides=(_short(self.a), _short(self.b)),
            upwards=True,
        )

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the matrix as safetensors, CSV and PNG, and return the paths.

        Args:
            folder: A new or an empty folder, or one that likewise wrote.
        """
        target = Path(folder)
        claim(target, older=["layerwise.csv", "layerwise.png"])
        paths = [target / f"layerwise.{kind}" for kind in ("safetensors", "csv", "png")]
        self.save(paths[0])
        write_whole(paths[1], csv_text(self.to_frame()).encode())
        self.plot(paths[2])
        return paths

    def _title(self) -> str:
        direction = f", larger is {self.larger_is}" if self.larger_is else ""
        return f"{self!r}, the first down, the second across{direction}"

    def check_loaded(self) -> None:
        """Refuse arrays and facts of a file that do not belong together."""
        super().check_loaded()
        numbers = ("value", "null_mean", "null_quantile", "calibrated", "p", "permutations")
        if self.maximum:
            check(self.maximum, {"row": str, "column": str, **dict.fromkeys(numbers, float)})

    def __repr__(self) -> str:
        shape = f"{len(self.rows)} x {len(self.columns)}"
        return f"LayerMatrix({self.a!r}, {self.b!r}, {shape}, measure={self.measure!r})"


def _short(name: str) -> str:
    """An address without the folder its weights lie in."""
    return re.sub(r"@.*[/\\]", "@", name)
