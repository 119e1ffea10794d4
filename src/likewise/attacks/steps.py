"""What gradient attacks share: the ball around an image, the slope of the loss, and the checks of arguments.

All work on floats in [0, 1]; a network that normalises does so inside. The loss is the cross-entropy. Where that
has no gradient at all, as in a network so sure that its probabilities are exactly 0 and 1, the margin between the
label and the next best class is followed instead, and the step is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise._base.arrays import check_labels
from likewise.attacks.inference import fast
from likewise.errors import InputError, brief
from likewise.networks.anatomy.outputs import OutputKind, output_kind
from likewise.networks.forward import eval_mode
from likewise.networks.forward import logits as answer
from likewise.networks.inputs.normalisation import unwrapped

EPS = 8 / 255  # of every attack within a bound, so that attacks are compared at the same
Norm = Literal["Linf", "L2"]
Loss = Callable[[Tensor, Tensor], Tensor]  # logits and labels to one number per image


@dataclass(frozen=True)
class Ball:
    """All images within `eps` of others, in the largest or the Euclidean norm, with values in [0, 1]."""

    eps: float
    norm: Norm = "Linf"

    def __post_init__(self) -> None:
        if self.norm not in ("Linf", "L2"):
            raise InputError(f"no norm named {self.norm!r}. Choose 'Linf' or 'L2'.")
        if not isinstance(self.eps, Real) or not 0 < self.eps < float("inf"):
            raise InputError(
                f"eps is {brief(self.eps)}, and nothing changes within that. Give a number above 0, like 8/255."
            )
        if self.norm == "Linf" and self.eps > 1:
            raise InputError(f"eps is {self.eps}, and values of images run from 0 to 1. Give it in these, like 8/255.")

    def project(self, moved: Tensor, clean: Tensor) -> Tensor:
        """The nearest images of the ball; in the Euclidean norm first the ball, then [0, 1]."""
        change = moved - clean
        if self.norm == "Linf":
            change = change.clamp(-self.eps, self.eps)
        else:
            change = change * (self.eps / lengths(change).clamp(min=self.eps))
        return (clean + change).clamp(0, 1)

    def steepest(self, slope: Tensor) -> Tensor:
        """The step of size 1 along which the loss rises most."""
        return slope.sign() if self.norm == "Linf" else slope / lengths(slope).clamp(min=1e-12)

    def random(self, clean: Tensor, draw: torch.Generator) -> Tensor:
        """Images drawn evenly from the ball: each value by itself, or direction and length."""
        noise = torch.rand(clean.shape, generator=draw, dtype=clean.dtype)
        if self.norm == "Linf":
            noise = (2 * noise - 1) * self.eps
        else:
            ways = torch.randn(clean.shape, generator=draw, dtype=clean.dtype)
            share = noise.flatten(1)[:, 0] ** (1 / clean[0].numel())
            noise = self.eps * ways * per_image(share / ways.flatten(1).norm(dim=1), clean)
        return (clean + noise.to(clean.device)).clamp(0, 1)


def lengths(change: Tensor) -> Tensor:
    """The Euclidean length of each image's change, shaped to divide by."""
    return per_image(change.flatten(1).norm(dim=1), change)


def per_image(values: Tensor, images: Tensor) -> Tensor:
    """One number per image, shaped to multiply images by."""
    return values.view(-1, *[1] * (images.ndim - 1))


@dataclass
class Target:
    """A network in evaluation mode with the images and labels of one attack."""

    net: nn.Module  # the network
    clean: Tensor  # its images, unchanged
    labels: Tensor  # their classes
    targeted: bool  # whether the attack leads towards the labels, else away from them
    stalled: Tensor  # per image, the number of steps without a gradient
    answers: OutputKind = "logits"  # what the network answers with

    @classmethod
    def of(cls, net: nn.Module, images: Tensor, labels: Tensor, *, targeted: bool = False) -> Target:
        """A network in evaluation mode with images and labels that were checked, which are copied."""
        none = torch.zeros(len(images), dtype=torch.long, device=images.device)
        return cls(net, images.detach().clone(), labels.to(images.device).clone(), targeted, none, output_kind(net))

    @property
    def name(self) -> str:
        """The class of the network, for sentences."""
        return type(unwrapped(self.net)).__name__

    def answer(self, images: Tensor) -> Tensor:
        """The logits of the network."""
        return answer(self.net, images)

    def only(self, rows: Tensor) -> Target:
        """The same for some of the images."""
        return replace(self, clean=self.clean[rows], labels=self.labels[rows], stalled=torch.zeros_like(rows))

    def slope(self, images: Tensor) -> Tensor:
        """The direction in which the attack succeeds, as steep as the loss."""
        slope, _, _ = self.slope_and_loss(images, cross_entropy)
        return slope

    def slope_and_loss(self, images: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        """The slope of a loss, the loss of each image, and the answers."""
        images = images.detach().requires_grad_(True)
        answers = answer(self.net, images)
        losses = self._sign * loss(answers, self.labels)
        return self.slope_of(losses, images), losses.detach(), answers.detach()

    def slope_of(self, losses: Tensor, images: Tensor, *, keep_graph: bool = False) -> Tensor:
        """The gradient of losses that were computed from images; of the margin where it is zero, which is counted."""
        slope = self._gradient(losses, images, keep_graph)
        largest = slope.abs().flatten(1).amax(dim=1)
        if bool((largest.isfinite() & (largest > 0)).all()):  # the one number that a step asks the device for
            return slope
        if not bool(largest.isfinite().all()):
            raise InputError(
                f"the gradient of {self.name} is not finite for {int((~largest.isfinite()).sum())} of "
                f"{len(slope)} images. Attack another network, or leave those images out."
            )
        flat = largest == 0
        self.stalled += flat
        slope[flat] = self._margin_slope(images.detach()[flat], self.labels[flat])
        return slope

    def _margin_slope(self, images: Tensor, labels: Tensor) -> Tensor:
        images = images.requires_grad_(True)
        return self._gradient(self._sign * margin(answer(self.net, images), labels), images)

    def _gradient(self, values: Tensor, images: Tensor, keep_graph: bool = False) -> Tensor:
        gradient = None
        if values.requires_grad:
            gradient = torch.autograd.grad(values.sum(), images, allow_unused=True, retain_graph=keep_graph)[0]
        if gradient is None:
            raise InputError(
                f"the answers of {self.name} have no gradient, so nothing says how to change the images. "
                "Give a network that computes them from the images in torch, without detach or numpy."
            )
        return gradient

    @property
    def _sign(self) -> int:
        return -1 if self.targeted else 1


@contextmanager
def target(
    net: nn.Module, images: Tensor, labels: Tensor | None, *, targeted: bool = False, exact: bool = False
) -> Iterator[Target]:
    """The network in evaluation mode, as a faster copy unless `exact`; without labels, away from what it answers."""
    check_images(images)
    if targeted and labels is None:
        raise InputError("a targeted attack needs the labels to lead to. Pass labels.")
    with eval_mode(net, input_gradients=True) as resting:
        clean = images.detach().clone()
        attacked, answers = (resting, _answers(resting, clean)) if exact else fast(resting, clean)
        _check_answers(resting, answers, clean)
        truth = answers.argmax(dim=1) if labels is None else check_labels(labels, *answers.shape).to(answers.device)
        yield replace(Target.of(resting, clean, truth, targeted=targeted), net=attacked)


def check_images(images: Tensor) -> None:
    """Refuse what is not images as floats between 0 and 1."""
    if isinstance(images, Tensor) and not images.numel():
        raise InputError("there are no images to attack. Give at least one.")
    if (
        not isinstance(images, Tensor)
        or not images.is_floating_point()
        or not 0 <= float(images.min()) <= float(images.max()) <= 1
    ):
        raise InputError("an attack needs images as floats between 0 and 1. Scale them first.")


def _check_answers(net: nn.Module, answers: Tensor, images: Tensor) -> None:
    if answers.ndim != 2 or len(answers) != len(images) or answers.shape[1] < 2:
        raise InputError(
            f"{type(unwrapped(net)).__name__} answers {len(images)} images with {tuple(answers.shape)}, not with "
            "one row of two logits or more each. Attack a network that classifies."
        )


def _answers(net: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return answer(net, images)


def cross_entropy(answers: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of each image."""
    return functional.cross_entropy(answers, labels, reduction="none")


def margin(answers: Tensor, labels: Tensor) -> Tensor:
    """By how much the best other class leads the label, for each image."""
    of_label = answers.gather(1, labels[:, None])[:, 0]
    others = answers.scatter(1, labels[:, None], float("-inf"))
    return others.max(dim=1).values - of_label
