"""What is declared beside every measure.

The facts are the only list: tables, documentation, contract tests and the scheduler of `compare` all
read them here. A fact that is not declared is claimed not to hold, and is tested to fail.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from likewise._base.arrays import Array
from likewise._base.optional import Library
from likewise.errors import InputError
from likewise.measures.numerics.kernels import Products
from likewise.measures.pair import Kernel, Pair
from likewise.measures.saturation import Saturation, Sizes

PERMUTATION, ROTATION, SCALE, SHIFT, LINEAR = "permutation", "rotation", "scale", "shift", "linear"
INVARIANCES = (PERMUTATION, ROTATION, SCALE, SHIFT, LINEAR)
_IMPLIED = {ROTATION: {PERMUTATION}, LINEAR: {PERMUTATION, ROTATION, SCALE}}

Direction = Literal["more alike", "less alike"]
Limit = tuple[float | None, float | None] | tuple[str, ...]
_FACTOR, _POWERS = re.compile(r"(?P<log>log )?(?P<size>\w+?)(?P<power>[²³]?)"), {"": 1, "²": 2, "³": 3}


@dataclass(frozen=True)
class Info:
    """The facts of one measure.

    Attributes:
        name: The name it is looked up by.
        family: The family it belongs to.
        larger_is: What a larger value says of the two networks.
        bounds: The range, None where there is no end.
        source: The paper.
        summary: The first sentence of the docstring.
        recipe: The rest of its text, formula and ends of the scale.
        option_help: What each option does, from its section "Options" or "Args".
        example: Its section "Example".
        aliases: Other names, among them abbreviations of papers.
        symmetric: Gives the same with the networks swapped.
        identity: The value of a network with itself, None where it depends on the network.
        invariant_to: Changes of one side that are not noticed.
        metric: Obeys the triangle inequality.
        paired: Compares input by input; else only what holds of all inputs together.
        rows: How many inputs are needed, by the options.
        cost: How the time of a pair grows.
        cross: Works on the cross-covariance of the pair.
        kernels: The n x n matrices whose inner products are all it needs, by the options.
        matrix: Its scores of many pairs at once from the inner products of its kernel; NaN where a pair needs a closer
            look.
        saturates: Where the score follows from the sizes alone, by the options.
        limits: Smallest and largest value of an option, or its choices.
        shapes: How the reference turns maps into rows (the variant "resi" only).
        on: What it looks at: activations, outputs, or the networks themselves.
        needs: A library that likewise does without, perhaps for some sizes only.
        always_double: Computed in double precision whatever the views ask for: order decides, or a small rest.
        by_label: Counts inputs by their true label, so that shuffles keep to inputs of one label.
        support: How many inputs the score depends on, where they may be few, and which: an interval needs some of them.
        shared_variance: The share of what two groups of inputs change together that an interval takes off its variance.
        version: Raised where values change, so that a store does not give old ones.
        variant: The name of the form that this is, None for the published one.
        deviation: How that form differs from the published one.
    """

    name: str
    family: str
    larger_is: Direction
    bounds: tuple[float | None, float | None]
    source: str
    summary: str = ""
    recipe: str = ""
    option_help: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
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
    matrix: Callable[[Products], Array] | None = None
    saturates: Callable[[Mapping[str, Any]], Saturation | None] | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict)
    shapes: Literal["spatial", "flatten"] = "spatial"
    on: Literal["representation", "outputs", "networks"] = "representation"
    needs: Library | Callable[[Sizes], Library | None] | None = None
    always_double: bool = False
    by_label: bool = False
    support: Callable[[Pair, Mapping[str, Any]], tuple[int, str]] | None = None
    shared_variance: float = 0.2
    version: int = 2
    variant: str | None = None
    deviation: str = ""

    @property
    def similarity(self) -> bool:
        """Whether larger is more alike."""
        return self.larger_is == "more alike"

    def operations(self, n: int, d: int, options: Mapping[str, Any]) -> float:
        """About how many multiplications a pair takes by its declared cost; infinite where a word of that is no size.

        Args:
            n: How many inputs.
            d: How many neurons.
            options: The measure's options, which its cost may name.

        >>> Info("made", "rsm", "more alike", (0, 1), "", cost="n·d² + d³").operations(100, 10, {})
        11000.0
        """
        sizes = {"n": n, "d": d, "c": d, **options}
        cost = self.cost.replace("n·d²", "n²·d") if n < d else self.cost
        return float(sum(math.prod(_factor(text, sizes) for text in term.split("·")) for term in cost.split(" + ")))


def _factor(text: str, sizes: Mapping[str, Any]) -> float:
    """A factor such as "d²" or "log n" as a number."""
    match = _FACTOR.fullmatch(text)
    size = sizes.get(match["size"]) if match else None
    if match is None or not isinstance(size, int):
        return math.inf
    return float((math.log2(max(size, 2)) if match["log"] else size) ** _POWERS[match["power"]])


def describe(info: Info, function: Callable[..., float]) -> Info:
    """The facts with what the docstring of the function says: summary, recipe, options and example."""
    text, *sections = re.split(
        r"^(Args|Options|Returns|Raises|Example):\n", inspect.cleandoc(function.__doc__ or ""), flags=re.M
    )
    named = dict(zip(sections[::2], sections[1::2], strict=True))
    options = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", named.get("Args", "") + named.get("Options", ""), re.M)
    summary, _, recipe = text.partition("\n\n")
    return replace(
        info,
        summary=" ".join(summary.split()),
        recipe=recipe.partition("\n>>>")[0].strip(),
        option_help={**info.option_help, **{name: " ".join(words.split()) for name, words in options}},
        example=named.get("Example", "").rstrip(),
        invariant_to=implied_invariances(info.invariant_to),
    )


def implied_invariances(invariances: Iterable[str]) -> frozenset[str]:
    """Invariances with those that follow: what ignores rotations ignores permutations."""
    unknown = set(invariances) - set(INVARIANCES)
    if unknown:
        raise InputError(f"no invariance named {min(unknown)!r}. There are {', '.join(INVARIANCES)}.")
    return frozenset(invariances).union(*(_IMPLIED.get(item, set()) for item in invariances))
