"""A measure as a function of two networks: it is called, read by `help` and shown at a prompt like any function.

Beside that it carries its facts, can be bound to options and variants, and scores a `Pair` that many measures share.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from likewise._base.arrays import Array
from likewise._base.hashing import digest
from likewise._base.machine import one_thread
from likewise._base.optional import Library
from likewise.errors import InputError, LikewiseError, MeasureError, OptionError, UndefinedError, brief, did_you_mean
from likewise.matrices.score import range_text
from likewise.measures.facts import Info, describe
from likewise.measures.numerics.kernels import Products
from likewise.measures.pair import Kernel, Pair, pair_of
from likewise.measures.saturation import Saturation, Sizes
from likewise.views import Activations

ROUNDING = 1e-9  # how far beyond its bounds rounding may put a value
SIDES = {  # what a measure is called on, by what it looks at
    "representation": "Activations (inputs, neurons) of one network: an array, a tensor or a view.",
    "outputs": "Logits (inputs, classes) of one network, or a view with outputs.",
    "networks": "A view that knows its network and data, as `likewise.compare` makes it.",
}
OTHER = "The same of the other network, on the same inputs."
EXAMPLE = """\
    >>> import numpy as np, likewise
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 100, 16))
"""  # how the example of a measure begins, if it imports nothing itself
REDUCE = 'How tokens or maps become rows, such as "mean" or "flatten": needed for arrays of three axes or more.'


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
        x, y = (side.unscaled.cpu().numpy() for side in (pair.a, pair.b))
        return self.function(x, y, **options)


@dataclass(frozen=True, eq=False, repr=False)
class Measure:
    """A measure with its options bound: call it on two arrays, or score a `Pair`.

    Attributes:
        info: Its facts.
        function: The formula, a function of a `Pair` and the options.
        options: The options that were bound.
        variants: Other forms by name, such as "resi".

    Example:
        >>> import numpy as np, likewise
        >>> likewise.measures.jaccard
        <measure 'jaccard', k=10: larger is more alike, 0 … 1>
        >>> x = np.random.default_rng(0).normal(size=(50, 8))
        >>> likewise.measures.jaccard(x, 2 * x, k=3)
        1.0
    """

    info: Info
    function: Callable[..., float]
    options: Mapping[str, Any] = field(default_factory=dict)
    variants: dict[str, Measure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take name, module, docstring and signature of the function, as `functools.wraps` would."""
        object.__setattr__(self, "info", describe(self.info, self.original))
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in "xy"]
        for name, default in {**self.resolved, "reduce": None}.items():
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
        vars(self).update(
            __name__=getattr(self.original, "__name__", self.name),
            __qualname__=getattr(self.original, "__qualname__", self.name),
            __module__=getattr(self.original, "__module__", None),
            __wrapped__=self.original,
            __doc__=self._docstring(),
            __signature__=inspect.Signature(parameters),
        )

    def __get__(self, instance: Any, owner: Any = None) -> Measure:
        """Itself: what has a `__get__` is a routine to `inspect` and `help`."""
        return self

    def __repr__(self) -> str:
        """One line: name, options in force, direction and range."""
        name = self.name + (f"[{self.info.variant}]" if self.info.variant else "")
        missing = set(self.missing_options)
        options = [f", {k}" if k in missing else f", {k}={_short(v)}" for k, v in self.resolved.items()]
        return f"<measure {name!r}{''.join(options)}: larger is {self.info.larger_is}, {range_text(self.info.bounds)}>"

    @property
    def name(self) -> str:
        """The name it is looked up by."""
        return self.info.name

    @property
    def original(self) -> Callable[..., float]:
        """The function as it was written, of a pair or of two arrays."""
        return self.function.function if isinstance(self.function, OfArrays) else self.function

    @property
    def built_in(self) -> bool:
        """Whether it is one of ours, identified by name and version."""
        return str(getattr(self.original, "__module__", "")).partition(".")[0] == "likewise"

    @cached_property
    def key(self) -> str:
        """The name with its variant and options, as shown in results."""
        options = [f"{k}={_short(v)}" for k, v in self.options.items() if self.defaults.get(k) is not v]
        tags = ([self.info.variant] if self.info.variant else []) + options
        return self.name + (f"[{', '.join(tags)}]" if tags else "")

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Options by name with their default; `inspect.Parameter.empty` where one must be given."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def missing(self, sizes: Sizes) -> Library | None:
        """The library that networks of these sizes need and that is not installed.

        Args:
            sizes: Inputs, neurons of the first and of the second network.
        """
        needs = self.info.needs
        library = needs(sizes) if callable(needs) else needs
        return None if library is None or library.installed else library

    @cached_property
    def missing_options(self) -> list[str]:
        """Options that must be given and were not."""
        return [name for name, value in self.resolved.items() if value is inspect.Parameter.empty]

    @property
    def resolved(self) -> dict[str, Any]:
        """All options with the values in force."""
        return {**self.defaults, **self.options}

    def __call__(self, x: Any, y: Any, *, reduce: str | None = None, **options: Any) -> float:
        """The score of two networks; see `help` of the measure itself."""
        measure = self.bind(**options)
        with one_thread(for_inputs=(x, y)):
            return measure.score(pair_of(x, y, reduce=reduce, shapes=measure.shapes, on=self.info.on))

    @property
    def shapes(self) -> str | None:
        """How the reference implementation brings widths together, None in the published form."""
        return self.info.shapes if self.info.variant == "resi" else None

    def score(self, pair: Pair) -> float:
        """The value for a pair, or an error that says why there is none.

        Args:
            pair: Two networks on the same inputs.

        Raises:
            InputError: There are too few inputs, or the networks are not known.
            OptionError: An option that must be given is missing.
            UndefinedError: The formula has no value for this pair.
            MeasureError: A function of the user's failed, or gave no number.
        """
        if self.missing_options:
            raise OptionError(f"{self.name} needs the option {self.missing_options[0]!r}. {self._usage()}")
        self.check_subjects((pair.a.view, pair.b.view))
        if pair.n < self.rows:
            raise InputError(
                f"{self.key} needs at least {self.rows} rows, got {pair.n}. Show the networks more inputs"
                + (" or lower k." if "k" in self.defaults else ".")
            )
        pair = pair.double if self.info.always_double else pair
        try:
            value = self._compute(pair)
        except (LinAlgError, np.linalg.LinAlgError) as error:
            reason = str(error).removeprefix("linalg.").split(".")[0]
            raise UndefinedError(
                f"{self.key} is undefined for {pair}: a decomposition failed ({reason}). Neurons whose "
                "scales lie this far apart are best scaled or left out."
            ) from error
        except Exception as error:
            if self.built_in or isinstance(error, LikewiseError):
                raise
            raise MeasureError(f"{self.key} failed on {pair}: {type(error).__name__}: {error}") from error
        return self._inside_bounds(value, pair)

    def _compute(self, pair: Pair) -> float:
        """The number that the function gives; in double precision where single has none, or too few digits of it."""
        if pair.double is not pair:
            with suppress(UndefinedError, LinAlgError, np.linalg.LinAlgError):
                value = self._number(self.function(pair, **self.options), pair)
                if math.isfinite(value):
                    return value
        return self._number(self.function(pair.double, **self.options), pair)

    def precision(self, view: Activations) -> str:
        """The precision that scores of such views are computed in: "double" or "single".

        Args:
            view: One of the views, which all have one precision.
        """
        follows = self.info.on == "representation" and not self.info.always_double
        return view.precision if follows and view.precision else "double"

    def check_subjects(self, views: Iterable[Activations]) -> None:
        """Refuse bare activations where the measure looks at networks.

        Args:
            views: The views that are to be compared.
        """
        if self.info.on != "networks":
            return
        for view in views:
            if view.subject is None:
                raise InputError(
                    f"{self.key} looks at networks, and {view.label} is an array of activations. Pass two networks "
                    f"and data, as in compare(network, other, {self.key!r}, data='cifar10:test')."
                )

    def _inside_bounds(self, value: float, pair: Pair) -> float:
        """The value, moved to its bounds where rounding put it a little beyond them."""
        if not math.isfinite(value):
            result = "0/0" if value != value else "more than a float can hold"
            gave = f"the formula gave {result}" if self.built_in else f"the function gave {value}"
            raise UndefinedError(f"{self.key} is undefined for {pair}: {gave}.")
        (low, high), rounding = self.info.bounds, pair.close(ROUNDING)
        if low is not None and low - rounding <= value < low:
            return float(low)
        if high is not None and high < value <= high + rounding:
            return float(high)
        return value

    def _number(self, result: Any, pair: Pair) -> float:
        if not isinstance(result, (str, bytes)):
            try:
                return float(result)
            except (TypeError, ValueError, RuntimeError):
                pass
        raise MeasureError(f"{self.key} gave {brief(result)} for {pair}. A measure gives one number.")

    def scores(self, products: Products) -> Array | None:
        """Values of many pairs at once, NaN where a pair has to be scored alone; None where all of them have to.

        Args:
            products: The inner products of the measure's kernel, which the networks have.
        """
        if self.info.matrix is None or self.missing_options or products.n < self.rows:
            return None
        with np.errstate(all="ignore"):
            values = self.info.matrix(products)
        values = np.where(np.isfinite(values), values, np.nan)
        (low, high), rounding = self.info.bounds, products.close(ROUNDING)
        for bound, beyond in ((low, -1), (high, 1)):
            if bound is not None:
                values[(beyond * (values - bound) > 0) & (beyond * (values - bound) <= rounding)] = bound
        return values

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

    def saturated(self, value: float, sizes: Sizes) -> str:
        """The reason why any two networks of these sizes would get this score, or an empty string.

        Args:
            value: The score.
            sizes: How many inputs, and how many neurons of the first and of the second network.
        """
        return "" if self.saturation is None else self.saturation.explain(value, sizes)

    def bind(self, variant: str | None = None, **options: Any) -> Measure:
        """This measure with a variant and options.

        Args:
            variant: Another form by name, such as "resi".
            **options: Its own options, such as `k=5`.

        Returns:
            A measure; this one where nothing is bound.

        Raises:
            OptionError: It has no such variant or option.
            InputError: The value of an option is outside its limits.
        """
        measure = self
        if variant is not None:
            if variant not in self.variants:
                names = ", ".join(map(repr, self.variants)) or "none"
                raise OptionError(f"{self.name} has no variant {variant!r}; it has {names}.")
            measure = self.variants[variant]
        for name, value in options.items():
            measure._check_option(name, value)
        return replace(measure, options={**measure.options, **options}) if options else measure

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
        return f"Its options are {_comma_list(self.defaults)}." if self.defaults else "It has none."

    def variant(self, name: str, *, deviation: str, **facts: Any) -> Callable[[Any], Measure]:
        """Declare another form of this measure; facts not named again stay the same.

        Args:
            name: What it is called, such as "resi".
            deviation: How it differs from this one, a sentence.
            **facts: Fields of `Info` that are other than here.

        Returns:
            A decorator of the other formula.
        """

        def declare(function: Callable[..., float]) -> Measure:
            self.variants[name] = Measure(replace(self.info, variant=name, deviation=deviation, **facts), function)
            return self.variants[name]

        return declare

    def facts(self) -> dict[str, str]:
        """The facts as words, in the order of every table."""
        info, saturation = self.info, self.saturation
        return {
            "direction": f"larger is {info.larger_is}",
            "range": range_text(info.bounds),
            "with itself": "depends" if info.identity is None else f"{info.identity:g}",
            "symmetric": "yes" if info.symmetric else "no",
            "metric": "yes" if info.metric else "no",
            "ignores": ", ".join(sorted(info.invariant_to)) or "nothing",
            "looks at": info.on,
            "says nothing": saturation.where if saturation else "-",
            "cost": info.cost,
            "also called": ", ".join(info.aliases) or "-",
            "source": info.source,
        }

    def explain(self) -> str:
        """The exact recipe: formula, direction, range, what it does not notice, options, source."""
        info = self.info
        lines = [f"{self.key}  ({info.family})", "", *_wrap(info.summary)]
        if info.recipe:
            lines += ["", *_wrap(info.recipe)]
        lines += ["", *(f"  {name:<14}{value}" for name, value in self.facts().items())]
        if self.defaults:
            lines += ["", "Options:"]
        for name, value in self.resolved.items():
            text = "must be given" if name in self.missing_options else f"= {value!r}"
            lines += _wrap(f"{name} {text}: {info.option_help.get(name, '')}".rstrip(": "), "  ", "      ")
        for name, other in self.variants.items():
            lines += ["", *_wrap(f'variant="{name}": {other.info.deviation}')]
        if info.deviation:
            lines += ["", *_wrap(f"Differs from the default: {info.deviation}")]
        return "\n".join(lines)

    def _docstring(self) -> str:
        """The function's own words with the lines that all measures share."""
        info = self.info
        itself = "" if info.identity is None else f", {info.identity:g} for a network with itself"
        options = {name: info.option_help.get(name, "") for name in self.defaults}
        arguments = {"x": SIDES[info.on], "y": OTHER, **options, "reduce": REDUCE}
        sections = {
            "Args": "\n".join(f"    {name}: {text}" for name, text in arguments.items()),
            "Returns": f"    The score: larger is {info.larger_is}, {range_text(info.bounds)}{itself}.",
            "Example": info.example if not info.example or "import" in info.example else EXAMPLE + info.example,
        }
        texts = [info.summary, info.recipe, *(f"{name}:\n{text}" for name, text in sections.items() if text)]
        return "\n\n".join(text for text in texts if text) + "\n"


def _comma_list(words: Iterable[object]) -> str:
    return ", ".join(map(str, words))


def _range(low: object, high: object) -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low is not None else ""


def _short(value: Any) -> str:
    if isinstance(value, (int, float, str)):
        return str(value)
    if isinstance(value, (np.ndarray, Tensor)):  # two arrays are two options
        return f"{type(value).__name__} {digest([torch.as_tensor(value)])[:6]}"
    return "None" if value is None else type(value).__name__


def _wrap(text: str, first: str = "", later: str = "") -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 96, initial_indent=first, subsequent_indent=later)
