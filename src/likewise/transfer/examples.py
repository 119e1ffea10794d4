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
from likewise.errors import ForwardError, InputError, LikewiseError, first_line
from likewise.networks.inputs.normalisation import transform_of
from likewise.networks.inputs.transforms import in_channels, resized
from likewise.transfer.classifiers import Classifier
from likewise.work.store import Artifacts

EXAMPLES = "adversarial"  # the folder of a store
PAPER = {"pgd": {"eps": 8 / 255, "iterations": 50, "relative_step": 0.1}}  # of an attack by SAT's paper
_RULES = 1  # raised when the same settings give other examples than before
_SEARCH_RULES = {"differential-evolution": 2}  # by the search of an attack: its draws are no longer SciPy's
_REFUSED = {
    "early_stop": "examples that barely fool their source fool nothing else",
    "targeted": "examples are led away from the true classes",
}


@dataclass(frozen=True)
class AttackSettings:
    """How examples are made: an attack with all its options, a seed, and how many images per batch.

    Random starts are drawn batch by batch, so another batch size gives other examples.
    """

    attack: Attack
    options: Mapping[str, Any]
    seed: int
    batch_size: int

    @classmethod
    def of(
        cls, attack: str | Attack, options: Mapping[str, Any], seed: int, batch_size: int, *, transfer: bool = True
    ) -> AttackSettings:
        """An attack by name; PGD by default with the options of SAT's paper, others with their own defaults.

        Examples that need not `transfer` may stop early.
        """
        attack = attack if isinstance(attack, Attack) else attacks.get(attack)
        explicit = {name: value for name, value in options.items() if value is not None}
        attack.check(explicit)
        for name, reason in _REFUSED.items():
            if explicit.get(name) and (transfer or name != "early_stop"):
                raise InputError(f"{name} is refused here: {reason}. Leave it out.")
        paper = {} if "step" in explicit else PAPER.get(attack.name, {})
        defaults = {name: value for name, value in attack.options.items() if name != "seed"}
        settings = {**defaults, **paper, **explicit}
        if "eps" in settings:
            Ball(settings["eps"])  # refused before any network has to run
        return cls(attack, settings, seed, batch_size)

    def facts(self) -> dict[str, Any]:
        """What examples depend on beside the network and the images."""
        options = {name: _plain(value) for name, value in sorted(self.options.items()) if name != "early_stop" or value}
        built_in = str(getattr(self.attack.run, "__module__", "")).startswith("likewise.")
        code = "" if built_in else value_digest(self.attack.run)
        drawn = {"seed": self.seed, "batch_size": self.batch_size} if "seed" in self.attack.options else {}
        rules = _SEARCH_RULES.get(self.options.get("search", ""), _RULES) if built_in else _RULES
        return {"attack": self.attack.name, "options": options, "code": code, "rules": rules, **drawn}

    def run(self, net: Classifier, images: Tensor, labels: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Examples of one batch, and at how many steps each had no gradient."""
        seeds = {"seed": self.seed + start} if "seed" in self.attack.options else {}
        try:
            result = self.attack(net.net, images, labels, **{**self.options, **seeds})
        except LikewiseError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise ForwardError(
                    f"{net.name!r} does not fit in memory with {len(images)} images under attack. Lower batch_size."
                ) from error
            raise ForwardError(
                f"{self.attack.name} cannot run on {net.name!r}: {type(error).__name__}: {first_line(error)}. Choose "
                "another attack, or leave that network out."
            ) from error
        return result.images.detach().cpu(), result.stalled.detach().cpu()


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
        """The example made of one input, given how many inputs were attacked per batch."""
        return unpack(self._read(self.keys[row // batch_size])["images"][row % batch_size])

    def stalled(self) -> int:
        """How many images had a step without a gradient."""
        return sum(int((self._read(key)["stalled"] > 0).sum()) for key in self.keys)

    def _read(self, key: str) -> dict[str, Tensor]:
        tensors = self.folder.find(key)
        if tensors is None:
            raise InputError(f"examples of {self.network!r} are gone from {self.folder.folder}. Run again.")
        return tensors


def make_examples(net: Classifier, settings: AttackSettings, folder: Artifacts) -> Iterator[Examples | None]:
    """Make the batches that are not in the folder yet; yields None after each batch, then the examples."""
    check_attackable(net)
    n, size = len(net.data), settings.batch_size
    identity = {**net.identity(), **settings.facts(), "labels": digest([net.data.labels])[:24]}
    facts = {"network": net.name, "data": net.data.name, "attack": settings.attack.name}
    keys = []
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        key = facts_digest({**identity, "rows": [rows.start, rows.stop]})
        if folder.find(key) is None:
            images, labels = _batch(net, rows)
            examples, stalled = settings.run(net, images, labels, start)
            packed = pack(examples, images.cpu(), sparse=settings.attack.norm not in ("Linf", "L2"))
            folder.put(key, {"stalled": stalled, "images": packed}, facts | {"rows": f"{rows.start} to {rows.stop}"})
        keys.append(key)
        yield None
    yield Examples(net.name, folder, tuple(keys))


def _batch(net: Classifier, rows: slice) -> tuple[Tensor, Tensor]:
    data = net.data[rows]
    images, labels = next(iter(data.batches(len(data), device=net.device)))
    if not isinstance(images, Tensor):
        raise InputError(_not_pixels(net.name))
    return images, net.network_labels(labels)


def check_attackable(net: Classifier) -> None:
    """Refuse data that is not images, and a network that takes something else than pixels in [0, 1]."""
    if net.data.domain != "image":
        raise InputError(f"{net.data.name!r} holds {net.data.domain} inputs, and attacks change images. Give images.")
    transform = transform_of(net.net)
    if transform is not None and transform.whole:
        raise InputError(_not_pixels(net.name))
    images, _ = _batch(net, slice(0, min(4, len(net.data))))
    logits = net.logits(images)
    if bool((logits >= 0).all()) and torch.allclose(logits.sum(dim=1), torch.ones(len(logits)).to(logits), atol=1e-3):
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

    With a `sparse` change, such as a patch, unchanged pixels stay as they are.

    >>> clean = torch.tensor([[0.25, 0.5]])
    >>> pack(clean + 8 / 255, clean).dtype, pack(torch.tensor([[0.0, 1.0]]), clean).dtype
    (torch.float16, torch.uint8)
    """
    in_bytes = (images * 255).round().to(torch.uint8)
    if torch.equal(unpack(in_bytes), images):
        return in_bytes
    if sparse:
        return images
    half = _rounded_towards(images, clean)
    change, rounded = (images - clean).flatten(1), (half.float() - clean).flatten(1)
    within = rounded.abs().amax(dim=1) <= change.abs().amax(dim=1)
    return half if bool((within & (rounded.norm(dim=1) <= change.norm(dim=1))).all()) else images


def unpack(images: Tensor) -> Tensor:
    """Packed images as floats in [0, 1]."""
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def _rounded_towards(images: Tensor, clean: Tensor) -> Tensor:
    """Values in half precision, the next one towards the clean image where rounding leads away from it."""
    half = images.half()
    gap = half.float() - clean
    away = gap.abs() > (images - clean).abs()
    step = torch.where(gap > 0, -1, 1).to(torch.int16)
    nearer = torch.where(away, half.view(torch.int16) + step, half.view(torch.int16)).view(torch.float16)
    return torch.where((nearer.float() - clean).abs() < gap.abs(), nearer, half)


def resized_for(images: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Examples at the channels and the size that another network is shown (bilinear, antialiased)."""
    channels, *size = shape
    return resized(in_channels(images, channels), tuple(size))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else value_digest(value)
