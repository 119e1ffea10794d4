"""SAT without attacks: whether a step along one network's gradient takes another past its linearised boundary.

One pass with one gradient per network and image replaces an attack of 50 steps and a pass over the examples of every
other network. What is kept of an image is a margin and its slope, whose signs are the step. The slope of the
cross-entropy, along which attacks go, costs another gradient and hardly orders pairs better (by rank, SAT of 43 small
networks is followed by 0.90 for 0.89). A sketch keeps the slope at
some pixels only, in half a byte each, so that any number of networks is compared by products of small matrices; images
stay apart in it, since a share of images is what is counted.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base import sealed
from likewise._base.arrays import Array, check_labels
from likewise._base.files import reading
from likewise._base.folders import file_at
from likewise._base.formats.records import check, parse
from likewise._base.progress import Progress
from likewise.attacks.steps import EPS, Ball, Target, check_images, margin
from likewise.errors import InputError, StoreError, UndefinedError, check_count, check_seed
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity
from likewise.networks.forward import eval_mode
from likewise.transfer.classifiers import Classifier, classifier, labelled_images, networks_and_data, viewed_classifier
from likewise.transfer.examples import check_attackable, resized_for
from likewise.transfer.scores import LEAST, NONE_RIGHT, percent_of_pair, score_of

BATCH = 64
BYTES = 8192  # of a sketch
LEVELS = 7  # of a slope, beside 0: each twice the one before, the largest twice the mean of the image


@dataclass(frozen=True)
class Slopes:
    """How near a network is to another answer, image by image.

    Attributes:
        right: Which images it classifies correctly, (n,).
        margins: By how much the label leads the best other class, (n,).
        falls: The gradient by which that margin falls, (n, channels, height, width).
    """

    right: Tensor
    margins: Tensor
    falls: Tensor


def slopes_of(net: Classifier, labels: Tensor) -> Slopes:
    """Margins and their slopes of one network on all images, by one pass and one gradient each."""
    check_attackable(net)
    parts: list[tuple[Tensor, ...]] = []
    with eval_mode(net.net, input_gradients=True) as resting:
        for start in range(0, len(labels), BATCH):
            rows = torch.arange(start, min(start + BATCH, len(labels)))
            images = net.images(rows)
            check_images(images)
            classes = check_labels(net.network_labels(labels[rows]), len(rows), len(net.columns))
            aim = Target.of(resting, images, classes)
            fall, lead, answers = aim.slope_and_loss(aim.clean, margin)
            parts.append((answers.argmax(dim=1) == aim.labels, -lead, fall))
    return Slopes(*(torch.cat(part).cpu() for part in zip(*parts, strict=True)))


def crossings(source: Slopes, other: Slopes, eps: float) -> Tensor:
    """Which images a step along the signs of one network's slope takes past the other's linearised boundary."""
    step = source.falls.sign()
    if step.shape[1:] != other.falls.shape[1:]:
        step = resized_for(step, tuple(other.falls.shape[1:]))
    return eps * (step * other.falls).flatten(1).sum(dim=1) > other.margins


@quantity
def _slopes(rep: Representation) -> Slopes:
    """Margins and slopes of a network on the images it was shown."""
    data = labelled_images(rep, "know which answers are right")
    with viewed_classifier(rep, data) as net:
        return slopes_of(net, data.labels)


@measure(
    name="sat-linear",
    family="functional",
    on="networks",
    larger_is="more alike",
    bounds=(math.log(LEAST), math.log(100)),
    paired=False,
    cost="one gradient per network",
    version=3,
    source="after Hwang et al. 2024, arXiv:2210.11407",
)
def sat_linear(pair: Pair, *, eps: float = EPS) -> float:
    """How far a step along one network's gradient would fool the other if it were linear: SAT without an attack.

    ln max(0.01, 100 (h + 1/2) / (2 |X| + 1)), X the images that both classify correctly, h how many of 2 |X| steps
    cross: m_B(x) < ε ∇m_B(x) · sign ∇m_A(x), and the same with A and B swapped; m is by how much the true class leads
    the best other one. ln 100 = 4.6: each step fools the other. As `sat`, it partly measures accuracy; it says nothing
    of networks whose gradients vanish on purpose.

    Options:
        eps: How far a step goes; by default 8/255, as attacks do.

    Example:
        >>> import likewise
        >>> likewise.measures.get("sat-linear").info.cost
        'one gradient per network'
    """
    Ball(eps)  # refuses what is no distance
    a, b = _slopes(pair.a), _slopes(pair.b)
    both = a.right & b.right
    if not bool(both.any()):
        raise UndefinedError(f"SAT is undefined: {NONE_RIGHT}")
    hits = int((crossings(a, b, eps) & both).sum() + (crossings(b, a, eps) & both).sum())
    return float(score_of(percent_of_pair(hits, int(both.sum()), smoothed=True)))


@dataclass(frozen=True, eq=False)
class Sketches:
    """Slopes of networks in a few kilobytes each, from which `matrix` estimates `sat-linear` of all pairs.

    Attributes:
        names: The networks.
        codes: Slopes at some pixels of every image, two to a byte, (networks, images, bytes).
        reach: The `eps` at which a step along all of a network's own signs takes an image past its linearised
            boundary, NaN where it classifies the image wrongly, (networks, images).
        about: What sketches have to share to be compared: the images, their shape and the seed that drew pixels.
    """

    names: tuple[str, ...]
    codes: Array
    reach: Array
    about: dict[str, Any]

    def __repr__(self) -> str:
        return f"Sketches({len(self.names)} networks, {self.codes.shape[1]} images, {self.bytes:,} bytes each)"

    @property
    def bytes(self) -> int:
        """What one network takes."""
        return int(self.codes[0].nbytes + self.reach[0].nbytes)

    def matrix(self, eps: float = EPS) -> SimilarityMatrix:
        """Estimate `sat-linear` of all pairs, by one product of matrices per image.

        Args:
            eps: How far a step goes.
        """
        Ball(eps)
        info = sat_linear.info
        m = len(self.names)
        hits, counts = np.zeros((m, m)), np.zeros((m, m))
        for image in range(self.codes.shape[1]):
            falls = decode(self.codes[:, image])
            weights = np.abs(falls).sum(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                agree = (
                    np.sign(falls) @ falls.T / weights
                )  # of the second's slope, the share that the first's signs follow
                right = np.isfinite(self.reach[:, image].astype(np.float64))
                hits += right[:, None] & right & (agree * eps > self.reach[:, image].astype(np.float64))
            counts += right[:, None] & right
        with np.errstate(invalid="ignore", divide="ignore"):
            percent = np.where(counts > 0, percent_of_pair(hits + hits.T, counts, smoothed=True), np.nan)
        pairs = [(self.names[i], self.names[j]) for i, j in np.argwhere(counts == 0).tolist()]
        reasons = {(a, b): f"sat-linear is undefined for {a!r} and {b!r}: {NONE_RIGHT}" for a, b in pairs}
        return SimilarityMatrix(
            self.names,
            score_of(percent),
            measure=info.name,
            larger_is=info.larger_is,
            bounds=info.bounds,
            reasons=reasons,
            about=self.about,
        )

    def join(self, other: Sketches) -> Sketches:
        """Put the networks of others behind these.

        Args:
            other: Sketches on the same images, of the same size and seed.

        Raises:
            InputError: They were made of other images, at another size or with another seed.
        """
        for fact, value in self.about.items():
            if other.about.get(fact) != value:
                raise InputError(
                    f"the sketches differ in their {fact}, {value} and {other.about.get(fact)}, so nothing in them can "
                    "be compared. Make both from the same data, with the same size and seed."
                )
        codes, reach = (np.concatenate(pair) for pair in ((self.codes, other.codes), (self.reach, other.reach)))
        return Sketches((*self.names, *other.names), codes, reach, self.about)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the sketches to one safetensors file.

        Args:
            path: Where to write it.
        """
        tensors = {"codes": torch.from_numpy(self.codes), "reach": torch.from_numpy(self.reach)}
        return sealed.write(path, tensors, {"sketches": json.dumps({"names": list(self.names), "about": self.about})})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sketches:
        """Read a file that `save` wrote.

        Args:
            path: The file.

        Raises:
            StoreError: The file holds no sketches, or is damaged.
        """
        sentence = f"{path} holds no sketches, or it is damaged. Give a file that Sketches.save wrote."
        with reading(path, sentence, StoreError):
            tensors, facts = sealed.read(file_at(path))
            record = parse(facts["sketches"])
            check(record, {"names": list[str], "about": dict[str, Any]})
            codes, reach = tensors["codes"].numpy(), tensors["reach"].numpy()
            shapes = codes.ndim == 3 and codes.shape[:2] == reach.shape and len(reach) == len(record["names"])
            if not shapes or codes.dtype != np.uint8 or reach.dtype != np.float16:
                raise StoreError(sentence)
            return cls(tuple(record["names"]), codes, reach, record["about"])


def sketch(
    networks: Any, data: Any, *, size: int = BYTES, seed: int = 0, device: Any = None, progress: bool = True
) -> Sketches:
    """Make sketches of networks, about `size` bytes each, by one pass and one gradient per image.

    Args:
        networks: Addresses or modules, a list or a mapping by name; all are shown images of one shape.
        data: Labelled images, or their address.
        size: Bytes for slopes of a network; the more images, the fewer pixels of each. Two more per image are reaches.
        seed: Draws the pixels, the same for all networks.
        device: Where networks run.
        progress: Whether to show a progress bar.

    Raises:
        InputError: `size` is less than a byte per image, or a network is shown images of another shape.
    """
    named, inputs = networks_and_data("sketch", networks, None, data)
    check_seed(seed)
    check_count("size", size)
    if not named:
        raise InputError("no network is given, so there is nothing to sketch. Give at least one.")
    if size < len(inputs):
        raise InputError(
            f"size is {size}, less than a byte for each of {len(inputs)} images. Give more, or fewer images."
        )
    codes, reaches, shape = [], [], None
    with Progress(len(named), "sketching networks", show=progress) as bar:
        for name, network in named.items():
            with classifier(name, network, inputs, device) as net:
                slopes = slopes_of(net, inputs.labels)
            if shape is not None and slopes.falls.shape[1:] != shape:
                raise InputError(
                    f"{name!r} is shown images of shape {tuple(slopes.falls.shape[1:])} and the others of "
                    f"{tuple(shape)}. Sketch networks of one shape together; compare others by the measure sat-linear."
                )
            shape = slopes.falls.shape[1:]
            falls = slopes.falls.flatten(1).double().numpy()
            pixels = _pixels(len(inputs), falls.shape[1], 2 * (size // len(inputs)), seed)
            codes.append(encode(np.take_along_axis(falls, pixels, axis=1), np.abs(falls).mean(axis=1)))
            reaches.append(_reach(slopes, falls))
            bar.advance()
    about = {
        "images": inputs.probe,
        "shape": list(shape or ()),
        "bytes per image": codes[0].shape[1],
        "seed": int(seed),
    }
    return Sketches(tuple(named), np.stack(codes), np.stack(reaches), about)


def encode(falls: Array, means: Array) -> Array:
    """Slopes (n, pixels) as a sign and a power of two each, in four bits.

    >>> decode(encode(np.array([[0.5, -1.0, 0.001, 2.0]]), np.array([1.0]))).tolist()
    [[0.5, -1.0, 0.0, 2.0]]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.rint(np.log2(np.abs(falls) / means[:, None])) + LEVELS - 1
    codes = (
        np.clip(np.nan_to_num(levels, nan=0, neginf=0), 0, LEVELS).astype(np.uint8) | (falls < 0).astype(np.uint8) << 3
    )
    codes = np.pad(codes, ((0, 0), (0, codes.shape[1] % 2)))
    return np.asarray(codes[:, ::2] | codes[:, 1::2] << 4)


def decode(codes: Array) -> Array:
    """Slopes of bytes (n, bytes), in units of their image's mean."""
    halves = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    levels = (halves & 7).astype(np.float32)
    sizes = np.where(levels > 0, np.exp2(levels - (LEVELS - 1)), 0)
    return np.asarray(np.where(halves & 8, -sizes, sizes))


def _pixels(images: int, count: int, most: int, seed: int) -> Array:
    """Which values of each image are kept, (images, kept): all of them where there is room."""
    draw = np.random.default_rng(seed)
    if most >= count:
        return np.tile(np.arange(count), (images, 1))
    return np.stack([np.sort(draw.choice(count, most, replace=False)) for _ in range(images)])


def _reach(slopes: Slopes, falls: Array) -> Array:
    lengths = np.maximum(np.abs(falls).sum(axis=1), 1e-30)
    reach = np.minimum(slopes.margins.double().numpy() / lengths, 6e4)  # the largest of half precision
    return np.where(slopes.right.numpy(), reach, np.nan).astype(np.float16)
