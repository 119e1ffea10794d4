"""Inter-boundary distance: two networks are alike if their boundaries are equally far from an image.

How far a boundary is along a direction is searched in growing steps and then by bisection, for all images at once. A
region that is entered and left between two steps is not seen. Images are not clipped to [0, 1] on the way. Where a
network keeps its answer up to the largest step, the distance is unknown and counts as that step: such images are
censored, and a measure that hides how many there are would say too much.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from likewise._base.warnings import warn
from likewise.attacks.steps import lengths, target
from likewise.data import Data
from likewise.errors import UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity
from likewise.networks.inputs.transforms import in_channels
from likewise.transfer.classifiers import Classifier
from likewise.transfer.subjects import AT_ONCE, images_of, pixels_of, predictions, resting, shown

SMALLEST, STEPS, HALVINGS = 0.01, 40, 18  # the first step, how many there are, and how often the last is halved


def boundary_distances(
    classify: Callable[[Tensor], Tensor], images: Tensor, directions: Tensor, limit: float
) -> tuple[Tensor, Tensor]:
    """How far each image is from another class along its direction, and whether that was found within `limit`.

    Distances are in lengths of the directions; where none was found, it is `limit`.

    >>> side = lambda points: (points[:, 0] > 0.3).long()
    >>> far, found = boundary_distances(side, torch.zeros(2, 1), torch.tensor([[1.0], [-1.0]]), 5)
    >>> [round(value, 4) for value in far.tolist()], found.tolist()
    ([0.3, 5.0], [True, False])
    """
    answers, column = classify(images), (-1, *[1] * (images.ndim - 1))

    def changed(rows: Tensor, far: Tensor) -> Tensor:
        points = images[rows] + far.to(images).view(column) * directions[rows]
        return classify(points) != answers[rows]

    low = torch.zeros(len(images), dtype=torch.float64, device=images.device)
    high, found = torch.full_like(low, limit), torch.zeros(len(images), dtype=torch.bool, device=images.device)
    for step in np.geomspace(min(SMALLEST, limit / 2), limit, STEPS):
        left = (~found).nonzero()[:, 0]
        if not len(left):
            break
        reached = changed(left, torch.full_like(low[left], step))
        high[left[reached]], low[left[~reached]] = step, step
        found[left[reached]] = True
    rows = found.nonzero()[:, 0]
    for _ in range(HALVINGS if len(rows) else 0):
        middle = (low[rows] + high[rows]) / 2
        beyond = changed(rows, middle)
        high[rows[beyond]], low[rows[~beyond]] = middle[beyond], middle[~beyond]
    return torch.where(found, (low + high) / 2, limit), found


def nearest_others(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """For each image the nearest one of another label, and how far it is."""
    flat = pixels.flatten(1).double()
    apart = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    apart[labels[:, None] == labels] = float("inf")
    far, nearest = apart.min(dim=1)
    if not bool(far.isfinite().all()):
        raise UndefinedError("all images have one label, so none lies towards another. Show the networks more classes.")
    return nearest, far


def _rows(data: Data, inputs: int, seed: int) -> Tensor:
    """Which inputs are looked at: some drawn at random, or all."""
    return torch.from_numpy(np.sort(np.random.default_rng(seed).permutation(len(data))[:inputs]))


def _own_images(rep: Representation) -> Data:
    return images_of(rep, "find boundaries around them")


@quantity
def _right(rep: Representation, inputs: int, seed: int) -> Tensor:
    """Which of the images a network classifies correctly."""
    data = _own_images(rep)
    rows = _rows(data, inputs, seed)
    with resting(rep, data) as net:
        return predictions(net, shown(net, rows)).cpu() == data.labels[rows]


@quantity
def _directions(rep: Representation, direction: str, inputs: int, seed: int) -> Tensor:
    """A direction per image, as the network is shown it: of length 1 in pixels, whatever the size it is shown."""
    data = _own_images(rep)
    rows = _rows(data, inputs, seed)
    with resting(rep, data) as net:
        return DIRECTIONS[direction](net, data, rows, seed).cpu()


def _legitimate(net: Classifier, data: Data, rows: Tensor, seed: int) -> Tensor:
    nearest, far = nearest_others(pixels_of(data, rows), data.labels[rows])
    images = shown(net, rows)
    away = far.clamp(min=1e-12).to(images).view(-1, *[1] * (images.ndim - 1))
    return (images[nearest.to(images.device)] - images) / away


def _adversarial(net: Classifier, data: Data, rows: Tensor, seed: int) -> Tensor:
    slopes = []
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        images = shown(net, some)
        labels = net.own_labels(data.labels[some]).to(images.device)
        with target(net.net, images, labels, exact=True) as aim:
            slopes.append(aim.slope(aim.clean))
    slope = torch.cat(slopes)
    return slope / lengths(slope).clamp(min=1e-30)


def _random(net: Classifier, data: Data, rows: Tensor, seed: int) -> Tensor:
    slope = _adversarial(net, data, rows, seed)
    noise = torch.randn(slope.shape, generator=torch.Generator().manual_seed(seed), dtype=slope.dtype).to(slope.device)
    along = (noise * slope).flatten(1).sum(dim=1).view(-1, *[1] * (slope.ndim - 1))
    noise = noise - along * slope
    return noise / lengths(noise).clamp(min=1e-30)


DIRECTIONS = {"adversarial": _adversarial, "legitimate": _legitimate, "random": _random}


def _distances(rep: Representation, directions: Tensor, right: Tensor, sample: tuple[int, int], limit: float) -> Tensor:
    """How far a network's boundaries are from the images both classify correctly, (right, 2): distance, and found."""
    data, (inputs, seed) = _own_images(rep), sample
    rows = _rows(data, inputs, seed)
    with resting(rep, data) as net:
        images = shown(net, rows[right])
        along = directions[right].to(images)
        if along.shape[1:] != images.shape[1:]:
            along = in_channels(along, images.shape[1])
            along = interpolate(along, images.shape[2:], mode="bilinear", antialias=True)
        far, found = boundary_distances(lambda points: predictions(net, points), images, along, limit)
    return torch.stack([far, found.double()], dim=1).cpu()


@quantity
def _own_distances(rep: Representation, direction: str, inputs: int, seed: int, limit: float) -> Tensor:
    """Distances along a network's own directions, from the images it classifies correctly; NaN from others."""
    right = _right(rep, inputs, seed)
    found = torch.full((len(right), 2), float("nan"), dtype=torch.float64)
    directions = _directions(rep, direction, inputs, seed)
    if bool(right.any()):
        found[right] = _distances(rep, directions, right, (inputs, seed), limit)
    return found


@quantity
def _gaps(pair: Pair, direction: str, inputs: int, seed: int, limit: float) -> tuple[Tensor, Tensor]:
    """By how much distances differ, and which of them are censored: one row per direction and image."""
    right = _right(pair.a, inputs, seed) & _right(pair.b, inputs, seed)
    if not bool(right.any()):
        raise UndefinedError(
            f"{pair.a.name} and {pair.b.name} classify none of {len(right)} inputs correctly together, so there is no "
            "boundary to compare. Show them more inputs, or leave one out."
        )
    own = [_own_distances(rep, direction, inputs, seed, limit)[right] for rep in (pair.a, pair.b)]
    pairs = [(own[0], own[1])]
    if direction != "legitimate":  # those of each network in turn
        crossed = [
            _distances(other, _directions(rep, direction, inputs, seed), right, (inputs, seed), limit)
            for rep, other in ((pair.a, pair.b), (pair.b, pair.a))
        ]
        pairs = list(zip(own, crossed, strict=True))
    gaps = torch.stack([(one[:, 0] - other[:, 0]).abs() for one, other in pairs])
    return gaps, torch.stack([(one[:, 1] * other[:, 1]) == 0 for one, other in pairs])


@measure(
    name="boundary-distance",
    family="functional",
    on="networks",
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    paired=False,
    rows=2,
    source="Tramèr et al. 2017, arXiv:1704.03453",
    limits={
        "direction": tuple(DIRECTIONS),
        "of": ("distance", "censored"),
        "inputs": (1, None),
        "limit": (1e-6, None),
    },
    cost="60·inputs passes",
)
def boundary_distance(
    pair: Pair,
    *,
    direction: str = "adversarial",
    inputs: int = 200,
    limit: float = 20.0,
    seed: int = 0,
    of: str = "distance",
) -> float:
    """By how much the boundaries of two networks differ in their distance from an image.

    |D(f, x) - D(g, x)| averaged over the images x that both classify correctly, of `inputs` drawn at random; D(f, x)
    is the least ε at which f answers x + ε d otherwise than x. The direction d is "adversarial" (the gradient of the
    loss, of f and of g in turn), "random" (at a right angle to that) or "legitimate" (towards the nearest image of
    another label), of length 1 in pixels. 0: boundaries equally far; there is no upper end but `limit`, up to which is
    searched. With `of` "censored" the score is the share of distances that were not found; a warning says it too.

    >>> import likewise
    >>> a, b = (likewise.network("zoo:mlp", data=likewise.dataset("digits"), seed=0) for _ in range(2))
    >>> for weight in b.parameters():
    ...     weight.data += 0.01
    >>> likewise.compare({"a": a, "b": b}, "boundary-distance", data="digits:test[:60]", limit=99.0)["a", "b"] > 0.01
    True
    """
    gaps, censored = _gaps(pair, direction, inputs, seed, limit)
    share = float(censored.double().mean())
    if of == "censored":
        return share
    if share == 1:
        raise UndefinedError(
            f"no image has a boundary of both {pair} within {limit:g} along the {direction} direction. Raise limit."
        )
    if share:
        warn(
            f"boundary-distance of {pair}: {share:.0%} of distances lie beyond {limit:g} and count as that. Raise "
            "limit, or ask for the share of every pair: 'boundary-distance[of=censored]'."
        )
    return float(gaps.mean())
