"""What `compare` was given: which arguments are networks, which are measures, and which are options of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.nn import Module

from likewise.comparison.networks import named_networks
from likewise.errors import InputError, OptionError, brief
from likewise.measures.facts import Measure
from likewise.measures.pair import check_same_probe
from likewise.measures.registry import FAMILIES, MEASURES, get, select
from likewise.views import Activations, Outputs, Reduction

DEFAULT = "cka-debiased"
NEEDS = "compare needs two arrays or networks, or a list or mapping of them"


def read_arguments(views: Any, other: Any, measure: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Views (a mapping where there are many), the second of two, and the measure with its options."""
    if "measures" in options:
        raise OptionError("compare has no option 'measures'. It is called measure: measure='cka'.")
    if measure is None and (_is_measure(other) or _stands_for_measure(views, other)):
        measure, other = other, None
    if isinstance(views, (list, tuple)) and other is None:
        views = named(views)
    if isinstance(views, Mapping) and other is not None:
        raise InputError(f"{NEEDS}; it was given a mapping and {brief(other)}. Put all into the mapping.")
    if not isinstance(views, Mapping) and other is None:
        given = "" if measure is None else f" and the measure {brief(measure)}"
        raise InputError(f"{NEEDS}; it was given {brief(views)} alone{given}.")
    return views, other, with_options(DEFAULT if measure is None else measure, options)


def named(views: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
    """Networks under short names, arrays under their place in the list, views under their own names."""
    if any(isinstance(view, (str, Module)) for view in views):
        return named_networks(views)
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
            outputs = Outputs(view) if functional and np.ndim(view) == 2 else None
            ready[name] = Activations(view, name=str(name), reduce=reduce, outputs=outputs)
    first = next(iter(ready.values()))
    for view in ready.values():
        check_same_probe(first, view)
    return ready


def seeded(measure: Measure, seed: int) -> Measure:
    """A measure that draws at random, with the seed of the run unless it has its own."""
    takes = "seed" in measure.defaults and "seed" not in measure.options
    return measure.bind(seed=seed) if takes and seed else measure
