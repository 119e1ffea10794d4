"""`hf:NAME` and `hf:FOLDER`: networks of transformers, by their name on the hub or from a folder.

Networks that classify, detect or segment come as what their config names, everything else as its bare encoder: the
tower or half that the inputs are for. Text networks get a `tokenize` of their own, audio networks a `from_samples`;
how images are brought to size and normalised is read from the image processor.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise._base.warnings import warn
from likewise.errors import InputError, OptionError, did_you_mean, quoted_list
from likewise.networks.inputs.class_tokens import add_class_tokens
from likewise.networks.inputs.processors import Wanted, show
from likewise.networks.inputs.subnetworks import choose_subnetwork, note, start_token, subnetworks_of, take_subnetwork
from likewise.networks.sources.base import SIZES, Loaded, Request, Source, source
from likewise.networks.sources.repository import Repository, brings_code, locate

_KEPT = (
    *("ForSequenceClassification", "ForImageClassification", "ForImageClassificationWithTeacher"),
    *("ForAudioClassification", "ForVideoClassification", "ForObjectDetection", "ForSemanticSegmentation"),
    *("ForSegmentation", "ForInstanceSegmentation", "ForUniversalSegmentation"),
)
_KEPT_ENCODERS = ("EncoderModel", "WithProjection", "ContextEncoder", "QuestionEncoder")
_CLASSIFIERS = {
    "image": "AutoModelForImageClassification",
    "text": "AutoModelForSequenceClassification",
    "audio": "AutoModelForAudioClassification",
}
_CONFIG_OPTIONS = ("num_labels", "attn_implementation", "dtype", "torch_dtype", "output_attentions")  # of every config
_HEADER_OPTIONS = (
    SIZES
    | {"longest", "part", "sampling_rate", "num_labels", "hidden_size", "num_hidden_layers", "num_attention_heads"}
    | {"intermediate_size", "vocab_size", "max_position_embeddings", "type_vocab_size"}
    | {"class_tokens", "hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "image_size"}
    | {"patch_size", "num_channels", "layer_norm_eps", "depths", "embed_dim", "hidden_sizes"}
)


@dataclass(frozen=True)
class Options:
    """The options that are ours; all others are fields of the configuration."""

    classes: int | None = None
    channels: int | None = None
    size: int | None = None
    class_tokens: int | None = None
    part: str | None = None
    longest: int | None = None
    sampling_rate: int | None = None
    revision: str | None = None
    subfolder: str | None = None
    tokenizer: str | None = None
    trust_remote_code: bool = False

    @classmethod
    def of(cls, request: Request) -> Options:
        """Those of a request, each of the kind it has to be."""
        given = {name: value for name, value in request.options.items() if name in cls.__annotations__}
        for name in ("classes", "channels", "size", "class_tokens", "sampling_rate"):
            value = given.get(name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(f"{name} of hf:{request.name} is {value!r}. Give a whole number of at least 1.")
        trusted = given.get("trust_remote_code", False)
        if not isinstance(trusted, bool):
            raise InputError(f"trust_remote_code of hf:{request.name} is {trusted!r}. Give true or false.")
        return cls(**given)


@source("hf")
class Transformers(Source):
    """Networks of a folder or of the hub, with their published weights or without."""

    has_revisions: ClassVar[bool] = True

    def build(self, request: Request) -> Loaded:
        prepare_torchvision()
        transformers = require("transformers", extra="language", to=f"load {request.address}")
        own = Options.of(request)
        revision = None if own.revision is None else str(own.revision)
        place = locate(request, revision, own.subfolder, own.trust_remote_code)
        config = _config(transformers, place, request, own)
        kind, whole = _kind(transformers, config, request, own)
        net = _make(kind, config, place, request, own)
        parts = () if whole else subnetworks_of(net)
        part = None if whole else choose_subnetwork(parts, own.part, request.domain, request.address)
        net = net if part is None else take_subnetwork(net, part)
        if part is not None and own.part is None:
            warn(note(parts, part, request.address))
        settled = {} if part is None else {"part": part}
        if torch.get_default_device().type == "meta":  # only its size is asked for
            return Loaded(net)
        shown = show(net, config, place, Wanted(own.tokenizer, own.longest, own.sampling_rate))
        if own.class_tokens is not None:
            add_class_tokens(net, getattr(net, "tokenize", None), own.class_tokens, request.address)
        if shown is None and request.pretrained:
            warn(
                f"{request.address} has no image processor among its files: its images stay in [0, 1], neither "
                "resized nor normalised."
            )
        mean, std, transform = (None, None, None) if shown is None else (shown.mean, shown.std, shown.transform)
        transform = transform if own.size is None else None  # it is built for images of this size as they are
        folder = Path(request.name).expanduser()
        address = f"hf:{folder.resolve()}" if folder.is_dir() else None
        return Loaded(net, mean, std, transform=transform, settled=settled, commit=place.commit, address=address)

    def accepts(self, name: str) -> Collection[str]:
        return ("classes", "channels", "size", "class_tokens")

    def header_options(self, name: str) -> Collection[str]:
        return _HEADER_OPTIONS

    def is_elsewhere(self, name: str) -> bool:
        """An address of the web, or a path that climbs."""
        return ".." in Path(name).parts or "://" in name or name[:1] == "\\"


def _config(transformers: Any, place: Repository, request: Request, own: Options) -> Any:
    """The configuration with the options of the request, all of which it has to know."""
    plain = place.read(transformers.AutoConfig)
    known = {*plain.to_dict(), *getattr(plain, "attribute_map", {}), *_CONFIG_OPTIONS}
    options = {name: value for name, value in request.options.items() if name not in Options.__annotations__}
    ours = sorted(Options.__annotations__)
    for name in options:
        if name not in known:
            raise OptionError(
                f"hf:{request.name} has no option {name!r}.{did_you_mean(name, [*ours, *known])} It takes "
                f"{', '.join(ours)} and the fields of its config.json."
            )
    options |= {"num_labels": own.classes} if own.classes is not None else {}
    for wanted, theirs in ((own.channels, "num_channels"), (own.size, "image_size")):
        if wanted is not None and isinstance(getattr(plain, theirs, None), int):
            options[theirs] = wanted
    config = place.read(transformers.AutoConfig, **options)
    attention = getattr(config, "_attn_implementation", None)
    if not place.trusted and isinstance(attention, str) and set("/:") & set(attention):
        raise brings_code(request.name)  # compiled code of the hub would do its attention
    config.use_pretrained_backbone = False  # older configs have a part of the network fetch other weights
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = start_token(config)  # some leave it to whoever generates texts
    return config


def _kind(transformers: Any, config: Any, request: Request, own: Options) -> tuple[Any, bool]:
    """The class to build, and whether it is to be taken whole: a classifier of some kind, or else an encoder."""
    name = (config.architectures or [""])[0]
    zero_shot = transformers.models.auto.modeling_auto.MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES
    if own.part is None and hasattr(transformers, name):
        if name.endswith(_KEPT) and name not in zero_shot.values():
            return getattr(transformers, name), True
        if name.endswith(_KEPT_ENCODERS) and own.classes is None:
            return getattr(transformers, name), True
    if own.part is None and config.model_type == "timm_wrapper" and config.num_labels:
        return transformers.AutoModelForImageClassification, True
    if own.classes is None:
        return transformers.AutoModel, False
    kinds = {
        domain: getattr(transformers, kind) for domain, kind in _CLASSIFIERS.items() if hasattr(transformers, kind)
    }
    fitting = {domain: kind for domain, kind in kinds.items() if type(config) in kind._model_mapping}
    if not fitting:
        raise InputError(
            f"{request.address} cannot have {own.classes} classes: transformers has no classifier of the kind "
            f"{config.model_type!r}. Leave classes out, or choose a network that has one."
        )
    wanted = request.domain or {"vision": "image"}.get(own.part or "", own.part or "")
    return fitting.get(wanted, next(iter(fitting.values()))), True


def _make(kind: Any, config: Any, place: Repository, request: Request, own: Options) -> Any:
    if not request.pretrained:
        if hasattr(kind, "from_config"):
            return kind.from_config(config, trust_remote_code=place.trusted)
        return kind(config)
    net, info = place.weights(kind, config)
    changed = [(key, tuple(there), tuple(here)) for key, there, here in info["mismatched_keys"]]
    for key, there, here in sorted(changed):
        if own.classes is None or here[0] not in (own.classes, own.classes + 1):  # some count one for no object
            raise InputError(
                f"the weights of {request.address} do not fit its options: {key} has {there} there and {here} here. "
                f"Leave the options out, or take it untrained: '{_untrained(request.address)}'."
            )
    missing = sorted(info["missing_keys"])
    if len(missing) == len(net.state_dict()):
        raise InputError(
            f"{request.address} has weights of another network: none of them is of a {type(net).__name__}. Mend "
            "'architectures' or 'model_type' in its config.json."
        )
    if missing and all(key.startswith("pooler.") for key in missing) and _may_lack_pooler(net):
        net.pooler, missing = None, []  # the weights were trained without it: what it gives would be drawn at random
    if missing or changed:
        drawn = quoted_list(missing + [key for key, _, _ in changed])
        warn(f"the weights of {request.address} lack {drawn}: drawn at random, to be trained.")
    return net


def _untrained(address: str) -> str:
    return f"{address.replace(',pretrained=true', '')},pretrained=false"


def _may_lack_pooler(net: Any) -> bool:
    return "add_pooling_layer" in inspect.signature(type(net).__init__).parameters
