"""FAB-T: the shortest way over the boundary, found by stepping to where the linearised boundary is.

Each step goes to the hyperplane on which the lead of a wrong class is 0, both from the current point and from the
clean image, and a little beyond. Where that fools the network, the search continues from a point nearer to the image.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.attacks.auto.targets import check_budget, fooled, likeliest_in_turn
from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import EPS, Ball, Loss, Norm, Target, per_image, target

BEYOND, BACK, PULL = 1.05, 0.9, 0.1  # past the plane; towards the image once fooled; most weight of the image's step


@attack(name="fab-t", norm="Linf", source="Croce and Hein 2020, arXiv:1907.02044", aliases=("FAB-T",), trains=False)
def fab_t(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    iterations: int = 100,
    targets: int = 9,
    norm: Norm = "Linf",
    exact: bool = False,
) -> Adversarial:
    """Steps to the linearised boundary with each of the likeliest wrong classes in turn, staying near the images.

    Images that are fooled within `eps` are not led on.
    """
    check_budget(iterations=iterations, targets=targets)
    ball = Ball(eps, norm)
    with target(net, images, labels, exact=exact) as aim:
        return likeliest_in_turn(aim, targets, lambda rest, classes: approach(rest, ball, iterations, classes))


def approach(aim: Target, ball: Ball, iterations: int, classes: Tensor) -> Tensor:
    """The point nearest to each image that fools the network, brought into the ball; else the last point."""
    moved, found = aim.clean.clone(), torch.full_like(aim.clean[:, 0].flatten(1)[:, 0], float("inf"))
    nearest = moved.clone()
    rows = torch.arange(len(moved), device=moved.device)
    for _ in range(iterations):
        rest, at = aim.only(rows), moved[rows]
        slope, lead, _ = rest.slope_and_loss(at, _lead_of(classes[rows]))
        aim.stalled[rows] += rest.stalled
        ahead = _step(at, rest.clean, slope, lead, ball.norm)
        there, far = fooled(rest, ahead), _size(ahead - rest.clean, ball.norm)
        closer = there & (far < found[rows])
        found[rows[closer]], nearest[rows[closer]] = far[closer], ahead[closer]
        moved[rows] = torch.where(per_image(there, ahead), rest.clean + BACK * (ahead - rest.clean), ahead)
        rows = rows[found[rows] > ball.eps]
        if not len(rows):
            break
    return ball.project(torch.where(per_image(found.isfinite(), moved), nearest, moved), aim.clean)


def _step(at: Tensor, clean: Tensor, slope: Tensor, lead: Tensor, norm: Norm) -> Tensor:
    """Past the plane from a point and from the clean image, the image's step weighing more the nearer it is."""
    at_clean = lead + (slope * (clean - at)).flatten(1).sum(dim=1)
    own, image = to_plane(at, slope, lead, norm), to_plane(clean, slope, at_clean, norm)
    sizes = [_size(change, norm).clamp(min=1e-8) for change in (own, image)]
    share = per_image((sizes[0] / (sizes[0] + sizes[1])).clamp(max=PULL), at)
    return ((at + BEYOND * own) * (1 - share) + (clean + BEYOND * image) * share).clamp(0, 1)


def to_plane(points: Tensor, slope: Tensor, values: Tensor, norm: Norm) -> Tensor:
    """The least change of points in [0, 1] after which values with that slope are 0, as far as [0, 1] allows.

    Every entry moves by the same amount (in the Euclidean norm: as its slope), and stops at 0 or 1. How much that is
    follows from sorting the amounts at which entries stop.

    >>> change = to_plane(torch.tensor([[0.5, 0.9]]), torch.tensor([[1.0, 1.0]]), torch.tensor([-0.3]), "Linf")
    >>> [round(value, 6) for value in change[0].tolist()]
    [0.2, 0.1]
    """
    weights = slope.flatten(1)
    ways = -per_image(values.sign(), weights) * weights.sign()
    room = torch.where(ways > 0, 1 - points.flatten(1), points.flatten(1))
    pace = torch.ones_like(weights) if norm == "Linf" else weights.abs()
    stops = torch.where(weights == 0, 0, room / pace.clamp(min=1e-30))
    gains = weights.abs() * pace  # of the value, per amount
    stops, order = stops.sort(dim=1)
    gains = gains.gather(1, order)
    full = (gains * stops).cumsum(dim=1)  # what entries give that have stopped
    rest = gains.flip(1).cumsum(dim=1).flip(1) - gains  # what the others gain
    reached = full + rest * stops >= values.abs()[:, None]
    first = torch.where(reached.any(dim=1), reached.int().argmax(dim=1), stops.shape[1] - 1)[:, None]
    before = (full - gains * stops).gather(1, first)
    still = (rest + gains).gather(1, first)
    amount = ((values.abs()[:, None] - before) / still.clamp(min=1e-30)).clamp(min=0)
    amount = torch.minimum(amount, stops.gather(1, first))
    return (ways * torch.minimum(amount * pace, room)).view_as(points)


def _size(change: Tensor, norm: Norm) -> Tensor:
    flat = change.flatten(1)
    return flat.abs().amax(dim=1) if norm == "Linf" else flat.norm(dim=1)


def _lead_of(classes: Tensor) -> Loss:
    """By how much a class leads the label."""

    def lead(answers: Tensor, labels: Tensor) -> Tensor:
        return (answers.gather(1, classes[:, None]) - answers.gather(1, labels[:, None]))[:, 0]

    return lead
