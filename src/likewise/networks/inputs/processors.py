"""What turns texts, sounds and images into the inputs of a network of transformers, read from its repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from likewise.networks.forward import input_kind
from likewise.networks.inputs.feature_extractors import FromExtractor, accepted_names
from likewise.networks.inputs.tokenizers import longest_text, takes_padding
from likewise.networks.inputs.transforms import Transform, from_processor
from likewise.networks.sources.repository import Repository
from likewise.networks.weight_metadata import declared_normalisation
from likewise.networks.zoo.text import FromTransformers


@dataclass(frozen=True)
class Shown:
    """How a network is shown images, where it takes such."""

    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    transform: Transform | None = None


@dataclass(frozen=True)
class Wanted:
    """What was asked for: another tokenizer, how many tokens at most, and the rate of the samples."""

    tokenizer: str | None = None
    longest: int | None = None
    sampling_rate: int | None = None


def show(net: Any, config: Any, place: Repository, wanted: Wanted) -> Shown | None:
    """Give a text network its `tokenize`, an audio network its `from_samples`; say how one of images is shown them.

    None where a network of images brings nothing that says so.
    """
    kind = input_kind(net)
    if kind == "image":
        return _images(config, place)
    if kind == "audio":
        transformers = import_module("transformers")
        found = place.facts(transformers.FeatureExtractionMixin, "get_feature_extractor_dict")
        if found is not None:
            extractor = found[0].read(transformers.AutoFeatureExtractor)
            net.from_samples = FromExtractor(extractor, wanted.sampling_rate, accepted_names(net))
        return Shown()
    words = place.tokenizer(wanted.tokenizer)
    if words is not None:
        longest = longest_text(net, words, wanted.longest)
        net.tokenize = FromTransformers(words, longest, accepted_names(net), full=takes_padding(net))
    return Shown()


def _images(config: Any, place: Repository) -> Shown | None:
    transformers = import_module("transformers")
    if config.model_type == "timm_wrapper":  # its config says how
        return _of(place.read(transformers.AutoImageProcessor))
    found = place.facts(transformers.ImageProcessingMixin, "get_image_processor_dict")
    if found is None:
        return None
    where, facts = found
    if getattr(config, "num_channels", 3) != 3:
        fits = isinstance(facts.get("image_mean"), list) and len(facts["image_mean"]) == config.num_channels
        both = {"mean": facts["image_mean"], "std": facts.get("image_std")} if fits else {}
        return Shown(*declared_normalisation(both, place.address))
    side = getattr(config, "image_size", None)
    if "size" not in facts and isinstance(side, int):
        return _of(where.read(transformers.AutoImageProcessor, size={"height": side, "width": side}))
    return _of(where.read(transformers.AutoImageProcessor))


def _of(processor: Any) -> Shown:
    transform = from_processor(processor)
    return Shown(transform.mean, transform.std, transform)
