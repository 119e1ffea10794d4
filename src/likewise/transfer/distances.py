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

from likewise._base.machine import has_float64
from likewise._base.progress import warn
from likewise.attacks.steps import lengths, target
from likewise.data import Data
from likewise.errors import UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity
from likewise.networks.inputs.transforms import in_channels
from likewise.transfer.classifiers import AT_ONCE, Classifier, labelled_images, original_pixels, viewed_classifier

SMALLEST, STEPS, HALVINGS = 0.01, 40, 18  # the first step, how many there are, and how often the last is halved


def boundary_distances(
    classify: Callable[[Tensor], Tensor], images: Tensor, directions: Tensor, limit: float
) -> tuple[Tensor, Tensor]:
    """How far each image is from another class along its direction, and whether that was found within `limit`.

    Distances are in lengths of the directions; where none was found, it is `limit`.

    >>> side = lambda points: (points[:, 0] > 0.3).long()
    >>> distances, reached = boundary_distances(side, torch.zeros(2, 1), torch.tensor([[1.0], [-1.0]]), 5)
    >>> [round(value, 4) for value in distances.tolist()], reached.tolist()
    ([0.3, 5.0], [True, False])
    """
    classes, column = classify(images), (-1, *[1] * (images.ndim - 1))

    def changed(rows: Tensor, steps: Tensor) -> Tensor:
        points = images[rows] + steps.to(images).view(column) * directions[rows]
        return classify(points) != classes[rows]

    precise = torch.float64 if has_float64(images.device) else torch.float32
    low = torch.zeros(len(images), dtype=precise, device=images.device)
    high, reached = torch.full_like(low, limit), torch.zeros(len(images), dtype=torch.bool, device=images.device)
    for step in np.geomspace(min(SMALLEST, limit / 2), limit, STEPS):
        left = (~reached).nonzero()[:, 0]
        if not len(left):
            break
        crossed = changed(left, torch.full_like(low[left], step))
        high[left[crossed]], low[left[~crossed]] = step, step
        reached[left[crossed]] = True
    rows = reached.nonzero()[:, 0]
    for _ in range(HALVINGS if len(rows) else 0):
        middle = (low[rows] + high[rows]) / 2
        beyond = changed(rows, middle)
        high[rows[beyond]], low[rows[~beyond]] = middle[beyond], middle[~beyond]
    return torch.where(reached, (low + high) / 2, limit), reached


def nearest_others(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """For each image the nearest one of another label, and how far it is."""
    flat = pixels.flatten(1).double()
    apart = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    apart[labels[:, None] == labels] = float("inf")
    far, nearest = apart.min(dim=1)
    if not bool(far.isfinite().all()):
        raise UndefinedError("all images have one label, so none lies towards another. Show the networks more classes.")
    return nearest, far


def _sample(rep: Representation, inputs: int, seed: int) -> tuple[Data, Tensor]:
    """The images a network was shown, and the rows of those that are looked at: some drawn at random, or all."""
    data = labelled_images(rep, "find boundaries around them")
    return data, torch.from_numpy(np.sort(np.random.default_rng(seed).permutation(len(data))[:inputs]))


@quantity
def _right(rep: Representation, inputs: int, seed: int) -> Tensor:
    """Which of the images a network classifies correctly."""
    data, rows = _sample(rep, inputs, seed)
    with viewed_classifier(rep, data) as net:
        return net.classes(net.images(rows)).cpu() == data.labels[rows]


@quantity
def _directions(rep: Representation, direction: str, inputs: int, seed: int) -> Tensor:
    """A direction per image, as the network is shown it: of length 1 in pixels, whatever the size it is shown."""
    data, rows = _sample(rep, inputs, seed)
    with viewed_classifier(rep, data) as net:
        return DIRECTIONS[direction](net, data, rows, seed).cpu()


def _legitimate(net: Classifier, data: Data, rows: Tensor, seed: int) -> Tensor:
    nearest, far = nearest_others(original_pixels(data, rows), data.labels[rows])
    images = net.images(rows)
    away = far.clamp(min=1e-12).to(images).view(-1, *[1] * (images.ndim - 1))
    return (images[nearest.to(images.device)] - images) / away


def _adversarial(net: Classifier, data: Data, rows: Tensor, seed: int) -> Tensor:
    slopes = []
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        images = net.images(some)
        labels = net.network_labels(data.labels[some]).to(images.device)
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
    """Distances of a network's boundaries from images both classify correctly, (right, 2): distance, and reached."""
    data, rows = _sample(rep, *sample)
    with viewed_classifier(rep, data) as net:
        images = net.images(rows[right])
        along = directions[right].to(images)
        if along.shape[1:] != images.shape[1:]:
            along = in_channels(along, images.shape[1])
            along = interpolate(along, images.shape[2:], mode="bilinear", antialias=True)
        distances, reached = boundary_distances(net.classes, images, along, limit)
    return torch.stack([distances, reached.to(distances)], dim=1).cpu().double()


@quantity
def _distances_along_own(rep: Representation, direction: str, inputs: int, seed: int, limit: float) -> Tensor:
    """Distances along a network's own directions, from the images it classifies correctly; NaN from others."""
    right = _right(rep, inputs, seed)
    distances = torch.full((len(right), 2), float("nan"), dtype=torch.float64)
    directions = _directions(rep, direction, inputs, seed)
    if bool(right.any()):
        distances[right] = _distances(rep, directions, right, (inputs, seed), limit)
    return distances


@quantity
def _gaps(pair: Pair, direction: str, inputs: int, seed: int, limit: float) -> tuple[Tensor, Tensor]:
    """By how much distances differ, and which of them are censored: one row per direction and image."""
    right = _right(pair.a, inputs, seed) & _right(pair.b, inputs, seed)
    if not bool(right.any()):
        raise UndefinedError(
            f"{pair.a.name} and {pair.b.name} classify none of {len(right)} inputs correctly together, so there is no "
            "boundary to compare. Show them more inputs, or leave one out."
        )
    along_own = [_distances_along_own(rep, direction, inputs, seed, limit)[right] for rep in (pair.a, pair.b)]
    pairs = [(along_own[0], along_own[1])]
    if direction != "legitimate":  # directions of each network in turn
        crossed = [
            _distances(other, _directions(rep, direction, inputs, seed), right, (inputs, seed), limit)
            for rep, other in ((pair.a, pair.b), (pair.b, pair.a))
        ]
        pairs = list(zip(along_own, crossed, strict=True))
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
    limits={"direction": tuple(DIRECTIONS), "of": ("distance", "censored"), "inputs": (1, None), "limit": (1e-6, None)},
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

    Options:
        direction: "adversarial", "legitimate" or "random".
        inputs: How many images are drawn.
        limit: How far a boundary is searched for.
        seed: Of the random draws.
        of: "distance", or "censored" for the share of distances not found.

    Example:
        >>> import likewise
        >>> a, b = (likewise.network("zoo:mlp", data=likewise.dataset("digits"), seed=0) for _ in range(2))
        >>> for weight in b.parameters():
        ...     weight.data += 0.01
        >>> likewise.compare(a, b, "boundary-distance", data="digits:test[:60]", limit=99.0) > 0.01
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
