"""What is declared beside every measure, and the object that carries it.

The facts are the only list: tables, documentation, contract tests and the scheduler of `compare` all
read them here. A fact that is not declared is claimed not to hold, and is tested to fail.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from likewise._base.hashing import digest
from likewise._base.machine import is_out_of_memory, one_thread
from likewise._base.optional import Library
from likewise.errors import (
    InputError,
    LikewiseError,
    MeasureError,
    OptionError,
    UndefinedError,
    brief,
    did_you_mean,
)
from likewise.measures.pair import Kernel, Pair, pair_of
from likewise.measures.saturation import Saturation, Sizes
from likewise.views import Activations

PERMUTATION, ROTATION, SCALE, SHIFT, LINEAR = "permutation", "rotation", "scale", "shift", "linear"
ROUNDING = 1e-9  # how far beyond its bounds rounding may put a value
INVARIANCES = (PERMUTATION, ROTATION, SCALE, SHIFT, LINEAR)
_IMPLIED = {ROTATION: {PERMUTATION}, LINEAR: {PERMUTATION, ROTATION, SCALE}}

Direction = Literal["more alike", "less alike"]
Limit = tuple[float | None, float | None] | tuple[str, ...]


@dataclass(frozen=True)
class Info:
    """The facts of one measure.

    larger_is     what a larger value says of the two networks
    bounds        the range, None where there is no end
    identity      the value of a network with itself, None where it depends on the network
    invariant_to  changes of one side that are not noticed
    metric        obeys the triangle inequality
    paired        compares input by input; else only what holds of all inputs together
    rows          how many inputs are needed, by the options
    cost          how the time of a pair grows
    cross         works on the cross-covariance of the pair
    kernels       n x n matrices whose inner products are all it needs, by the options
    saturates     where the score follows from the sizes alone, by the options
    limits        smallest and largest value of an option, or its choices
    shapes        how the reference turns maps into rows (the variant "resi" only)
    on            what it looks at: activations, outputs, or the networks themselves
    needs         a library that likewise does without, perhaps for some sizes only
    by_label      counts inputs by their true label, so that shuffles keep to inputs of one label
    rests_on      how many inputs the score rests on, where they may be few, and which: an interval needs some of them
    joint         how much of what two groups of inputs change together an interval takes off its variance
    version       raised where values change, so that a store does not give old ones
    """

    name: str
    family: str
    larger_is: Direction
    bounds: tuple[float | None, float | None]
    source: str
    summary: str = ""
    recipe: str = ""
    aliases: tuple[str, ...] = ()
    symmetric: bool = True
    identity: float | None = None
    invariant_to: frozenset[str] = frozenset()
    metric: bool = False
    paired: bool = True
    rows: Callable[[Mapping[str, Any]], int] | int = 2
    cost: str = "n·d²"
    cross: bool = False
    kernels: Callable[[Mapping[str, Any]], tuple[Kernel, ...]] | None = None
    saturates: Callable[[Mapping[str, Any]], Saturation | None] | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict)
    shapes: Literal["spatial", "flatten"] = "spatial"
    on: Literal["representation", "outputs", "networks"] = "representation"
    needs: Library | Callable[[Sizes], Library | None] | None = None
    by_label: bool = False
    rests_on: Callable[[Pair, Mapping[str, Any]], tuple[int, str]] | None = None
    joint: float = 0.2
    version: int = 2
    variant: str | None = None
    differs: str = ""

    @property
    def similarity(self) -> bool:
        """Whether larger is more alike."""
        return self.larger_is == "more alike"


class OfArrays:
    """A function of two arrays as a function of a pair.

    A class rather than a closure, so that it can be sent to other processes where the function can.
    """

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        options = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.default is not p.empty]
        first = inspect.Parameter("pair", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.__signature__ = inspect.Signature([first, *options])

    def __reduce__(self) -> Any:
        return OfArrays, (self.function,)

    def __call__(self, pair: Pair, **options: Any) -> float:
        x, y = (side.given.cpu().numpy() for side in (pair.a, pair.b))
        return self.function(x, y, **options)


@dataclass(frozen=True, eq=False)
class Measure:
    """A measure with its options bound: call it on two arrays, or score a `Pair`.

    >>> import numpy as np, likewise
    >>> jaccard = likewise.measures.get("jaccard", k=3)
    >>> x = np.random.default_rng(0).normal(size=(50, 8))
    >>> jaccard(x, 2 * x)
    1.0
    """

    info: Info
    function: Callable[..., float]
    options: Mapping[str, Any] = field(default_factory=dict)
    variants: dict[str, Measure] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name it is looked up by."""
        return self.info.name

    @property
    def given(self) -> Callable[..., float]:
        """The function as it was handed in."""
        return self.function.function if isinstance(self.function, OfArrays) else self.function

    @property
    def built_in(self) -> bool:
        """Whether it is one of ours, known by name and version."""
        return str(getattr(self.given, "__module__", "")).partition(".")[0] == "likewise"

    @cached_property
    def key(self) -> str:
        """The name with its variant and options, as shown in results."""
        chosen = [f"{k}={_short(v)}" for k, v in self.options.items() if self.defaults.get(k) is not v]
        tags = ([self.info.variant] if self.info.variant else []) + chosen
        return self.name + (f"[{', '.join(tags)}]" if tags else "")

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Options by name with their default; `inspect.Parameter.empty` where one must be given."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def missing(self, sizes: Sizes) -> Library | None:
        """The library that networks of these sizes need and that is not installed."""
        needs = self.info.needs
        library = needs(sizes) if callable(needs) else needs
        return None if library is None or library.installed else library

    @cached_property
    def missing_options(self) -> list[str]:
        """Options that must be given and were not."""
        return [
            name
            for name, default in self.defaults.items()
            if default is inspect.Parameter.empty and name not in self.options
        ]

    @property
    def resolved(self) -> dict[str, Any]:
        """All options with the values in force."""
        return {**self.defaults, **self.options}

    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:
        with one_thread(for_inputs=(x, y)):
            return self.score(pair_of(x, y, reduce=reduce, shapes=self.shapes, on=self.info.on))

    @property
    def shapes(self) -> str | None:
        """How the reference implementation brings widths together, None in the published form."""
        return self.info.shapes if self.info.variant == "resi" else None

    def score(self, pair: Pair) -> float:
        """The value for a pair, or an error that says why there is none."""
        if self.missing_options:
            raise OptionError(f"{self.name} needs the option {self.missing_options[0]!r}. {self._usage()}")
        self.check_subjects((pair.a.view, pair.b.view))
        needed = self.rows
        if pair.n < needed:
            raise InputError(
                f"{self.key} needs at least {needed} rows, got {pair.n}. Show the networks more inputs"
                + (" or lower k." if "k" in self.defaults else ".")
            )
        try:
            value = self._number(self.function(pair, **self.options), pair)
        except (LinAlgError, np.linalg.LinAlgError) as error:
            reason = str(error).removeprefix("linalg.").split(".")[0]
            raise UndefinedError(
                f"{self.key} is undefined for {pair}: a decomposition failed ({reason}). Neurons whose "
                "scales lie this far apart are best scaled or left out."
            ) from error
        except Exception as error:
            if self.built_in or isinstance(error, LikewiseError) or is_out_of_memory(error):
                raise
            raise MeasureError(f"{self.key} failed on {pair}: {type(error).__name__}: {error}") from error
        return self._checked(value, pair)

    def check_subjects(self, views: Iterable[Activations]) -> None:
        """Refuse bare activations where the measure looks at networks."""
        if self.info.on != "networks":
            return
        for view in views:
            if view.subject is None:
                raise InputError(
                    f"{self.key} looks at networks, and {view.label} is an array of activations. Pass two networks "
                    f"and data, as in compare(network, other, {self.key!r}, data='cifar10:test')."
                )

    def _checked(self, value: float, pair: Pair) -> float:
        """The value, inside its bounds where rounding put it a little beyond them."""
        if not math.isfinite(value):
            gave = "0/0" if value != value else "more than a float can hold"
            raise UndefinedError(f"{self.key} is undefined for {pair}: the formula gave {gave}.")
        low, high = self.info.bounds
        if low is not None and low - ROUNDING <= value < low:
            return float(low)
        if high is not None and high < value <= high + ROUNDING:
            return float(high)
        return value

    def _number(self, result: Any, pair: Pair) -> float:
        if not isinstance(result, (str, bytes)):
            try:
                return float(result)
            except (TypeError, ValueError, RuntimeError):
                pass
        raise MeasureError(f"{self.key} gave {brief(result)} for {pair}. A measure gives one number.")

    @property
    def rows(self) -> int:
        """How many inputs it needs at least, with its options."""
        rows = self.info.rows
        return rows(self.resolved) if callable(rows) else rows

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The n x n matrices this measure takes inner products of."""
        return self.info.kernels(self.resolved) if self.info.kernels else ()

    @property
    def saturation(self) -> Saturation | None:
        """Where the score follows from the sizes of the networks alone, if anywhere."""
        return self.info.saturates(self.resolved) if self.info.saturates else None

    def bind(self, variant: str | None = None, **options: Any) -> Measure:
        """This measure with a variant and options chosen."""
        chosen = self
        if variant is not None:
            if variant not in self.variants:
                known = ", ".join(repr(v) for v in self.variants) or "none"
                raise OptionError(f"{self.name} has no variant {variant!r}; it has {known}.")
            chosen = self.variants[variant]
        if not options:
            return chosen
        for name, value in options.items():
            chosen._check_option(name, value)
        return replace(chosen, options={**chosen.options, **options})

    def _check_option(self, name: str, value: Any) -> None:
        if name not in self.defaults:
            raise OptionError(f"{self.key} has no option {name!r}.{did_you_mean(name, self.defaults)} {self._usage()}")
        limit = self.info.limits.get(name)
        if limit is None:
            return
        if isinstance(limit[0], str):
            if not isinstance(value, str) or value not in limit:
                raise InputError(f"{self.name}: {name} must be one of {_comma_list(limit)}, got {brief(value)}.")
            return
        default = self.defaults[name]
        whole = isinstance(default, int) and not isinstance(default, bool)
        number = isinstance(value, int) if whole else isinstance(value, (int, float))
        low, high = limit
        fits = (
            number
            and not isinstance(value, bool)
            and (low is None or value >= float(low))
            and (high is None or value <= float(high))
        )
        if not fits:
            kind = "a whole number" if whole else "a number"
            raise InputError(f"{self.name}: {name} must be {kind}{_range(low, high)}, got {brief(value)}.")

    def _usage(self) -> str:
        if not self.defaults:
            return "It has none."
        return f"Its options are {_comma_list(tuple(self.defaults))}."

    def variant(self, name: str, *, differs: str, **facts: Any) -> Callable[[Any], Any]:
        """Declare another form of this measure; facts not named again stay the same."""

        def declare(function: Callable[..., float]) -> Measure:
            info = replace(self.info, variant=name, differs=differs, **facts)
            self.variants[name] = made = Measure(describe(info, function), function)
            return made

        return declare

    def explain(self) -> str:
        """The exact recipe: formula, direction, range, what it does not notice, options, source."""
        from likewise.measures.explain import explain

        return explain(self)


def describe(info: Info, function: Callable[..., float]) -> Info:
    """The facts with the docstring's first sentence as summary and the rest as recipe."""
    text = inspect.cleandoc(function.__doc__ or "")
    first, _, rest = text.partition("\n\n")
    return replace(
        info,
        summary=" ".join(first.split()),
        recipe=rest.partition("\n>>>")[0].strip(),
        invariant_to=closed(info.invariant_to),
    )


def closed(invariances: frozenset[str] | set[str]) -> frozenset[str]:
    """With everything that follows: who ignores rotations ignores permutations."""
    unknown = set(invariances) - set(INVARIANCES)
    if unknown:
        raise InputError(f"no invariance named {min(unknown)!r}. There are {_comma_list(INVARIANCES)}.")
    return frozenset(invariances).union(*(_IMPLIED.get(item, set()) for item in invariances))


def _comma_list(words: tuple[Any, ...]) -> str:
    return ", ".join(str(word) for word in words)


def _range(low: Any, high: Any) -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low is not None else ""


def _short(value: Any) -> str:
    if isinstance(value, (int, float, str)):
        return str(value)
    if isinstance(value, (np.ndarray, Tensor)):  # two arrays are two options
        return f"{type(value).__name__} {digest([torch.as_tensor(value)])[:6]}"
    return type(value).__name__
