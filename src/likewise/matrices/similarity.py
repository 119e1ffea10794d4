"""A measure over many networks, with their names. Everything after it takes any such matrix."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from likewise._base.array_files import read_npz
from likewise._base.files import make_folder, reading, write_whole
from likewise.errors import InputError, LikewiseError, UnknownNameError, brief, did_you_mean
from likewise.matrices import tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from likewise.measures import Info


@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """How alike m networks are by one measure: `values[i, j]` is measure(names[i], names[j]).

    Undefined pairs are NaN, their reasons in `reasons`; pairs whose score any network of that width would get
    are in `saturated`, and marked with † wherever the matrix is shown. `larger_is` is known for measures of ours;
    for any other matrix it can be given.

    >>> import likewise
    >>> matrix = likewise.SimilarityMatrix(names=["a", "b"], values=[[1, 0.2], [0.2, 1]], measure="cka")
    >>> matrix["a", "b"], matrix["a"]
    (0.2, {'a': 1.0, 'b': 0.2})
    """

    names: Sequence[str]
    values: Any
    measure: str = ""
    larger_is: str = ""
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    saturated: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        values = np.array(self.values, dtype=np.float64)
        if values.shape != (len(names), len(names)):
            raise InputError(f"{len(names)} names need a {len(names)} x {len(names)} matrix, got {values.shape}.")
        if len(set(names)) < len(names):
            raise InputError(f"the name {_repeated(names)!r} is given twice. Names must differ.")
        values.setflags(write=False)
        measure = getattr(self.measure, "key", self.measure)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "measure", str(measure))
        if not self.larger_is:
            info = self.info
            object.__setattr__(self, "larger_is", info.larger_is if info else "more alike")

    @property
    def info(self) -> Info | None:
        """The facts of the measure, if it is one of ours."""
        from likewise.measures.registry import get, registry

        name = self.measure.partition("[")[0]
        if not name or name not in registry:
            return None
        try:
            return get(self.measure).info
        except LikewiseError:  # options that no key can hold, such as labels
            return get(name).info

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @overload
    def __getitem__(self, key: str) -> dict[str, float]: ...
    @overload
    def __getitem__(self, key: tuple[str, str]) -> float: ...
    def __getitem__(self, key: str | tuple[str, str]) -> dict[str, float] | float:
        """The row of a network by name, or the score of a pair of names."""
        if isinstance(key, str):
            row = self.values[self._place(key)]
            return {name: float(value) for name, value in zip(self.names, row, strict=True)}
        if not isinstance(key, tuple) or len(key) != 2:
            raise UnknownNameError(f"{brief(key)} is no pair. Write matrix['a', 'b'], or matrix['a'].")
        return float(self.values[self._place(key[0]), self._place(key[1])])

    def _place(self, name: Any) -> int:
        if name not in self.names:
            raise UnknownNameError(f"no network named {brief(name)}.{did_you_mean(str(name), self.names)}")
        return list(self.names).index(name)

    def __repr__(self) -> str:
        undefined = int(np.isnan(self.values).sum())
        note = f", {undefined} undefined" if undefined else ""
        return f"SimilarityMatrix({self.measure!r}, {len(self)} networks{note})"

    def __str__(self) -> str:
        shown = tables.grid(self).to_string(max_rows=20, max_cols=20)
        lines = [f"{self!r}, larger is {self.larger_is}", shown, *tables.legend([self])]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = f"{self!r}, larger is {self.larger_is}"
        return tables.as_html(title, tables.grid(self), tables.legend([self]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def distances(self) -> np.ndarray:
        """The matrix as symmetric distances from 0: similarities turned round, NaN as the largest."""
        values = (self.values + self.values.T) / 2
        top = np.nanmax(values) if np.isfinite(values).any() else 1.0
        gaps = top - values if self.larger_is == "more alike" else values - min(0.0, np.nanmin(values))
        gaps = np.where(np.isnan(gaps), np.nanmax(gaps) if np.isfinite(gaps).any() else 1.0, gaps)
        np.fill_diagonal(gaps, 0.0)
        return np.asarray(np.maximum(gaps, 0.0))

    def order(self) -> list[str]:
        """Names with alike networks side by side (average linkage, leaves ordered best)."""
        if len(self) < 3:
            return list(self.names)
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        gaps = squareform(self.distances(), checks=False)
        leaves = leaves_list(linkage(gaps, "average", optimal_ordering=True))
        return [self.names[i] for i in leaves]

    def sorted(self) -> SimilarityMatrix:
        """The same matrix in the order of `order()`."""
        return self.reordered(self.order())

    def reordered(self, names: Sequence[str]) -> SimilarityMatrix:
        """The same matrix with its networks in another order."""
        index = [self._place(name) for name in names]
        extra = {k: np.asarray(v)[np.ix_(index, index)] for k, v in self.extra.items()}
        return replace(self, names=list(names), values=self.values[np.ix_(index, index)], extra=extra)

    def to_frame(self, *, long: bool = False) -> pd.DataFrame:
        """A square frame with names on both sides; `long=True` gives a row a pair, with reasons."""
        import pandas as pd

        if long:
            return pd.DataFrame(list(self._rows()))
        return pd.DataFrame(self.values, index=list(self.names), columns=list(self.names))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for i, a in enumerate(self.names):
            for j, b in enumerate(self.names):
                row = {"a": a, "b": b, "measure": self.measure, "value": float(self.values[i, j])}
                row |= {name: float(np.asarray(grid)[i, j]) for name, grid in self.extra.items()}
                row |= {"larger_is": self.larger_is, "reason": self.reasons.get((a, b), "")}
                yield row | {"saturated": self.saturated.get((a, b), "")}

    def plot(self, path: str | Path | None = None, *, title: str | None = None) -> Figure:
        """A picture of the matrix, alike networks side by side; saved if a path is given."""
        from likewise.matrices.heatmap import heatmap

        return heatmap(self, path, title=title)

    def save(self, path: str | Path) -> Path:
        """Write to a `.npz` file (no pickles inside)."""
        path = Path(path)
        path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
        facts = {
            "names": self.names,
            "measure": self.measure,
            "larger_is": self.larger_is,
            "reasons": [[*pair, reason] for pair, reason in self.reasons.items()],
            "saturated": [[*pair, reason] for pair, reason in self.saturated.items()],
            "about": dict(self.about),
            "extra": list(self.extra),
        }
        content = io.BytesIO()
        grids = {f"extra {name}": np.asarray(grid) for name, grid in self.extra.items()}
        arrays: dict[str, Any] = {
            "values": self.values,
            "facts": np.array(json.dumps(facts)),
            **grids,
        }
        np.savez(content, **arrays)
        write_whole(path, content.getvalue())
        return path

    @classmethod
    def load(cls, path: str | Path) -> SimilarityMatrix:
        """Read what `save` wrote."""
        with reading(path, f"{path} is not a saved similarity matrix: {{reason}}."):
            arrays = read_npz(path)
            facts = json.loads(str(arrays["facts"]))
            return cls(
                names=facts["names"],
                values=arrays["values"],
                measure=facts["measure"],
                larger_is=facts["larger_is"],
                reasons={(a, b): reason for a, b, reason in facts["reasons"]},
                extra={name: arrays[f"extra {name}"] for name in facts["extra"]},
                about=facts["about"],
                saturated={(a, b): reason for a, b, reason in facts.get("saturated", [])},
            )


class Comparison(Mapping[str, SimilarityMatrix]):
    """Several measures over the same networks, by the name of the measure."""

    def __init__(self, matrices: Mapping[str, SimilarityMatrix]) -> None:
        self._matrices = dict(matrices)

    def __getitem__(self, name: str) -> SimilarityMatrix:
        if name in self._matrices:
            return self._matrices[name]
        from likewise.measures.registry import registry

        plain, written, _ = name.partition("[")
        if plain in registry:
            official = registry.get(plain).name
            same = [key for key in self._matrices if key.partition("[")[0] == official]
            if written:  # an alias with options
                same = [key for key in same if key.partition("[")[2] == name.partition("[")[2]]
            if len(same) == 1:
                return self._matrices[same[0]]
        raise UnknownNameError(f"no measure {name!r} in this comparison.{did_you_mean(name, self._matrices)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __len__(self) -> int:
        return len(self._matrices)

    def __repr__(self) -> str:
        networks = len(next(iter(self._matrices.values())))
        return f"Comparison({len(self)} measures, {networks} networks)"

    def __str__(self) -> str:
        shown = tables.pairs(self).to_string(max_cols=12)
        return "\n".join([repr(self), shown, *tables.legend(self.values())])

    def _repr_html_(self) -> str:
        return tables.as_html(repr(self), tables.pairs(self), tables.legend(self.values()))

    def to_frame(self) -> pd.DataFrame:
        """One row per measure and ordered pair: a, b, measure, value, larger_is, reason, saturated."""
        import pandas as pd

        return pd.DataFrame([row for matrix in self.values() for row in matrix._rows()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """All matrices in one picture, in one order of networks."""
        from likewise.matrices.heatmap import heatmaps

        return heatmaps(self, path)

    def save(self, folder: str | Path) -> Path:
        """One file a measure in a folder."""
        folder = Path(folder)
        make_folder(folder)
        for name, matrix in self.items():
            matrix.save(folder / _file_name(name))
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Comparison:
        """Read what `save` wrote."""
        found = sorted(Path(folder).glob("*.npz"))
        if not found:
            raise InputError(f"{folder} holds no saved matrices.")
        matrices = [SimilarityMatrix.load(path) for path in found]
        return cls({matrix.measure: matrix for matrix in matrices})


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-=." else "_" for c in name).strip("_") + ".npz"


def _repeated(names: Sequence[str]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])
