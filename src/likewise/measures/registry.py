"""The registry of measures: declare, register, look up, choose sets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from likewise._base.registry import Registry, module_of
from likewise.errors import InputError, OptionError, brief
from likewise.measures.facts import Info, Measure, OfArrays, describe

FAMILIES = {  # with the files that hold them
    "rsm": ("cka", "rsm", "gram"),
    "cca": ("cca",),
    "alignment": ("procrustes", "alignment"),
    "neighbors": ("neighbors",),
    "topology": ("topology",),
    "statistics": ("statistics",),
    "functional": ("functional",),
}
_FAMILY_OF = {f"likewise.measures.families.{file}": family for family, files in FAMILIES.items() for file in files}
MEASURES: Registry[Measure] = Registry(
    "measure",
    group="likewise.measures",
    modules=(
        *_FAMILY_OF,
        "likewise.classes.measure",
        "likewise.transfer.scores",
        "likewise.transfer.boundaries",
        "likewise.transfer.distances",
    ),
)

RESI = {  # the paper's abbreviations, in its order of families
    "PWCCA",
    "SVCCA",
    "AlignCos",
    "AngShape",
    "HardCorr",
    "LinReg",
    "OrthProc",
    "PermProc",
    "ProcDist",
    "SoftCorr",
    "CKA",
    "DistCorr",
    "EOS",
    "GULP",
    "RSA",
    "RSMDiff",
    "2nd-Cos",
    "Jaccard",
    "RankSim",
    "IMD",
    "ConcDiff",
    "MagDiff",
    "UnifDiff",
}


def measure(*, name: str, invariant_to: Iterable[str] = (), **facts: Any) -> Callable[[Any], Measure]:
    """Declare a measure: a function of a `Pair` (or of two arrays) with its facts beside it."""

    def declare(function: Callable[..., float]) -> Measure:
        unknown = set(facts) - set(Info.__dataclass_fields__)
        if unknown:
            raise InputError(f"a measure has no fact {min(unknown)!r}; see likewise.measures.Info.")
        given = {"family": _FAMILY_OF.get(module_of(function), "custom"), **facts}
        info = Info(name=name, invariant_to=frozenset(invariant_to), **given)
        made = Measure(describe(info, function), on_pairs(function))
        if RESI & set(info.aliases):  # until declared otherwise, the reference computes the same
            made.variant("resi", differs="Nothing in value.")(function)
        return MEASURES.add(name, made, aliases=info.aliases, module=module_of(function))

    return declare


def register(function: Callable[..., float] | None = None, *, name: str | None = None, **facts: Any) -> Any:
    """Add a measure of your own, as a decorator or by a call.

    The function takes a `Pair`, or two arrays `(n, d)`. Facts left out are not claimed: the measure
    counts as asymmetric, unbounded, noticing every change.

    >>> import numpy as np, likewise
    >>> @likewise.measures.register(name="mean-gap", larger_is="less alike", symmetric=True)
    ... def mean_gap(x, y):
    ...     return float(np.abs(x.mean() - y.mean()))
    >>> likewise.measures.get("mean-gap")(np.zeros((5, 2)), np.ones((5, 3)))
    1.0
    >>> likewise.measures.unregister("mean-gap")
    """

    def declare(function: Callable[..., float]) -> Measure:
        given = {
            "larger_is": "more alike",
            "bounds": (None, None),
            "source": "registered by the user",
            "symmetric": False,
            **facts,
        }
        return measure(name=name or name_of(function).replace("_", "-"), **given)(function)

    return declare if function is None else declare(function)


def unregister(name: str) -> None:
    """Forget a measure that was registered."""
    MEASURES.remove(get(name).name)


def on_pairs(function: Callable[..., float]) -> Callable[..., float]:
    """A function of two arrays as a function of a pair; one of a pair as it is."""
    positional = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if len(positional) == 1:
        return function
    if len(positional) != 2:
        raise InputError(
            f"{name_of(function)} takes {len(positional)} arguments. A measure takes a Pair, or two arrays."
        )
    return OfArrays(function)


def name_of(function: Callable[..., float]) -> str:
    """What a function is called; a partial as what it calls, an object as its class."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def get(name: str | Measure, variant: str | None = None, **options: Any) -> Measure:
    """The measure of that name, alias or key, with variant and options bound.

    >>> get("jaccard[k=5]").options, get("cka[resi]").key
    ({'k': 5}, 'cka[resi]')
    """
    if isinstance(name, Measure):
        return name.bind(variant, **options)
    if not isinstance(name, str):
        raise InputError(f"{brief(name)} is not a measure. Pass a name or a measure.")
    plain, written, tags = name.partition("[")
    found = MEASURES.get(plain if tags.endswith("]") else name)
    if written and tags.endswith("]"):
        own, own_options = _tags(name, tags[:-1])
        found = found.bind(own, **own_options)
    return found.bind(variant, **options)


def _tags(key: str, tags: str) -> tuple[str | None, dict[str, Any]]:
    """Variant and options from what a key has in brackets: 'resi', 'k=5', 'resi, k=5'."""
    variant: str | None = None
    options: dict[str, Any] = {}
    for place, tag in enumerate(each.strip() for each in tags.split(",")):
        name, given, text = tag.partition("=")
        if not given and place == 0 and tag:
            variant = tag
        elif given:
            options[name.strip()] = _value(key, name.strip(), text.strip())
        else:
            raise OptionError(f"{key!r} cannot be read. Write options as name=value: 'jaccard[k=5]'.")
    return variant, options


def _value(key: str, name: str, text: str) -> Any:
    """A number or a word; arrays have no written form."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if " " in text:  # as in 'labels=ndarray 1f0c2e'
        raise OptionError(f"{key!r} does not hold the values of {name}. Bind them with likewise.measures.get.")
    return {"True": True, "False": False, "None": None}.get(text, text)


def names(family: str | None = None) -> list[str]:
    """Names of all measures, or of one family, in the order of the families."""
    if family is None:
        return MEASURES.names()
    families = list(dict.fromkeys(entry.info.family for entry in MEASURES))
    if family not in families:
        raise InputError(f"no family named {family!r}. There are {', '.join(families)}.")
    return [entry.name for entry in MEASURES if entry.info.family == family]


def select(measures: Any, *, on: Iterable[str] = ("representation",)) -> list[Measure]:
    """A name, an alias, a set ("all", "resi", a family), a measure, a function, or a mix of them."""
    if not isinstance(measures, (list, tuple, set, frozenset, Iterator)):
        measures = [measures]
    found: list[Measure] = []
    for item in measures:
        found += _expand(item, set(on))
    if not found:
        raise InputError("no measure was asked for. Name one, or a set like 'resi' or 'all'.")
    return _number_namesakes(found) if len(found) > 1 else found


def _number_namesakes(found: list[Measure]) -> list[Measure]:
    """Each measure once; different functions of one name are numbered: results go by the name."""
    kept: dict[str, Measure] = {}
    for entry in found:
        named, count = entry, 2
        while named.key in kept and not _same(kept[named.key], named):
            named = replace(entry, info=replace(entry.info, name=f"{entry.name}#{count}"))
            count += 1
        kept.setdefault(named.key, named)
    return list(kept.values())


def _same(one: Measure, other: Measure) -> bool:
    """Whether measures of one key are one: the key tells numbers, words and arrays apart."""
    by_key = (bool, int, float, str, np.ndarray, Tensor)
    options = zip(one.options.values(), other.options.values(), strict=True)
    return one.given is other.given and all(a is b or isinstance(a, by_key) for a, b in options)


def _expand(item: Any, on: set[str]) -> list[Measure]:
    if isinstance(item, Measure):
        return [item]
    if not isinstance(item, str):
        if callable(item):
            return [_from_function(item)]
        raise InputError(f"{brief(item)} is not a measure. Pass a name, a measure or a function.")
    if item == "resi":
        return [m.variants["resi"] for m in MEASURES if RESI & set(m.info.aliases)]
    if item == "all":
        return [m for m in MEASURES if m.info.on in on and not m.missing_options and m.info.family != "custom"]
    if item in FAMILIES and item not in MEASURES:
        # those that look at networks run them many times, and are asked for by name
        usual = (m for m in MEASURES if m.info.on != "networks")
        return [m for m in usual if m.info.family == item and not m.missing_options]
    return [get(item)]


def _from_function(function: Callable[..., float]) -> Measure:
    info = Info(
        name=name_of(function).replace("_", "-"),
        family="custom",
        larger_is="more alike",
        bounds=(None, None),
        source="given by the user",
        symmetric=False,
    )
    return Measure(describe(info, function), on_pairs(function))
