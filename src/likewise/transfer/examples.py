"""Adversarial examples of one network: made in batches, each stored the moment it exists.

Stored is what was changed, as shares of the largest change in half precision: values at the bound stay there exactly,
others move by at most a 4096th of it, and none leaves the bound. Where examples are whole bytes, or few pixels changed,
the images themselves are stored. Clean images are stored once for all networks that are shown the same. What is used
afterwards is what was stored, so results do not depend on where examples come from.
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
from likewise.attacks.steps import Ball, lengths, per_image
from likewise.errors import ForwardError, InputError, LikewiseError, first_line
from likewise.networks.inputs.normalisation import transform_of
from likewise.networks.inputs.transforms import in_channels, resized
from likewise.transfer.classifiers import Classifier
from likewise.work.store import Artifacts, read

EXAMPLES = "adversarial"  # the folder of a store
CLEAN = "clean"  # the fact of a batch that names the artifact of its clean images
_RULES = 2  # raised when the same settings give other examples than before; 1 were images in half precision
_SEARCH_RULES = {"cma-es": 1, "differential-evolution": 2}  # by the search of an attack: their examples were bytes
_ROUNDING = 2.0**-23  # of single precision near 1
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
        """An attack by name, with its own defaults where options say nothing.

        Examples that need not `transfer` may stop early.
        """
        attack = attack if isinstance(attack, Attack) else attacks.get(attack)
        explicit = {name: value for name, value in options.items() if value is not None}
        attack.check(explicit)
        for name, reason in _REFUSED.items():
            if explicit.get(name) and (transfer or name != "early_stop"):
                raise InputError(f"{name} is refused here: {reason}. Leave it out.")
        settings = {name: value for name, value in attack.options.items() if name != "seed"} | explicit
        if "eps" in settings:
            Ball(settings["eps"], settings.get("norm", "Linf"))  # refused before any network has to run
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
        return (self._images(key) for key in self.keys)

    def image(self, row: int, batch_size: int) -> Tensor:
        """The example made of one input, given how many inputs were attacked per batch."""
        return self._images(self.keys[row // batch_size])[row % batch_size]

    def stalled(self) -> int:
        """How many images had a step without a gradient."""
        return sum(int((self._read(key)[0]["stalled"] > 0).sum()) for key in self.keys)

    def _images(self, key: str) -> Tensor:
        packed, facts = self._read(key)
        return unpack(packed, as_floats(self._read(facts[CLEAN])[0]["images"]) if CLEAN in facts else None)

    def _read(self, key: str) -> tuple[dict[str, Tensor], dict[str, str]]:
        if self.folder.find(key) is None:
            raise InputError(f"examples of {self.network!r} are gone from {self.folder.folder}. Run again.")
        return read(self.folder.path(key))


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
        if not _is_stored(key, folder):
            images, labels = _batch(net, rows)
            examples, stalled = settings.run(net, images, labels, start)
            packed = pack(examples, images.cpu(), sparse=settings.attack.norm not in ("Linf", "L2"))
            clean = {CLEAN: _store_clean(images.cpu(), folder)} if "change" in packed else {}
            folder.put(key, {"stalled": stalled, **packed}, facts | clean | {"rows": f"{rows.start} to {rows.stop}"})
        keys.append(key)
        yield None
    yield Examples(net.name, folder, tuple(keys))


def _is_stored(key: str, folder: Artifacts) -> bool:
    """Whether a batch is there, with the clean images that it is the change of."""
    if folder.find(key) is None:
        return False
    clean = read(folder.path(key))[1].get(CLEAN)
    return clean is None or folder.find(clean) is not None


def _store_clean(images: Tensor, folder: Artifacts) -> str:
    """Store clean images under a key that follows from them, so that networks which are shown the same share them."""
    packed = exact_bytes(images)
    key = digest([f"{CLEAN} {packed.dtype} {tuple(packed.shape)}", packed])[:24]
    if folder.find(key) is None:
        folder.put(key, {"images": packed}, {})
    return key


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
        f"{name!r} is shown what a transform makes of an image, not pixels between 0 and 1, so it cannot be attacked. "
        "Give mean and std in place of a transform that only normalises, else leave it out."
    )


def pack(images: Tensor, clean: Tensor, *, sparse: bool = False) -> dict[str, Tensor]:
    """Examples in few bytes, for `unpack`: the images where they are bytes, else their change in half precision.

    With a `sparse` change, such as a patch, the images as they are.

    >>> clean = torch.tensor([[0.25, 0.5]])
    >>> list(pack(clean + 8 / 255, clean)), pack(torch.tensor([[0.0, 1.0]]), clean)["images"].dtype
    (['change', 'scale'], torch.uint8)
    """
    whole = exact_bytes(images)
    if sparse or whole.dtype == torch.uint8:
        return {"images": whole}
    change = (images - clean).float()
    largest = change.abs().flatten(1).amax(dim=1)
    share = (change / per_image(largest.clamp(min=1e-30), change)).half()
    scale = (largest - _ROUNDING).clamp(min=0)  # so that adding it to the clean image does not round beyond the bound
    grown = lengths(share.float()).flatten() * scale / lengths(change).flatten().clamp(min=1e-30)
    return {"change": share, "scale": scale / grown.clamp(min=1)}


def unpack(packed: Mapping[str, Tensor], clean: Tensor | None = None) -> Tensor:
    """Packed examples as floats in [0, 1]; where their change was kept, with the clean images."""
    if clean is None or "images" in packed:
        return as_floats(packed["images"])
    change = packed["change"].float()
    return (clean + per_image(packed["scale"], change) * change).clamp(0, 1)


def exact_bytes(images: Tensor) -> Tensor:
    """Images as bytes where that loses nothing, else as they are."""
    in_bytes = (images * 255).round().to(torch.uint8)
    return in_bytes if torch.equal(as_floats(in_bytes), images) else images


def as_floats(images: Tensor) -> Tensor:
    """Images in [0, 1], from bytes or floats."""
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def resized_for(images: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Examples at the channels and the size that another network is shown (bilinear, antialiased)."""
    channels, *size = shape
    return resized(in_channels(images, channels), tuple(size))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else value_digest(value)
