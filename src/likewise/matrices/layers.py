"""A measure over the layers of two networks: as numbers with names, a frame, a picture, a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.checksums import OPEN_SEAL, check_seal, seal_bytes
from likewise._base.files import make_folder, reading, save_figure, write_whole
from likewise.errors import InputError, StoreError
from likewise.matrices.tables import SATURATED, as_html, cell

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class LayerMatrix:
    """A measure over the layers of two networks: `values[i, j]` is `rows[i]` of a with `columns[j]`
    of b. Undefined pairs are NaN, their reasons in `reasons` by (row, column); scores that any layers of these
    widths would get are in `saturated`, and marked with † or a cross where the matrix is shown.

    >>> LayerMatrix("a", "b", ["x"], ["y", "z"], [[1.0, 0.5]], "cka").to_frame().loc["x", "z"]
    np.float64(0.5)
    """

    a: str
    b: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Any
    measure: str
    about: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    saturated: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.shape != (len(self.rows), len(self.columns)):
            raise InputError(
                f"{len(self.rows)} rows and {len(self.columns)} columns were named for values of "
                f"shape {values.shape}. Name every layer once."
            )
        object.__setattr__(self, "values", values)

    def to_frame(self) -> pd.DataFrame:
        """Layers of a down, layers of b across."""
        import pandas as pd

        index = pd.Index(self.rows, name=self.a)
        return pd.DataFrame(self.values, index, pd.Index(self.columns, name=self.b))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A picture, a's layers upwards, b's to the right; saved if a path is given."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=self._size(), layout="constrained")
        ax = figure.subplots()
        finite = self.values[np.isfinite(self.values)]
        inside = finite.size and finite.min() >= 0 and finite.max() <= 1 + 1e-6
        image = ax.imshow(self.values, origin="lower", cmap="magma", vmin=0 if inside else None, aspect="auto")
        figure.colorbar(image, ax=ax, label=self.measure, shrink=0.8)
        ax.set_xticks(range(len(self.columns)), self.columns, rotation=90, fontsize=7)
        ax.set_yticks(range(len(self.rows)), self.rows, fontsize=7)
        ax.set_xlabel(_short(self.b))
        ax.set_ylabel(_short(self.a))
        if self.saturated:
            places = [(self.rows.index(a), self.columns.index(b)) for a, b in self.saturated]
            rows, columns = zip(*places, strict=True)
            ax.scatter(columns, rows, marker="x", s=10, linewidths=0.8, c="#17becf")
            ax.set_title(f"x {self._legend()[0].removeprefix(SATURATED).strip()}", fontsize=6, wrap=True)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the values and what they are to one safetensors file."""
        from safetensors.numpy import save

        facts = {
            "a": self.a,
            "b": self.b,
            "rows": json.dumps(list(self.rows)),
            "columns": json.dumps(list(self.columns)),
            "measure": self.measure,
            "about": json.dumps(dict(self.about)),
            "reasons": json.dumps([[*pair, reason] for pair, reason in self.reasons.items()]),
            "saturated": json.dumps([[*pair, reason] for pair, reason in self.saturated.items()]),
        }
        values = {"values": np.ascontiguousarray(self.values)}
        content = save(values, metadata=facts | OPEN_SEAL)
        write_whole(Path(path), seal_bytes(content))

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The matrix for programs, for spreadsheets and for eyes: three files in a folder."""
        target = Path(folder)
        make_folder(target)
        paths = [target / f"layerwise.{kind}" for kind in ("safetensors", "csv", "png")]
        self.save(paths[0])
        write_whole(paths[1], self.to_frame().to_csv().encode())
        self.plot(paths[2])
        return paths

    def _size(self) -> tuple[float, float]:
        """Room for every layer's name, in inches."""
        height, width = (2 + 0.2 * max(10, len(names)) for names in (self.rows, self.columns))
        return width + 1, height

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LayerMatrix:
        """Read what `save` wrote."""
        from safetensors import safe_open

        damaged = f"{path} holds no layer matrix. Give a file that LayerMatrix.save wrote."
        with reading(path, damaged, StoreError):
            check_seal(path)
            with safe_open(path, framework="numpy") as file:
                facts, values = file.metadata() or {}, file.get_tensor("values")
            rows, columns = json.loads(facts["rows"]), json.loads(facts["columns"])
            about, told = json.loads(facts["about"]), json.loads(facts.get("reasons", "[]"))
            reasons, saturated = (
                {(row, column): reason for row, column, reason in listed}
                for listed in (told, json.loads(facts.get("saturated", "[]")))
            )
            return cls(
                facts["a"],
                facts["b"],
                rows,
                columns,
                values,
                facts["measure"],
                about,
                reasons,
                saturated,
            )

    def _grid(self) -> pd.DataFrame:
        frame = self.to_frame().astype(object)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                mark = SATURATED if (row, column) in self.saturated else ""
                frame.iat[i, j] = cell(float(self.values[i, j]), mark)
        return frame

    def _legend(self) -> list[str]:
        reason = next(iter(self.saturated.values()), "")
        return [f"{SATURATED} saturated: {reason}"] if reason else []

    def __str__(self) -> str:
        shown = self._grid().to_string(max_rows=20, max_cols=20)
        return "\n".join([repr(self), shown, *self._legend()])

    def _repr_html_(self) -> str:
        return as_html(repr(self), self._grid(), self._legend())

    def __repr__(self) -> str:
        shape = f"{len(self.rows)} x {len(self.columns)}"
        return f"LayerMatrix({self.a!r}, {self.b!r}, {shape}, measure={self.measure!r})"


def _short(name: str) -> str:
    """An address without the folder its weights lie in."""
    return re.sub(r"@.*[/\\]", "@", name)
