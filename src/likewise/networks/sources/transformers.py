"""`hf:NAME` and `hf:FOLDER`: networks of transformers, by their name on the hub or from a folder; adapters of them.

Networks that classify, detect or segment come as what their config names, everything else as its bare encoder: the
tower or half that the inputs are for. Text networks get a `tokenize` of their own, audio networks a `from_samples`;
how images are brought to size and normalised is read from the image processor.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import torch

from likewise._base.optional import prepare_torchvision, require
from likewise._base.progress import warn
from likewise.errors import InputError, MissingDataError, OptionError, did_you_mean, quoted_list
from likewise.networks.forward import input_kind
from likewise.networks.inputs.feature_extractors import FromExtractor, accepted_names
from likewise.networks.inputs.subnetworks import choose_subnetwork, note, start_token, subnetworks_of, take_subnetwork
from likewise.networks.inputs.tokenizers import FromTransformers, add_class_tokens, longest_text, takes_padding
from likewise.networks.inputs.transforms import Transform, from_processor
from likewise.networks.sources.adapters import Adapter, find_adapter
from likewise.networks.sources.base import SIZES, Loaded, Request, Source, source
from likewise.networks.sources.language import LM, language_class, weights_on_meta
from likewise.networks.sources.loading import loading
from likewise.networks.sources.open_clip import build_open_clip, is_open_clip
from likewise.networks.sources.repository import Repository, brings_code, locate
from likewise.networks.sources.sentences import add_sentence, length_and_prompt, read_sentence
from likewise.networks.weight_metadata import declared_normalisation

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
    bits: int | None = None
    device_map: Any = None

    @classmethod
    def of(cls, request: Request) -> Options:
        """Those of a request, each of the kind it has to be."""
        options = {name: value for name, value in request.options.items() if name in cls.__annotations__}
        for name in ("classes", "channels", "size", "class_tokens", "sampling_rate"):
            value = options.get(name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(f"{name} of hf:{request.name} is {value!r}. Give a whole number of at least 1.")
        if options.get("bits") not in (None, 4, 8):
            raise InputError(f"bits of hf:{request.name} is {options['bits']!r}. Give 8 or 4.")
        trusted = options.get("trust_remote_code", False)
        if not isinstance(trusted, bool):
            raise InputError(f"trust_remote_code of hf:{request.name} is {trusted!r}. Give true or false.")
        return cls(**options)


@source("hf")
class Transformers(Source):
    """Networks of a folder or of the hub, with their published weights or without."""

    has_revisions: ClassVar[bool] = True
    sized_by: ClassVar[Collection[str]] = ("classes", "channels", "size", "class_tokens")
    allowed_in_headers: ClassVar[Collection[str] | None] = _HEADER_OPTIONS
    takes_adapters: ClassVar[bool] = True

    def build(self, request: Request) -> Loaded:
        prepare_torchvision()
        if is_open_clip(request.name):
            return build_open_clip(request)
        transformers = require("transformers", extra="language", to=f"load {request.address}")
        options = Options.of(request)
        revision = None if options.revision is None else str(options.revision)
        adapter = find_adapter(request, revision, options.subfolder) if self.takes_adapters else None
        if adapter is not None:  # its revision and sub-folder are not those of its base
            request, revision = replace(request, name=adapter.base), None
            options = replace(options, subfolder=None, classes=options.classes or adapter.classes)
        repository = self._located(request, revision, options, adapter)
        config = _config(transformers, repository, request, options)
        if adapter is None:
            kind, is_whole = _kind(transformers, config, request, options)
            net = _make(kind, config, repository, request, options)
        else:
            net, is_whole = _with_adapter(transformers, config, repository, request, options, adapter)
        names = () if is_whole else subnetworks_of(net)
        name = None if is_whole else choose_subnetwork(net, options.part, request.domain, request.address)
        net = net if name is None else take_subnetwork(net, name)
        if name is not None and options.part is None:
            warn(note(names, name, request.address))
        settled = {} if name is None else {"part": name}
        if torch.get_default_device().type == "meta":  # only its size is asked for
            return Loaded(net)
        sentence = None
        if not is_whole and options.part is None and input_kind(net) == "text":
            sentence = read_sentence(repository, pretrained=request.pretrained)
        if sentence is not None:
            add_sentence(net, sentence)
        images = _set_up_inputs(net, config, repository, options)
        if options.class_tokens is not None:
            add_class_tokens(net, getattr(net, "tokenize", None), options.class_tokens, request.address)
        if images is None and request.pretrained:
            warn(
                f"{request.address} has no image processor among its files: its images stay in [0, 1], neither "
                "resized nor normalised."
            )
        mean, std, transform = images or (None, None, None)
        transform = transform if options.size is None else None  # it is built for images of this size as they are
        folder = Path(request.name).expanduser()
        address = f"{self.prefix}:{folder.resolve()}" if folder.exists() else None
        address = address if adapter is None else adapter.address
        return Loaded(net, mean, std, transform=transform, settled=settled, commit=repository.commit, address=address)

    def is_elsewhere(self, name: str) -> bool:
        """An address of the web, or a path that climbs."""
        return ".." in Path(name).parts or "://" in name or name[:1] == "\\"

    def locate(self, request: Request, revision: str | None, subfolder: str | None, trusted: bool) -> Repository:
        """Where the files of a network are."""
        return locate(request, revision, subfolder, trusted)

    def _located(self, request: Request, revision: str | None, options: Options, adapter: Adapter | None) -> Repository:
        """The repository of the network, or of the base of an adapter."""
        try:
            return self.locate(request, revision, options.subfolder, options.trust_remote_code)
        except MissingDataError as error:
            if adapter is None:
                raise
            raise MissingDataError(
                f"{request.address} is an adapter of {adapter.base!r}, which is neither a folder with a network of "
                f"transformers nor can it be downloaded. Name the folder it is in: 'hf:PATH+{adapter.repository.name}'."
            ) from error


def skeleton(request: Request) -> tuple[Any, Repository]:
    """A language model without the values of its weights, with its tokenizer, and where its files are.

    What is computed from the configuration and is in no file, such as the frequencies of rotations, has its values.
    """
    prepare_torchvision()
    transformers = require("transformers", extra="language", to=f"load {request.address}")
    options = Options.of(request)
    repository = locate(request, options.revision, options.subfolder, options.trust_remote_code)
    config = _config(transformers, repository, request, options)
    config.use_cache = False
    kind = language_class(transformers, config, request.address)
    with weights_on_meta():
        net = kind._from_config(config, dtype=getattr(config, "dtype", None))
    net.tie_weights()
    _set_up_inputs(net, config, repository, options)
    return net.eval(), repository


def _with_adapter(
    transformers: Any, config: Any, repository: Repository, request: Request, options: Options, adapter: Adapter
) -> tuple[Any, bool]:
    """A network with its adapter, and whether it is to be taken whole; else it is without its head."""
    with warnings.catch_warnings():
        if adapter.classes:  # the head comes with the adapter
            warnings.filterwarnings("ignore", message="the weights of .* lack")
        net = _make(adapter.kind(transformers, config), config, repository, request, options)
    if torch.get_default_device().type != "meta":  # else only its size is asked for
        net = adapter.put_on(net)
    is_whole = options.part == LM or type(net).__name__.endswith(_KEPT)
    return (net if is_whole else net.base_model), is_whole


def _config(transformers: Any, repository: Repository, request: Request, options: Options) -> Any:
    """The configuration with the options of the request, all of which it has to know."""
    plain = repository.read(transformers.AutoConfig)
    names = {*plain.to_dict(), *getattr(plain, "attribute_map", {}), *_CONFIG_OPTIONS}
    fields = {name: value for name, value in request.options.items() if name not in Options.__annotations__}
    ours = sorted(Options.__annotations__)
    for name in fields:
        if name not in names:
            raise OptionError(
                f"hf:{request.name} has no option {name!r}.{did_you_mean(name, [*ours, *names])} It takes "
                f"{', '.join(ours)} and the fields of its config.json."
            )
    fields |= {"num_labels": options.classes} if options.classes is not None else {}
    for size, name in ((options.channels, "num_channels"), (options.size, "image_size")):
        if size is not None and isinstance(getattr(plain, name, None), int):
            fields[name] = size
    config = repository.read(transformers.AutoConfig, **fields)
    attention = getattr(config, "_attn_implementation", None)
    if not repository.trusted and isinstance(attention, str) and set("/:") & set(attention):
        raise brings_code(request.name)  # compiled code of the hub would do its attention
    config.use_pretrained_backbone = False  # older configs have a part of the network fetch other weights
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = start_token(config)  # some leave it to the code that generates texts
    return config


def _kind(transformers: Any, config: Any, request: Request, options: Options) -> tuple[Any, bool]:
    """The class to build, and whether it is to be taken whole: a classifier of some kind, or else an encoder."""
    if options.part == LM:
        return language_class(transformers, config, request.address), True
    name = (config.architectures or [""])[0]
    zero_shot = transformers.models.auto.modeling_auto.MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES
    if options.part is None and hasattr(transformers, name):
        if name.endswith(_KEPT) and name not in zero_shot.values():
            return getattr(transformers, name), True
        if name.endswith(_KEPT_ENCODERS) and options.classes is None:
            return getattr(transformers, name), True
    if options.part is None and config.model_type == "timm_wrapper" and config.num_labels:
        return transformers.AutoModelForImageClassification, True
    if options.classes is None:
        return transformers.AutoModel, False
    kinds = {
        domain: getattr(transformers, kind) for domain, kind in _CLASSIFIERS.items() if hasattr(transformers, kind)
    }
    fitting = {domain: kind for domain, kind in kinds.items() if type(config) in kind._model_mapping}
    if not fitting:
        raise InputError(
            f"{request.address} cannot have {options.classes} classes: transformers has no classifier of the kind "
            f"{config.model_type!r}. Leave classes out, or choose a network that has one."
        )
    domain = request.domain or {"vision": "image"}.get(options.part or "", options.part or "")
    return fitting.get(domain, next(iter(fitting.values()))), True


def _make(kind: Any, config: Any, repository: Repository, request: Request, options: Options) -> Any:
    if not request.pretrained:
        if hasattr(kind, "from_config"):
            return kind.from_config(config, trust_remote_code=repository.trusted)
        return kind(config)
    net, info = repository.weights(kind, config, **loading(request, options.bits, options.device_map))
    changed = [(key, tuple(there), tuple(here)) for key, there, here in info["mismatched_keys"]]
    untrained = request.address.replace(",pretrained=true", "")
    for key, there, here in sorted(changed):
        # some count one more, for no object
        if options.classes is None or here[0] not in (options.classes, options.classes + 1):
            raise InputError(
                f"the weights of {request.address} do not fit its options: {key} has {there} there and {here} here. "
                f"Leave the options out, or take it untrained: '{untrained},pretrained=false'."
            )
    missing = sorted(info["missing_keys"])
    if len(missing) == len(net.state_dict()):
        raise InputError(
            f"{request.address} has weights of another network: none of them is of a {type(net).__name__}. Correct "
            "'architectures' or 'model_type' in its config.json."
        )
    may_lack_pooler = "add_pooling_layer" in inspect.signature(type(net).__init__).parameters
    if missing and all(key.startswith("pooler.") for key in missing) and may_lack_pooler:
        net.pooler, missing = None, []  # the weights were trained without it: what it gives would be drawn at random
    if missing or changed:
        drawn = quoted_list(missing + [key for key, _, _ in changed])
        warn(f"the weights of {request.address} lack {drawn}: drawn at random, to be trained.")
    return net


# What turns texts, sounds and images into the inputs of a network, read from its repository.

Images = tuple[Sequence[float] | None, Sequence[float] | None, Transform | None]  # mean, deviation and transform


def _set_up_inputs(net: Any, config: Any, repository: Repository, options: Options) -> Images | None:
    """Give a text network its `tokenize`, an audio network its `from_samples`; say how one of images is shown them.

    None where a network of images brings nothing that says so.
    """
    kind = input_kind(net)
    if kind == "image":
        return _images(config, repository)
    if kind == "audio":
        transformers = import_module("transformers")
        processor = repository.facts(transformers.FeatureExtractionMixin, "get_feature_extractor_dict")
        if processor is not None:
            extractor = processor[0].read(transformers.AutoFeatureExtractor)
            net.from_samples = FromExtractor(extractor, options.sampling_rate, accepted_names(net))
        return None, None, None
    tokenizer = repository.tokenizer(options.tokenizer)
    if tokenizer is not None:
        usual, prompt = length_and_prompt(repository) if hasattr(net, "sentence") else (None, "")
        longest = longest_text(net, tokenizer, options.longest, usual)
        net.tokenize = FromTransformers(tokenizer, longest, accepted_names(net), full=takes_padding(net), prompt=prompt)
    return None, None, None


def _images(config: Any, repository: Repository) -> Images | None:
    transformers = import_module("transformers")
    if config.model_type == "timm_wrapper":  # its config says how
        return _by_processor(repository.read(transformers.AutoImageProcessor))
    processor = repository.facts(transformers.ImageProcessingMixin, "get_image_processor_dict")
    if processor is None:
        return None
    home, facts = processor
    if getattr(config, "num_channels", 3) != 3:
        fits = isinstance(facts.get("image_mean"), list) and len(facts["image_mean"]) == config.num_channels
        both = {"mean": facts["image_mean"], "std": facts.get("image_std")} if fits else {}
        return *declared_normalisation(both, repository.address), None
    side = getattr(config, "image_size", None)
    if "size" not in facts and isinstance(side, int):
        return _by_processor(home.read(transformers.AutoImageProcessor, size={"height": side, "width": side}))
    return _by_processor(home.read(transformers.AutoImageProcessor))


def _by_processor(processor: Any) -> Images:
    transform = from_processor(processor)
    return transform.mean, transform.std, transform
