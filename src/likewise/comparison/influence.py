"""Which inputs make two networks differ, by any measure: what the similarity gains without each of them.

A measure that has a score per input (`pnka`) gives it as it is. Of every pair only the inputs that lower it
most are kept, with what the networks answered to them and what they look like, so that a report can show them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base import sealed
from likewise._base.arrays import Array
from likewise._base.files import reading
from likewise._base.folders import file_at
from likewise._base.formats.records import check, parse
from likewise._base.machine import one_thread
from likewise._base.progress import Progress
from likewise.comparison.arguments import Call, seeded
from likewise.comparison.pairs import representations, score_table
from likewise.comparison.units import Units, units_of
from likewise.data import Data, dataset
from likewise.errors import InputError, StoreError, check_count
from likewise.measures.families.gram import pnka_points
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.resampling import Subset, measure_of_subset
from likewise.measures.workspace import parse_memory

INPUTS = "inputs.safetensors"
MOST, TRIED, SIDE = 12, 500, 64  # inputs kept per pair; left out at most; pixels of a picture
LEFT_OUT, POINTWISE = "left out", "pointwise"
_POINTS = {"pnka": pnka_points}
_PARTS = ("rows", "values", "labels", "predictions", "pictures")
_FACTS = dict.fromkeys(("names", "measures", "how", "classes", "texts"), list[str]) | {"shown": list[int]}


@dataclass(frozen=True, eq=False, repr=False)
class Influence:
    """The inputs that lower the similarity of each pair most, by several measures.

    Attributes:
        names: The networks.
        measures: Keys of the measures.
        how: Per measure "left out", or "pointwise" where the measure has a score per input.
        rows: Indices of the inputs, `(measures, m, m, kept)`, the worst first; -1 where a pair has no score.
        values: What each does to the score: below 0, the pair would be more alike without it.
        labels: The true class of every input `(n,)`, -1 if unknown.
        predictions: What each network takes the inputs for, `(m, n)`, -1 if unknown.
        classes: Names of the classes.
        shown: The inputs that come with a picture or a text.
        pictures: Theirs, `(shown, height, width, 1 or 3)`.
        texts: Theirs.
    """

    names: tuple[str, ...]
    measures: tuple[str, ...]
    how: tuple[str, ...]
    rows: Array
    values: Array
    labels: Array
    predictions: Array
    classes: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
    pictures: Array = field(default_factory=lambda: np.empty((0, 0, 0, 0), dtype=np.uint8))
    texts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Influence({len(self.names)} networks, {len(self.measures)} measures, n={len(self.labels)})"

    def worst(self, a: str, b: str, measure: str) -> list[tuple[int, float]]:
        """The inputs that lower the similarity of two networks most, each with what it does to the score.

        Args:
            a: A network.
            b: Another.
            measure: The key of a measure.
        """
        for name, names in ((a, self.names), (b, self.names), (measure, self.measures)):
            if name not in names:
                raise InputError(f"{name!r} is not among {', '.join(names)}. Choose one of them.")
        at = self.measures.index(measure), self.names.index(a), self.names.index(b)
        both = zip(self.rows[at].tolist(), self.values[at].tolist(), strict=True)
        return [(row, value) for row, value in both if row >= 0]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to one safetensors file.

        Args:
            path: Where to.

        Returns:
            The path.
        """
        tensors = {name: torch.from_numpy(np.ascontiguousarray(getattr(self, name))) for name in _PARTS}
        facts = {name: getattr(self, name) for name in _FACTS}
        return sealed.write(path, tensors, {"influence": json.dumps(facts)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Influence:
        """Read what `save` wrote.

        Args:
            path: The file.
        """
        sentence = f"{path} does not say which inputs networks differ on, or it is damaged. Run again what wrote it."
        with reading(path, sentence, StoreError):
            tensors, header = sealed.read(file_at(path))
            facts = parse(header["influence"])
            check(facts, _FACTS)
            lists: dict[str, Any] = {name: tuple(facts[name]) for name in _FACTS}
            arrays: dict[str, Any] = {name: tensors[name].numpy() for name in _PARTS}
            influence = cls(**lists, **arrays)
            influence._check_loaded()
            return influence

    def _check_loaded(self) -> None:
        """Refuse arrays of a file that do not belong together."""
        measures, m, n, inputs = (len(part) for part in (self.measures, self.names, self.labels, self.shown))
        fits = (
            self.rows.ndim == 4
            and self.rows.shape == self.values.shape == (measures, m, m, self.rows.shape[3])
            and self.predictions.shape == (m, n)
            and len(self.how) == measures
            and self.pictures.ndim == 4
            and {len(self.pictures), len(self.texts)} <= {0, inputs}
        )
        numbered = (self.rows.ravel(), np.asarray(self.shown, dtype=np.int64))
        if not fits or not all(((rows >= -1) & (rows < n)).all() for rows in numbered):
            raise ValueError("its arrays are of other networks or inputs")


def influence(
    views: Any,
    other: Any = None,
    measure: Any = None,
    *,
    data: Any = None,
    layers: str | Mapping[str, str] | None = None,
    most: int = MOST,
    tried: int = TRIED,
    memory: str | int | None = None,
    seed: int = 0,
    **options: Any,
) -> Influence:
    """Which inputs lower the similarity of each pair most, by one measure or several.

    Args:
        views: An array `(n, d)`, a view, a module or an address; or a list or mapping of many, for all pairs.
        other: The second of two.
        measure: A name such as "cka", a key, a measure or a function, or a list of them. By default "cka-debiased".
        data: What the networks are or were shown: with it, the inputs come as pictures or texts.
        layers: The layer to look at in each of them; see `Show`.
        most: How many inputs are kept per pair and measure.
        tried: Where there are more inputs, a random sample of so many is left out one at a time.
        memory: The most to hold at a time, such as "4GB".
        seed: Draws the sample.
        **options: The measure's own options, and how networks are shown (see `Show`).

    Returns:
        The inputs of every pair, the worst first.

    Raises:
        InputError: A measure looks at networks, or the data is not what the views are of.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 8))
        >>> y = x.copy()
        >>> y[7] *= -1
        >>> influence({"x": x, "y": y}, "cka", progress=False).worst("x", "y", "cka")[0][0]
        7
    """
    check_count("most", most)
    check_count("tried", tried)
    data = dataset(data) if isinstance(data, str) else data
    call = Call.read(influence, views, other, measure, options, with_arrays=["data"], data=data, layers=layers)
    measures = [seeded(bound, seed) for bound in call.selection.measures]
    for bound in measures:
        if bound.info.on == "networks":
            raise InputError(
                f"{bound.key} looks at networks, and single inputs are not left out of it. Choose another."
            )
    activations = call.activations(measures)
    reps = representations(activations, parse_memory(memory))
    units = units_of(activations)  # rows that are tokens or positions are left out with all of their input
    n = units.count
    if isinstance(data, Data) and len(data) != n:
        raise InputError(f"the views are of {n} inputs and the data has {len(data)}. Give what they were shown.")
    sample = np.sort(np.random.default_rng(seed).permutation(n)[:tried])
    with one_thread(for_inputs=tuple(activations)):
        results = [_of_measure(bound, reps, units, sample, most, call.show.progress) for bound in measures]
    rows, values, kinds = zip(*results, strict=True)
    outputs = [rep.view.outputs for rep in reps]
    labels = next((o.labels for o in outputs if o is not None and o.labels is not None), None)
    predictions = [np.full(n, -1) if o is None else o.predictions.cpu().numpy() for o in outputs]
    result = Influence(
        tuple(call.things) if not call.two else tuple(view.name for view in activations),
        tuple(bound.key for bound in measures),
        tuple(kinds),
        np.stack(rows).astype(np.int32),
        np.stack(values).astype(np.float32),
        np.full(n, -1) if labels is None else labels.cpu().numpy(),
        np.stack(predictions),
    )
    return _with_pictures(result, data) if isinstance(data, Data) else result


def _of_measure(
    measure: Measure, reps: Sequence[Representation], units: Units, sample: Array, most: int, progress: bool
) -> tuple[Array, Array, str]:
    """The worst inputs of every pair, what they do to it, and how that was found."""
    if measure.name in _POINTS:
        by_row = _pointwise(measure, reps)
        points, kind = np.stack([by_row[..., units.rows([unit])].mean(axis=-1) for unit in sample], axis=-1), POINTWISE
    else:
        points, kind = _left_out(measure, reps, units, sample, progress), LEFT_OUT
    if measure.info.larger_is == "less alike":
        points = -points
    kept = min(most, len(sample))
    order = np.argsort(np.where(np.isnan(points), np.inf, points), axis=-1, kind="stable")[..., :kept]
    values = np.take_along_axis(points, order, axis=-1)
    rows = np.where(np.isnan(values), -1, sample[order])
    rows[np.arange(len(reps)), np.arange(len(reps))] = -1
    return rows, np.nan_to_num(values), kind


def _pointwise(measure: Measure, reps: Sequence[Representation]) -> Array:
    points = np.full((len(reps), len(reps), reps[0].n), np.nan)
    for i in range(len(reps)):
        for j in range(i + 1, len(reps)):
            points[i, j] = points[j, i] = _POINTS[measure.name](Pair(reps[i], reps[j])).cpu().numpy()
    return points


def _left_out(measure: Measure, reps: Sequence[Representation], units: Units, sample: Array, progress: bool) -> Array:
    """Score of all inputs minus score without each, (m, m, sample)."""
    device = reps[0].values.device
    whole = score_table(measure, reps, reps, {})
    changes = np.empty((*whole.shape, len(sample)))
    with Progress(len(sample), f"leaving out inputs of {measure.key}", show=progress) as bar:
        for index, unit in enumerate(sample):
            others = torch.from_numpy(np.delete(np.arange(units.n), units.rows([unit]))).to(device)
            subsets: list[Representation] = [Subset(rep, others) for rep in reps]
            changes[..., index] = whole - score_table(measure_of_subset(measure, others), subsets, subsets, {})
            bar.advance()
    return changes


def _with_pictures(result: Influence, data: Data) -> Influence:
    """The inputs that were kept, as pictures or texts, and what the classes are called."""
    rows = sorted(set(result.rows[result.rows >= 0].tolist()))
    result = replace(result, classes=tuple(map(str, data.classes)), shown=tuple(rows))
    if data.domain == "text" and isinstance(data.inputs, list):
        texts = [data.inputs[row] for row in rows]
        return replace(
            result, texts=tuple(text if isinstance(text, str) else " | ".join(map(str, text)) for text in texts)
        )
    if data.domain != "image" or not rows:
        return replace(result, shown=())
    images = [small_picture(data[[row]].inputs[:][0]) for row in rows]
    if len({image.shape for image in images}) > 1:
        return replace(result, shown=())
    return replace(result, pictures=np.stack(images))


def small_picture(image: Tensor) -> Array:
    """An image (channels, height, width) in [0, 1] as bytes (height, width, 1 or 3), no side above 64 pixels."""
    image = image.detach().cpu().float()
    channels, *size = image.shape
    scale = SIDE / max(size)
    if scale < 1:
        smaller = [max(1, round(scale * side)) for side in size]
        image = torch.nn.functional.interpolate(image[None], smaller, mode="area")[0]
    image = image[:3] if channels >= 3 else image[:1]
    return np.asarray((255 * image.clamp(0, 1)).round().byte().permute(1, 2, 0).numpy())
