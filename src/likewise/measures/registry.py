"""The registry of measures: declare, register, look up, choose sets."""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from likewise._base.registry import Registry, module_of
from likewise.errors import InputError, OptionError, brief
from likewise.measures.facts import Info
from likewise.measures.function import Measure, OfArrays

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
        "likewise.language.measures",
        "likewise.classes.measure",
        "likewise.transfer.scores",
        "likewise.transfer.linear",
        "likewise.transfer.boundaries",
        "likewise.transfer.distances",
    ),
)

_PAPER = """
    PWCCA SVCCA AlignCos AngShape HardCorr LinReg OrthProc PermProc ProcDist SoftCorr CKA DistCorr EOS GULP RSA RSMDiff
    2nd-Cos Jaccard RankSim IMD ConcDiff MagDiff UnifDiff
"""
RESI = frozenset(_PAPER.split())  # the paper's abbreviations


def measure(*, name: str, invariant_to: Iterable[str] = (), **facts: Any) -> Callable[[Any], Measure]:
    """Declare a measure: a function of a `Pair` (or of two arrays) with its facts beside it.

    Args:
        name: What it is looked up by, in lower-case kebab.
        invariant_to: Changes of one network that it does not notice.
        **facts: Other fields of `Info`; `larger_is`, `bounds` and `source` must be given.

    Returns:
        A decorator; the function becomes a `Measure`.

    Raises:
        InputError: There is no such fact or invariance, or the name is taken.
    """

    def declare(function: Callable[..., float]) -> Measure:
        unknown = set(facts) - set(Info.__dataclass_fields__)
        if unknown:
            raise InputError(f"a measure has no fact {min(unknown)!r}; see likewise.measures.Info.")
        fields = {"family": _FAMILY_OF.get(module_of(function), "custom"), **facts}
        entry = Measure(Info(name=name, invariant_to=frozenset(invariant_to), **fields), on_pairs(function))
        if RESI & set(entry.info.aliases):  # until declared otherwise, the reference computes the same
            entry.variant("resi", deviation="Nothing in value.")(function)
        return MEASURES.add(name, entry, aliases=entry.info.aliases, module=module_of(function))

    return declare


USERS: dict[str, Any] = {"larger_is": "more alike", "bounds": (None, None), "symmetric": False}  # claims nothing


def register(function: Callable[..., float] | None = None, *, name: str | None = None, **facts: Any) -> Any:
    """Add a measure of your own, as a decorator or by a call.

    The function takes a `Pair`, or two arrays `(n, d)`. Facts left out are not claimed: the measure
    counts as asymmetric, unbounded, noticing every change.

    Args:
        function: The measure; without it a decorator is returned.
        name: What it is looked up by; the function's name by default.
        **facts: Fields of `Info`, such as `larger_is="less alike"`.

    Returns:
        The function as a `Measure`.

    Example:
        >>> import numpy as np, likewise
        >>> @likewise.measures.register(name="mean-gap", larger_is="less alike", symmetric=True)
        ... def mean_gap(x, y):
        ...     return float(np.abs(x.mean() - y.mean()))
        >>> likewise.measures.get("mean-gap")(np.zeros((5, 2)), np.ones((5, 3)))
        1.0
        >>> likewise.measures.unregister("mean-gap")
    """

    def declare(function: Callable[..., float]) -> Measure:
        fields = {**USERS, "source": "registered by the user", **facts}
        return measure(name=name or name_of(function).replace("_", "-"), **fields)(function)

    return declare if function is None else declare(function)


def unregister(name: str) -> None:
    """Forget a measure that was registered.

    Args:
        name: Its name or an alias.
    """
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

    Args:
        name: A name such as "cka", an alias such as "OrthProc", a key such as "jaccard[k=5]", or a measure.
        variant: Another form of it, such as "resi".
        **options: Its own options, such as `k=5`.

    Returns:
        A function of two arrays, with its facts in `info`.

    Raises:
        UnknownNameError: There is no measure of that name.
        OptionError: It has no such variant or option.

    Example:
        >>> get("jaccard[k=5]").options, get("cka[resi]").key
        ({'k': 5}, 'cka[resi]')
    """
    if isinstance(name, Measure):
        return name.bind(variant, **options)
    if not isinstance(name, str):
        raise InputError(f"{brief(name)} is not a measure. Pass a name or a measure.")
    plain, bracket, tags = name.partition("[")
    if not (bracket and tags.endswith("]")):
        return MEASURES.get(name).bind(variant, **options)
    key_variant, key_options = _tags(name, tags[:-1])
    return MEASURES.get(plain).bind(key_variant, **key_options).bind(variant, **options)


def _reduce(measure: Measure) -> Any:
    """How a measure is pickled: ours by name, those of users as they are."""
    if not measure.built_in:
        return object.__reduce_ex__(measure, 2)
    return partial(get, measure.name, measure.info.variant, **measure.options), ()


copyreg.pickle(Measure, _reduce)


def _tags(key: str, tags: str) -> tuple[str | None, dict[str, Any]]:
    """Variant and options from what a key has in brackets: 'resi', 'k=5', 'resi, k=5'."""
    variant: str | None = None
    options: dict[str, Any] = {}
    for index, tag in enumerate(map(str.strip, tags.split(","))):
        name, equals, text = tag.partition("=")
        if equals:
            options[name.strip()] = _value(key, name.strip(), text.strip())
        elif index == 0 and tag:
            variant = tag
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
    """Names of all measures, or of one family, in the order of the families.

    Args:
        family: Such as "cca"; all by default.
    """
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
    entries = [entry for item in measures for entry in _expand(item, set(on))]
    if not entries:
        raise InputError("no measure was asked for. Name one, or a set like 'resi' or 'all'.")
    return _number_namesakes(entries) if len(entries) > 1 else entries


def _number_namesakes(entries: list[Measure]) -> list[Measure]:
    """Each measure once; different functions of one name are numbered: results go by the name."""
    unique: dict[str, Measure] = {}
    for entry in entries:
        numbered, count = entry, 2
        while numbered.key in unique and not _same(unique[numbered.key], numbered):
            numbered = replace(entry, info=replace(entry.info, name=f"{entry.name}#{count}"))
            count += 1
        unique.setdefault(numbered.key, numbered)
    return list(unique.values())


def _same(one: Measure, other: Measure) -> bool:
    """Whether measures of one key are one: the key tells numbers, words and arrays apart."""
    by_key = (bool, int, float, str, np.ndarray, Tensor)
    options = zip(one.options.values(), other.options.values(), strict=True)
    return one.original is other.original and all(a is b or isinstance(a, by_key) for a, b in options)


def _expand(item: Any, on: set[str]) -> list[Measure]:
    if isinstance(item, Measure):
        return [item]
    if not isinstance(item, str):
        if callable(item):
            name = name_of(item).replace("_", "-")
            return [Measure(Info(name=name, family="custom", source="given by the user", **USERS), on_pairs(item))]
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
