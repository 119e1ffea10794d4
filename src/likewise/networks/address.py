"""From an address to a network: `zoo:resnet20@weights.safetensors`, `timm:resnet18`, `models.py:build`.

An address is `prefix:name[,option=value…][@weights]`. In place of the prefix there may be a Python
file, its function being the name. A weights file written here is an address too: it says itself
which network it belongs to.

`mean=`, `std=` and `transform=FILE.py:function` say of any network how it is shown images; they may also stand after
the weights, and behind the path of a weights file or of a training's folder.

Networks of a source that keeps revisions may name one in place of the weights, `hf:NAME@step1000`, and several
to be compared, `hf:NAME@step1000,step2000`. A file that exists, or whose name ends like one of weights, is weights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from torch import nn

from likewise._base.files import is_file
from likewise._base.registry import parse_value
from likewise.data import Data
from likewise.data.address import dataset
from likewise.errors import InputError, LikewiseError, UnknownNameError, did_you_mean, quoted_list
from likewise.networks import weight_metadata
from likewise.networks import weights as files
from likewise.networks.building import build, sizes_from, with_weights
from likewise.networks.class_names import classes_of_dataset, record_classes, recorded_classes
from likewise.networks.inputs.normalisation import (
    normalised_by,
    note,
    noted,
    record_transform,
    transform_of,
    typed_values,
    unwrapped,
    warn_replaced,
)
from likewise.networks.inputs.tokenizers import with_tokenizer
from likewise.networks.inputs.transforms import from_callable, normalisation_of
from likewise.networks.sources.base import PYTHON_FILE, SOURCES, Loaded, NetworkAddress, NetworkInfo, Request, Source
from likewise.networks.sources.python_file import load_function
from likewise.networks.zoo.registry import ZOO
from likewise.wordnet import ClassNames

_LONGEST = 4096
_PARTS = re.compile(r"(?P<name>[^,@]*)(?P<options>(,[^,@]*)*)(@(?P<weights>.+))?")
_FILE = re.compile(r"(?P<file>(?:(?!,\w+=).)+?\.py):(?P<rest>[^:,@]+(,[^@]*)?(@.+)?)")
SHOWING = ("mean", "std", "transform")  # options of every network: how it is shown images
SHOWING_TEXT = r",(?:(?:mean|std)=[^@=]*?(?=,\w+=|@|$)|transform=[^,@=]+)"
OWN = "own"  # in the header of weights: images are shown by the transform of the network's source


def find_source(prefix: str) -> Source | None:
    """The source of a prefix exactly as it is written, None where there is none."""
    name = PYTHON_FILE if prefix.endswith(PYTHON_FILE) else prefix
    if not name or name not in SOURCES:
        return None
    entry = SOURCES.get(name)
    return entry if entry.prefix == name else None


def parse(address: str) -> NetworkAddress:
    """Take an address apart, or say what is wrong with it.

    >>> parse("zoo:lenet,classes=100@a.safetensors")
    NetworkAddress(prefix='zoo', name='lenet', options={'classes': 100}, weights='a.safetensors')
    >>> parse("hf:org/name@step1000").options
    {'revision': 'step1000'}
    """
    parts, revisions = split(address)
    if len(revisions) > 1:
        raise InputError(
            f"{address!r} names {len(revisions)} networks, one per revision ({quoted_list(revisions)}). Name one, "
            "or compare them: likewise.compare([address], data=...)."
        )
    return parts


def split(address: str) -> tuple[NetworkAddress, list[str]]:
    """The parts of an address, the first revision among its options, and all revisions it names after the @."""
    if len(address) > _LONGEST:
        raise InputError(
            f"{address[:40]!r}… has {len(address):,} signs, and an address has at most {_LONGEST:,}. Shorten it."
        )
    bare, showing = without_showing(address)
    file = _FILE.fullmatch(bare)
    prefix, colon, rest = bare.partition(":")
    if file is not None:
        prefix, rest = file["file"], file["rest"]
    elif not colon or find_source(prefix) is None:
        raise _unknown(address, prefix if colon else "")
    parts = _PARTS.fullmatch(rest)
    if parts is None or not parts["name"]:
        raise InputError(
            f"{address!r} names no network. Write prefix:name, as in 'zoo:resnet20' or "
            "'zoo:resnet20@weights.safetensors'."
        )
    parsed = NetworkAddress(prefix, parts["name"], _options(parts["options"] + showing, address), parts["weights"])
    if parsed.weights is None or not parsed.source.has_revisions or files.is_weights_name(parsed.weights):
        return parsed, []
    return _with_revision(parsed, address)


def without_showing(address: str) -> tuple[str, str]:
    """An address without the `mean=`, `std=` and `transform=` at its end, and those.

    >>> without_showing("runs/first,mean=0.5,std=0.25")
    ('runs/first', ',mean=0.5,std=0.25')
    """
    end = re.search(f"(?:{SHOWING_TEXT})+$", address)
    return (address, "") if end is None else (address[: end.start()], end[0])


def says_how_shown(address: str) -> bool:
    """Whether an address says how its network is shown images."""
    bare, showing = without_showing(address)
    return bool(showing) or (not is_checkpoint(bare) and any(name in SHOWING for name in parse(bare).options))


def _with_revision(parsed: NetworkAddress, address: str) -> tuple[NetworkAddress, list[str]]:
    """The address with the words after the @ as its revision; those with a = are options."""
    words = (parsed.weights or "").split(",")
    revisions = [word for word in words if "=" not in word]
    if not all(revisions) or not revisions or "revision" in parsed.options:
        raise InputError(
            f"{address!r} names no revision after the @. Write one, as in '{parsed}@main', or the path of a weights "
            f"file, as in '{parsed}@weights.safetensors'."
        )
    options = _options("".join(f",{word}" for word in words if "=" in word), address)
    both = parsed.options | options | {"revision": revisions[0]}
    return NetworkAddress(parsed.prefix, parsed.name, both), revisions


def is_untrained(address: str) -> bool:
    """Whether an address names a network with random weights.

    >>> is_untrained("zoo:lenet"), is_untrained("timm:resnet18"), is_untrained("timm:resnet18,pretrained=false")
    (True, False, True)
    >>> is_untrained("zoo:minilm")  # all but its classifier
    False
    """
    if is_checkpoint(address):
        return False
    parts = parse(address)
    return parts.weights is None and not (parts.source.is_trained(parts.name) and parts.options.get("pretrained", True))


def is_checkpoint(address: str) -> bool:
    """Whether an address is a weights file (or a training's folder) rather than a name."""
    bare = without_showing(address)[0]
    if not bare or has_prefix(bare) or _FILE.fullmatch(bare):
        return False
    path = Path(bare).expanduser()
    return path.suffix == ".safetensors" or is_file(path / "weights.safetensors")


def is_network(text: str) -> bool:
    """Whether a text can be nothing but a network's address (a weights file may be activations)."""
    if is_file(Path(text).expanduser()) or text.endswith(".safetensors"):
        return has_prefix(text)
    return has_prefix(text) or bool(_FILE.fullmatch(text)) or is_checkpoint(text)


def has_prefix(text: str) -> bool:
    """Whether a text begins with the prefix of a source."""
    prefix, colon, _ = text.partition(":")
    return bool(colon) and find_source(prefix) is not None


def list_networks(pattern: str = "") -> list[NetworkInfo]:
    """The zoo; with a pattern, whatever matches it there and in the installed libraries.

    Args:
        pattern: Such as "resnet*"; compared with the name and with the whole address.

    Example:
        >>> [network.address for network in list_networks("zoo:resnet2*")]
        ['zoo:resnet20', 'zoo:resnet20-b']
    """
    one = find_source(pattern.partition(":")[0] if pattern else "zoo")
    return [
        network
        for entry in (SOURCES if one is None else [one])
        for network in entry.names()
        if not pattern or fnmatch(network.address, pattern) or fnmatch(network.address.partition(":")[2], pattern)
    ]


def _unknown(address: str, prefix: str) -> UnknownNameError:
    prefixes = [name for name in SOURCES.names() if name != PYTHON_FILE]
    what = f"no networks come from {prefix!r}" if prefix else f"{address!r} has no prefix"
    if not prefix and "/" in address:
        what = f"{address!r} is no folder of a training or network, and has no prefix"
    hint = did_you_mean(prefix, prefixes)
    if not prefix and (names := _with_prefix(address)):
        hint = f" Did you mean {' or '.join(map(repr, names))}?"
    forms = ", ".join(f"{name}:NAME" for name in prefixes)
    return UnknownNameError(
        f"{what}.{hint} An address is {forms}, file.py:function, a .safetensors file or a training's folder."
    )


def _with_prefix(name: str) -> list[str]:
    """The addresses of networks of this name: in the zoo, else in the libraries that are installed."""
    if name in ZOO:
        return [f"zoo:{name}"]
    plain = re.fullmatch(r"[\w.-]+", name.partition(",")[0])
    return [network.address for network in list_networks(plain[0])] if plain else []


def _options(text: str, address: str) -> dict[str, Any]:
    options: dict[str, str] = {}
    for option in text.split(",")[1:]:
        name, equals, value = option.partition("=")
        last = next(reversed(options), "")
        if not equals and last in ("mean", "std"):  # one number per channel: mean=0.485,0.456,0.406
            options[last] += f",{option}"
            continue
        if not equals or not name.isidentifier():
            raise InputError(
                f"{option!r} in {address!r} is no option. Write name=value, as in 'zoo:lenet,classes=100'."
            )
        options[name] = value
    return {name: parse_value(value) for name, value in options.items()}


# The network that an address names.


@dataclass(frozen=True)
class Recipe:
    """How a network was made: enough to make it again and put weights into it.

    Attributes:
        network: Its address, without options and weights.
        options: Its options.
        weights: The weights file, None where the address named none.
        commit: The commit of the repository it was read from, None where there is none.
    """

    network: str
    options: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None
    commit: str | None = None


def network(
    address: str | nn.Module,
    *,
    data: Data | str | None = None,
    domain: str | None = None,
    seed: int | None = None,
    untrained: bool = False,
    tokenizer: Any = None,
    **options: Any,
) -> nn.Module:
    """The network an address names, ready to be shown inputs; a module is given back as it is.

    timm, torchvision and transformers networks come with their published weights, unless the address names others
    (`@weights`) or says `pretrained=false`. With `data`, an untrained network is sized for it: as many classes and
    channels, as large, with the class tokens its texts may have, normalised by its mean and deviation.

    Args:
        address: An address such as "zoo:resnet20", a weights file, or a module.
        data: The data an untrained network is sized for, or their address.
        domain: What it will be shown (image, text, audio) where there is no data: it chooses the tower of a network
            that has two.
        seed: The seed of what is drawn at random, 0 by default.
        untrained: Without published weights unless the address says `pretrained=true`, as training asks for.
        tokenizer: One of transformers (of an address, also its name), or any function from texts to the tensors a
            network takes.
        **options: Options of the network, such as `classes=100`, and how it is shown images: `mean=`, `std=`,
            `transform=` (a function, or "FILE.py:function"). They take precedence over those of the address.

    Raises:
        InputError: The address names no network, or one that does not fit the data or the weights.
        UnknownNameError: There is no such source or network.

    Example:
        >>> import torch
        >>> network("zoo:lenet", classes=3)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """
    if isinstance(address, nn.Module):
        return _as_built(address, tokenizer, options)
    data = dataset(data, split="train") if isinstance(data, str) else data
    parts, header, typed = _parts(str(address))
    typed_options = parts.options | options | ({"tokenizer": tokenizer} if isinstance(tokenizer, str) else {})
    said = _pop_showing(typed_options)
    declared = {}
    if parts.weights is not None:
        declared = weight_metadata.declared_options(parts, header, parts.weights, typed_options | said)
    pretrained = bool(typed_options.pop("pretrained", parts.weights is None and not untrained))
    seed = typed_options.pop("seed", seed)
    inputs = None if data is None else data.of_kind(parts.source.domain(parts.name))
    if inputs is not None:
        domain = domain or inputs.domain
    published = parts.source.comes_trained and not untrained and (pretrained or parts.weights is not None)
    sizing = None if published else inputs  # published weights have their own sizes
    every_option = sizes_from(sizing, parts, pretrained) | declared | typed_options
    request = Request(parts.prefix, parts.name, every_option, pretrained, str(address), typed, domain)
    loaded = build(parts.source, request, seed or 0)
    if untrained or (header and header.get("transform") != OWN):
        loaded = replace(loaded, transform=None)  # what is trained here is trained on data as it is
    if "transform" in said and untrained:
        raise InputError(
            f"{address} is trained on data as it is, so transform means nothing. Give mean and std, or leave it out."
        )
    if "transform" in said:
        loaded = replace(loaded, transform=from_callable(load_function(said["transform"])))
    net = with_weights(loaded, parts, header, sizing).eval()
    if said:
        warn_replaced(net, repr(without_showing(str(address))[0]), _typed(said, 6))
    if (values := normalisation_of(loaded.transform, inputs)) is not None and "transform" in said:
        said, loaded = dict(zip(("mean", "std"), values, strict=True)), replace(loaded, transform=None)
    if "transform" in said:
        net = unwrapped(net)  # it gives images as the network inside takes them
        every_option |= {"transform": str(getattr(said["transform"], "__name__", said["transform"]))}
    _record(net, loaded, parts, every_option, header)
    if "mean" in said:
        net = normalised_by(net, said["mean"], said["std"])
    return net if tokenizer is None or isinstance(tokenizer, str) else with_tokenizer(net, tokenizer)


def _pop_showing(options: dict[str, Any]) -> dict[str, Any]:
    """Take `mean`, `std` and `transform` out of options."""
    said = {name: options.pop(name) for name in SHOWING if options.get(name) is not None}
    if len(said) != 2 and ("mean" in said or "std" in said):
        raise InputError(
            f"{' and '.join(said)} does not say how images are normalised. Give mean and std, or transform alone."
        )
    return said


def normalised(network: str | nn.Module, mean: Any, std: Any) -> str | nn.Module:
    """A module, or the address of a network, that normalises images by this mean and deviation."""
    showing = {"mean": mean, "std": std}
    if not isinstance(network, nn.Module):
        return f"{network},{_typed(showing)}"
    warn_replaced(network, type(unwrapped(network)).__name__, _typed(showing, 6))
    return normalised_by(network, mean, std)


def _typed(showing: Mapping[str, Any], digits: int = 9) -> str:
    """How images are shown, as it is typed in an address."""
    if "transform" in showing:
        return f"transform={getattr(showing['transform'], '__name__', showing['transform'])}"
    return ",".join(f"{name}={typed_values(name, showing[name], digits)}" for name in ("mean", "std"))


def _as_built(net: nn.Module, tokenizer: Any, options: dict[str, Any]) -> nn.Module:
    """A module as it is, with a mean and deviation or a tokenizer where they are given; other options come too late."""
    if {"mean", "std"} <= set(options):
        net = normalised_by(net, options.pop("mean"), options.pop("std"))
    if options:
        raise InputError(
            f"{type(unwrapped(net)).__name__} is built already: {', '.join(options)} cannot be chosen "
            "any more. Give the options where it is built."
        )
    return net if tokenizer is None else with_tokenizer(net, tokenizer)


def _record(
    net: nn.Module, loaded: Loaded, address: NetworkAddress, options: dict[str, Any], header: dict[str, Any]
) -> None:
    """Note on a network how it was made, how it is shown images, and which classes it names."""
    record_transform(net, loaded.transform)
    name = loaded.address or str(address)
    note(net, "recipe", Recipe(name, options | dict(loaded.settled), address.weights, loaded.commit))
    if header:
        classes = ClassNames.from_text(header.get("class_names"))
        record_classes(net, classes or (classes_of_dataset(header["dataset"]) if "dataset" in header else None))


def recipe(net: nn.Module) -> Recipe | None:
    """How `network` made this network, None where it did not.

    Args:
        net: A network.
    """
    origin: Recipe | None = noted(net, "recipe")
    return origin


def save(net: nn.Module, path: str | Path) -> None:
    """Write a network's weights with what is needed to build it again: its address is the path.

    Args:
        net: A network.
        path: The file, whose name ends in .safetensors.
    """
    origin = recipe(net)
    about = {} if origin is None else {"network": origin.network, "options": origin.options}
    classes = recorded_classes(net)
    if classes is not None:
        about["class_names"] = classes.to_text()
    if transform_of(net) is not None and "transform" not in about.get("options", {}):
        about["transform"] = OWN
    files.save(net, path, about=about)


def _parts(address: str) -> tuple[NetworkAddress, dict[str, Any], bool]:
    """The parts of an address, the header of its weights, and whether the network was typed."""
    if not is_checkpoint(address):
        parts = parse(address)
        return parts, files.facts(parts.weights) if parts.weights else {}, True
    bare, showing = without_showing(address)
    path = Path(bare).expanduser()
    path = path / "weights.safetensors" if path.is_dir() else path
    if not is_file(path):
        raise files.not_there(path)
    header = files.facts(path)
    if "network" not in header:
        raise InputError(f"{path} does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'.")
    return replace(_declared_network(header, path), options=_options(showing, address)), header, False


def _declared_network(header: dict[str, Any], path: Path) -> NetworkAddress:
    """The network a header names, where it is one a header may name."""
    name = weight_metadata.network_name(header, path)
    try:
        address = parse(name)
        allowed = address.source.header_options(address.name) is not None
    except LikewiseError as error:
        raise InputError(f"{path} names a network that cannot be built: {error}") from error
    weight_metadata.check_network(address, name, path, allowed=allowed)
    return replace(address, weights=str(path))
