"""What is added up over an epoch: who was taken for whom, and the mean feature of each class.

Sums stay on the device they came from and are moved once per epoch, so that watching costs a training
next to nothing. With several processes they are added over all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from likewise._base.arrays import check_labels, plain_tensor
from likewise._base.warnings import warn
from likewise.errors import InputError


class Counts:
    """The running sums of one split; numpy and torch batches may be mixed."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.confusion: Any = 0
        self.sums: Tensor | None = None
        self.samples: Any = 0
        self.left_out = 0

    def add(self, logits: Any, labels: Any, features: Any = None) -> None:
        """One batch: logits `(n, c)` or predictions `(n,)`, true labels `(n,)`, features `(n, d)`."""
        answers, truth = plain_tensor(logits, "the matrix of logits"), plain_tensor(labels, "the list of labels")
        values = None if features is None else plain_tensor(features, "the matrix of features")
        self._check(answers, truth)
        if values is not None:
            self._check_features(values, len(truth))
        truth = truth.to(answers.device)
        mask = None
        if answers.ndim == 2:
            mask = self._defined(answers)
            answers = answers.argmax(dim=1)
        if mask is not None:
            answers, truth = answers[mask], truth[mask]
        c = self.classes
        cells = truth.long() * c + answers.long()
        self.confusion = self.confusion + torch.bincount(cells, minlength=c * c)
        if values is not None:
            values = values.to(truth.device)
            self._add_features(values if mask is None else values[mask], truth)

    def _add_features(self, values: Tensor, truth: Tensor) -> None:
        precise = torch.float32 if values.device.type == "mps" else torch.float64
        if self.sums is None:
            shape = (self.classes, values.shape[1])
            self.sums = torch.zeros(shape, dtype=precise, device=values.device)
        self.sums.index_add_(0, truth.long(), values.to(precise))
        self.samples = self.samples + torch.bincount(truth.long(), minlength=self.classes)

    def _check(self, answers: Tensor, truth: Tensor) -> None:
        c = self.classes
        fits = truth.ndim == 1 and len(answers) == len(truth)
        if not fits or (answers.ndim, *answers.shape[1:]) not in ((1,), (2, c)):
            raise InputError(
                f"a batch is logits (n, {c}) or predictions (n,) with labels (n,), got "
                f"{tuple(answers.shape)} and {tuple(truth.shape)}."
            )
        check_labels(truth, len(truth), c)
        if answers.ndim == 1:
            check_labels(answers, len(truth), c, what="predictions")

    def _check_features(self, values: Tensor, count: int) -> None:
        if values.ndim != 2 or len(values) != count:
            raise InputError(
                f"features must be (inputs, width) with one row per label, got {tuple(values.shape)} for "
                f"{count} labels."
            )
        if self.sums is not None and values.shape[1] != self.sums.shape[1]:
            raise InputError(
                f"features are {values.shape[1]} wide, and those of the batches before {self.sums.shape[1]}. "
                "Give those of one layer."
            )

    def _defined(self, logits: Tensor) -> Tensor | None:
        """Which rows can be judged; None for all of them, the usual case."""
        if bool(torch.isfinite(logits.sum())):
            return None
        rows = ~torch.isnan(logits).any(dim=1)
        bad = int((~rows).sum())
        if not bad:  # infinite logits have a largest one all the same
            return None
        self.left_out += bad
        warn(f"{bad} of {len(rows)} outputs of a batch are NaN: they are left out of this epoch.")
        return rows

    def table(self) -> np.ndarray:
        """The confusion matrix `(c, c)`, over all processes."""
        c = self.classes
        return _everywhere(self.confusion, (c * c,)).reshape(c, c)

    def means(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Feature sums `(c, d)` and samples `(c,)`, over all processes; None where none were given."""
        width = _widest(0 if self.sums is None else self.sums.shape[1])
        if not width:
            return None
        sums = 0 if self.sums is None else self.sums
        samples = _everywhere(self.samples, (self.classes,))
        return _everywhere(sums, (self.classes, width), floating=True), samples


def _together() -> bool:
    """Whether several processes train together."""
    return distributed.is_available() and distributed.is_initialized()


def _placed(values: Tensor) -> Tensor:
    """A copy where the processes can exchange it."""
    gpu = distributed.get_backend() == "nccl"
    return values.cuda() if gpu and not values.is_cuda else values.clone()


def _widest(width: int) -> int:
    """The width of the features, also for a process that saw none."""
    if not _together():
        return width
    widest = _placed(torch.tensor(width))
    distributed.all_reduce(widest, op=distributed.ReduceOp.MAX)
    return int(widest)


def everywhere(numbers: list[int]) -> list[int]:
    """Numbers added over all processes that train together."""
    return [int(n) for n in _everywhere(torch.tensor(numbers), (len(numbers),))]


def _everywhere(values: Any, shape: tuple[int, ...], floating: bool = False) -> np.ndarray:
    """Sums of this process, or of all where several train together."""
    kind = torch.float64 if floating else torch.int64
    total = torch.zeros(shape, dtype=kind) if isinstance(values, int) else values
    if _together():
        total = _placed(total)
        distributed.all_reduce(total)
    return total.cpu().numpy()
