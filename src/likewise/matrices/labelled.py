"""What every matrix with names has in common: a frame, an order, a picture, one kind of file, text and HTML.

A file holds the values as tensors and everything else as JSON among its metadata, with a checksum over all of it:
safetensors, or npz where the path says so. Files of earlier versions are read too.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from likewise._base import sealed
from likewise._base.files import is_file, reading, write_whole
from likewise._base.folders import file_at
from likewise._base.formats.array_files import is_npz, read_npz
from likewise._base.formats.records import check, parse
from likewise._base.names import short_names, visible
from likewise.errors import StoreError, UnknownNameError, brief, did_you_mean, quoted_list
from likewise.matrices.heatmap import SATURATED, Heatmap, heatmaps
from likewise.matrices.notebook import as_html, colours
from likewise.matrices.score import untrained_note
from likewise.matrices.tables import WIDTH, as_latex, ends, fit_width

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Pairs = Mapping[tuple[str, str], str]
SAFETENSORS, NPZ = ".safetensors", ".npz"
PRINTED = 20  # rows and columns in print
UNTRAINED = "untrained"  # among what is recorded of a matrix: names of networks without trained weights
COMMITS = "commits"  # and by name the commits of the repositories that networks were read from
ACCURACIES = "accuracies"  # and by name the shares of inputs that networks classify correctly, where labels say so
NO_INTERVALS = "no_intervals"  # and why pairs have no interval, where intervals were asked for
_BY_PAIR, _ARRAYS = ("reasons", "saturated"), ("values", "extra")
_KINDS = {  # what a file may say of a matrix
    **dict.fromkeys(("names", "rows", "columns", "aliases", "classes"), list[str]),
    **dict.fromkeys(("measure", "larger_is", "a", "b", "kind"), str),
    **dict.fromkeys(_BY_PAIR, list[tuple[str, str, str]]),
    "split": str | None,
    "wnids": list[str | None] | None,
    "bounds": tuple[float | None, float | None],
    "about": dict[str, Any],
    "maximum": dict[str, Any],
}
_ABOUT = {COMMITS: dict[str, str], ACCURACIES: dict[str, float], **dict.fromkeys(("n", "groups", "permutations"), int)}


class Labelled:
    """Numbers with names along both sides: a dataclass of `values` and what is known of them."""

    KIND: ClassVar[str]  # what such a matrix is called
    LABEL: ClassVar[str]  # what its names are of
    SAVED: ClassVar[tuple[str, ...]] = ()  # fields that are arrays too, and written as such
    UNSAVED: ClassVar[tuple[str, ...]] = ()  # fields that are not written
    values: Any

    @property
    def axes(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of the rows and of the columns."""
        raise NotImplementedError

    def heatmap(self, title: str | None = None) -> Heatmap:
        """The matrix as a heat map, under `title`."""
        raise NotImplementedError

    def legend(self) -> list[str]:
        """One line per mark that is in use."""
        reason = next(iter(self._by_pair("saturated").values()), "")
        return [f"{SATURATED} saturated: {reason}"] if reason else []

    def notes(self) -> list[str]:
        """What a reader must know of the networks, one line each."""
        about = getattr(self, "about", {})
        names, commits = about.get(UNTRAINED, ""), about.get(COMMITS, {})
        lines = accuracy_note(about.get(ACCURACIES, {}))
        lines += [untrained_note(str(names))] if names else []
        lines += [str(about[NO_INTERVALS])] if about.get(NO_INTERVALS) else []
        return lines + [f"{name} is at commit {commit}" for name, commit in commits.items()]

    def marks(self) -> dict[tuple[int, int], str]:
        """What is written behind numbers, by row and column: † if any network of that width would get them."""
        rows, columns = ({name: i for i, name in enumerate(names)} for names in self.axes)
        return {(rows[a], columns[b]): SATURATED for a, b in self._by_pair("saturated")}

    def _by_pair(self, name: str) -> Pairs:
        pairs: Pairs = getattr(self, name, {})
        return pairs

    @overload
    def __getitem__(self, key: str) -> dict[str, float]: ...
    @overload
    def __getitem__(self, key: tuple[str, str]) -> float: ...
    def __getitem__(self, key: str | tuple[str, str]) -> dict[str, float] | float:
        """A row by its name, or the number of a pair of names."""
        rows, columns = self.axes
        if isinstance(key, str):
            row = self.values[position(rows, key, self.LABEL)]
            return {name: float(value) for name, value in zip(columns, row, strict=True)}
        if not isinstance(key, tuple) or len(key) != 2:
            raise UnknownNameError(f"{brief(key)} is no pair. Write matrix['a', 'b'], or matrix['a'].")
        return float(self.values[position(rows, key[0], self.LABEL), position(columns, key[1], self.LABEL)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def to_frame(self) -> pd.DataFrame:
        """A frame with the names on both sides."""
        import pandas as pd

        rows, columns = self.axes
        return pd.DataFrame(self.values, index=list(rows), columns=list(columns))

    def grid(self, digits: str = ".4g", *, whole: bool = True) -> pd.DataFrame:
        """The numbers as text with their marks, names on both sides.

        Args:
            digits: How numbers are formatted.
            whole: Whether all numbers are written; else only those that `print` shows.
        """
        import pandas as pd

        frame = self.to_frame()
        text = np.full(frame.shape, "", dtype=object)
        rows, columns = (
            range(side) if whole else [i for i in ends(side, PRINTED) if i is not None] for side in frame.shape
        )
        marks = self.marks()
        for index in product(rows, columns):
            text[index] = cell(self.values[index], marks.get(index, ""), digits)
        return pd.DataFrame(text, index=frame.index, columns=frame.columns)

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Figure:
        """A picture of the matrix in the order of its names.

        Args:
            path: Where the picture is saved, if anywhere.
            title: The line above; by default the measure.
        """
        return heatmaps([self.heatmap(title)], path)

    def _title(self) -> str:
        return repr(self)

    def table(self, digits: str = ".4g", width: int = WIDTH, *, whole: bool = True) -> str:
        """The numbers as text that fits a terminal.

        Args:
            digits: How numbers are formatted.
            width: Characters per line.
            whole: Whether all numbers are written; else only those that `print` shows.
        """
        frame = self.grid(digits, whole=whole).rename_axis(index=None, columns=None)
        return fit_width(frame, width, None if whole else PRINTED)

    def __str__(self) -> str:
        notes = map(visible, [*self.legend(), *self.notes()])
        return "\n".join([visible(self._title()), self.table(whole=False), *notes])

    def _repr_html_(self) -> str:
        notes = [*self.legend(), *self.notes()]
        return as_html(self._title(), self.grid(whole=False), notes, colours(self.heatmap()), PRINTED)

    def to_latex(self, digits: str = ".3f") -> str:
        """A table for a paper, with rules of the package booktabs; what marks mean is in the caption.

        Args:
            digits: How numbers are formatted.
        """
        return as_latex(self.grid(digits), [self._title(), *self.legend(), *self.notes()])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the matrix to one file, and return its path.

        Args:
            path: The file: npz if it ends in .npz, else safetensors, whose suffix is added where it is missing.
        """
        target = Path(path)
        extra = getattr(self, "extra", {})
        arrays = {"values": self.values} | {f"extra {name}": np.asarray(grid) for name, grid in extra.items()}
        arrays |= {name: np.asarray(getattr(self, name)) for name in self.SAVED}
        text = json.dumps({"matrix": self.KIND, **self.metadata()})
        if target.suffix != NPZ:
            return sealed.write(target, arrays, {"facts": text})
        write_whole(target, _npz(arrays, text))
        return target

    def metadata(self) -> dict[str, Any]:
        """Everything but the numbers, as JSON can hold it."""
        this: Any = self
        left_out = {*_ARRAYS, *self.SAVED, *self.UNSAVED}
        facts = {f.name: getattr(self, f.name) for f in fields(this) if f.name not in left_out}
        for name in _BY_PAIR:
            if name in facts:
                facts[name] = [[*pair, reason] for pair, reason in facts[name].items()]
        return {name: dict(fact) if isinstance(fact, Mapping) else fact for name, fact in facts.items()}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Args:
            path: The file; `.safetensors` may be left out.
        """
        if not is_file(path) and is_file(f"{os.fspath(path)}{SAFETENSORS}"):
            path = f"{os.fspath(path)}{SAFETENSORS}"  # as `save` called it
        with reading(path, f"{path} holds no {cls.KIND}. Give a file that {cls.__name__}.save wrote.", StoreError):
            arrays, facts = _read(file_at(path))
            if facts.pop("matrix", cls.KIND) != cls.KIND:
                raise ValueError("it is of another kind")
            check(facts, _KINDS, optional=True)
            check(facts.get("about", {}), _ABOUT, optional=True)
            extra = {name.removeprefix("extra "): grid for name, grid in arrays.items() if name.startswith("extra ")}
            for name in _BY_PAIR:
                facts[name] = {(a, b): reason for a, b, reason in facts.get(name, [])}
            make: Any = cls
            names = {f.name for f in fields(make)} - {"values", *cls.UNSAVED}
            facts |= {"extra": extra} | {name: arrays[name] for name in cls.SAVED}
            matrix: Self = make(values=arrays["values"], **{k: v for k, v in facts.items() if k in names})
            matrix.check_loaded()
            return matrix

    def check_loaded(self) -> None:
        """Refuse arrays and facts of a file that do not belong together."""
        for name, grid in getattr(self, "extra", {}).items():
            if grid.shape != self.values.shape or grid.dtype.kind not in "biuf":
                raise ValueError(f"its {name!r} has other rows or columns")


def _npz(arrays: Mapping[str, Any], text: str) -> bytes:
    content = io.BytesIO()
    np.savez(content, facts=np.array(text), **arrays)
    return content.getvalue()


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a file, and the facts in it."""
    if is_npz(path):
        arrays = read_npz(path)
        return arrays, parse(str(arrays.pop("facts")))
    tensors, metadata = sealed.read(path, required=False)
    return {name: tensor.numpy() for name, tensor in tensors.items()}, _facts_in(metadata)


def _facts_in(metadata: dict[str, str]) -> dict[str, Any]:
    """The facts among metadata, in the forms that earlier versions gave classes and layers too."""
    if "facts" in metadata or "csm" in metadata:
        facts = parse(metadata.get("facts") or metadata["csm"])
        return facts if "facts" in metadata else {"matrix": "class similarity", **facts}
    plain = {name: metadata[name] for name in ("a", "b", "measure")}
    lists = {name: metadata.get(name, "[]") for name in ("rows", "columns", *_BY_PAIR)}
    listed = parse("{" + ", ".join(f'"{name}": {text}' for name, text in lists.items()) + "}")
    return {"matrix": "layer matrix", **plain, **listed, "about": parse(metadata["about"])}


def accuracy_note(accuracies: Mapping[str, float]) -> list[str]:
    """The line that gives the accuracy of every network, none where it is not known.

    >>> accuracy_note({"a": 0.5, "b": 0.9871})
    ['accuracy: a 50.0 %, b 98.7 %']
    """
    names = short_names(list(accuracies))
    shares = [f"{name} {100 * share:.1f} %" for name, share in zip(names, accuracies.values(), strict=True)]
    return [f"accuracy: {', '.join(shares)}"] if shares else []


def position(names: Sequence[str], name: Any, label: str) -> int:
    """The index of a name among others."""
    if name not in names:
        remedy = did_you_mean(str(name), names) or f" Choose from {quoted_list(names)}."
        raise UnknownNameError(f"no {label} named {brief(name)}.{remedy}")
    return list(names).index(name)


def leaf_order(names: Sequence[str], gaps: np.ndarray) -> list[str]:
    """Names in an order in which near ones are neighbours (average linkage, leaves ordered best)."""
    return list(names) if len(names) < 3 else [names[i] for i in _linkage(gaps)[1]]


def linkage_tree(values: np.ndarray, larger_is: str = "more alike") -> tuple[np.ndarray, list[int]]:
    """The tree of average linkage of a square matrix: its merges (one, other, height), and its leaves in order."""
    merges, leaves = _linkage(distances(values, larger_is))
    return merges[:, :3], leaves


def _linkage(gaps: np.ndarray) -> tuple[np.ndarray, list[int]]:
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    merges = linkage(squareform(gaps, checks=False), "average", optimal_ordering=True)
    return merges, leaves_list(merges).tolist()


def distances(values: np.ndarray, larger_is: str = "more alike") -> np.ndarray:
    """A square matrix as symmetric distances from 0: similarities inverted, NaN as the largest."""
    values = (values + values.T) / 2
    top = np.nanmax(values) if np.isfinite(values).any() else 1.0
    gaps = top - values if larger_is == "more alike" else values - min(0.0, np.nanmin(values))
    gaps = np.where(np.isnan(gaps), np.nanmax(gaps) if np.isfinite(gaps).any() else 1.0, gaps)
    np.fill_diagonal(gaps, 0.0)
    return np.asarray(np.maximum(gaps, 0.0))


def cell(value: float, mark: str = "", digits: str = ".4g") -> str:
    """A number with its mark."""
    return ("NaN" if value != value else f"{value:{digits}}") + mark
