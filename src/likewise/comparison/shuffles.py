"""Orders in which the inputs of one network are shuffled to see what chance gives.

Networks that share nothing but the classes of the inputs are alike beyond chance, and rightly so. Whether they
share more is asked by shuffling each input among those of its own class only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from likewise.errors import InputError
from likewise.measures.facts import Measure
from likewise.views import Activations


@dataclass(frozen=True)
class Orders:
    """`count` random orders of inputs; with `groups` (n,), only inputs of one group change places."""

    count: int
    seed: int
    groups: np.ndarray | None = None

    def draw(self, n: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        places = None if self.groups is None else np.argsort(self.groups, kind="stable")
        for _ in range(self.count):
            order = rng.permutation(n)
            if self.groups is not None and places is not None:
                moved = order[np.argsort(self.groups[order], kind="stable")]
                order = np.empty_like(moved)
                order[places] = moved
            yield order


def groups_of(within: Any, views: Sequence[Activations]) -> np.ndarray | None:
    """The group of every input as a number, from an array of labels or, if "labels", the views' own."""
    if within is None:
        return None
    labels = _own_labels(views) if isinstance(within, str) else _as_array(within)
    n = views[0].n
    if labels.shape != (n,):
        raise InputError(f"within has the shape {labels.shape} for {n} inputs. Pass one label per input.")
    names, groups = np.unique(labels, return_inverse=True)
    if names.size == n:
        raise InputError(
            f"within gives each of the {n} inputs a label of its own, so none can change places. "
            "Pass labels that several inputs share."
        )
    return groups.reshape(-1)


def null_groups(measure: Measure, within: Any, views: Sequence[Activations]) -> np.ndarray | None:
    """The groups that shuffles of a measure keep to: those asked for, and true labels where it counts by them.

    Two networks that are wrong on the same input can agree on any class but one; on two inputs of different
    classes there are two that they cannot agree on. Shuffled across labels, mistakes would be less alike.
    """
    groups = groups_of(within, views)
    if not measure.info.by_label:
        return groups
    labels = measure.options.get("labels")
    if labels is None and not any(v.outputs and v.outputs.labels is not None for v in views):
        return groups  # there is no score either, and it says why
    own = _own_labels(views) if labels is None else _as_array(labels)
    both = own[:, None] if groups is None else np.stack([own, groups], axis=1)
    return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)


def _as_array(labels: Any) -> np.ndarray:
    return labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)


def _grouping(labels: np.ndarray) -> np.ndarray:
    """Labels counted as they first come: networks may count the same classes in another order."""
    _, first, groups = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[groups]


def _own_labels(views: Sequence[Activations]) -> np.ndarray:
    known = [v for v in views if v.outputs is not None and v.outputs.labels is not None]
    if not known:
        reason = next((f": {v.unlabelled}" for v in views if v.unlabelled), ".")
        raise InputError(
            f"within='labels' needs the true labels of the inputs, and no view has them{reason} Pass "
            "within=<one label per input>, or views with Outputs(logits, labels)."
        )
    first, *others = (_as_array(view.outputs.labels) for view in known if view.outputs)
    for view, labels in zip(known[1:], others, strict=True):
        named = known[0].classes is not None and view.classes is not None
        count = _grouping if named else np.asarray
        if not np.array_equal(count(first), count(labels)):
            raise InputError(
                f"{known[0].label} and {view.label} have different labels for the same inputs. Pass "
                "within=<one label per input>."
            )
    return first
