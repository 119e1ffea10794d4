"""Adversarial examples of one network: made in batches, each stored the moment it exists.

Stored are bytes where these are exact, else half precision, rounded towards the clean image so that no value moves
further from it; where that cannot be, as near an image whose own values half precision lacks, single precision.
What is used afterwards is what was stored, so results do not depend on where examples come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise import attacks
from likewise._base.hashing import digest, facts_digest, value_digest
from likewise._base.machine import is_out_of_memory
from likewise.attacks import Attack
from likewise.attacks.steps import Ball
from likewise.errors import ForwardError, InputError, LikewiseError
from likewise.networks.inputs.image_size import resized
from likewise.networks.inputs.normalisation import transform_of
from likewise.networks.inputs.transforms import in_channels
from likewise.transfer.classifiers import Classifier
from likewise.work.artifacts import Artifacts

KIND = "adversarial"  # the folder of a store
PAPER = {"pgd": {"eps": 8 / 255, "iterations": 50, "relative_step": 0.1}}  # of an attack by SAT's paper
_RULES = 1  # raised where examples come out otherwise than before
_SEARCH_RULES = {"differential-evolution": 2}  # of attacks that search, by how: since its draws are not SciPy's
_REFUSED = {
    "early_stop": "examples that barely fool their source fool nothing else",
    "targeted": "examples are led away from the true classes",
}


@dataclass(frozen=True)
class Recipe:
    """How examples are made: an attack with all its options, a seed, and how many images at a time.

    Random starts are drawn batch by batch, so another batch size gives other examples.
    """

    attack: Attack
    options: Mapping[str, Any]
    seed: int
    batch_size: int

    @classmethod
    def of(
        cls, attack: str | Attack, options: Mapping[str, Any], seed: int, batch_size: int, *, transfer: bool = True
    ) -> Recipe:
        """An attack by name; PGD as in SAT's paper where nothing else is said, others by their own defaults.

        Where examples are not to `transfer`, they may stop early.
        """
        found = attack if isinstance(attack, Attack) else attacks.get(attack)
        given = {name: value for name, value in options.items() if value is not None}
        found.check(given)
        for name, reason in _REFUSED.items():
            if given.get(name) and (transfer or name != "early_stop"):
                raise InputError(f"{name} is refused here: {reason}. Leave it out.")
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}. Give at least 1.")
        paper = {} if "step" in given else PAPER.get(found.name, {})
        own = {name: value for name, value in found.options.items() if name != "seed"}
        chosen = {**own, **paper, **given}
        if "eps" in chosen:
            Ball(chosen["eps"])  # refused before any network has to run
        return cls(found, chosen, seed, batch_size)

    def facts(self) -> dict[str, Any]:
        """What examples depend on beside the network and the images."""
        told = {name: value for name, value in sorted(self.options.items()) if name != "early_stop" or value}
        options = {name: _plain(value) for name, value in told.items()}
        ours = str(getattr(self.attack.run, "__module__", "")).startswith("likewise.")
        code = "" if ours else value_digest(self.attack.run)
        drawn = {"seed": self.seed, "batch_size": self.batch_size} if "seed" in self.attack.options else {}
        rules = _SEARCH_RULES.get(self.options.get("search", ""), _RULES) if ours else _RULES
        return {"attack": self.attack.name, "options": options, "code": code, "rules": rules, **drawn}

    def run(self, net: Classifier, images: Tensor, labels: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Examples of one batch, and at how many steps each had no gradient."""
        seeds = {"seed": self.seed + start} if "seed" in self.attack.options else {}
        try:
            found = self.attack(net.net, images, labels, **{**self.options, **seeds})
        except LikewiseError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise ForwardError(
                    f"{net.name!r} does not fit in memory with {len(images)} images under attack. Lower batch_size."
                ) from error
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise ForwardError(
                f"{self.attack.name} cannot run on {net.name!r}: {type(error).__name__}: {reason}. Choose another "
                "attack, or leave that network out."
            ) from error
        return found.images.detach().cpu(), found.stalled.detach().cpu()


@dataclass(frozen=True)
class Examples:
    """Where the examples of one network are: one key per batch, in the order of the inputs."""

    network: str
    folder: Artifacts
    keys: tuple[str, ...]

    @property
    def key(self) -> str:
        """A name for all of them."""
        return digest(self.keys)[:24]

    def batches(self) -> Iterator[Tensor]:
        """The images, batch by batch, as floats in [0, 1]."""
        return (unpack(self._read(key)["images"]) for key in self.keys)

    def image(self, row: int, batch_size: int) -> Tensor:
        """The example made of one input, with the number of inputs that were attacked at a time."""
        return unpack(self._read(self.keys[row // batch_size])["images"][row % batch_size])

    def stalled(self) -> int:
        """How many images had a step without a gradient."""
        return sum(int((self._read(key)["stalled"] > 0).sum()) for key in self.keys)

    def _read(self, key: str) -> dict[str, Tensor]:
        found = self.folder.find(key)
        if found is None:
            raise InputError(f"examples of {self.network!r} are gone from {self.folder.folder}. Run again.")
        return found


def make_examples(net: Classifier, recipe: Recipe, folder: Artifacts) -> Iterator[Examples | None]:
    """Make what is not there yet, batch by batch; None while there is more, at last the examples."""
    check_attackable(net)
    n, size = len(net.data), recipe.batch_size
    truth = digest([net.data.labels])[:24]
    known = {**net.identity(), **recipe.facts(), "labels": truth}
    facts = {"network": net.name, "data": net.data.name, "attack": recipe.attack.name}
    keys = []
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        key = facts_digest({**known, "rows": [rows.start, rows.stop]})
        if folder.find(key) is None:
            images, labels = _batch(net, rows)
            found, stalled = recipe.run(net, images, labels, start)
            packed = pack(found, images.cpu(), sparse=recipe.attack.norm not in ("Linf", "L2"))
            folder.put(key, {"stalled": stalled, "images": packed}, facts | {"rows": f"{rows.start} to {rows.stop}"})
        keys.append(key)
        yield None
    yield Examples(net.name, folder, tuple(keys))


def _batch(net: Classifier, rows: slice) -> tuple[Tensor, Tensor]:
    part = net.data[rows]
    images, labels = next(iter(part.batches(len(part), device=net.device)))
    if not isinstance(images, Tensor):
        raise InputError(_not_pixels(net.name))
    return images, net.own_labels(labels)


def check_attackable(net: Classifier) -> None:
    """Refuse data that is no images, and a network that takes something else than pixels in [0, 1]."""
    if net.data.domain != "image":
        raise InputError(f"{net.data.name!r} holds {net.data.domain} inputs, and attacks change images. Give images.")
    own = transform_of(net.net)
    if own is not None and own.whole:
        raise InputError(_not_pixels(net.name))
    images, _ = _batch(net, slice(0, min(4, len(net.data))))
    answers = net.logits(images)
    if bool((answers >= 0).all()) and torch.allclose(
        answers.sum(dim=1), torch.ones(len(answers)).to(answers), atol=1e-3
    ):
        raise InputError(
            f"{net.name!r} answers with probabilities, whose gradients vanish, not with logits. Give the network "
            "without its softmax."
        )


def _not_pixels(name: str) -> str:
    return (
        f"{name!r} is shown what its own processor makes of an image, not pixels between 0 and 1, so it cannot be "
        "attacked. Leave it out."
    )


def pack(images: Tensor, clean: Tensor, *, sparse: bool = False) -> Tensor:
    """Images in as few bytes as keep them as near to the clean ones: bytes, half precision or single.

    Of a `sparse` change, such as a patch, what was not changed stays as it is.

    >>> clean = torch.tensor([[0.25, 0.5]])
    >>> pack(clean + 8 / 255, clean).dtype, pack(torch.tensor([[0.0, 1.0]]), clean).dtype
    (torch.float16, torch.uint8)
    """
    whole = (images * 255).round().to(torch.uint8)
    if torch.equal(unpack(whole), images):
        return whole
    if sparse:
        return images
    half = _towards(images, clean)
    given, kept = (images - clean).flatten(1), (half.float() - clean).flatten(1)
    within = kept.abs().amax(dim=1) <= given.abs().amax(dim=1)
    return half if bool((within & (kept.norm(dim=1) <= given.norm(dim=1))).all()) else images


def unpack(images: Tensor) -> Tensor:
    """Packed images as floats in [0, 1]."""
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def _towards(images: Tensor, clean: Tensor) -> Tensor:
    """Values in half precision, the next one towards the clean image where rounding leads away from it."""
    half = images.half()
    gap = half.float() - clean
    away = gap.abs() > (images - clean).abs()
    step = torch.where(gap > 0, -1, 1).to(torch.int16)
    nearer = torch.where(away, half.view(torch.int16) + step, half.view(torch.int16)).view(torch.float16)
    return torch.where((nearer.float() - clean).abs() < gap.abs(), nearer, half)


def fitted(images: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Examples at the channels and the size that another network is shown (bilinear, antialiased)."""
    channels, *size = shape
    return resized(in_channels(images, channels), tuple(size))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else value_digest(value)
