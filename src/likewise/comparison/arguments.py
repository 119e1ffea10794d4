"""What `compare` was given: which arguments are networks, measures or options, and networks as their views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch.nn import Module

from likewise._base.arrays import as_tensor
from likewise._base.names import short_names
from likewise.errors import InputError, OptionError, brief, quoted_list
from likewise.measures.families.functional import labelled
from likewise.measures.function import Measure
from likewise.measures.registry import FAMILIES, MEASURES, get, select
from likewise.views import Activations, Outputs, Reduction
from likewise.views.activations import check_same_probe
from likewise.work.store import Store

DEFAULT = "cka-debiased"
NEEDS = "compare needs two arrays or networks, or a list or mapping of them"


def read_arguments(views: Any, other: Any, measure: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Views (a mapping where there are many), the second of two, and the measure with its options."""
    if "measures" in options:
        raise OptionError("compare has no option 'measures'. It is called measure: measure='cka'.")
    if measure is None and (_is_measure(other) or _stands_for_measure(views, other)):
        measure, other = other, None
    if isinstance(views, str) and other is None and _names_several(views):
        views = [views]
    if isinstance(views, (list, tuple)) and other is None:
        views = named(views)
    if isinstance(views, Mapping) and other is not None:
        raise InputError(f"{NEEDS}; it was given a mapping and {brief(other)}. Put all into the mapping.")
    if not isinstance(views, Mapping) and other is None:
        given = "" if measure is None else f" and the measure {brief(measure)}"
        raise InputError(f"{NEEDS}; it was given {brief(views)} alone{given}.")
    return views, other, with_options(DEFAULT if measure is None else measure, options)


def _names_several(address: str) -> bool:
    from likewise.networks.names import expanded

    return len(expanded([address])) > 1


def named(views: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
    """Networks under short names, arrays under their place in the list, views under their own names."""
    if any(isinstance(view, (str, Module)) for view in views):
        from likewise.networks.names import expanded, named_networks

        return named_networks(expanded(views))
    names = [getattr(view, "name", "") for view in views]
    own = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return dict(zip(names if own else map(str, range(len(views))), views, strict=True))


def _stands_for_measure(views: Any, other: Any) -> bool:
    """Whether the second argument can only be a measure, be it one that nobody knows."""
    if isinstance(views, Mapping):
        return other is not None
    words = isinstance(other, (list, tuple)) and any(isinstance(each, str) for each in other)
    return isinstance(views, (list, tuple)) and (words or isinstance(other, str))


def _is_measure(item: Any) -> bool:
    """Whether an argument that may be a network or a measure is a measure, or several."""
    if isinstance(item, (list, tuple)):
        return bool(item) and all(_is_measure(each) for each in item)
    if isinstance(item, str):
        return item in ("all", "resi", *FAMILIES) or item.partition("[")[0] in MEASURES
    return isinstance(item, Measure) or (callable(item) and not isinstance(item, Module))


def is_set(measure: Any) -> bool:
    """Whether several measures were asked for, even if it came to one."""
    if isinstance(measure, str):
        return measure in ("all", "resi", *FAMILIES)
    return isinstance(measure, (list, tuple))


@dataclass(frozen=True)
class Request:
    """The measures that were asked for; the names of those that only "all" stands for are `optional`."""

    measures: list[Measure]
    several: bool
    optional: frozenset[str]

    @classmethod
    def of(cls, measure: Any) -> Request:
        """Those that a name, a set, a measure, a function or a list of them means."""
        found = select(measure, on=("representation", "outputs"))
        items = measure if isinstance(measure, (list, tuple)) else [measure]
        named = [item for item in items if not (isinstance(item, str) and item == "all")]
        if len(named) == len(items):
            return cls(found, is_set(measure), frozenset())
        kept = {m.name for m in select(named)} if named else set()
        return cls(found, is_set(measure), frozenset(m.name for m in found) - kept)

    @property
    def reads_outputs(self) -> bool:
        """Whether some measure may look at more than activations."""
        return any(measure.info.on != "representation" for measure in self.measures)


def with_options(measure: Any, options: dict[str, Any]) -> Any:
    """A single measure with its options bound."""
    if not options:
        return measure
    first = next(iter(options))
    if is_set(measure) or not isinstance(measure, (str, Measure)):
        raise OptionError(
            f"compare has no option {first!r}, and options of a measure are for one measure alone. "
            f"Name them in its key, as in 'jaccard[k=5]', or bind them with likewise.measures.get."
        )
    return get(measure, **options)


def as_views(
    views: Mapping[str, Any],
    reduce: Reduction | None,
    measures: Iterable[Measure],
    keep_names: bool = False,
) -> dict[str, Activations]:
    """Views under their names, checked to be of one probe. Bare arrays serve as logits where asked."""
    functional = any(m.info.on == "outputs" for m in measures)
    ready: dict[str, Activations] = {}
    for name, view in views.items():
        if isinstance(view, Activations):
            ready[name] = view if keep_names and view.name else view.named(str(name))
        else:
            outputs = Outputs(view) if functional and as_tensor(view, repr(str(name))).ndim == 2 else None
            ready[name] = Activations(view, name=str(name), reduce=reduce, outputs=outputs)
    first, *others = ready.values()
    for view in others:
        check_same_probe(first, view)
    return ready


def seeded(measure: Measure, seed: int) -> Measure:
    """A measure that draws at random, with the seed of the run unless it has its own."""
    takes = "seed" in measure.defaults and "seed" not in measure.options
    return measure.bind(seed=seed) if takes and seed else measure


@dataclass(frozen=True)
class Extraction:
    """How networks are shown data, and where their views are kept.

    With `keep_networks`, views bring their network and the data along, for measures that look at networks. Without
    `outputs`, what networks answer is not kept.
    """

    data: Any
    layers: str | Mapping[str, str] | None
    reduce: Reduction | None
    head: str | Mapping[str, str] | None
    batch_size: int | None
    device: Any
    dtype: str | None
    transform: Any
    store: Store | None
    progress: bool
    keep_networks: bool
    outputs: bool


def extract_all(networks: Mapping[str, Any], how: Extraction, *, own_names: bool) -> dict[str, Any]:
    """Networks as their views of the data, everything else as it is; under their own names where asked."""
    from likewise.data import Data, as_data
    from likewise.data.inputs import domain_of
    from likewise.data.objects import read_once
    from likewise.networks import network as load
    from likewise.networks.names import named_networks
    from likewise.views.activations import Subject
    from likewise.views.extract import extract_without_note, note_embeddings

    data = as_data(how.data)
    if isinstance(data, Iterator) and len(networks) > 1:
        data = read_once(data)

    short = list(named_networks(networks.values()) if own_names else networks)
    layers, heads, transforms = (
        dict(zip(networks, choices_of(choice, short, networks.values()), strict=True))
        for choice in (how.layers, how.head, how.transform)
    )

    def view(name: str, network: Any) -> Any:
        if not isinstance(network, (str, Module)):
            return network
        called = (network if isinstance(network, str) else None) if own_names else name
        module = network
        if isinstance(network, str):
            module = load(network, data=data if isinstance(data, Data) else None, domain=domain_of(data))
        found = extract_without_note(
            module,
            data,
            layers[name],
            how.reduce,
            how.store,
            batch_size=how.batch_size,
            device=how.device,
            dtype=how.dtype,
            name=called,
            head=heads[name],
            transform=transforms[name],
            progress=how.progress,
            outputs=how.outputs,
        )
        if not how.keep_networks:
            return found
        folder = None if how.store is None else how.store.path
        return found.of(Subject(module, data, how.device, transforms[name], folder))

    found = {name: view(name, network) for name, network in networks.items()}
    chosen = [name for name in networks if layers[name] is None]
    note_embeddings(found[name] for name in chosen if isinstance(networks[name], (str, Module)))
    return found


def choices_of(choice: Any, names: Sequence[str], addresses: Iterable[Any]) -> list[Any]:
    """What was chosen for each network: one thing for all, or by name, by address or as tables name it."""
    if not isinstance(choice, Mapping):
        return [choice] * len(names)
    known = zip(names, addresses, short_names(names), strict=True)
    return [next((choice[name] for name in each if isinstance(name, str) and name in choice), None) for each in known]


def check_networks(
    given: Mapping[str, Any],
    data: Any,
    head: str | Mapping[str, str] | None,
    layers: str | Mapping[str, str] | None,
    transform: Any,
) -> None:
    """Refuse networks without data, choices for a network that is not among them, and several layers of one."""
    from likewise.networks.names import address_of
    from likewise.views.hooks import is_pattern

    if data is None:
        network = next(each for each in given.values() if isinstance(each, (str, Module)))
        raise InputError(
            f"{address_of(network)} is a network, and compare needs to "
            "know what to show it. Pass data=, like data='cifar10:test[:1000]'."
        )
    check_choices(given, head=head, layers=layers, transform=transform)
    for asked in layers.values() if isinstance(layers, Mapping) else [layers]:
        if is_pattern(asked):
            raise InputError(
                f"compare looks at one layer of each network, and layers={asked!r} may mean several. Name one, "
                "as in layers='penultimate' or layers={network: layer}, or use likewise.layerwise."
            )


def check_choices(given: Mapping[str, Any], **choices: Any) -> None:
    """Refuse a choice for a network that is not among those given, by name, by address or as tables name it."""
    for option, choice in choices.items():
        if not isinstance(choice, Mapping):
            continue
        known = {*given, *(each for each in given.values() if isinstance(each, str)), *short_names(list(given))}
        for name in choice:
            if name not in known:
                what = "function" if option == "transform" else "layer"
                raise InputError(
                    f"{option} names a {what} of {name!r}, and the networks are {quoted_list(list(given))}. "
                    f"Give {option}={{network: {what}}} by these names."
                )


def prepare(x: Any, y: Any, measure: Any, seed: int) -> tuple[list[Activations], Measure, bool]:
    """Views, the measure with its options, and whether it was a single pair that was asked for."""
    single = not isinstance(x, Mapping)
    if single and y is None:
        raise InputError("two arrays are needed, or a mapping of names to arrays.")
    if not single and y is not None:  # calibrate(views, "cka")
        measure = y
    bound = seeded(get(measure), seed)
    views = as_views({"x": x, "y": y} if single else x, None, [bound], keep_names=single)
    labels = bound.options.get("labels")
    if labels is not None:  # shuffled together with the side they belong to
        bound = replace(bound, options={k: v for k, v in bound.options.items() if k != "labels"})
        return labelled(list(views.values()), labels), bound, single
    return list(views.values()), bound, single


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {brief(value)}.")
