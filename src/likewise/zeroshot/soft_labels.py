"""Soft labels: what a network answers, as shares of the classes it was trained on, checked where they come in.

With `without`, one class is taken out and the others are scaled to sum to one. Of logits that is a softmax over the
others, exact also where the class that is taken out had all of the probability. A softmax of capsule lengths would be
nearly uniform whatever the network saw: lengths are divided by their sum, or left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from likewise._base.arrays import Array, as_array
from likewise._base.progress import warn
from likewise.errors import InputError
from likewise.networks.anatomy.outputs import OutputKind, check_output_kind

TOLERANCE = 1e-3  # by which probabilities may miss the sum of one


def check(values: Any, answers: str, what: str) -> Array:
    """Answers `(samples, classes)` as float64, or a sentence that says what is wrong with them."""
    kind = check_output_kind(answers)
    rows: Array = np.asarray(as_array(values, what), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"{what} are {rows.shape}, not (samples, classes) of two classes or more. Give one row each.")
    if not len(rows):
        raise InputError(f"{what} are none: there is no sample. Give at least one, or leave the class out.")
    if not np.isfinite(rows).all():
        raise InputError(f"{what} have NaN or infinite entries. Drop or repair them.")
    if kind != "logits" and (rows < 0).any():
        raise InputError(f"{what} have negative entries, which {kind} have not. If they are logits, say so.")
    if kind == "probabilities" and (off := float(np.abs(rows.sum(axis=1) - 1).max())) > TOLERANCE:
        raise InputError(
            f"{what} do not sum to one: one row misses it by {off:.2g}. Say answers='lengths', or 'logits', or scale "
            "them."
        )
    return rows


def soft_labels(
    values: Array, answers: OutputKind, *, without: int | None = None, scaled: bool = True, what: str = "soft labels"
) -> Array:
    """Checked answers as soft labels; if not `scaled`, what is left need not sum to one."""
    if not scaled:
        rows = _softmax(values) if answers == "logits" else values
        return rows if without is None else np.delete(rows, without, axis=1)
    left = values if without is None else np.delete(values, without, axis=1)
    return _SCALED[answers](left, what)


def _softmax(logits: Array, what: str = "") -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _shares(values: Array, what: str) -> Array:
    total = values.sum(axis=1, keepdims=True)
    empty = int((total == 0).sum())
    if empty:
        warn(
            f"{empty} of {len(values)} {what} have nothing left without the class and are taken as uniform. Give "
            "logits, of which nothing is lost."
        )
    uniform = np.full_like(values, 1 / values.shape[1])
    return np.divide(values, total, where=total > 0, out=uniform)


_SCALED: dict[str, Callable[[Array, str], Array]] = {"logits": _softmax, "probabilities": _shares, "lengths": _shares}


def by_class(arrays: Any, classes: Sequence[str] | None, what: str) -> dict[str, Any]:
    """One array per class: of a mapping by its names, of a list or one array by `classes`, else by number."""
    if isinstance(arrays, Mapping):
        named = {str(name): values for name, values in arrays.items()}
        missing = [name for name in classes or () if name not in named]
        if missing:
            raise InputError(f"{what} have no class {missing[0]!r}. Give one array per class.")
        named = named if classes is None else {name: named[name] for name in classes}
    else:
        several = list(arrays) if _are_several(arrays) else [arrays]
        names = [str(i) for i in range(len(several))] if classes is None else list(classes)
        if len(names) != len(several):
            raise InputError(f"{len(names)} classes and {what} of {len(several)} are given. Give one array per class.")
        named = dict(zip(names, several, strict=True))
    if not named:
        raise InputError(f"{what} are of no class. Give one array per class.")
    return named


def _are_several(arrays: Any) -> bool:
    """Whether this is one array per class, not one array."""
    if isinstance(arrays, (list, tuple)):
        return not arrays or np.ndim(arrays[0]) == 2
    return getattr(arrays, "ndim", 2) == 3
