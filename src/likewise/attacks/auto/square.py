"""Square: a random search by answers alone that changes one square of an image at a time.

A change is kept if the best other class leads more by it, and squares become smaller as the search goes on. Draws of an
image depend on its row alone, so that other images that are left or fooled change nothing for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from likewise.attacks.registry import Adversarial, attack
from likewise.attacks.steps import EPS, Ball, Norm, Target, lengths, margin, per_image, target
from likewise.errors import InputError

HALVED = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # queries, of 10,000, at which the share is halved
SHARE = 0.8  # of an image, that the first squares cover
TILES = 5  # per side, of the first change in the Euclidean norm
Propose = Callable[[Tensor, Tensor, Tensor, int], Tensor]  # points, clean images, draws, the side of squares


@attack(name="square", norm="Linf", source="Andriushchenko et al. 2020, arXiv:1912.00049", trains=False)
def square(
    net: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    *,
    eps: float = EPS,
    queries: int = 5000,
    share: float = SHARE,
    norm: Norm = "Linf",
    seed: int = 0,
) -> Adversarial:
    """Random squares of one colour, kept where they lower the margin: needs no gradient.

    Options:
        share: The share of an image that the first squares cover.
    """
    if not 0 < share <= 1 or queries < 1:
        raise InputError(
            f"share is {share} and queries {queries}. Give a share above 0 and up to 1, and at least one query."
        )
    ball = Ball(eps, norm)
    with target(net, images, labels) as aim:
        check_images("square", aim)
        moved = search(aim, ball, queries, share, torch.Generator().manual_seed(seed))
        return Adversarial(moved, aim.labels, aim.stalled)


def check_images(name: str, aim: Target) -> None:
    """Refuse what has no height and width."""
    if aim.clean.ndim != 4:
        raise InputError(f"{name} was shown {tuple(aim.clean.shape)}. Give images (n, channels, height, width).")


@torch.no_grad()
def search(aim: Target, ball: Ball, queries: int, share: float, draw: Generator) -> Tensor:
    """The best point of each image after so many queries, or the first that fools the network."""
    start, propose = (_stripes, _flip_square) if ball.norm == "Linf" else (_tiles, _move_square)
    n, (height, width) = len(aim.clean), aim.clean.shape[2:]
    moved = start(aim.clean, ball, draw)
    answers = aim.answer(moved)
    best, rows = margin(answers, aim.labels), (answers.argmax(dim=1) == aim.labels).nonzero()[:, 0]
    for query in range(1, queries):
        if not len(rows):
            break
        side = _side(share, query * 10_000 // queries, height * width, min(height, width), ball.norm)
        draws = torch.rand((n, 4 + 2 * aim.clean.shape[1]), generator=draw).to(aim.clean)
        rest = aim.only(rows)
        tried = propose(moved[rows], rest.clean, draws[rows], side, ball)
        answers = rest.answer(tried)
        lead, there = margin(answers, rest.labels), answers.argmax(dim=1) != rest.labels
        better = there | (lead > best[rows])
        moved[rows[better]], best[rows[better]] = tried[better], lead[better]
        rows = rows[~there]
    return moved


def _side(share: float, query: int, pixels: int, most: int, norm: Norm) -> int:
    """The side of the squares at a query: of area `share`, halved ever more rarely; odd in the Euclidean norm.

    >>> [_side(0.8, query, 1024, 32, "Linf") for query in (1, 10, 11, 300, 9000)]
    [29, 29, 20, 10, 1]
    """
    side = round(math.sqrt(share * pixels / 2 ** sum(query > limit for limit in HALVED)))
    if norm == "Linf":
        return min(max(side, 1), most)
    side = max(side, 3)
    return min(side + (side % 2 == 0), most)


def _stripes(clean: Tensor, ball: Ball, draw: Generator) -> Tensor:
    """Each column of each channel by `eps` up or down."""
    n, channels, _, width = clean.shape
    return ball.project(clean + ball.eps * _signs((n, channels, 1, width), draw).to(clean), clean)


def _flip_square(points: Tensor, clean: Tensor, draws: Tensor, side: int, ball: Ball) -> Tensor:
    """One square by `eps` from the clean image, up or down per channel."""
    inside = _window(points, draws[:, :2], side)
    signs = torch.where(draws[:, 4 : 4 + points.shape[1]] < 0.5, -1.0, 1.0).to(points)[:, :, None, None]
    return torch.where(inside, ball.project(clean + ball.eps * signs, clean), points)


def _tiles(clean: Tensor, ball: Ball, draw: Generator) -> Tensor:
    """A bump in each of 5 x 5 tiles, up or down, of length `eps` together."""
    (n, channels, height, width), change = clean.shape, torch.zeros_like(clean)
    side = max(min(height, width) // TILES, 1)
    top, left = (height - side * (height // side)) // 2, (width - side * (width // side)) // 2
    for row in range(top, height - side + 1, side):
        for column in range(left, width - side + 1, side):
            signs = _signs((n, channels, 1, 1), draw).to(clean)
            change[:, :, row : row + side, column : column + side] = signs * bump(side).to(clean)
    return _at_length(clean, change, ball)


def _move_square(points: Tensor, clean: Tensor, draws: Tensor, side: int, ball: Ball) -> Tensor:
    """The change of one square is moved to another, which gets a bump in the direction that it has, or another."""
    change, channels = points - clean, points.shape[1]
    target_window, source_window = _window(points, draws[:, :2], side), _window(points, draws[:, 2:4], side)
    both = target_window | source_window
    left = (ball.eps**2 - lengths(change) ** 2).clamp(min=0) / channels  # of the squared length, per channel
    budget = ((change * both).square().sum(dim=(2, 3), keepdim=True) + left).sqrt()
    signs = torch.where(draws[:, 4 : 4 + channels] < 0.5, -1.0, 1.0).to(points)[:, :, None, None]
    turned = per_image(draws[:, -1] < 0.5, points)
    shape = bump(side).to(points)
    bumps = torch.where(turned, _placed(shape, target_window), _placed(shape.T, target_window)) * signs
    old = change * target_window
    new = bumps + old / old.square().sum(dim=(2, 3), keepdim=True).sqrt().clamp(min=1e-12)
    new = new / new.square().sum(dim=(2, 3), keepdim=True).sqrt().clamp(min=1e-12) * budget
    return _at_length(clean, torch.where(target_window, new, torch.where(source_window, 0, change)), ball)


def bump(side: int) -> Tensor:
    """A square of two halves, one up and one down, each highest in its middle; of length 1.

    >>> round(float(bump(5).square().sum()), 6), bump(5).shape
    (1.0, torch.Size([5, 5]))
    """
    halves = [_half(side // 2, side), -_half(side - side // 2, side)]
    whole = torch.cat([half for half in halves if half.numel()])
    return whole / whole.norm()


def _half(height: int, width: int) -> Tensor:
    """Around the middle, rings of 1 / k² summed from the outside in, of length 1."""
    rows, columns = (torch.arange(count) - count // 2 for count in (height, width))
    rings = torch.maximum(rows.abs()[:, None], columns.abs()[None])
    steps = torch.arange(1, max(height, width) // 2 + 2, dtype=torch.float64) ** -2
    weights = steps.flip(0).cumsum(0).flip(0)[rings]
    return weights / weights.norm().clamp(min=1e-30)


def _window(points: Tensor, draws: Tensor, side: int) -> Tensor:
    """Which pixels are in a square whose corner is drawn, (n, 1, height, width)."""
    (height, width), inside = points.shape[2:], []
    for index, length in enumerate((height, width)):
        corner = (draws[:, index] * (length - side + 1)).long().clamp(max=length - side)[:, None]
        numbers = torch.arange(length, device=points.device)
        inside.append((numbers >= corner) & (numbers < corner + side))
    return (inside[0][:, :, None] & inside[1][:, None])[:, None]


def _placed(shape: Tensor, inside: Tensor) -> Tensor:
    """A square of values put where each image has its window."""
    placed = torch.zeros(inside.shape, dtype=shape.dtype, device=shape.device)
    placed[inside] = shape.flatten().repeat(len(inside))
    return placed


def _at_length(clean: Tensor, change: Tensor, ball: Ball) -> Tensor:
    return (clean + ball.eps * change / lengths(change).clamp(min=1e-12)).clamp(0, 1)


def _signs(shape: tuple[int, ...], draw: Generator) -> Tensor:
    return torch.where(torch.rand(shape, generator=draw) < 0.5, -1.0, 1.0)
