"""From an address to a network: `likewise.network("zoo:resnet20@weights.safetensors")`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from likewise._base.files import is_file
from likewise._base.machine import free_memory
from likewise.data import Data
from likewise.data.image_files import ImageFiles
from likewise.errors import InputError, LikewiseError
from likewise.networks import headers
from likewise.networks import weights as files
from likewise.networks.address import NetworkAddress, is_checkpoint, parse
from likewise.networks.class_names import classes_of_dataset, record_classes, recorded_classes
from likewise.networks.forward import takes
from likewise.networks.lengths import longest_text, takes_padding
from likewise.networks.model_inputs import accepted_names
from likewise.networks.normalise import Normalised, NormalisedVideo, record_transform, transform_of, unwrapped
from likewise.networks.sources.base import Loaded, Request, Source
from likewise.networks.zoo.text import FromTransformers
from likewise.wordnet import ClassNames

OWN = "own"  # in the header of weights: images are shown by the transform of the network's source
_MANY = 10_000  # a size from which on a network is weighed before it is built


@dataclass(frozen=True)
class Recipe:
    """How a network was made: enough to make it again and put weights into it."""

    network: str
    options: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None
    commit: str | None = None  # of the repository it was read from


_recipes: WeakKeyDictionary[nn.Module, Recipe] = WeakKeyDictionary()


def network(
    address: str | nn.Module,
    *,
    data: Data | None = None,
    domain: str | None = None,
    seed: int | None = None,
    untrained: bool = False,
    tokenizer: Any = None,
    **options: Any,
) -> nn.Module:
    """The network an address names, ready to be shown inputs; a module is given back as it is.

    timm, torchvision and transformers networks come with their published weights, unless the
    address names others (`@weights`) or says `pretrained=false`; `untrained`, as training asks for,
    is without them unless the address says `pretrained=true`. What is drawn at random is drawn
    from `seed`, 0 where none is given. With `data`, an untrained network is built to its measure:
    as many classes and channels, as large, normalised by its mean and deviation. `domain` says what it will be
    shown (image, text, audio) without data: it chooses the tower of a network that has two. `tokenizer` is one of
    transformers (of an address, also its name), or any function from texts to the tensors a network takes.

    >>> network("zoo:lenet", classes=3)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 3])
    """
    if isinstance(address, nn.Module):
        if options:
            raise InputError(
                f"{type(unwrapped(address)).__name__} is built already: {', '.join(options)} cannot be chosen "
                "any more. Give the options where it is built."
            )
        return address if tokenizer is None else _with_tokenizer(address, tokenizer)
    parts, header, typed = _parts(str(address))
    typed_options = parts.options | options | ({"tokenizer": tokenizer} if isinstance(tokenizer, str) else {})
    data = None if data is None else data.of_kind(parts.source.domain(parts.name))
    declared = {}
    if parts.weights is not None:
        declared = headers.declared_options(parts, header, parts.weights, typed_options)
    pretrained = bool(typed_options.pop("pretrained", parts.weights is None and not untrained))
    seed = typed_options.pop("seed", seed)
    domain = data.domain if domain is None and data is not None else domain
    if parts.source.comes_trained and not untrained and (pretrained or parts.weights is not None):
        data = None  # trained weights have a measure of their own
    measure = _measure(parts, data)
    if pretrained and parts.source.comes_trained:
        measure.pop("size", None)  # weights are made for one
    wanted = measure | declared | typed_options
    request = Request(parts.prefix, parts.name, wanted, pretrained, str(address), typed, domain)
    loaded = _build(parts.source, request, seed or 0)
    if untrained or (header and header.get("transform") != OWN):
        loaded = replace(loaded, transform=None)  # what is trained here is trained on data as it is
    net = _with_weights(loaded, parts, header, data)
    record_transform(net, loaded.transform)
    _recipes[unwrapped(net)] = Recipe(
        loaded.address or str(parts), wanted | dict(loaded.settled), parts.weights, loaded.commit
    )
    classes = ClassNames.from_text(header.get("class_names")) if header else None
    record_classes(net, classes or (classes_of_dataset(header["dataset"]) if "dataset" in header else None))
    return net.eval() if tokenizer is None or isinstance(tokenizer, str) else _with_tokenizer(net.eval(), tokenizer)


def _with_tokenizer(net: nn.Module, tokenizer: Any) -> nn.Module:
    """The network with what turns texts into its inputs: `net.tokenize`."""
    inside: Any = unwrapped(net)
    of_transformers = hasattr(tokenizer, "pad_token") and hasattr(tokenizer, "batch_decode")
    if of_transformers:
        longest = longest_text(inside, tokenizer)
        tokenizer = FromTransformers(tokenizer, longest, accepted_names(inside), full=takes_padding(inside))
    inside.tokenize = tokenizer
    return net


def recipe(net: nn.Module) -> Recipe | None:
    """How `network` made this network, None where it did not."""
    return _recipes.get(unwrapped(net))


def save(net: nn.Module, path: str | Path) -> None:
    """Write a network's weights with what is needed to build it again: its address is the path."""
    made = recipe(net)
    about = {} if made is None else {"network": made.network, "options": made.options}
    classes = recorded_classes(net)
    if classes is not None:
        about["class_names"] = classes.to_text()
    if transform_of(net) is not None:
        about["transform"] = OWN
    files.save(net, path, about=about)


def _parts(address: str) -> tuple[NetworkAddress, dict[str, Any], bool]:
    """The parts of an address, the header of its weights, and whether the network was typed."""
    if not is_checkpoint(address):
        parts = parse(address)
        return parts, files.facts(parts.weights) if parts.weights else {}, True
    path = Path(address).expanduser()
    path = path / "weights.safetensors" if path.is_dir() else path
    if not is_file(path):
        raise files.not_there(path)
    header = files.facts(path)
    if "network" not in header:
        raise InputError(f"{path} does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'.")
    return headers.declared_network(header, path), header, False


def _build(source: Source, request: Request, seed: int) -> Loaded:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not source.guarded:
            return source.build(request)
        try:
            if any(isinstance(v, int) and v > _MANY for v in request.options.values()):
                _check_size(source, request)
            return source.build(request)
        except (LikewiseError, ImportError, Warning):
            raise
        except Exception as error:  # whatever a library says to options it cannot use
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
            raise InputError(f"{request.address} cannot be built: {reason}. Check its name and options.") from error


def _check_size(source: Source, request: Request) -> None:
    """Refuse a network larger than memory, judged by one without numbers in it."""
    with torch.device("meta"):
        net = source.build(replace(request, pretrained=False)).net
    values = [*net.parameters(), *net.buffers()]
    need, room = sum(v.numel() * v.element_size() for v in values), free_memory()
    if need > room:
        raise InputError(
            f"{request.address} would take {need / 1e9:,.0f} GB of memory, and {room / 1e9:,.0f} GB are "
            "free. Choose smaller options."
        )


def _with_weights(loaded: Loaded, address: NetworkAddress, header: dict[str, Any], data: Data | None) -> nn.Module:
    net, mean, std = loaded.net, loaded.mean, loaded.std
    if address.weights is not None:
        label = f"{address.weights} for {address}"
        files.fit(net, files.read(address.weights), label=label, renames=loaded.renames)
        own_mean, own_std = headers.declared_normalisation(header, address.weights)
        mean, std = (mean, std) if own_mean is None else (own_mean, own_std)
    elif (
        data is not None
        and data.domain == "image"
        and mean is None
        and loaded.transform is None
        and takes(net) in (None, "image")
    ):
        mean, std = channel_statistics(data)
    if mean is None or std is None:
        return net
    return (NormalisedVideo if loaded.video else Normalised)(net, mean, std)


def _measure(address: NetworkAddress, data: Data | None) -> dict[str, Any]:
    """What the data asks of a network, as far as it can be asked of this one."""
    if data is None:
        return {}
    wanted: dict[str, Any] = {"classes": len(data.classes)} if data.classes else {}
    if data.domain == "image":
        wanted |= {"channels": data.inputs.shape[1], "size": data.inputs.shape[2]}
    if data.domain == "graph":
        wanted |= {"features": data.inputs.graph.x.shape[1]}
    _check_domain(address, data)
    accepted = address.source.accepts(address.name)
    return {name: value for name, value in wanted.items() if name in accepted}


def _check_domain(address: NetworkAddress, data: Data) -> None:
    """Refuse data of another kind than the architecture was made for, as far as that is known."""
    domain = address.source.domain(address.name)
    if domain in (None, data.domain):
        return
    example = {"image": "zoo:resnet20", "graph": "zoo:gcn", "text": "zoo:bert-tiny"}[data.domain]
    raise InputError(
        f"{address} takes {domain} inputs and {data.name!r} holds "
        f"{data.domain} inputs. Choose a network for these, such as {example}."
    )


def channel_statistics(data: Data) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel to four decimals, over the first images."""
    limit = 1000 if isinstance(data.inputs, ImageFiles) else 10_000
    total = square = torch.zeros(data.inputs.shape[1], dtype=torch.float64)
    count = 0
    for images, _ in data[:limit].batches(1000):
        values = images.double()
        total = total + values.sum(dim=(0, 2, 3))
        square = square + values.square().sum(dim=(0, 2, 3))
        count += values.numel() // values.shape[1]
    mean = total / count
    std = (square / count - mean.square()).clamp(min=1e-8).sqrt()
    return [round(v, 4) for v in mean.tolist()], [round(v, 4) for v in std.tolist()]
