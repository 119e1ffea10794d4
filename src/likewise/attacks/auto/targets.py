"""What targeted attacks share: each of the likeliest wrong classes in turn, for the images that are left."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from likewise.attacks.registry import Adversarial
from likewise.attacks.steps import Target
from likewise.errors import InputError

CROCE = "Croce and Hein 2020, arXiv:2003.01690"


def likeliest_in_turn(aim: Target, targets: int, lead: Callable[[Target, Tensor], Tensor]) -> Adversarial:
    """Lead images to their likeliest wrong class, those that are not fooled to the next, `targets` times.

    `lead(rest, classes)` changes the images that are left, one class for each.
    """
    with torch.no_grad():
        answers = aim.answer(aim.clean)
    wrong = answers.scatter(1, aim.labels[:, None], float("-inf")).argsort(dim=1, descending=True)
    changed, left = aim.clean.clone(), torch.ones(len(aim.clean), dtype=torch.bool, device=aim.clean.device)
    for rank in range(min(targets, answers.shape[1] - 1)):
        rows = left.nonzero()[:, 0]
        if not len(rows):
            break
        rest = aim.only(rows)
        moved = lead(rest, wrong[rows, rank])
        aim.stalled[rows] += rest.stalled
        changed[rows] = moved
        left[rows] = ~fooled(rest, moved)
    return Adversarial(changed, aim.labels, aim.stalled)


def check_budget(**counts: int) -> None:
    """Refuse counts of steps, targets or queries below 1."""
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"{name} is {count}. Give at least 1.")


def fooled(aim: Target, moved: Tensor) -> Tensor:
    """Which images the network takes for another class than their label."""
    with torch.no_grad():
        return aim.answer(moved).argmax(dim=1) != aim.labels
