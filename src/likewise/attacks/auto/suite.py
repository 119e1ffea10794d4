"""AutoAttack: four attacks that need no settings, each on the images that those before it left."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from likewise.attacks.auto.apgd import apgd, check_ratio, towards
from likewise.attacks.auto.fab import approach
from likewise.attacks.auto.square import SHARE, check_images, search
from likewise.attacks.auto.targets import CROCE, check_budget, fooled, likeliest_in_turn
from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import EPS, Ball, Norm, Target, cross_entropy, target


@attack(name="autoattack", norm="Linf", source=CROCE, trains=False)
def autoattack(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    iterations: int = 100,
    targets: int = 9,
    queries: int = 5000,
    norm: Norm = "Linf",
    seed: int = 0,
    exact: bool = False,
) -> Adversarial:
    """APGD-CE, APGD-T, FAB-T and Square in turn, each on what those before it left. Needs four classes or more.

    It stops at the first success of each image, so its examples carry less to other networks.
    """
    check_budget(iterations=iterations, targets=targets, queries=queries)
    ball, draw = Ball(eps, norm), torch.Generator().manual_seed(seed)
    with target(net, images, labels, exact=exact) as aim:
        check_ratio("AutoAttack", aim)
        check_images("autoattack", aim)
        attacks: tuple[Callable[[Target], Tensor], ...] = (
            lambda rest: apgd(rest, ball, iterations, cross_entropy, ball.random(rest.clean, draw)),
            lambda rest: (
                likeliest_in_turn(
                    rest,
                    targets,
                    lambda some, classes: apgd(some, ball, iterations, towards(classes), ball.random(some.clean, draw)),
                ).images
            ),
            lambda rest: (
                likeliest_in_turn(rest, targets, lambda some, classes: approach(some, ball, iterations, classes)).images
            ),
            lambda rest: search(rest, ball, queries, SHARE, draw),
        )
        changed, rows = aim.clean.clone(), (~fooled(aim, aim.clean)).nonzero()[:, 0]
        for one in attacks:
            if not len(rows):
                break
            rest = aim.only(rows)
            changed[rows] = one(rest)
            aim.stalled[rows] += rest.stalled
            rows = rows[~fooled(rest, changed[rows])]
        return Adversarial(changed, aim.labels, aim.stalled)
