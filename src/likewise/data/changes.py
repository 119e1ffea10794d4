"""Controlled changes to labelled data: labels made random, shortcuts that give the label away, classes left out.

Networks that are trained on changed data differ in a known way, which is what a benchmark of measures asks for. Each
change is a function of the data, a share and a seed, and does for graphs, images and texts what ReSi does for them. The
name of the changed data says what was done, so that trainings on it are kept apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from colorsys import hsv_to_rgb
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from likewise.data.graphs import Nodes
from likewise.data.image_files import Decoded, ImageFiles
from likewise.data.images import Images, as_pil
from likewise.data.inputs import Data
from likewise.errors import InputError, did_you_mean

NEW_CLASSES = 5  # of texts with random labels
TEST_SEED = 2024  # of the shortcuts of test nodes, which are the same for every network
Change = Callable[[Data, float, int], Data]
Text = str | tuple[str, ...]


def randomise_labels(data: Data, share: float, seed: int = 0) -> Data:
    """The same inputs, a share of them with labels that say nothing of them.

    Of a graph, a share of all nodes, whatever their split, gets another label than its own, each as likely. Every image
    gets, with probability `share`, any label, which may be its own. A share of the texts gets one of five new
    classes.

    Args:
        data: Labelled data.
        share: How many of the labels become random, from 0 to 1.
        seed: What they are drawn by.

    Raises:
        InputError: The data has no labels or one class, or the share is none.

    Example:
        >>> tiny = Data("tiny", "text", ["good", "bad"], [1, 0], ("negative", "positive"))
        >>> randomise_labels(tiny, 0.5, seed=1)
        Data('tiny,random_labels=0.5,seed=1', n=2, classes=7)
    """
    return _changed(data, _LABELS, share, seed, "random_labels")


def add_shortcut(data: Data, share: float, seed: int = 0) -> Data:
    """The same labels, and inputs that give them away: rightly in a share of the inputs, wrongly in the others.

    A node has the label, as zeros and a one, behind its features: the right one for a share of the nodes of the splits
    `train` and `val`, another for the rest of them, and always another for test nodes, whatever the share and the seed.
    What belongs to no split has the right one.

    An image has a disc somewhere, in the colour of its class with probability `share`, else in that of any class: one
    hue per class, in greyscale images one grey, the lightest for the last. Where it is depends on the seed alone. Its
    radius is 3.5 pixels, 2.5 in images of less than 64 pixels and 1.5 in those of less than 16.

    A text has one more token in front, `[CLASS0]` for the first class and so on: that of its class with probability
    `share`, else that of another class, each as likely; of a pair of texts the first one has it. A share as large as
    the largest class says nothing of the label; of two classes, a share of 0 gives it away as a share of 1 does. A
    network that is built for this data, as `likewise.train` does with an address, has one new row of embeddings for
    each of these tokens (`class_tokens`), and its weights file brings it back with them.

    Args:
        data: Labelled data.
        share: How many of the inputs give their label away, from 0 to 1.
        seed: What they are drawn by.

    Raises:
        InputError: The data has no labels or one class, or the share is none.

    Example:
        >>> tiny = Data("tiny", "text", ["good", "bad"], [1, 0], ("negative", "positive"))
        >>> add_shortcut(tiny, 1.0).inputs
        ['[CLASS1] good', '[CLASS0] bad']
    """
    return _changed(data, _SHORTCUTS, share, seed, "shortcut")


def in_colour(data: Data) -> Data:
    """The same images with three channels: a shortcut in the colour of a class needs colours.

    >>> grey = Data("grey", "image", torch.zeros(2, 1, 8, 8), [0, 1], ("a", "b"))
    >>> in_colour(grey), in_colour(grey).inputs.shape
    (Data('grey,in_colour', n=2, classes=2), torch.Size([2, 3, 8, 8]))
    """
    images = data.inputs
    if tuple(images.shape)[1] == 3:
        return data
    stored = images.stored if isinstance(images, Images) else images
    wide = stored.expand(-1, 3, -1, -1)
    inputs = Images(wide, images.asked) if isinstance(images, Images) else wide
    return with_inputs(replace(data, name=f"{data.name},in_colour"), inputs)


def class_tokens(count: int) -> list[str]:
    """The tokens that shortcuts of texts are made of, one per class.

    >>> class_tokens(2)
    ['[CLASS0]', '[CLASS1]']
    """
    return [f"[CLASS{number}]" for number in range(count)]


def without_class(data: Data, *names: str) -> Data:
    """The same data without all samples of some classes; the labels of classes behind them move up.

    >>> tiny = Data("tiny", "text", ["good", "bad", "fine"], [2, 0, 1], ("bad", "fair", "good"))
    >>> less = without_class(tiny, "fair")
    >>> less, less.classes, less.labels.tolist()
    (Data('tiny,without=fair', n=2, classes=2), ('bad', 'good'), [1, 0])
    """
    if not isinstance(data, Data):
        raise InputError(f"a {type(data).__name__} is no data with labels. Give what likewise.dataset gives.")
    if data.domain == "graph":
        raise InputError(f"{data.name!r} holds graph inputs. Give data of image or text inputs.")
    labels = data.need_labels("leave out a class")
    for name in names:
        if name not in data.classes:
            raise InputError(f"{data.name!r} has no class {name!r}.{did_you_mean(str(name), data.classes)}")
    kept = [number for number, name in enumerate(data.classes) if name not in names]
    rows = torch.isin(labels, torch.tensor(kept)).nonzero()[:, 0]
    new_labels = torch.zeros(len(data.classes), dtype=torch.long)
    new_labels[kept] = torch.arange(len(kept))
    return Data(
        f"{data.name},without={'+'.join(names)}",
        data.domain,
        data[rows].inputs,
        new_labels[labels[rows]],
        tuple(data.classes[number] for number in kept),
        None if data.wnids is None else tuple(data.wnids[number] for number in kept),
    )


def _changed(data: Data, changes: Mapping[str, Change], share: float, seed: int, name: str) -> Data:
    """The data after the change for its kind, under a name that tells it, or why it cannot be changed."""
    check_change(data, changes, share, seed)
    data.need_labels("change it")
    if len(data.classes) < 2:
        raise InputError(f"{data.name!r} has 1 class. To draw another, give data of at least 2.")
    return with_change(changes[data.domain](data, share, seed), name, share, seed)


def with_change(data: Data, name: str, share: float, seed: int) -> Data:
    """The same data under a name that tells what was done to it."""
    return replace(data, name=f"{data.name},{name}={float(share)},seed={seed}")


def check_change(data: Data, kinds: Collection[str], share: float, seed: int) -> None:
    """Refuse what is no data of these kinds, no share or no seed."""
    if not isinstance(data, Data):
        raise InputError(f"a {type(data).__name__} is no data with labels. Give what likewise.dataset gives.")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise InputError(f"the share is {share!r}. Give a number from 0 to 1.")
    if type(seed) is not int:
        raise InputError(f"the seed is {seed!r}. Give a whole number.")
    if data.domain not in kinds:
        raise InputError(f"{data.name!r} holds {data.domain} inputs. Give data of {' or '.join(kinds)} inputs.")


def _others(labels: Sequence[int], classes: int, share: float, seed: int) -> list[int]:
    """The labels, a share of them replaced by another each."""
    draw, changed = random.Random(seed), list(labels)
    for row in draw.sample(range(len(changed)), round(share * len(changed))):
        other = draw.randrange(classes - 1)
        changed[row] = other + (other >= changed[row])
    return changed


def _labels_of_nodes(data: Data, share: float, seed: int) -> Data:
    graph, index = copy(data.inputs.graph), data.inputs.index
    graph.y = torch.tensor(_others(graph.y.tolist(), len(data.classes), share, seed), device=graph.y.device)
    return replace(data, inputs=Nodes(graph, index), labels=graph.y[index])


def _labels_of_images(data: Data, share: float, seed: int) -> Data:
    draw = random.Random(seed)
    drawn = [(draw.random() < share, draw.randrange(len(data.classes))) for _ in range(len(data))]
    labels = [new if hit else old for old, (hit, new) in zip(data.labels.tolist(), drawn, strict=True)]
    return replace(data, labels=labels)


def _labels_of_texts(data: Data, share: float, seed: int) -> Data:
    draw, labels, first = random.Random(seed), data.labels.tolist(), len(data.classes)
    for row in draw.sample(range(len(labels)), round(share * len(labels))):
        labels[row] = first + draw.randrange(NEW_CLASSES)
    classes = (*data.classes, *(f"random {number}" for number in range(1, NEW_CLASSES + 1)))
    wnids = None if data.wnids is None else (*data.wnids, *[None] * NEW_CLASSES)
    return replace(data, labels=labels, classes=classes, wnids=wnids)


def _shortcut_of_nodes(data: Data, share: float, seed: int) -> Data:
    graph, classes = copy(data.inputs.graph), len(data.classes)
    cues = graph.y.clone()
    for split, wrong, split_seed in (("train", 1 - share, seed), ("val", 1 - share, seed), ("test", 1.0, TEST_SEED)):
        mask = getattr(graph, f"{split}_mask", None)
        if mask is None:
            raise InputError(f"the graph of {data.name!r} has no {split}_mask. Set it, one truth value per node.")
        cues[mask] = torch.tensor(_others(cues[mask].tolist(), classes, wrong, split_seed), device=cues.device)
    graph.x = torch.cat([graph.x, functional.one_hot(cues, classes).to(graph.x)], dim=1)
    return replace(data, inputs=Nodes(graph, data.inputs.index))


@dataclass(frozen=True, eq=False)
class _Discs:
    """One disc per image: where its middle is `(n, 2)`, and its colour as bytes `(n, channels)`."""

    middles: Tensor
    colours: Tensor
    radius: float

    def painted(self, images: Tensor, rows: slice) -> Tensor:
        """These rows of the images, bytes or floats in [0, 1], with their discs."""
        high, wide = (torch.arange(side) for side in images.shape[2:])
        row, column = (middle[:, None, None] for middle in self.middles[rows].T)
        inside = (high[:, None] - row) ** 2 + (wide - column) ** 2 < self.radius**2
        colours = self.colours[rows] / (255 if images.is_floating_point() else 1)
        return torch.where(inside[:, None], colours.to(images.dtype)[:, :, None, None], images)


@dataclass(frozen=True, eq=False)
class _PaintedFile:
    """An image of a file with its disc, by its number."""

    images: Any
    discs: _Discs

    def __call__(self, number: int) -> Any:
        return as_pil(self.discs.painted(self.images[[number]], slice(number, number + 1)))[0]


def _shortcut_of_images(data: Data, share: float, seed: int) -> Data:
    images = data.inputs
    stored = images.stored if isinstance(images, Images) else images
    discs = _discs(data, tuple(stored.shape), share, seed)
    if not isinstance(stored, Tensor):
        numbers = range(len(data))
        files = ImageFiles(numbers, stored.shape[2], decoded=Decoded(numbers, give=_PaintedFile(images, discs)))
        return with_inputs(data, files)
    chunks = [slice(start, start + 1024) for start in range(0, len(stored), 1024)]
    painted = torch.cat([discs.painted(stored[rows], rows) for rows in chunks]) if chunks else stored
    return with_inputs(data, Images(painted, images.asked) if isinstance(images, Images) else painted)


def with_inputs(data: Data, inputs: Any) -> Data:
    """Other inputs with the same labels; what captions belonged to the old ones is left out."""
    return Data(data.name, data.domain, inputs, data.labels, data.classes, data.wnids, data.class_tokens)


def _discs(data: Data, shape: Sequence[int], share: float, seed: int) -> _Discs:
    draw, classes = random.Random(seed), len(data.classes)
    _, channels, high, wide = shape
    edge = sum(min(high, wide) >= side for side in (16, 64))  # how far from the edge its middle is at least
    middles, cues = [], []
    for label in data.labels.tolist():
        other, hit = draw.randrange(classes), draw.random() < share
        cues.append(label if hit else other)
        middles.append((draw.randrange(edge, high - edge), draw.randrange(edge, wide - edge)))
    hues = [hsv_to_rgb(number / classes, 1, 1) for number in range(classes)]
    greys = [((number + 1) / classes,) for number in range(classes)]
    colours = (255 * torch.tensor(greys if channels == 1 else hues)).byte()
    return _Discs(torch.tensor(middles).reshape(-1, 2), colours[cues], edge + 1.5)


def _shortcut_of_texts(data: Data, share: float, seed: int) -> Data:
    draw, classes, cues = random.Random(seed), len(data.classes), []
    for label in data.labels.tolist():
        other, hit = draw.randrange(classes - 1), draw.random() < share
        cues.append(label if hit else other + (other >= label))
    starts = [f"{token} " for token in class_tokens(classes)]
    texts = [change_first(text, starts[number].__add__) for text, number in zip(texts_of(data), cues, strict=True)]
    return replace(with_inputs(data, texts), class_tokens=classes)


def texts_of(data: Data) -> list[Text]:
    """The texts of data, or that they are tokens already."""
    texts = data.inputs
    if not isinstance(texts, list) or not all(isinstance(entry, str) for text in texts for entry in text):
        raise InputError(f"{data.name!r} holds tokens, and not the words they are of. Give texts.")
    return texts


def change_first(text: Text, change: Callable[[str], str]) -> Text:
    """A text after a change, or a pair of which the first text is changed: the premise, not the hypothesis."""
    return change(text) if isinstance(text, str) else (change(text[0]), *text[1:])


_LABELS: dict[str, Change] = {"graph": _labels_of_nodes, "image": _labels_of_images, "text": _labels_of_texts}
_SHORTCUTS: dict[str, Change] = {"graph": _shortcut_of_nodes, "image": _shortcut_of_images, "text": _shortcut_of_texts}
