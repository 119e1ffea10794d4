"""DBI and the Amalgam Metric as losses: the formulas of `metrics` on one batch, with gradients.

During an ordinary training no class is unseen. What stands for the soft labels of an unseen class is then what the
paper compares them with: those of the network of all classes with the class taken out (`others`). Both losses also take
the answers of a network to samples of classes it really never saw, as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from likewise.errors import InputError, brief


def others(logits: Tensor, labels: Tensor) -> Tensor:
    """Soft labels without the class of each sample, the others scaled to sum to one: e' of the paper.

    Args:
        logits: What a network of all classes answers, (samples, n).
        labels: The class of each sample.

    Returns:
        Soft labels (samples, n - 1), in the order of the other classes.

    Raises:
        InputError: There are fewer than three classes, or labels do not fit the logits.

    Example:
        >>> others(torch.tensor([[9.0, 0.0, 0.0], [0.0, 0.0, 5.0]]), torch.tensor([0, 2])).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    _check(logits, labels, "logits")
    n = logits.shape[1]
    if n < 3:
        raise InputError(f"the logits are of {n} classes, and one is taken out. Give three classes or more.")
    if int(labels.min()) < 0 or int(labels.max()) >= n:
        raise InputError(
            f"labels go from {int(labels.min())} to {int(labels.max())}, and the logits are of {n} classes. Give the "
            "number of each sample's class."
        )
    left = torch.arange(n, device=logits.device) != labels[:, None]
    return logits[left].reshape(len(logits), n - 1).softmax(dim=1)


def dbi(soft: Tensor, labels: Tensor) -> Tensor:
    """DBI of a batch: per class √(1/n Σ |e_j - c|²), the mean over classes of two samples or more.

    0 where every sample of a class has the same soft label, at most √(1 - 1/k). Where samples of a class agree exactly,
    its gradient is 0.

    Args:
        soft: Soft labels (samples, k), such as `others` gives.
        labels: The class of each sample.

    Raises:
        InputError: No class has two samples, or labels do not fit the soft labels.

    Example:
        >>> round(float(dbi(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([4, 4]))), 4)  # √½
        0.7071
    """
    _check(soft, labels, "soft labels")
    spreads = []
    for rows in _classes(labels):
        if len(rows) > 1:
            cloud = soft[rows]
            square = (cloud - cloud.mean(dim=0)).square().sum(dim=1).mean()
            equal = square <= torch.finfo(soft.dtype).eps ** 2  # the root has no gradient at 0
            spreads.append(torch.where(equal, torch.ones_like(square), square).sqrt() * ~equal)
    if not spreads:
        raise InputError("no class has two samples in this batch, so nothing lies apart. Give larger batches.")
    return torch.stack(spreads).mean()


def amalgam(full: Tensor, held_out: Tensor, labels: Tensor) -> Tensor:
    """The Amalgam Metric of a batch in [0, 1]: per class |mean e' - mean e|₁ / 2, the mean over classes.

    Means stand for the paper's sums, so that the size of a batch does not matter; times 2 samples / (n - 1) it is AM as
    published. Either side may have gradients: detach the one that is to stay.

    Args:
        full: e', (samples, n - 1), such as `others` gives of the network of all classes.
        held_out: e of the same samples by the networks that never saw their class, (samples, n - 1).
        labels: The class of each sample.

    Raises:
        InputError: The two differ in shape, or labels do not fit them.

    Example:
        >>> float(amalgam(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0])))
        0.5
    """
    _check(full, labels, "soft labels")
    if held_out.shape != full.shape:
        raise InputError(
            f"soft labels are {tuple(full.shape)} by one network and {tuple(held_out.shape)} by the other. Give those "
            "of the same samples, over the same classes."
        )
    gaps = [(full[rows].mean(dim=0) - held_out[rows].mean(dim=0)).abs().sum() / 2 for rows in _classes(labels)]
    return torch.stack(gaps).mean()


def _classes(labels: Tensor) -> Iterator[Tensor]:
    """The rows of each class in a batch."""
    for name in torch.unique(labels):
        yield (labels == name).nonzero()[:, 0]


def _check(values: Tensor, labels: Tensor, what: str) -> None:
    if not isinstance(values, Tensor) or values.ndim != 2 or not len(values) or not values.is_floating_point():
        raise InputError(f"the {what} are {brief(values)}. Give a tensor of numbers, (samples, classes).")
    whole = isinstance(labels, Tensor) and not labels.is_floating_point()
    if not whole or labels.shape != values.shape[:1]:
        raise InputError(f"the labels are {brief(labels)}. Give one class number per sample, {len(values)} of them.")
