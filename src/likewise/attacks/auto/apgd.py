"""APGD: gradient steps that choose their own size, along two losses.

APGD starts with steps of 2 `eps`, halves them for an image whose loss has stopped rising, and continues from that
image's best point. Its result for each image is the last point that fooled the network, else the best one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.attacks.auto.targets import CROCE, check_budget, likeliest_in_turn
from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import EPS, Ball, Loss, Norm, Target, cross_entropy, per_image, target
from likewise.errors import InputError

MOMENTUM, RISING = 0.75, 0.75  # weight of a new step beside the last one; share of steps that have to raise the loss


@attack(name="apgd-ce", norm="Linf", source=CROCE, aliases=("APGD",))
def apgd_ce(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    iterations: int = 100,
    norm: Norm = "Linf",
    seed: int = 0,
    exact: bool = False,
) -> Adversarial:
    """Projected gradient descent whose steps shrink by themselves, along the cross-entropy."""
    check_budget(iterations=iterations)
    with target(net, images, labels, exact=exact) as aim:
        start = Ball(eps, norm).random(aim.clean, torch.Generator().manual_seed(seed))
        return Adversarial(apgd(aim, Ball(eps, norm), iterations, cross_entropy, start), aim.labels, aim.stalled)


@attack(name="apgd-t", norm="Linf", source=CROCE)
def apgd_t(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    iterations: int = 100,
    targets: int = 9,
    norm: Norm = "Linf",
    seed: int = 0,
    exact: bool = False,
) -> Adversarial:
    """APGD towards each of the likeliest wrong classes in turn, along the difference of logits ratio.

    Images that are fooled by one target are not led to the next. Needs four classes or more.
    """
    check_budget(iterations=iterations, targets=targets)
    draw, ball = torch.Generator().manual_seed(seed), Ball(eps, norm)

    def climb(rest: Target, classes: Tensor) -> Tensor:
        return apgd(rest, ball, iterations, towards(classes), ball.random(rest.clean, draw))

    with target(net, images, labels, exact=exact) as aim:
        check_ratio("apgd-t", aim)
        return likeliest_in_turn(aim, targets, climb)


def check_ratio(name: str, aim: Target) -> None:
    """Refuse networks of fewer than four classes, for which the difference of logits ratio is not defined."""
    with torch.no_grad():
        classes = aim.answer(aim.clean[:1]).shape[1]
    if classes < 4:
        raise InputError(f"{name} needs four classes, and the network has {classes}. Choose apgd-ce.")


def towards(classes: Tensor) -> Loss:
    """The difference of logits ratio to a class: -(z_y - z_t) / (z_1 - (z_3 + z_4) / 2), z_1 the largest logit."""

    def loss(answers: Tensor, labels: Tensor) -> Tensor:
        ranked = answers.sort(dim=1, descending=True).values
        lead = answers.gather(1, labels[:, None]) - answers.gather(1, classes[:, None])
        scale = ranked[:, 0] - (ranked[:, 2] + ranked[:, 3]) / 2
        return -lead[:, 0] / (scale + 1e-12)

    return loss


def checkpoints(iterations: int) -> list[int]:
    """The steps at which APGD looks back: 22 % on, then ever sooner, at least 6 % apart.

    >>> checkpoints(100)
    [22, 41, 57, 70, 80, 87, 93, 99]
    """
    gap, least, shrink = (max(int(iterations * share), 1) for share in (0.22, 0.06, 0.03))
    steps = []
    step = gap
    while step < iterations:
        steps.append(step)
        gap = max(gap - shrink, least)
        step += gap
    return steps


@dataclass
class Climb:
    """Where APGD stands: the best point of each image, its loss and slope, and the points that fooled the network."""

    images: Tensor
    loss: Tensor
    slope: Tensor
    fooling: Tensor
    fooled: Tensor

    def take(self, moved: Tensor, loss: Tensor, slope: Tensor, fooled: Tensor) -> None:
        """Keep what is better, and what fools."""
        better = loss > self.loss
        self.images[better], self.loss[better], self.slope[better] = moved[better], loss[better], slope[better]
        self.fooling[fooled] = moved[fooled]
        self.fooled |= fooled

    @property
    def result(self) -> Tensor:
        """The last point that fooled the network, else the best."""
        return torch.where(per_image(self.fooled, self.images), self.fooling, self.images)


def apgd(aim: Target, ball: Ball, iterations: int, loss: Loss, start: Tensor) -> Tensor:
    """The attack on one batch; `loss` is to rise."""
    moved = before = start
    slope, losses, answers = aim.slope_and_loss(moved, loss)
    fooled = answers.argmax(dim=1) != aim.labels
    climb = Climb(moved.clone(), losses.clone(), slope.clone(), moved.clone(), fooled)
    size = torch.full_like(losses, 2 * ball.eps)
    rises, halved, last_best, last = torch.zeros_like(losses), torch.ones_like(fooled), losses.clone(), 0
    looks = checkpoints(iterations)
    for number in range(1, iterations + 1):
        pull = 1.0 if number == 1 else MOMENTUM
        ahead = ball.project(moved + per_image(size, moved) * ball.steepest(slope), aim.clean)
        after = ball.project(moved + pull * (ahead - moved) + (1 - pull) * (moved - before), aim.clean)
        before, moved, earlier = moved, after, losses
        slope, losses, answers = aim.slope_and_loss(moved, loss)
        climb.take(moved, losses, slope, answers.argmax(dim=1) != aim.labels)
        rises += losses > earlier
        if number in looks:
            halved = (rises <= RISING * (number - last)) | (~halved & (last_best >= climb.loss))
            size = torch.where(halved, size / 2, size)
            back = per_image(halved, moved)
            moved, slope = torch.where(back, climb.images, moved), torch.where(back, climb.slope, slope)
            losses = torch.where(halved, climb.loss, losses)
            last_best, last = climb.loss.clone(), number
            rises.zero_()
    return climb.result
