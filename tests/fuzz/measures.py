"""Try every measure on odd input and look for what must never be.

    python -m tests.fuzz.measures [--calls 50000] [--seed 0] [--measure NAME] [--case NUMBER]

Every measure, variant and option (at its edges) meets activations and logits of every kind: wide, square
and narrow, of the fewest inputs, dead, tied, twice the same, constant, with one huge row or neuron, on large
means, of low rank, with heavy tails; at scales from 1e-300 to 1e300, different on both sides; as float64
down to bfloat16, integers and bools; in readable containers and in others. A finding is

    foreign     an exception that is not a `LikewiseError`, or a warning
    infinite    a value that is not finite
    bounds      a value outside of the declared bounds, by however little
    asymmetric  m(x, y) and m(y, x) differ though declared equal
    identity    m(x, x) is not what is declared
    scale       another scale of one side gives another value though declared not to matter, or another
                scale of both sides another multiple for a measure in the units of the activations
    accepted    what holds no matrix of numbers was given a value

Arithmetic is in double precision whatever the input is stored as. Tolerances: values may differ by 1e-6, or
by 1e-6 of themselves; distances in units of the activations by 1e-6 of the activations' size. Directions
that are rounding of the input are left out, so a network may miss 8 eps² of its squares, mean included, of
itself: on a small mean 5e-4 for bfloat16, 8e-6 for float16, nothing for more digits. Another power of two
leaves the digits as they are: 1e-9. Exit code 1 if anything is found.
"""

from __future__ import annotations

import argparse
import math
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.errors import LikewiseError
from likewise.measures.facts import SCALE
from likewise.measures.function import Measure
from likewise.measures.registry import MEASURES
from likewise.views import Activations, Outputs
from tests.fuzz import inputs

CLOSE, SAME = 1e-6, 1e-9
LENGTHS = {"procrustes-size", "permutation-procrustes", "soft-matching", "rsm-difference", "magnitude-difference"}
SLOW = {"rtd": {"batch": 8, "trials": 1}, "imd": {"vectors": 8}}
OWN_WARNINGS = "the similarity of|no sample of"  # of classes, said beside the score
OPEN = {
    "ridge": (0.0, 1e-300, 1e-6, 1.0, 1e300),
    "seed": (0, 7),
    "vectors": (1, 3),
    "trials": (1, 2),
}


@dataclass
class Findings:
    """What was found, and how many calls were made, refused and answered."""

    calls: int = 0
    refused: int = 0
    found: list[tuple[int, str, str, str]] = field(default_factory=list)
    case: int = 0

    def add(self, kind: str, measure: Measure, what: str) -> None:
        self.found.append((self.case, kind, measure.key, what))


def every_measure() -> list[Measure]:
    """All measures and variants."""
    return [form for m in MEASURES for form in (m, *m.variants.values()) if m.info.family != "custom"]


def options(rng: inputs.Rng, measure: Measure, n: int) -> dict[str, Any]:
    """Some options at their edges, the rest as they are."""
    chosen: dict[str, Any] = dict(SLOW.get(measure.name, {}))
    chosen = {name: value for name, value in chosen.items() if name in measure.defaults}
    for name, limit in measure.info.limits.items():
        if name not in measure.defaults or rng.random() < 0.5:
            continue
        if isinstance(limit[0], str):
            chosen[name] = str(rng.choice([str(item) for item in limit]))
            continue
        low, high = limit
        default = measure.defaults[name]
        if name in OPEN:
            edges: tuple[Any, ...] = OPEN[name]
        elif high is not None:
            edges = (low, high, default, (low + high) / 2)
        else:  # a number of inputs
            edges = (low, low + 1, max(low, n // 2), max(low, n - 1), n, n + 1)
        value = edges[rng.integers(len(edges))]
        chosen[name] = int(value) if isinstance(default, int) else float(value)
    return chosen


def attempt(findings: Findings, measure: Measure, call: Callable[[], float], what: str) -> float | None:
    """The value, or None where it was refused or found at fault."""
    findings.calls += 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", OWN_WARNINGS)
            value = call()
    except LikewiseError as error:
        findings.refused += 1
        if not str(error).endswith((".", "?")):
            findings.add("foreign", measure, f"{what}: no sentence: {error}")
        return None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        findings.add("foreign", measure, f"{what}: {type(error).__name__}: {error} ({where})")
        return None
    if not math.isfinite(value):
        findings.add("infinite", measure, f"{what}: {value}")
        return None
    low, high = measure.info.bounds
    if (low is not None and value < low) or (high is not None and value > high):
        findings.add("bounds", measure, f"{what}: {value!r}")
    return value


def near(a: float, b: float, tolerance: float, size: float) -> bool:
    return abs(a - b) <= tolerance * max(size, abs(a), abs(b))


def one_case(findings: Findings, number: int, seed: int, only: list[Measure]) -> None:
    """One measure with some options on one pair of inputs, looked at from all sides."""
    rng = np.random.default_rng((seed, number))
    findings.case = number
    measure = only[rng.integers(len(only))]
    if measure.info.on == "outputs":
        x, y, views = _answers(rng)
    else:
        x, y = inputs.networks(rng)
        x, y = inputs.scaled(x, inputs.scale(rng)), inputs.scaled(y, inputs.scale(rng))
        kinds = rng.choice(inputs.KINDS, 2)
        x, y = (inputs.stored(v, str(kind)) for v, kind in zip((x, y), kinds, strict=True))
        views = lambda a, b: (a, b)  # noqa: E731
    chosen = options(rng, measure, len(x))
    if "confounder" in measure.defaults:
        chosen["confounder"] = inputs.scaled(rng.normal(size=(len(x), 3)), inputs.scale(rng))
    try:
        bound = measure.bind(**chosen)
    except LikewiseError:
        findings.calls, findings.refused = findings.calls + 1, findings.refused + 1
        return
    what = f"{getattr(x, 'dtype', '')} {np.shape(x)} {np.shape(y)}"
    given = [inputs.contained(rng, v) for v in (x, y)] if measure.info.on != "outputs" else [x, y]

    def score(a: Any, b: Any) -> float:
        return bound(*views(a, b))

    value = attempt(findings, bound, lambda: score(*given), what)
    if rng.random() < 0.1:
        _refusal(findings, bound, rng, y, what)
    _itself(findings, bound, score, x, what)
    if value is None:
        return
    size = _size(bound, x, y)
    if bound.info.symmetric:
        back = attempt(findings, bound, lambda: score(given[1], given[0]), what + " swapped")
        if back is None or not near(value, back, CLOSE, size):
            findings.add("asymmetric", bound, f"{what}: {value!r} and {back!r}")
    _rescaled(findings, bound, score, (x, y), value, rng, what)


def _size(measure: Measure, x: Any, y: Any) -> float:
    """What 1e-6 is a share of: 1, or the size of the activations for measures in their units."""
    if measure.name not in LENGTHS:
        return 1.0
    parts = [np.asarray(Activations(v).values.double()) for v in (x, y)]
    return float(max(np.abs(v).max() for v in parts)) * math.sqrt(max(v.size for v in parts))


def _itself(findings: Findings, measure: Measure, score: Callable[..., float], x: Any, what: str) -> None:
    declared = measure.info.identity
    if declared is None:
        return
    value = attempt(findings, measure, lambda: score(x, x), what + " with itself")
    rough = max(CLOSE, _missed(x)) if value is not None else CLOSE
    if value is not None and not near(value, declared, rough, _size(measure, x, x)):
        findings.add("identity", measure, f"{what}: {value!r}")


def _missed(x: Any) -> float:
    """The share of a network's variance that may be rounding of its values."""
    view = Activations(x)
    values = np.ldexp(np.asarray(view.values.double()), -view.exponent)
    spread = float(np.square(values - values.mean(axis=0)).sum())
    return 8 * view.eps**2 * float(np.square(values).sum()) / spread if spread else 0.0


def _refusal(findings: Findings, measure: Measure, rng: inputs.Rng, other: Any, what: str) -> None:
    odd = inputs.refused(rng)
    name = f"{type(odd).__name__} {getattr(odd, 'dtype', '')}"
    value = attempt(findings, measure, lambda: measure(odd, other), f"{what} against {name}")
    if value is not None:
        findings.add("accepted", measure, f"{name}: {value!r}")


def _rescaled(
    findings: Findings,
    measure: Measure,
    score: Callable[..., float],
    pair: tuple[Any, Any],
    value: float,
    rng: inputs.Rng,
    what: str,
) -> None:
    free, length = SCALE in measure.info.invariant_to, measure.name in LENGTHS
    if not (free or length):
        return
    doubles = [_double(v) for v in pair]
    powers = [_power(rng, v) for v in doubles]
    if length:
        powers = [max(powers, key=abs)] * 2
    with np.errstate(all="ignore"):
        moved = [np.ldexp(v, power) for v, power in zip(doubles, powers, strict=True)]
        back = [np.ldexp(v, -power) for v, power in zip(moved, powers, strict=True)]
    if not all(np.array_equal(a, b) for a, b in zip(doubles, back, strict=True)):
        return  # digits were lost
    detail = f"{what} times 2**{powers}"
    before = attempt(findings, measure, lambda: score(*doubles), what + " in double precision")
    after = attempt(findings, measure, lambda: score(*moved), detail)
    if length and after is not None and 0 < after < sys.float_info.min:
        return  # a score below the smallest normal number has lost digits
    if length and after is not None:
        after = math.ldexp(after, -powers[0]) if after < 1e300 or powers[0] > 0 else after
    if before is None or after is None:
        if (before is None) != (after is None) and not length:
            findings.add("scale", measure, f"{detail}: {before!r} and {after!r}")
    elif not near(before, after, SAME, _size(measure, *doubles)):
        findings.add("scale", measure, f"{detail}: {before!r} and {after!r}")


def _double(values: Any) -> np.ndarray:
    return np.array(Activations(values).values.double().numpy())


def _power(rng: inputs.Rng, values: np.ndarray) -> int:
    """A power of two that takes the values somewhere else, and not out of the floats."""
    peak = math.frexp(float(np.abs(values).max()))[1]
    smallest = np.abs(values[values != 0]).min() if values.any() else 1.0
    floor = math.frexp(float(smallest))[1]
    return int(rng.integers(min(-960 - floor, 0), max(960 - peak, 1)))


def _answers(rng: inputs.Rng) -> tuple[Any, Any, Callable[[Any, Any], tuple[Any, Any]]]:
    """Logits of two networks, and how to make views with the true labels of them."""
    n, classes = int(rng.choice(inputs.INPUTS)), int(rng.integers(1, 7))
    make = inputs.CONTENTS[rng.integers(len(inputs.CONTENTS))]
    x = inputs.scaled(make(rng, n, classes), inputs.scale(rng))
    y = x + rng.normal(size=x.shape) if rng.random() < 0.5 else make(rng, n, classes)
    y = inputs.scaled(y, inputs.scale(rng))
    kind = str(rng.choice(inputs.KINDS))
    labels = rng.integers(0, classes, n)

    def views(a: Any, b: Any) -> tuple[Any, Any]:
        return tuple(Activations(v, outputs=Outputs(v, labels)) for v in (a, b))  # type: ignore[return-value]

    return inputs.stored(x, kind), inputs.stored(y, kind), views


def cases(findings: Findings, calls: int) -> Iterator[int]:
    number = 0
    while findings.calls < calls:
        yield number
        number += 1


def fuzz(calls: int, seed: int = 0, measures: list[Measure] | None = None, case: int | None = None) -> Findings:
    """Make so many calls, or those of one case only."""
    findings = Findings()
    only = every_measure() if measures is None else measures
    for number in cases(findings, calls) if case is None else [case]:
        one_case(findings, number, seed, only)
    return findings


def summary(findings: Findings) -> Iterator[str]:
    yield (
        f"{findings.calls} calls: {findings.calls - findings.refused} answered, {findings.refused} "
        f"refused, {len(findings.found)} findings"
    )
    counts: Mapping[tuple[str, str], int] = Counter(
        (kind, measure.partition("[")[0]) for _, kind, measure, _ in findings.found
    )
    for (kind, name), count in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"  {count:6d}  {kind:<10}  {name}"
    for number, kind, key, what in findings.found[:40]:
        yield f"  case {number}: {kind}, {key}, {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--measure", help="only this one, with its variants")
    parser.add_argument("--case", type=int, help="only the case of this number")
    given = parser.parse_args()
    only = every_measure()
    if given.measure:
        only = [m for m in only if given.measure in (m.name, m.key)]
    findings = fuzz(given.calls, given.seed, only, given.case)
    print("\n".join(summary(findings)))
    return 1 if findings.found else 0


if __name__ == "__main__":
    raise SystemExit(main())
