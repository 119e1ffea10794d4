"""Attacks that follow the gradient of the loss.

All are one loop: from a start within `eps`, a slope made by the attack, a step along it, back into the ball. Unless
asked to, none stops an image once it fools the network: examples that barely do say little about other networks.
With `exact` they run on the network itself, else on a copy with its answers that is faster.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import EPS, Ball, Norm, Target, cross_entropy, per_image, target
from likewise.errors import InputError

Slope = Callable[[Target, Tensor], Tensor]


def ascend(
    aim: Target, ball: Ball, step: float, iterations: int, slope: Slope, *, start: Tensor | None = None
) -> Adversarial:
    """Steps of one size along a slope, each back into the ball."""
    _check_steps(step, iterations)
    moved = aim.clean.clone() if start is None else start
    for _ in range(iterations):
        moved = ball.project(moved + step * ball.steepest(slope(aim, moved)), aim.clean)
    return Adversarial(moved.detach(), aim.labels, aim.stalled)


def ascend_until_fooled(aim: Target, ball: Ball, step: float, iterations: int, start: Tensor | None) -> Adversarial:
    """Steps along the slope of the loss for those images that do not fool the network yet."""
    _check_steps(step, iterations)
    moved = aim.clean.clone() if start is None else start
    rows = torch.arange(len(moved), device=moved.device)
    for _ in range(iterations):
        rest = aim.only(rows)
        slope, _, answers = rest.slope_and_loss(moved[rows], cross_entropy)
        aim.stalled[rows] += rest.stalled
        left = (answers.argmax(dim=1) == rest.labels) != aim.targeted
        rows, slope = rows[left], slope[left]
        if not len(rows):
            break
        moved[rows] = ball.project(moved[rows] + step * ball.steepest(slope), aim.clean[rows])
    return Adversarial(moved, aim.labels, aim.stalled)


@attack(name="pgd", norm="Linf", source="Madry et al. 2018, arXiv:1706.06083")
def pgd(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    step: float | None = None,
    relative_step: float | None = None,
    iterations: int = 50,
    norm: Norm = "Linf",
    random_start: bool = True,
    targeted: bool = False,
    early_stop: bool = False,
    seed: int = 0,
    exact: bool = False,
) -> Adversarial:
    """Projected gradient descent: steps along the sign of the gradient, kept near the images.

    From a random point within `eps` of the images, `iterations` steps of `step` (or of `relative_step` times
    `eps`) along the sign of the gradient of the cross-entropy, or along the gradient at length 1 in the norm L2,
    kept within `eps` and within [0, 1]. Without labels, away from what the network answers before; `targeted`
    leads to the labels. `early_stop` leaves each image where it first fools the network, which is faster. The
    defaults are those of SAT's paper: 50 steps of a tenth of `eps`, from a random start.

    Options:
        step: The size of a step; by default `eps / 10`.
        relative_step: The size of a step as a share of `eps`, in place of `step`.
        early_stop: Leave each image where it first fools the network, which is faster.
    """
    if step is not None and relative_step is not None:
        raise InputError("the step is given twice. Leave out step or relative_step.")
    size = (0.1 if relative_step is None else relative_step) * eps if step is None else step
    ball = Ball(eps, norm)
    with target(net, images, labels, targeted=targeted, exact=exact) as aim:
        start = ball.random(aim.clean, torch.Generator().manual_seed(seed)) if random_start else None
        if early_stop:
            return ascend_until_fooled(aim, ball, size, iterations, start)
        return ascend(aim, ball, size, iterations, Target.slope, start=start)


@attack(name="fgsm", norm="Linf", source="Goodfellow et al. 2015, arXiv:1412.6572")
def fgsm(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    targeted: bool = False,
    exact: bool = False,
) -> Adversarial:
    """One step of size `eps` along the sign of the gradient."""
    with target(net, images, labels, targeted=targeted, exact=exact) as aim:
        return ascend(aim, Ball(eps), eps, 1, Target.slope)


@attack(name="mi-fgsm", norm="Linf", source="Dong et al. 2018, arXiv:1710.06081", aliases=("MIM",))
def mi_fgsm(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    step: float | None = None,
    iterations: int = 10,
    decay: float = 1.0,
    targeted: bool = False,
    exact: bool = False,
) -> Adversarial:
    """Steps along the sign of a momentum: the sum of all slopes so far, each divided by its mean size.

    The step is `eps` / `iterations` by default.

    Options:
        step: The size of a step; by default `eps / iterations`.
    """
    with target(net, images, labels, targeted=targeted, exact=exact) as aim:
        return ascend(aim, Ball(eps), _step(step, eps, iterations), iterations, _momentum(Target.slope, decay))


@attack(name="vmi-fgsm", norm="Linf", source="Wang and He 2021, arXiv:2103.15571")
def vmi_fgsm(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    step: float | None = None,
    iterations: int = 10,
    decay: float = 1.0,
    neighbours: int = 20,
    beta: float = 1.5,
    targeted: bool = False,
    seed: int = 0,
    exact: bool = False,
) -> Adversarial:
    """`mi-fgsm` with the slope evened out by those around the image.

    To each slope is added by how much, at the image before, the mean slope of `neighbours` drawn within
    `beta` · `eps` differed from that image's own.

    Options:
        step: The size of a step; by default `eps / iterations`.
        neighbours: How many points around the image slopes are taken at.
        beta: How far around, in units of `eps`.
    """
    if neighbours < 1:
        raise InputError(f"neighbours is {neighbours}. Give at least 1.")
    draw = torch.Generator().manual_seed(seed)
    with target(net, images, labels, targeted=targeted, exact=exact) as aim:
        variance = torch.zeros_like(aim.clean)

        def slope(aim: Target, moved: Tensor) -> Tensor:
            nonlocal variance
            at_image, around = aim.slope(moved), torch.zeros_like(moved)
            evened = at_image + variance
            for _ in range(neighbours):
                noise = torch.rand(moved.shape, generator=draw, dtype=moved.dtype).to(moved.device)
                around += aim.slope(moved + (2 * noise - 1) * beta * eps)
            variance = around / neighbours - at_image
            return evened

        return ascend(aim, Ball(eps), _step(step, eps, iterations), iterations, _momentum(slope, decay))


@attack(name="low-frequency-pgd", norm="Linf", source="Guo et al. 2020, arXiv:1809.08758")
def low_frequency_pgd(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    step: float | None = None,
    iterations: int = 20,
    share: float = 1 / 8,
    random_start: bool = False,
    targeted: bool = False,
    seed: int = 0,
    exact: bool = False,
) -> Adversarial:
    """`pgd` along the low frequencies of the gradient only.

    Before its sign is taken, the gradient keeps the first `share` of the frequencies of a cosine transform
    along either side. The sign itself brings high frequencies back, as in the paper's code.

    Options:
        step: The size of a step; by default `eps / 3`.
        share: The share of frequencies that is kept, per axis.
    """
    if not 0 < share <= 1:
        raise InputError(f"share is {share}. Give the share of frequencies to keep, above 0 and up to 1.")
    ball = Ball(eps)
    with target(net, images, labels, targeted=targeted, exact=exact) as aim:
        if aim.clean.ndim != 4:
            raise InputError(
                f"low-frequency-pgd was shown {tuple(images.shape)}. Give images (n, channels, height, width)."
            )
        low = [_low_pass(length, share, aim.clean) for length in aim.clean.shape[2:]]
        start = ball.random(aim.clean, torch.Generator().manual_seed(seed)) if random_start else None

        def slope(aim: Target, moved: Tensor) -> Tensor:
            return low[0] @ aim.slope(moved) @ low[1]

        return ascend(aim, ball, eps / 3 if step is None else step, iterations, slope, start=start)


def _check_steps(step: float, iterations: int) -> None:
    if not 0 < step < float("inf") or iterations < 0:
        raise InputError(
            f"step is {step} and iterations {iterations}. Give a step above 0 and no fewer than 0 of them."
        )


def _momentum(slope: Slope, decay: float) -> Slope:
    """The sum of all slopes so far, each divided by its mean size, older ones counting less."""
    total: Tensor | float = 0.0

    def step(aim: Target, moved: Tensor) -> Tensor:
        nonlocal total
        latest = slope(aim, moved)
        size = latest.abs().flatten(1).mean(dim=1).clamp(min=1e-30)  # where it is zero, so is the slope
        total = decay * total + latest / per_image(size, latest)
        return total

    return step


def _step(step: float | None, eps: float, iterations: int) -> float:
    return eps / max(iterations, 1) if step is None else step


def _low_pass(length: int, share: float, like: Tensor) -> Tensor:
    """The projection of `length` values onto their first frequencies, by the orthonormal cosine transform."""
    numbers = torch.arange(length, dtype=like.dtype, device=like.device)
    waves = torch.cos(torch.pi / length * (numbers + 0.5) * numbers[:, None])
    waves = waves / waves.norm(dim=1, keepdim=True)
    kept = waves[: max(1, int(length * share))]
    return kept.T @ kept
