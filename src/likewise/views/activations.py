"""What we look at in a network: its activations on the probe, and what it answered.

A view checks itself when it is made (shape, finite, enough rows), so that measures can be plain maths.
The check reads the values once, for their column means, which are wanted anyway, and the sum of their
squares. That sum is finite and ordinary unless an entry is not finite or the scale is extreme; a scale
whose powers a float could not hold is taken out once, as a power of two (`Activations.exponent`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array, as_tensor, check_labels
from likewise._base.hashing import digest, fingerprint
from likewise.errors import InputError, brief
from likewise.views.reduction import Reduction, reduced

if TYPE_CHECKING:
    from likewise.wordnet import ClassNames

SMALL = 1 << 16  # entries whose sums need no care
BLOCK = 1 << 18  # entries summed together, about what a cache holds
CLASSES, UNLABELLED = "classes", "unlabelled"  # what `about` records of the outputs
OUTPUTS = "(outputs)"  # the layer whose rows are what the network answers
HALF = ("float16", "bfloat16")  # kept in single precision, and remembered
LOGITS = "the matrix of logits"
ARITHMETIC = "arithmetic"  # where `about` records the precision that measures work in, if it is not double
Precision = Literal["double", "single"]
ORDINARY = 2.0**-40, 2.0**60  # sums of squares of values that may be raised to the eighth power


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a network answered.

    Attributes:
        logits: One row per input and one column per class, `(n, c)`.
        labels: The true class of every input, `(n,)`; None where it is unknown.

    Example:
        >>> Outputs([[0.1, 0.9], [0.8, 0.2]], labels=[1, 1]).predictions
        tensor([1, 0])
    """

    logits: Any
    labels: Any = None

    def __post_init__(self) -> None:
        logits = as_tensor(self.logits, LOGITS)
        if logits.ndim != 2 or not logits.numel():
            raise InputError(f"logits must be (inputs, classes), got {_shape(logits)}. Pass one row per input.")
        _first_look(logits, LOGITS)
        object.__setattr__(self, "logits", logits)
        if self.labels is not None:
            object.__setattr__(self, "labels", check_labels(self.labels, *logits.shape).to(logits.device))

    @cached_property
    def predictions(self) -> Tensor:
        """The most likely class of every input, `(n,)`."""
        return self.logits.argmax(dim=1)

    @property
    def accuracy(self) -> float | None:
        """The share of inputs whose most likely class is the true one; None without labels."""
        return None if self.labels is None else float((self.predictions == self.labels).double().mean())


@dataclass(frozen=True, eq=False)
class NetworkOnData:
    """The network of a view, the data it was shown and how, for measures that look at networks. Stays in this process.

    `folder` is where results are kept, if anywhere.
    """

    network: Any
    data: Any
    device: Any = None
    transform: Any = None
    folder: Path | None = None


@dataclass(frozen=True, eq=False)
class Activations:
    """One network's activations `(n, d)` on a probe, with where they came from.

    Attributes:
        values: One row per input and one column per neuron, of any numeric type. Maps and tokens need a `reduce`.
        name: What the network is called in tables and messages.
        probe: A content hash of the inputs and their order; views of different probes are never compared.
        outputs: What the network answered, for measures that look at answers.
        reduce: How maps and tokens become rows: "mean", "cls", "last", "flatten" or "spatial".
        about: How the view was made: network, layer, reduction, versions.
        subject: The network itself and its data, for measures that look at networks.
        clusters: Which input every row is of, `(n,)`, where rows are tokens or positions; None where every row is an
            input. Nulls and intervals shuffle and leave out whole inputs.
        precision: What measures work in, "double" by default. "single" is faster on many GPUs, and leaves scores at
            least three digits; what is decided by order, such as neighbours and ranks, stays in double.
        mean: The mean of every column.
        exponent: 0 but for values of an extreme scale, which measures divide by 2 to its power.
        variation: Roughly the sum of squares about the mean; 0 where that cannot be told apart from rounding, so that
            rows may all be the same.
        files: The files that the view was read from.

    Raises:
        InputError: The values are no matrix of finite numbers with at least two rows.

    Example:
        >>> Activations([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0]], name="tiny")
        Activations('tiny', n=3, d=2)
    """

    values: Any
    name: str = ""
    probe: str | None = None
    outputs: Outputs | None = None
    reduce: Reduction | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    subject: NetworkOnData | None = field(default=None, repr=False)
    clusters: Any = field(default=None, repr=False)
    precision: Precision | None = None
    mean: Tensor = field(init=False, repr=False)
    exponent: int = field(init=False, repr=False)
    variation: float = field(init=False, repr=False)
    files: tuple[Path, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        label = self.label
        values = as_tensor(self.values, label)
        dtype = str(getattr(self.values, "dtype", "")).removeprefix("torch.")
        if dtype in HALF:
            object.__setattr__(self, "about", {**self.about, "dtype": dtype})
        self._check_precision(label)
        if self.reduce is not None and values.ndim > 2:
            inputs, values = len(values), reduced(values, self.reduce, label)
            if self.clusters is None and len(values) > inputs:
                object.__setattr__(self, "clusters", np.repeat(np.arange(inputs), len(values) // inputs))
        if values.ndim != 2:
            raise InputError(wrong_rank(values, label))
        if not values.numel():
            raise InputError(f"{label} is empty: its shape is {_shape(values)}. Pass at least two rows and one column.")
        if values.shape[0] < 2:
            raise InputError(f"{label} has one row. A comparison needs at least two inputs.")
        object.__setattr__(self, "values", values)
        for name, value in zip(("mean", "exponent", "variation"), _first_look(values, label), strict=True):
            object.__setattr__(self, name, value)
        if self.clusters is not None:
            labels = check_labels(self.clusters, len(values), what=f"clusters of {label}")
            object.__setattr__(self, "clusters", labels.cpu().numpy())
        if self.outputs is not None and self.outputs.logits.shape[0] != values.shape[0]:
            raise InputError(
                f"{label} has {values.shape[0]} rows and its outputs have "
                f"{self.outputs.logits.shape[0]}. Take both from one pass over the probe."
            )
        if self.outputs is not None and self.outputs.logits.device != values.device:
            object.__setattr__(self, "outputs", Outputs(self.outputs.logits.to(values.device), self.outputs.labels))

    def _check_precision(self, label: str) -> None:
        """Keep the precision in `about` too, where files and other processes find it."""
        precision = self.precision or self.about.get(ARITHMETIC, "double")
        if precision not in get_args(Precision):
            raise InputError(f"the precision of {label} must be 'double' or 'single', got {brief(precision)}.")
        object.__setattr__(self, "precision", precision)
        if precision != self.about.get(ARITHMETIC, "double"):
            object.__setattr__(self, "about", {**self.about, ARITHMETIC: precision})

    @property
    def label(self) -> str:
        """The name in quotes for messages."""
        return repr(self.name) if self.name else "the input"

    @property
    def n(self) -> int:
        """How many inputs."""
        return int(self.values.shape[0])

    @property
    def d(self) -> int:
        """How many neurons."""
        return int(self.values.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """`(n, d)`."""
        return self.n, self.d

    def __len__(self) -> int:
        return self.n

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values.cpu().numpy(), dtype=dtype, copy=copy)

    @property
    def classes(self) -> ClassNames | None:
        """What the columns of the outputs are called, where that is recorded."""
        if CLASSES not in self.about:
            return None
        from likewise.wordnet import ClassNames  # arrays do without

        return ClassNames.from_text(self.about[CLASSES])

    @property
    def unlabelled(self) -> str:
        """Why the outputs have no labels, where the data had some that do not fit."""
        return str(self.about.get(UNLABELLED, ""))

    @property
    def eps(self) -> float:
        """The relative precision of the values as the network gave them."""
        return float(torch.finfo(getattr(torch, self.about.get("dtype", ""), self.values.dtype)).eps)

    @cached_property
    def digest(self) -> str:
        """A hash of all a score can depend on: values, logits, labels, classes and clusters, not the name."""
        facts = [str(self.about.get(key, "")) for key in ("dtype", CLASSES)]
        facts += ["single"] if self.precision == "single" else []
        outputs = () if self.outputs is None else (self.outputs.logits, self.outputs.labels)
        clusters = None if self.clusters is None else torch.from_numpy(self.clusters)
        tensors = [tensor for tensor in (self.values, *outputs, clusters) if tensor is not None]
        shapes = (f"{str(tensor.dtype).removeprefix('torch.')}{tuple(tensor.shape)}" for tensor in tensors)
        return digest([*facts, *chain(*zip(shapes, tensors, strict=True))])

    @cached_property
    def digest_with_network(self) -> str:
        """A hash of all a score can depend on where a measure looks at the network itself."""
        return self.digest if self.subject is None else digest([self.digest, fingerprint(self.subject.network)])

    def named(self, name: str) -> Activations:
        """The same view under another name.

        Args:
            name: What tables and messages call it.
        """
        return self if self.name == name else replace(self, name=name, reduce=None).stored_in(self.files)

    def to(self, device: Any) -> Activations:
        """The same view on another device.

        Args:
            device: A device of torch, such as "cpu".
        """
        return replace(self, values=self.values.to(device), reduce=None).stored_in(self.files)

    def stored_in(self, files: tuple[Path, ...]) -> Activations:
        """This view, which records the files it was read from.

        Args:
            files: The file of its values, and the one of its outputs.
        """
        object.__setattr__(self, "files", files)
        return self

    def with_subject(self, subject: NetworkOnData) -> Activations:
        """The same view with its network and the data it was shown.

        Args:
            subject: The network, its data and how it was shown them.
        """
        return replace(self, subject=subject, reduce=None).stored_in(self.files)

    def __repr__(self) -> str:
        return f"Activations({self.name!r}, n={self.n}, d={self.d})"


def _first_look(values: Tensor, label: str) -> tuple[Tensor, int, float]:
    """The mean of every column, the exponent of the scale where that is extreme, else 0, and `Activations.variation`.

    Entries that are not finite are refused.
    """
    variation = 0.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # looked into below
        if values.device.type == "cpu":
            columns, square = _means_and_square(values.numpy())
            of_means = values.shape[0] * float(np.vdot(columns, columns))
            variation = square - of_means if square > 1.1 * of_means else 0.0
            means = torch.from_numpy(columns)
        else:
            norm = float(torch.linalg.vector_norm(values))
            means, square = column_means(values), norm * norm
    if ORDINARY[0] <= square <= ORDINARY[1]:
        return means, 0, variation
    peak = float(values.abs().max())
    if not math.isfinite(peak):
        raise InputError(_not_finite(values, label))
    exponent = math.frexp(peak)[1]
    mean = column_means(scaled(values.to(means.dtype), -exponent))
    return scaled(mean, exponent), exponent, 0.0


def column_means(values: Tensor) -> Tensor:
    """The mean of every column, added up in the same order whatever the scale."""
    if values.device.type != "cpu":
        return values.mean(dim=0, dtype=torch.float64)
    return torch.from_numpy(_means_and_square(values.numpy())[0])


def scaled(values: Tensor, exponent: int) -> Tensor:
    """The values times 2 to a power, in two steps: the power alone may be more than a float holds."""
    half = exponent // 2
    return values * 2.0**half * 2.0 ** (exponent - half)


def _not_finite(values: Tensor, label: str) -> str:
    bad = ~torch.isfinite(values)
    rows, columns = int(bad.any(dim=1).sum()), int(bad.any(dim=0).sum())
    first = tuple(int(i) for i in bad.nonzero()[0])
    return (
        f"{label} has NaN or infinite entries in {rows} of {values.shape[0]} rows and {columns} of "
        f"{values.shape[1]} columns, the first at row {first[0]}, column {first[1]}. "
        "Drop or repair them."
    )


def _means_and_square(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Column means in float64, and roughly the sum of squares.

    By numpy, which reads row after row; torch goes down the columns. Eight rows are added side by side, in blocks
    that a cache holds: one long run of additions would cost digits, and rows mapped from a file may be larger than
    the memory.
    """
    n, d = rows.shape
    if rows.size <= SMALL:
        return np.add.reduce(rows, dtype=np.float64) / n, _square(rows)
    whole = n // 8 * 8
    last = rows[whole:]
    total = np.add.reduce(last, dtype=np.float64)
    square = _square(last)
    step = min(2048, 8 * max(1, BLOCK // (8 * d)))
    for start in range(0, whole, step):
        eights = rows[start : min(start + step, whole)].reshape(-1, 8 * d)
        total += np.add.reduce(np.add.reduce(eights, dtype=np.float64).reshape(8, d))
        square += _square(eights)
    total /= n
    return total, square


def _square(rows: Array) -> float:
    """The sum of squares. Not by BLAS, whose threads take longer to wake than this takes."""
    return float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))


def wrong_rank(values: Tensor, label: str) -> str:
    """The sentence for values that are not (inputs, neurons), with the remedy for their shape."""
    advice = {
        1: "Pass (inputs, neurons): one row per input, even if there is one neuron.",
        3: "Choose a reduction of the tokens: reduce='mean', 'cls', 'last' or 'flatten'.",
        4: "Choose a reduction of the maps: reduce='mean', 'flatten' or 'spatial'.",
    }.get(min(values.ndim, 4), "Pass (inputs, neurons).")
    return f"{label} has shape {_shape(values)}, not (inputs, neurons). {advice}"


def _shape(values: Tensor) -> str:
    return "(" + ", ".join(str(size) for size in values.shape) + ")"


class Views(Mapping[str, Activations]):
    """Views of one network by layer, in the order of the request; a view is opened when it is first looked up.

    Args:
        openers: By layer, what opens its view.
    """

    def __init__(self, openers: Mapping[str, Callable[[], Activations]]) -> None:
        self._openers = dict(openers)
        self._open: dict[str, Activations] = {}

    def __getitem__(self, layer: str) -> Activations:
        if layer not in self._open:
            self._open[layer] = self._openers[layer]()
        return self._open[layer]

    def __reduce__(self) -> Any:
        views = dict(self)  # files may be elsewhere, or nowhere, where they are unpickled
        return Views, ({layer: partial(views.__getitem__, layer) for layer in views},)

    def __iter__(self) -> Iterator[str]:
        return iter(self._openers)

    def __len__(self) -> int:
        return len(self._openers)

    def __repr__(self) -> str:
        return f"Views({list(self._openers)})"


def output_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """What is recorded of the outputs, without what is empty."""
    return {key: facts[key] for key in (CLASSES, UNLABELLED) if facts.get(key)}


def stored_dtype(rows: Tensor) -> torch.dtype:
    """What rows are stored in: half precision holds too few digits for sums over many inputs."""
    return torch.float64 if rows.dtype == torch.float64 else torch.float32


def check_width(label: str, width: int, rows: Tensor) -> None:
    """Refuse rows of another width than those before."""
    if rows.shape[1] != width:
        raise InputError(
            f"{label} has {width} columns in the first batch and {rows.shape[1]} in a later one. "
            "Give inputs of one size, or choose reduce='mean', 'cls' or 'last'."
        )


def on_one_device(views: Sequence[Activations]) -> list[Activations]:
    """The views as they are where all are on one device, else on the CPU; all in single precision if some are."""
    together = len({view.values.device for view in views}) == 1
    views = [view if together else view.to("cpu") for view in views]
    if len({view.precision for view in views}) == 1:
        return views
    return [replace(view, precision="single", reduce=None) for view in views]


def accuracies(views: Mapping[str, Activations]) -> dict[str, float]:
    """The accuracy of every network whose answers are kept with labels, by name."""
    shares = {name: view.outputs.accuracy for name, view in views.items() if view.outputs is not None}
    return {name: share for name, share in shares.items() if share is not None}


def check_same_probe(a: Activations, b: Activations) -> None:
    """Same inputs in the same order, or no comparison."""
    problem = ""
    if a.n != b.n:
        problem = f"they have {a.n} and {b.n} rows. Show both networks the same inputs."
    elif a.probe != b.probe and None not in (a.probe, b.probe):
        inputs = f"({a.n} of {a.probe!r}, {b.n} of {b.probe!r})"
        remedy = "Extract both on one probe; data that is shuffled or augmented anew is another each time."
        problem = f"they were shown different inputs {inputs}. {remedy}"
    elif a.values.device != b.values.device:
        problem = f"one is on {a.values.device}, the other on {b.values.device}. Move both to one device."
    if problem:
        raise InputError(f"cannot compare {a.label} with {b.label}: {problem}")
