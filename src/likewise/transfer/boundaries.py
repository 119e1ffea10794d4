"""Decision-boundary agreement: two networks are alike if they cut the planes through images alike.

A plane goes through three images of three labels; both networks classify a grid of its points. Points are mixtures
w1 x1 + w2 x2 + w3 x3 of the images with weights that sum to 1. Weights come from the pixels of the data, the same for
all networks, and each network mixes the images as it is shown them: normalisation and resizing keep mixtures, so all
see the same points. As in the reference, points are not clipped to [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity
from likewise.transfer.classifiers import labelled_images, original_pixels, viewed_classifier

MARGIN = 0.1  # of each side, beyond the three images


@dataclass(frozen=True)
class Plane:
    """The plane through three images: two unit directions, `(2, values)`, and the images' coordinates, `(3, 2)`."""

    directions: Tensor
    coordinates: Tensor

    @classmethod
    def through(cls, images: Tensor) -> Plane:
        """The plane through images `(3, ...)`: towards the second, then at a right angle towards the third."""
        first, second, third = images.flatten(1).double()
        a = _unit(second - first)
        along = (third - first) @ a
        b = third - first - along * a
        origin_and_second = torch.stack([torch.zeros(2), torch.stack([(second - first).norm(), torch.zeros(())])])
        last = torch.stack([along, b.norm()])
        return cls(torch.stack([a, _unit(b)]), torch.cat([origin_and_second.double(), last[None]]))

    def axes(self, resolution: int, margin: float = MARGIN) -> Tensor:
        """The coordinates of the grid along both directions, `(2, resolution)`."""
        low, high = self.coordinates.aminmax(dim=0)
        reach = margin * (high - low)
        steps = torch.linspace(0, 1, resolution, dtype=torch.float64)
        return (low - reach)[:, None] + (high - low + 2 * reach)[:, None] * steps

    def weights(self, resolution: int, margin: float = MARGIN) -> Tensor:
        """The grid as mixtures of the three images, `(resolution², 3)`, the first direction slowest."""
        axes = self.axes(resolution, margin)
        u, v = (side.flatten() for side in torch.meshgrid(axes[0], axes[1], indexing="ij"))
        length, (along, height) = self.coordinates[1, 0], self.coordinates[2]
        third = _over(v, height)
        second = _over(u - third * along, length)
        return torch.stack([1 - second - third, second, third], dim=1)


def _unit(vector: Tensor) -> Tensor:
    return vector / vector.norm().clamp(min=1e-300)


def _over(values: Tensor, length: Tensor) -> Tensor:
    """Values as shares of a length; 0 where images lie on one line, or are the same."""
    return values / length if float(length) > 1e-9 else torch.zeros_like(values)


def draw_triplets(labels: Tensor, count: int, seed: int) -> Tensor:
    """Inputs of three labels each, `(count, 3)`, drawn at random."""
    kinds, draw = labels.numpy(), np.random.default_rng(seed)
    if len(np.unique(kinds)) < 3:
        raise UndefinedError(
            f"a plane goes through images of three labels, and the data has {len(np.unique(kinds))}. Show the networks "
            "images of more classes."
        )
    triplets = []
    for _ in range(count):
        rows: list[int] = []
        for _ in range(3):
            others = np.flatnonzero(~np.isin(kinds, kinds[rows]))
            rows.append(int(draw.choice(others)))
        triplets.append(rows)
    return torch.tensor(triplets)


def agreement(one: Tensor, other: Tensor) -> float:
    """The share of points that two networks put into one class.

    >>> agreement(torch.tensor([[0, 1, 1, 2], [2, 2, 0, 1]]), torch.tensor([[0, 1, 2, 2], [2, 0, 0, 0]]))
    0.625
    """
    return float((one == other).double().mean())


@quantity
def _plane_classes(rep: Representation, triplets: int, resolution: int, seed: int) -> tuple[Tensor, Tensor]:
    """The class of every point of every plane, and how many classes the network knows."""
    data = labelled_images(rep, "draw planes through three of them")
    rows = draw_triplets(data.labels, triplets, seed)
    unique_rows, indices = torch.unique(rows, return_inverse=True)
    pixels, classes = original_pixels(data, unique_rows), []
    with viewed_classifier(rep, data) as net:
        images = net.images(unique_rows)
        for three in indices:
            weights = Plane.through(pixels[three]).weights(resolution).to(images)
            points = torch.einsum("pt,t...->p...", weights, images[three.to(images.device)])
            classes.append(net.classes(points).int().cpu())
        return torch.stack(classes), torch.tensor([len(net.columns)])


@measure(
    name="boundary-agreement",
    family="functional",
    on="networks",
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    paired=False,
    rows=3,
    source="Somepalli et al. 2022, arXiv:2203.08124",
    limits={"triplets": (1, None), "resolution": (2, None)},
    cost="triplets·resolution² passes",
)
def boundary_agreement(pair: Pair, *, triplets: int = 20, resolution: int = 50, seed: int = 0) -> float:
    """The share of points on planes through images that two networks put into one class.

    `triplets` planes each go through three images of three labels, the same for all networks; a grid of `resolution`
    by `resolution` points covers the three and a tenth of each side beyond. 1: the same regions; 1 / classes or less:
    unrelated ones. Networks that are right on the images agree around them, so values are high; the paper takes 500
    planes. The networks are run once each, on `triplets` · `resolution`² points.

    Options:
        triplets: How many planes are looked at.
        resolution: Points per side of a plane.
        seed: Of the images that planes go through.

    Example:
        >>> import likewise
        >>> nets = [likewise.network("zoo:mlp", data=likewise.dataset("digits"), seed=seed) for seed in (0, 0, 1)]
        >>> scores = likewise.compare(
        ...     {"a": nets[0], "twin": nets[1], "b": nets[2]},
        ...     "boundary-agreement",
        ...     data="digits:test[:60]",
        ...     triplets=5,
        ...     resolution=9,
        ...     progress=False,
        ... )
        >>> scores["a", "twin"], scores["a", "b"] < 0.9
        (1.0, True)
    """
    (one, classes), (other, other_classes) = (
        _plane_classes(rep, triplets, resolution, seed) for rep in (pair.a, pair.b)
    )
    if int(classes) != int(other_classes):
        raise UndefinedError(
            f"{pair.a.name} answers with {int(classes)} classes and {pair.b.name} with {int(other_classes)}. Give "
            "networks of the same classes."
        )
    return agreement(one, other)
