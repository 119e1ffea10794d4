"""The front door: what a function was called with, sorted into things to compare, measures and options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import torch
from torch.nn import Module

from likewise._base.arrays import as_tensor
from likewise._base.machine import check_device, has_float64
from likewise.errors import InputError, OptionError, brief
from likewise.measures.families.functional import labelled
from likewise.measures.function import Measure
from likewise.measures.registry import FAMILIES, MEASURES, get, select
from likewise.views import Activations, Outputs, Reduction
from likewise.views.activations import check_same_probe, on_one_device
from likewise.views.show import Show, unknown_option
from likewise.work.store import Store, open_store

OPTIONS = [entry.name for entry in fields(Show)]
DEFAULT = "cka-debiased"
PERMUTATIONS = 200


@dataclass(frozen=True)
class Call:
    """What a function was called with: things to compare under names, measures, and how networks are shown."""

    verb: str  # the function, for messages
    things: Mapping[str, Any]  # arrays, views, modules and addresses by name
    two: bool  # whether these are two things without names of the caller's
    selection: Selection  # the measures
    show: Show  # how networks are shown

    @classmethod
    def read(
        cls,
        function: Callable[..., Any],
        views: Any,
        other: Any,
        measure: Any,
        options: Mapping[str, Any],
        *,
        with_arrays: Collection[str] = (),
        **named: Any,
    ) -> Call:
        """Sort the arguments of a function: `other` may be a measure, and `options` hold those of the measure too.

        `named` are the fields of `Show` that are in its signature; those `with_arrays` mean something without networks.
        """
        verb = function.__name__
        if "measures" in options:
            raise OptionError(f"{verb} has no option 'measures'. It is called measure: measure='cka'.")
        show, rest = Show.read(verb, options, long="engine" in named, **named)
        if measure is None and (_is_measure(other) or _stands_for_measure(views, other)):
            measure, other = other, None
        things, two = sort_things(verb, views, other, measure)
        bound = with_options(function, DEFAULT if measure is None else measure, rest)
        call = cls(verb, things, two, Selection.of(bound), show)
        call.check_networks(with_arrays)
        return call

    @property
    def has_networks(self) -> bool:
        """Whether some of the things are networks."""
        return any(isinstance(thing, (str, Module)) for thing in self.things.values())

    def check_networks(self, but: Collection[str] = ()) -> None:
        """Refuse networks without data, choices for a network that is not among them, and several layers of one.

        Without networks options for them are refused, `but` for those that the function uses with arrays too.
        """
        if not self.has_networks:
            self.show.check_unused(self.verb, but)
            return
        from likewise.networks.names import address_of, named_networks

        network = next(thing for thing in self.things.values() if isinstance(thing, (str, Module)))
        self.show.check_data(self.verb, address_of(network))
        self.show.per_network(named_networks(self.things.values()) if self.two else self.things)
        self.show.check_one_layer(self.verb)

    def extract(self, store: Store | None, *, outputs: bool = True, keep_networks: bool = False) -> dict[str, Any]:
        """The things, with views of the data in place of networks, on the device where one was named."""
        things = dict(self.things)
        if self.has_networks:
            from likewise.views.extract import extract_networks

            show, options = replace(self.show, store=store), {"outputs": outputs, "keep_networks": keep_networks}
            things = extract_networks(self.things, show, own_names=self.two, **options)
        if self.show.device is None:
            return things
        check_device(self.show.device)
        if not has_float64(torch.device(self.show.device)):  # measures stay on the CPU
            return things
        return {name: _on_device(thing, name, self.show.device) for name, thing in things.items()}

    def one_measure(self, seed: int) -> Measure:
        """The measure of a function that takes one, which does not look at networks themselves."""
        if len(self.selection.measures) > 1:
            count = len(self.selection.measures)
            raise InputError(f"{self.verb} takes one measure and was given {count}. Call it once per measure.")
        (measure,) = self.selection.measures
        if measure.info.on == "networks":
            raise InputError(
                f"{measure.key} looks at networks, and {self.verb} at inputs of activations. Choose another measure."
            )
        return seeded(measure, seed)

    def activations(self, measures: Sequence[Measure]) -> list[Activations]:
        """Views of all things, for functions that resample inputs."""
        store = nullcontext() if self.show.store is None else open_store(self.show.store)
        with store as opened:
            things = self.extract(opened)
        return list(as_views(things, self.show.reduce, measures, keep_names=self.two).values())


def _on_device(thing: Any, name: str, device: Any) -> Any:
    return (thing if isinstance(thing, Activations) else as_tensor(thing, repr(name))).to(device)


def sort_things(verb: str, views: Any, other: Any, measure: Any = None) -> tuple[dict[str, Any], bool]:
    """Two things as `x` and `y`, or many under their names, and whether it is two."""
    needs = f"{verb} needs two arrays or networks, or a list or mapping of them"
    if isinstance(views, str) and other is None and _names_several(views):
        views = [views]
    if isinstance(views, (list, tuple)) and other is None:
        views = named(views)
    if isinstance(views, Mapping) and other is not None:
        raise InputError(f"{needs}; it was given a mapping and {brief(other)}. Put all into the mapping.")
    if isinstance(views, Mapping):
        if not views:
            raise InputError(f"{needs}; it was given none.")
        return dict(views), False
    if other is None:
        also = "" if measure is None else f" and the measure {brief(measure)}"
        raise InputError(f"{needs}; it was given {brief(views)} alone{also}.")
    return {"x": views, "y": other}, True


def _names_several(address: str) -> bool:
    from likewise.networks.names import expanded

    return len(expanded([address])) > 1


def named(views: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
    """Networks under short names, arrays under their place in the list, views under their own names."""
    if any(isinstance(view, (str, Module)) for view in views):
        from likewise.networks.names import expanded, named_networks

        return named_networks(expanded(views))
    names = [getattr(view, "name", "") for view in views]
    unique = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return dict(zip(names if unique else map(str, range(len(views))), views, strict=True))


def _stands_for_measure(views: Any, other: Any) -> bool:
    """Whether the second argument can only be a measure, be it one that nobody knows."""
    if isinstance(views, Mapping):
        return other is not None
    words = isinstance(other, (list, tuple)) and any(isinstance(item, str) for item in other)
    return isinstance(views, (list, tuple)) and (words or isinstance(other, str))


def _is_measure(item: Any) -> bool:
    """Whether an argument that may be a network or a measure is a measure, or several."""
    if isinstance(item, (list, tuple)):
        return bool(item) and all(map(_is_measure, item))
    if isinstance(item, str):
        return item in ("all", "resi", *FAMILIES) or item.partition("[")[0] in MEASURES
    return isinstance(item, Measure) or (callable(item) and not isinstance(item, Module))


def is_set(measure: Any) -> bool:
    """Whether several measures were asked for, even if it came to one."""
    if isinstance(measure, str):
        return measure in ("all", "resi", *FAMILIES)
    return isinstance(measure, (list, tuple))


@dataclass(frozen=True)
class Selection:
    """The measures that were asked for; the names of those that only "all" stands for are `optional`."""

    measures: list[Measure]
    several: bool
    optional: frozenset[str]

    @classmethod
    def of(cls, measure: Any) -> Selection:
        """Those that a name, a set, a measure, a function or a list of them means."""
        measures = select(measure, on=("representation", "outputs"))
        items = measure if isinstance(measure, (list, tuple)) else [measure]
        named = [item for item in items if not (isinstance(item, str) and item == "all")]
        if len(named) == len(items):
            return cls(measures, is_set(measure), frozenset())
        kept = {m.name for m in select(named)} if named else set()
        return cls(measures, is_set(measure), frozenset(m.name for m in measures) - kept)

    @property
    def reads_outputs(self) -> bool:
        """Whether some measure may look at more than activations."""
        return any(measure.info.on != "representation" for measure in self.measures)


def with_options(function: Callable[..., Any], measure: Any, options: Mapping[str, Any]) -> Any:
    """A single measure with its options bound."""
    if not options:
        return measure
    verb, keywords = function.__name__, [*(function.__kwdefaults__ or ()), *OPTIONS]
    one = None if is_set(measure) or not isinstance(measure, (str, Measure)) else get(measure)
    for name in options:
        if one is not None and name in one.defaults:
            continue
        if get_close_matches(name, keywords, n=1, cutoff=0.8):
            raise OptionError(unknown_option(verb, name, keywords))
        if one is None:
            raise OptionError(
                f"{verb} has no option {name!r}, and options of a measure are for one measure alone. "
                f"Name them in its key, as in 'jaccard[k=5]', or bind them with likewise.measures.get."
            )
    return get(measure, **options)


def as_views(
    views: Mapping[str, Any], reduce: Reduction | None, measures: Iterable[Measure], keep_names: bool = False
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
    ready = dict(zip(ready, on_one_device(list(ready.values())), strict=True))
    first, *others = ready.values()
    for view in others:
        check_same_probe(first, view)
    return ready


def seeded(measure: Measure, seed: int) -> Measure:
    """A measure that draws at random, with the seed of the run unless it has its own."""
    takes = "seed" in measure.defaults and "seed" not in measure.options
    return measure.bind(seed=seed) if takes and seed else measure


def prepare(call: Call, seed: int) -> tuple[list[Activations], Measure]:
    """The views of a call, and its measure; labels that it carries travel with the views, to be shuffled with them."""
    bound = call.one_measure(seed)
    views = call.activations([bound])
    labels = bound.options.get("labels")
    if labels is None:
        return views, bound
    rest = {name: value for name, value in bound.options.items() if name != "labels"}
    return labelled(views, labels), replace(bound, options=rest)


def permutations_of(calibrate: bool | int, within: Any = None) -> int:
    """How many shuffles were asked for."""
    if within is not None and not calibrate:
        raise InputError("within says how inputs are shuffled. Pass calibrate=True too.")
    if calibrate is True:
        return PERMUTATIONS
    if not isinstance(calibrate, int) or calibrate < 0:
        raise InputError(f"calibrate must be True, False or a number of shuffles, got {brief(calibrate)}.")
    return int(calibrate)
