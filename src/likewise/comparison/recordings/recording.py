"""`Recording`: what is kept of a network on a probe, as one small sealed file.

It holds per layer a sketch of the similarities of inputs and one of the values, per weight a sketch and a share of
zeros, the answers' most likely classes or tokens, and in its header the hash of the probe, versions, and how it was
made. It never holds an input; who has the file has the answers to the probe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise._base import sealed
from likewise._base.arrays import Array
from likewise._base.files import reading
from likewise._base.folders import file_at
from likewise._base.formats.records import check, parse
from likewise.comparison.recordings.sketches import BINS, SIGNS, WEIGHT_BINS, relative_change, similarity
from likewise.errors import InputError

ENDING = ".likewise"
FORMAT = 2
_HEADER = {
    "format": int,
    "name": str,
    "probe": str,
    "data": str,
    "n": int,
    "kind": str,
    "layers": list[dict[str, Any]],
    "weights": list[dict[str, Any]],
    "about": dict[str, Any],
}
# by kind of answer, its arrays: the letter of their dtype, and how many dimensions they have
_ANSWERS: dict[str, dict[str, tuple[str, int]]] = {
    "": {},
    "classes": {"top": ("i", 2), "log_p": ("f", 2), "classes": ("i", 1), "labels": ("i", 1)},
    "tokens": {
        **dict.fromkeys(("text", "position", "token", "cut", "bytes"), ("i", 1)),
        **{"loss": ("f", 1), "top": ("i", 2), "log_p": ("f", 2)},
    },
}
_OPTIONAL = ("labels", "bytes")
_LAYER = {"name": str, "shape": list[int], "norm": float, "row": float, "spread": float, "block": bool}
_WEIGHT = {"name": str, "shape": list[int], "norm": float, "zeros": float, "count": int, "digest": str}


@dataclass(frozen=True, eq=False)
class LayerSketch:
    """What is kept of one layer.

    Attributes:
        shape: What it gives for one input.
        norm: The root of the sum of squares of all its entries.
        row: The mean length of its rows.
        spread: Their standard deviation.
        block: Whether it is a block of the network.
        values: The sketch of the values.
        similarity: The sketch of the similarities; None where it was not asked for.
    """

    shape: tuple[int, ...]
    norm: float
    row: float
    spread: float
    block: bool
    values: Array = field(repr=False)
    similarity: Array | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class WeightSketch:
    """What is kept of one tensor of weights.

    Attributes:
        shape: Its shape.
        norm: The root of the sum of squares of its entries.
        zeros: The share of them that is zero.
        count: How many there are.
        digest: A hash of them.
        values: The sketch of the values.
    """

    shape: tuple[int, ...]
    norm: float
    zeros: float
    count: int
    digest: str
    values: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Recording:
    """What is kept of a network on a probe.

    Attributes:
        name: What the network is called.
        probe: A hash of the inputs and their order.
        data: What the inputs are called.
        n: How many there are.
        kind: What it answers with: "classes", "tokens" or "" for nothing that is kept.
        layers: Sketches by the name of the layer, in the order of the forward pass.
        weights: Sketches by the name of the tensor.
        answers: The most likely classes or tokens and what belongs to them.
        about: How it was made: precision, device, reduction, versions.

    Example:
        >>> import torch, likewise
        >>> from torch import nn
        >>> recording = likewise.record(nn.Sequential(nn.Linear(4, 3)), torch.rand(10, 4), name="tiny", progress=False)
        >>> recording
        Recording('tiny', n=10, layers=1)
    """

    name: str
    probe: str
    data: str
    n: int
    kind: str
    layers: Mapping[str, LayerSketch] = field(repr=False)
    weights: Mapping[str, WeightSketch] = field(repr=False)
    answers: Mapping[str, Array] = field(repr=False)
    about: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"Recording({self.name!r}, n={self.n}, layers={len(self.layers)})"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file, whose ending `.likewise` may be left out.

        Args:
            path: The file.

        Returns:
            Its path.

        Raises:
            InputError: There is a file that is no recording.
        """
        self.check_place(path)
        target = Path(path)
        tensors: dict[str, Array] = {f"answer:{name}": values for name, values in self.answers.items()}
        layers, weights = [], []
        for number, (name, layer) in enumerate(self.layers.items()):
            layers.append({"name": name, **{key: getattr(layer, key) for key in _LAYER if key != "name"}})
            tensors[f"values:{number}"] = layer.values
            tensors |= {} if layer.similarity is None else {f"similarity:{number}": layer.similarity}
        for number, (name, weight) in enumerate(self.weights.items()):
            weights.append({"name": name, **{key: getattr(weight, key) for key in _WEIGHT if key != "name"}})
            tensors[f"weight:{number}"] = weight.values
        header = {key: getattr(self, key) for key in ("name", "probe", "data", "n", "kind")}
        header |= {"format": FORMAT, "layers": layers, "weights": weights, "about": dict(self.about)}
        return sealed.write(target, tensors, {"recording": json.dumps(header)}, ending=ENDING)

    @staticmethod
    def check_place(path: str | os.PathLike[str]) -> None:
        """Refuse to write over a file that is no recording.

        Args:
            path: Where a recording is to be written.

        Raises:
            InputError: Something else is there.
        """
        target = sealed.target_of(path, ENDING)
        if os.path.lexists(target):
            Recording.load(target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read one from a file.

        Args:
            path: The file.

        Raises:
            InputError: It is no recording, of another version, or damaged.
        """
        target = file_at(path)
        with reading(target, f"{target} is no whole recording: {{reason}}. Record the network again."):
            tensors, metadata = sealed.read(target)
            header = parse(metadata["recording"])
            if header.get("format") != FORMAT:
                raise InputError(
                    f"{target} is a recording of another version (format {header.get('format')!r}, this reads "
                    f"{FORMAT}). Record the network again."
                )
            check(header, _HEADER)
            arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
            layers = {entry["name"]: _layer(entry, number, arrays) for number, entry in enumerate(header["layers"])}
            weights = {entry["name"]: _weight(entry, number, arrays) for number, entry in enumerate(header["weights"])}
            answers = {name.removeprefix("answer:"): value for name, value in arrays.items() if name[:7] == "answer:"}
            _check_answers(header["kind"], header["n"], answers)
            plain = {key: header[key] for key in ("name", "probe", "data", "n", "kind", "about")}
            return cls(**plain, layers=layers, weights=weights, answers=answers)


def _layer(entry: dict[str, Any], number: int, arrays: Mapping[str, Array]) -> LayerSketch:
    check(entry, _LAYER)
    facts = {key: entry[key] for key in _LAYER if key not in ("name", "shape")}
    values, similar = arrays[f"values:{number}"], arrays.get(f"similarity:{number}")
    _check_sketch(values, BINS)
    if similar is not None:
        _check_sketch(similar, SIGNS)
    return LayerSketch(tuple(entry["shape"]), **facts, values=values, similarity=similar)


def _weight(entry: dict[str, Any], number: int, arrays: Mapping[str, Array]) -> WeightSketch:
    check(entry, _WEIGHT)
    facts = {key: entry[key] for key in _WEIGHT if key not in ("name", "shape")}
    _check_sketch(arrays[f"weight:{number}"], WEIGHT_BINS)
    return WeightSketch(tuple(entry["shape"]), **facts, values=arrays[f"weight:{number}"])


def _check_sketch(values: Array, length: int) -> None:
    if values.shape != (length,) or not np.isfinite(values).all():
        raise ValueError(f"a sketch has the shape {values.shape} or is not finite")


def _check_answers(kind: str, n: int, answers: Mapping[str, Array]) -> None:
    """Refuse answers that are not of one length, or name an input, a class or a token that cannot be."""
    if kind not in _ANSWERS or n < 1:
        raise ValueError(f"it answers with {kind!r} to {n} inputs")
    rows = n if kind == "classes" else len(answers.get("text", ()))
    for name, (letter, dims) in _ANSWERS[kind].items():
        if name not in answers and name in _OPTIONAL:
            continue
        values, length = answers[name], {"classes": 1, "cut": 1, "bytes": n}.get(name, rows)
        if values.dtype.kind != letter or values.ndim != dims or len(values) != length or 0 in values.shape:
            raise ValueError(f"its {name!r} has the shape {values.shape} of {values.dtype}")
        if not np.isfinite(values).all() or (name != "labels" and letter == "i" and values.min() < 0):
            raise ValueError(f"its {name!r} has entries that are no answers")
    if not kind:
        return
    named, most = ("top", int(answers["classes"][0])) if kind == "classes" else ("text", n)
    if answers["top"].shape != answers["log_p"].shape or answers[named].max() >= most:
        raise ValueError(f"its {named!r} names more than there are")


def is_recording(thing: Any) -> bool:
    """Whether something is a recording, or the path of one."""
    return isinstance(thing, Recording) or (isinstance(thing, (str, os.PathLike)) and str(thing).endswith(ENDING))


def any_recording(*things: Any) -> bool:
    """Whether one of these, or of what they hold, is a recording."""
    inside = [entry for thing in things if isinstance(thing, (list, tuple)) for entry in thing]
    inside += [entry for thing in things if isinstance(thing, Mapping) for entry in thing.values()]
    return any(map(is_recording, [*things, *inside]))


def is_new_baseline(thing: Any) -> bool:
    """Whether this is the path of a recording that is not there yet."""
    return isinstance(thing, (str, os.PathLike)) and is_recording(thing) and not os.path.lexists(thing)


def opened(thing: Any) -> Recording:
    """A recording, read where it is a path."""
    return thing if isinstance(thing, Recording) else Recording.load(thing)


def check_one_probe(a: Recording, b: Recording) -> None:
    """Refuse recordings of different inputs."""
    if a.probe != b.probe:
        raise InputError(
            f"{a.name!r} was recorded on {a.data!r} ({a.n} inputs, {a.probe}) and {b.name!r} on {b.data!r} ({b.n} "
            f"inputs, {b.probe}). Record both on one probe."
        )


def layer_similarity(a: LayerSketch, b: LayerSketch) -> float:
    """Debiased CKA of two layers by their sketches, NaN where one has none."""
    if a.similarity is None or b.similarity is None:
        return float("nan")
    return similarity(a.similarity, b.similarity)


def layer_change(a: LayerSketch, b: LayerSketch) -> float:
    """The relative change from one layer to another of its shape, NaN for another shape."""
    if a.shape != b.shape:
        return float("nan")
    return relative_change(a.values, b.values, a.norm)


def similarities(a: Recording, b: Recording) -> tuple[list[str], list[str], Array]:
    """Debiased CKA of every layer of one with every layer of the other that has a sketch of similarities."""
    check_one_probe(a, b)
    rows, columns = ([name for name, layer in side.layers.items() if layer.similarity is not None] for side in (a, b))
    left, right = (
        np.stack([np.asarray(side.layers[name].similarity, dtype=np.float64) for name in names])
        for side, names in ((a, rows), (b, columns))
    )
    left, right = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (left, right))
    return rows, columns, left @ right.T
