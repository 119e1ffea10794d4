"""What is shuffled and left out of a comparison: single inputs, whole clusters of them, or stretches of one series.

Inputs that belong together (frames of a clip, tokens of a text, positions of an image) are not independent, so they
change places and are left out together. A cluster takes the place of another one of the same size only: for clusters
of unequal size no other exchange leaves the null valid, since shared borders alone make networks alike. A series is
shifted in a circle by any number of steps: leaving small shifts out of the null would make a score that is large with
all its neighbours look rarer than it is (docs/significance.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from likewise._base.arrays import plain_tensor
from likewise.errors import InputError, brief
from likewise.measures.function import Measure
from likewise.views import Activations

ORDERS = 20  # fewest that can give p <= .05
STRETCHES = 20  # independent steps that a series must have: of 5, shifts call 11 % of unrelated networks alike
COLUMNS = 256  # neurons whose series are transformed together


@dataclass(frozen=True)
class Units:
    """The unit of every input, `(n,)`, numbered as they first come; shuffles keep to groups of inputs, `within`.

    Of a series, units are in the order of time and `memory` is how many of them it takes to forget.
    """

    of_input: np.ndarray
    within: np.ndarray | None = None
    clustered: bool = False
    memory: float = 0.0  # above 0 for a series

    @staticmethod
    def single(n: int) -> Units:
        """Every input a unit of its own."""
        return Units(np.arange(n))

    @property
    def n(self) -> int:
        """How many inputs there are."""
        return len(self.of_input)

    @cached_property
    def count(self) -> int:
        """How many units there are."""
        return int(self.of_input.max()) + 1

    @property
    def groups(self) -> int:
        """How many groups shuffles keep to, 0 for none."""
        return 0 if self.within is None else int(self.within.max()) + 1

    @property
    def words(self) -> str:
        """What is shuffled and left out, for messages."""
        what = f"{self.count} clusters of inputs" if self.clustered else "inputs"
        return f"{what} in order of time" if self.memory else what

    @cached_property
    def members(self) -> list[np.ndarray]:
        order = np.argsort(self.of_input, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.of_input))[:-1])

    def rows(self, units: Sequence[int] | np.ndarray) -> np.ndarray:
        """The inputs of some units, unit after unit."""
        return np.concatenate([self.members[unit] for unit in units]) if self.clustered else np.asarray(units)

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of every unit: those of one kind have as many inputs, in the same groups one after another."""
        within = np.zeros(self.n, dtype=np.int64) if self.within is None else self.within
        if not self.clustered:
            return within
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(within[rows].tobytes(), len(numbers)) for rows in self.members])

    def orders(self, count: int, seed: int) -> Iterator[np.ndarray]:
        """Random orders of the inputs, one after the other; of a series at most as many as it has shifts."""
        rng = np.random.default_rng(seed)
        if self.memory:
            for shift in 1 + rng.permutation(self.count - 1)[:count]:
                yield self._moved(np.roll(np.arange(self.count), shift))
            return
        slots = np.argsort(self.kinds, kind="stable")
        for _ in range(count):
            order = rng.permutation(self.count)
            moved = order[np.argsort(self.kinds[order], kind="stable")]
            order = np.empty_like(moved)
            order[slots] = moved
            yield self._moved(order)

    def _moved(self, units: np.ndarray) -> np.ndarray:
        """The order of inputs that puts units in another order."""
        order = np.empty_like(units, shape=self.n)
        order[self.rows(np.arange(self.count))] = self.rows(units)
        return order

    def check_orders(self) -> None:
        """Refuse units that too few others can take the place of."""
        _, counts = np.unique(self.kinds, return_counts=True)
        if self.memory:
            if len(counts) > 1:
                raise InputError(
                    "series=True shifts whole clusters, and these are of unequal size. Give clusters of one size."
                )
            self.check_length("a null", STRETCHES)
            return
        movable, same = int(counts[counts > 1].sum()), "size" if self.within is None else "size and labels"
        few = 2 * movable < self.count or sum(math.lgamma(k + 1) for k in counts) < math.log(ORDERS)
        if self.clustered and few:
            raise InputError(
                f"{movable} of the {self.count} clusters have another of the same {same} to change places with, "
                "which is too few for a null. Keep equally many inputs of every cluster, or show more clusters."
            )

    def check_length(self, what: str, needed: int) -> None:
        """Refuse a series that is short for how long it takes to forget."""
        if self.count < needed * self.memory:
            raise InputError(
                f"the {self.count} steps of the series make about {self.count / self.memory:.2g} independent ones, "
                f"since it takes {self.memory:.2g} to forget, and {what} needs {needed}. Show more of the series."
            )


def units_of(
    views: Sequence[Activations],
    measure: Measure | None = None,
    *,
    within: Any = None,
    clusters: Any = None,
    series: bool = False,
) -> Units:
    """The units of views: `clusters` as labels, by default what the views remember, else single inputs.

    Shuffles of a `measure` that counts by true label keep to labels.
    """
    if not isinstance(series, bool):
        raise InputError(f"series must be True or False, got {brief(series)}.")
    if series and within is not None:
        raise InputError("series=True shifts inputs in time, and within would keep them in place. Leave one out.")
    labels = _own_clusters(views) if clusters is None else _numbers("clusters", clusters, views[0].n)
    if labels is not None and int(labels.max()) == 0:
        raise InputError("clusters puts all inputs into one cluster, so none can change places. Give several.")
    clustered = labels is not None and int(labels.max()) + 1 < len(labels)
    of_input = labels if labels is not None and clustered else np.arange(views[0].n)
    units = Units(of_input, None if series else _groups(views, measure, within), clustered)
    return replace(units, memory=max(_memory(units, view) for view in views)) if series else units


def _groups(views: Sequence[Activations], measure: Measure | None, within: Any) -> np.ndarray | None:
    """The groups that shuffles of a measure keep to: those of `within`, and true labels where it counts by them.

    Two networks that are wrong on the same input can agree on any class but one; on two inputs of different
    classes there are two that they cannot agree on. Shuffled across labels, mistakes would be less alike.
    """
    groups = None if within is None else _within(within, views)
    if measure is None or not measure.info.by_label:
        return groups
    labels = measure.options.get("labels")
    if labels is None and not any(v.outputs and v.outputs.labels is not None for v in views):
        return groups  # there is no score either, and it says why
    labels = _view_labels(views) if labels is None else _as_array("within", labels)
    both = labels[:, None] if groups is None else np.stack([labels, groups], axis=1)
    return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)


def _within(within: Any, views: Sequence[Activations]) -> np.ndarray:
    """The group of every input as a number, from an array of labels or, if "labels", the views' own."""
    own = isinstance(within, str) and within == "labels"
    groups = _numbers("within", _view_labels(views) if own else within, views[0].n)
    if int(groups.max()) + 1 == len(groups):
        raise InputError(
            f"within gives each of the {len(groups)} inputs a label of its own, so none can change places. "
            "Pass labels that several inputs share."
        )
    return groups


def _numbers(name: str, labels: Any, n: int) -> np.ndarray:
    """Labels of any kind as numbers, counted as they first come."""
    if isinstance(labels, str):
        own = ", or 'labels' for the views' own" * (name == "within")
        raise InputError(f"{name}={labels!r} is no list of labels. Pass one label per input{own}.")
    try:
        array = _as_array(name, labels)
        numbers = _by_first_seen(array)
    except InputError:
        raise
    except (TypeError, ValueError) as error:  # rows of different lengths, or what has no order
        raise InputError(f"{name} cannot be read as labels. Pass one number or word per input.") from error
    if array.shape != (n,):
        raise InputError(f"{name} has the shape {array.shape} for {n} inputs. Pass one label per input.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(f"{name} has {np.isnan(array).sum()} labels that are NaN. Pass one number or word per input.")
    return numbers


def _as_array(name: str, labels: Any) -> np.ndarray:
    return plain_tensor(labels, name).cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)


def _by_first_seen(labels: np.ndarray) -> np.ndarray:
    """Labels counted as they first come: networks may count the same classes in another order."""
    _, first, groups = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[groups.reshape(-1)]


def _own_clusters(views: Sequence[Activations]) -> np.ndarray | None:
    """The clusters that views remember, which must agree."""
    carriers = [view for view in views if view.clusters is not None]
    if not carriers:
        return None
    first, *others = (_by_first_seen(view.clusters) for view in carriers)
    for view, numbers in zip(carriers[1:], others, strict=True):
        if not np.array_equal(first, numbers):
            raise InputError(
                f"rows of {carriers[0].label} and {view.label} belong to inputs in different ways. Extract both with "
                "one reduction from maps of one size, or pass clusters=<one label per row>."
            )
    return first


def _view_labels(views: Sequence[Activations]) -> np.ndarray:
    carriers = [v for v in views if v.outputs is not None and v.outputs.labels is not None]
    if not carriers:
        reason = next((f": {v.unlabelled}" for v in views if v.unlabelled), ".")
        raise InputError(
            f"within='labels' needs the true labels of the inputs, and no view has them{reason} Pass "
            "within=<one label per input>, or views with Outputs(logits, labels)."
        )
    first, *others = (_as_array("within", view.outputs.labels) for view in carriers if view.outputs)
    for view, labels in zip(carriers[1:], others, strict=True):
        named = carriers[0].classes is not None and view.classes is not None
        count = _by_first_seen if named else np.asarray
        if not np.array_equal(count(first), count(labels)):
            raise InputError(
                f"{carriers[0].label} and {view.label} have different labels for the same inputs. Pass "
                "within=<one label per input>."
            )
    return first


def _memory(units: Units, view: Activations) -> float:
    """How many steps of a series count as one: 1 + 2 sum of its autocorrelations before the first below 0."""
    steps = view.values.cpu().double().numpy()
    if units.clustered:
        least = min(map(len, units.members))
        steps = steps[np.concatenate([rows[:least] for rows in units.members])].reshape(units.count, -1)
    products = np.zeros(units.count)
    for some in np.array_split(steps, -(-steps.shape[1] // COLUMNS), axis=1):
        spectrum = np.abs(np.fft.rfft(some - some.mean(axis=0), 2 * units.count, axis=0))
        products += np.fft.irfft((spectrum**2).sum(axis=1))[: units.count]
    if not products[0] > 0:
        return 1.0
    below = products < 0
    end = int(np.argmax(below)) if below.any() else units.count
    return float(1 + 2 * products[1:end].sum() / products[0])
