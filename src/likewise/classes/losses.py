"""Class similarity as part of a loss: alignment with a reference, and WSI, of a classifier's weights, with gradients.

Both say what the indices of the same names say, as tensors of torch: a term that is lowered raises the alignment, or
pushes classes apart. `step` adds a term to the cross-entropy of `likewise.train(step=)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise._base.arrays import as_tensor
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import InputError, UnknownNameError, brief, did_you_mean
from likewise.networks import head as find_head
from likewise.networks.forward import checked_logits
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.training.augment import Augment, select

Term = Callable[[Tensor], Tensor]
ENDS = ("mean", "max", "min")


def alignment(weights: Any, reference: ClassSimilarity | Any, metric: str = "cosine") -> Tensor:
    """One minus the alignment of a classifier's weights with a reference: 0 at full agreement.

    As `likewise.classes.alignment`: off-diagonal entries of both are scaled to [0, 1], then compared. The gradient goes
    through the scaling, to the pair of classes at either end too.

    Args:
        weights: The classifier's weights (classes, width).
        reference: A class similarity over the same classes in the same order, or its values (classes, classes).
        metric: "cosine" or "pearson".

    Raises:
        InputError: The shapes do not fit, the reference is constant or undefined, or all pairs of classes are equally
            similar.
        UnknownNameError: There is no such metric.

    Example:
        >>> target = ClassSimilarity([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
        >>> weights = torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.5]], requires_grad=True)
        >>> loss = alignment(weights, target)
        >>> loss.backward()
        >>> round(float(loss.detach()), 3), weights.grad.shape
        (0.005, torch.Size([3, 2]))
    """
    if metric not in ("cosine", "pearson"):
        raise UnknownNameError(
            f"no metric of a loss named {metric!r}.{did_you_mean(metric, ('cosine', 'pearson'))} There are cosine, "
            "pearson."
        )
    cosines = _cosines(weights)
    values = reference.values if isinstance(reference, ClassSimilarity) else reference
    target = (values if isinstance(values, Tensor) else as_tensor(values, "the reference")).to(cosines)
    if target.shape != (len(weights), len(weights)):
        raise InputError(
            f"{len(weights)} classes need a reference of shape {(len(weights), len(weights))}, got "
            f"{tuple(target.shape)}. Give one over the same classes."
        )
    wanted = _scaled(_off_diagonal(target))
    if not bool(wanted.isfinite().all()):
        raise InputError("the reference is constant or has undefined classes, so nothing can be aligned with it.")
    if bool(cosines.max() == cosines.min()):
        raise InputError(
            "all pairs of classes are equally similar, as of weights of zero or of two classes, so their alignment is "
            "undefined. Start the classifier from random weights, of three classes at least."
        )
    ours = _scaled(cosines)
    if metric == "pearson":
        ours, wanted = ours - ours.mean(), wanted - wanted.mean()
    return 1 - functional.cosine_similarity(ours, wanted, dim=0)


def wsi(weights: Any, end: str = "mean", quantile: float = 0.95) -> Tensor:
    """The weights similarity index of a classifier, with a gradient.

    Args:
        weights: The classifier's weights (classes, width).
        end: "mean", "max" or "min" (see `likewise.classes.wsi`).
        quantile: Which similarities count for "max", and one minus it for "min".

    Raises:
        InputError: There are fewer than two classes, or there is no such end or quantile.

    Example:
        >>> round(float(wsi(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))), 3)
        0.471
    """
    if end not in ENDS:
        raise InputError(f"end is {brief(end)}. Give 'mean', 'max' or 'min'.")
    if not (isinstance(quantile, (int, float)) and 0.5 <= quantile <= 1):
        raise InputError(f"quantile is {brief(quantile)}. Give one from 0.5 to 1.")
    cosines = _cosines(weights)
    if end == "mean":
        return cosines.mean()
    rows = cosines.view(len(weights), -1)
    limit = torch.quantile(rows.detach(), quantile if end == "max" else 1 - quantile, dim=1, keepdim=True)
    counted = (rows >= limit - 1e-9) if end == "max" else (rows <= limit + 1e-9)
    return ((rows * counted).sum(dim=1) / counted.sum(dim=1)).mean()


def step(term: Term, strength: float = 1.0, *, head: str | None = None, augment: Sequence[str | Augment] = ()) -> Any:
    """A step for `likewise.train(step=)`: cross-entropy, and so many times a term of the classifier's weights.

    Args:
        term: A function of the weights (classes, width), such as `lambda weights: alignment(weights, reference)`.
        strength: What the term is multiplied by; a negative one raises it.
        head: The name of the classifier, where it cannot be found.
        augment: Augmentations of images, as the setting of the same name, which a step of your own replaces.

    Raises:
        InputError: The term is no function, or the strength no number.

    Example:
        >>> from likewise import train
        >>> done = train("zoo:mlp", "digits:train[:100]", step=step(wsi, 0.1), epochs=1, lr=0.05, progress=False)
        >>> len(done.history)
        1
    """
    if not callable(term):
        raise InputError(f"the term is {brief(term)}. Give a function of the weights, such as losses.wsi.")
    if not (isinstance(strength, (int, float)) and math.isfinite(strength)):
        raise InputError(f"strength is {brief(strength)}. Give a number.")
    augments = select((augment,) if isinstance(augment, str) else augment)

    @lru_cache(maxsize=1)
    def layer_of(net: nn.Module, classes: int) -> Any:
        return unwrapped(net).get_submodule(find_head(net, layer=head, classes=classes).layer_name)

    def classifier_weights(net: nn.Module, classes: int) -> Tensor:
        weight: Tensor = layer_of(net, classes).weight  # not the head's own, which has no gradient
        return weight.flatten(1)

    def with_term(net: nn.Module, batch: tuple[Any, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        inputs, labels = batch
        generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        for change in augments:
            inputs = change(inputs, generator)
        logits = checked_logits(net, inputs)
        value = term(classifier_weights(net, logits.shape[1]))
        if getattr(value, "shape", None) != ():
            raise InputError(f"the term gave {brief(value)}. Let it give one number, as a tensor without dimensions.")
        return functional.cross_entropy(logits, labels) + strength * value, logits, labels

    return with_term


def _cosines(weights: Any) -> Tensor:
    """Cosines of all pairs of rows but the diagonal, `(classes * (classes - 1),)`."""
    rows = weights if isinstance(weights, Tensor) else as_tensor(weights, "the matrix of weights")
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(
            f"weights are one row per class, for two classes at least, got {tuple(rows.shape)}. Give (classes, width)."
        )
    if not rows.is_floating_point():
        raise InputError(f"weights are of {rows.dtype}, which has no gradient. Give floating-point numbers.")
    unit = functional.normalize(rows, dim=1)
    return _off_diagonal(unit @ unit.T)


def _off_diagonal(values: Tensor) -> Tensor:
    return values[~torch.eye(len(values), dtype=torch.bool, device=values.device)]


def _scaled(values: Tensor) -> Tensor:
    return (values - values.min()) / (values.max() - values.min())
