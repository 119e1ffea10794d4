"""The matrix job: many measures over many networks, where sharing pays; and one larger than memory.

Every job runs in a process of its own, so that peaks of memory do not mix: `python -m
perf.matrix` runs them all, `python -m perf.matrix large` one of them.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import likewise
from likewise import measures
from perf.common import about, apart, cost, costs, networks, unit, unit_work, wall_seconds, write

# name: n, whether IMD is among them, units to stay below, units the reference needs
MATRICES = {
    "22-n2000": (2000, False, 22, 490),
    "22-n5000": (5000, False, 50, 4000),
    "23-n2000": (2000, True, 60, 4300),
}


def matrix(n: int, imd: bool, target: float, reference: float, *, d: int = 512, m: int = 10) -> Any:
    """The `resi` set over m networks, all pairs: the median of three runs, in turns with three units each.

    A machine with other work on it is slower at one time than at another; a unit taken beforehand does not know.
    """
    variants = [m_.variants["resi"] for m_ in every() if "resi" in m_.variants]
    variants = [measure for measure in variants if imd or measure.name != "imd"]
    views = networks(n, d, m)
    product = unit_work()
    taken, *units = costs([lambda: likewise.compare(views, variants, progress=False), *[product] * 3], enough=60)
    unit_in_turns = statistics.median(unit.median for unit in units)
    return {
        "measures": len(variants),
        "n": n,
        "d": d,
        "m": m,
        "undefined": undefined(taken.value),
        "cpu_seconds": taken.median,
        "peak_mb": taken.first_mb,
        "unit_in_turns": unit_in_turns,
        "units": taken.median / unit_in_turns,
        "target_units": target,
        "reference_units": reference,
        "met": taken.median / unit_in_turns <= target,
    }


def every() -> list[measures.Measure]:
    """All measures of representations, in their published form."""
    named = [measures.get(name) for name in measures.names()]
    return [m_ for m_ in named if m_.info.on == "representation" and not m_.missing_options]


def undefined(matrices: likewise.Comparison) -> str:
    """Measures that left a pair without a value."""
    return " ".join(key for key, matrix_of_key in matrices.items() if matrix_of_key.reasons)


def large(n: int = 20_000, d: int = 256, m: int = 4) -> dict[str, Any]:
    """Everything that does not sort all pairs of inputs; one n x n matrix would take 3.2 GB."""
    cheap = [measure for measure in every() if "log n" not in measure.info.cost]
    views = networks(n, d, m)
    taken = cost(lambda: likewise.compare(views, cheap, memory="4GB", progress=False), repeats=1)
    return {
        "measures": len(taken.value),
        "n": n,
        "d": d,
        "m": m,
        "undefined": undefined(taken.value),
        "cpu_seconds": taken.seconds,
        "units": taken.units,
        "peak_mb": taken.first_mb,
        "target_mb": 4.5e9 / 2**20,
        "met": taken.first_mb <= 4.5e9 / 2**20 and len(taken.value) == len(cheap),
    }


def small(n: int = 1000, d: int = 256) -> dict[str, Any]:
    """What a person waits for one score, on the clock; the first call also wakes the libraries."""
    x, y = networks(n, d).values()
    seconds = wall_seconds(lambda: likewise.compare(x, y), repeats=25)
    middle = 1000 * statistics.median(seconds[1:])
    return {
        "measures": 1,
        "n": n,
        "d": d,
        "m": 2,
        "first_ms": 1000 * seconds[0],
        "median_ms": middle,
        "target_ms": 50,
        "met": middle < 50,
    }


def jobs() -> dict[str, Callable[[], dict[str, Any]]]:
    jobs = {name: (lambda facts=facts: matrix(*facts)) for name, facts in MATRICES.items()}
    return {"small": small, **jobs, "large": large}


def rows() -> Iterator[dict[str, Any]]:
    for name in jobs():
        yield apart("perf.matrix", name)


def main(name: str | None = None) -> None:
    if name is None:
        write("matrix", rows())
        return
    unit()
    print(json.dumps({"job": name, **jobs()[name](), **about()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
