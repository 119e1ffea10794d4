"""`extract`: from a network and data to views of its layers, in one pass.

Without a store rows are kept in memory; with one they stream to a file per layer, so that the memory needed does not
grow with the number of inputs, and the same request is answered from the files the next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor, nn

import likewise
from likewise._base.arrays import refuse_meta
from likewise._base.hashing import InputsHash, facts_digest, fingerprint
from likewise._base.progress import warn
from likewise.data import Data, as_data
from likewise.data.inputs import data_name
from likewise.data.objects import read_once
from likewise.errors import InputError, brief
from likewise.networks import recipe, unwrapped
from likewise.networks.forward import transform_for
from likewise.networks.names import address_of, expanded, named_networks, network_and_name
from likewise.networks.unknown_normalisation import check_normalisation
from likewise.views.activations import NetworkOnData
from likewise.views.batches import known_length, read_at_once
from likewise.views.cache import FolderViews
from likewise.views.hooks import Layers, is_pattern
from likewise.views.layer_pass import MemoryViews, longest_facts, run
from likewise.views.recorder import Recorder
from likewise.views.reduction import BY_POSITION
from likewise.views.show import Show, ShowOptions
from likewise.work.tasks import Call, check_plain, run_calls


def extract(
    networks: Any, data: Any = None, layers: Layers = None, *, name: str | None = None, **show: Unpack[ShowOptions]
) -> Any:
    """What layers of a network give on data, and what it answered, as views.

    Args:
        networks: An address or a module; a list or a mapping of several.
        data: What they are shown: an address, data, an array `(n, ...)`, a dataset, or any iterable of batches.
        layers: A name ("layer1.0"), a glob, a list of those, "all", "blocks", "penultimate", "embedding" or "logits";
            see `Show`. A single name gives a single view.
        name: What the network is called, if not by its address or class.
        **show: How networks are shown; see `Show`. With a folder as `store`, rows stream to disk and are mapped back.

    Returns:
        One `Activations`, or `Views` of several by layer; of several networks a dict of those by name.

    Raises:
        InputError: There is no data, or something other than networks was passed.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> extract(net, torch.rand(10, 4), layers="1", name="tiny")
        Activations('tiny', n=10, d=3)
        >>> extract(net, torch.rand(10, 4), layers="blocks")
        Views(['0', '2'])
    """
    options = Show.only("extract", show, long=True, data=data, layers=layers).with_engine()
    if options.engine is not None:
        check_plain("extract", networks=networks, data=data)
        if options.store is None:
            raise InputError(
                "the workers of an engine leave views in a store. Pass store=, a folder that all of them see."
            )
    if not isinstance(networks, (Mapping, list, tuple)):
        _check_network(networks, options)
        named: Mapping[str, Any] = named_networks([networks]) if name is None else {name: networks}
        if options.engine is not None:
            _extract_in_workers(named, options, own_names=name is None, outputs=True)
        (choices,) = options.per_network(named).values()
        view = extract_network(networks, choices, name)
        warn_embedding_used([view] if layers is None else [])
        return view
    if name is not None:
        raise InputError("name is what one network is called. Pass a mapping of names to networks.")
    if not networks:
        raise InputError("extract was given no network. Pass an address, a module, or several.")
    named = networks if isinstance(networks, Mapping) else named_networks(expanded(networks))
    for network in named.values():
        _check_network(network, options)
    return extract_networks(named, options)


def _check_network(network: Any, show: Show) -> None:
    """Refuse what is no network, and a network without data."""
    if not isinstance(network, (str, nn.Module)):
        raise InputError(f"extract takes networks, and was given {brief(network)}. Pass addresses or modules.")
    show.check_data("extract", address_of(network))


def warn_embedding_used(views: Iterable[Any]) -> None:
    """Say which views are embeddings that nobody asked for: their networks have no classifier."""
    names = [f"{view.about['network']} ({view.about['embedding']})" for view in views if "embedding" in view.about]
    if names:
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        warn(f"no classifier was found in {listed}, so the embedding is taken. Pass layers='embedding' to say so.")


def _extract_in_workers(networks: Mapping[str, Any], show: Show, **options: bool) -> None:
    """Have workers put the views of addresses into the store, where they are then found; the rest is left to this."""
    addresses = {key: network for key, network in networks.items() if isinstance(network, str)}
    if not show.is_for_engine():
        return
    choices = show.for_workers().per_network(networks)
    calls = [
        Call(f"the view of {network}", _put_views, (key, network, choices[key]), options)
        for key, network in addresses.items()
    ]
    run_calls(calls, show.engine, "extracting", progress=show.progress)


def _put_views(key: str, network: str, show: Show, own_names: bool, outputs: bool) -> None:
    """The task of a worker: the views of one network, into the store."""
    with catch_warnings():
        simplefilter("ignore")  # the process that sent it says the same
        extract_networks({key: network}, show, own_names=own_names, outputs=outputs)


def extract_networks(
    networks: Mapping[str, Any],
    show: Show,
    *,
    own_names: bool = False,
    outputs: bool = True,
    keep_networks: bool = False,
) -> dict[str, Any]:
    """Networks as their views of the data; what is no network stays as it is.

    With `own_names`, views are called by addresses and classes instead of the names here; with `keep_networks`, they
    bring their network and the data along, for measures that look at networks.
    """
    if show.engine is not None:
        _extract_in_workers(networks, show, own_names=own_names, outputs=outputs)
    data = as_data(show.data)
    if isinstance(data, Iterator) and len(networks) > 1:
        data = read_once(data)
    named = named_networks(networks.values()) if own_names else networks
    choices = dict(zip(networks, replace(show, data=data).per_network(named).values(), strict=True))
    views = {}
    for key, network in networks.items():
        if not isinstance(network, (str, nn.Module)):
            views[key] = network
            continue
        called = (network if isinstance(network, str) else None) if own_names else key
        normalised, choice = choices[key].for_network(network)
        module = network_and_name(normalised, data=data, device=choice.device)[0]
        views[key] = extract_network(module, choice, called, outputs=outputs)
        if keep_networks:
            folder = getattr(show.store, "path", None)
            subject = NetworkOnData(module, data, show.device, choice.transform, folder)
            views[key] = views[key].with_subject(subject)
    warn_embedding_used(
        views[key]
        for key, network in networks.items()
        if choices[key].layers is None and isinstance(network, (str, nn.Module))
    )
    return views


def extract_network(network: str | nn.Module, show: Show, name: str | None, *, outputs: bool = True) -> Any:
    """The views of one network; without `outputs`, its answers are not kept."""
    refuse_meta()
    inputs = as_data(show.data)
    called = name or address_of(network)
    network, show = show.for_network(network)
    module, called = network_and_name(network, called, data=inputs, device=show.device)
    if show.transform is None:
        check_normalisation(module, inputs, repr(called), show.device)
    inputs = transform_for(module, inputs, repr(called), show.transform)
    module = module if show.transform is None else unwrapped(module)  # past a normalisation of its own
    layers: Any = show.layers
    several = is_pattern(layers)
    facts = {
        "network": called,
        "reduction": show.reduce or "none",
        "data": data_name(inputs),
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        **_origin(module),
    }
    transform = getattr(getattr(inputs, "inputs", None), "recipe", None)
    optional = {"head": show.head, "precision": show.dtype, "transform": transform}
    facts |= {key: value for key, value in optional.items() if value}

    def title(layer: str) -> str:
        return f"{called}/{layer}" if several else called

    def record(sink: Any) -> Any:
        recorder = Recorder(module, called, show, automatic=show.batch_size is None)
        size = show.batch_size or read_at_once(inputs)
        return run(recorder, inputs, sink, batch_size=size, progress=show.progress, outputs=outputs)

    if show.store is None:
        memory = MemoryViews(facts, title, known_length(inputs))
        views = memory.finish(record(memory.sink))
    else:
        facts["fingerprint"] = fingerprint(module)
        folder = FolderViews(show.store, facts, title, longest_facts(module))
        views = folder.views(_request(facts, layers, inputs, module), record)
    return views if several else views[next(iter(views))]


def _origin(module: nn.Module) -> dict[str, str]:
    """What is recorded of where a network came from: the commit of its repository, and the part that is looked at."""
    source = recipe(module)
    facts = {} if source is None else {"commit": source.commit, "part": source.options.get("part")}
    return {name: str(value) for name, value in facts.items() if value is not None}


def _request(facts: dict[str, str], layers: Any, data: Any, network: nn.Module) -> dict[str, Any] | None:
    """What a request depends on; None where the inputs show only as they are read."""
    if isinstance(data, Data):
        truth = None if data.labels is None else data.labels.tolist()
        labels = {"labels": truth, "classes": data.classes, "wnids": data.wnids}
        probe = f"{data.probe} {facts_digest(labels | {'outputs': longest_facts(network)})}"
    elif isinstance(data, Tensor):
        whole = InputsHash()
        whole.update(data)
        probe = whole.hexdigest()
    else:
        return None
    asked = list(layers) if is_pattern(layers) and not isinstance(layers, str) else layers
    kinds = ("fingerprint", "reduction", "head", "precision", "transform", "commit")
    clusters = {"clusters": True} if facts["reduction"] in BY_POSITION else {}  # older files do not hold them
    return {**{key: facts[key] for key in kinds if key in facts}, **clusters, "layers": asked, "probe": probe}
