"""Each measure alone, on one pair: CPU seconds and peak memory, beside the reference's.

A single call shares nothing, so this is the least flattering case. Both forms of the 23 are run,
the published definition and the reference's. The reference's figures (`inputs/reference.csv`) were taken
elsewhere, so times are compared in units, each with the unit of its own run. Memory is judged
twice: by the smallest peak of three runs, as the reference's was taken, and by the first, which
is stricter. Other work on the machine can only add to a time, so a measure slower than the
reference is timed up to three times and the least counts; its memory is that of the first time.
The reference's memory is known to a tenth of a megabyte, so ours is compared to as much.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from likewise import measures
from perf.common import INPUTS, cost, networks, unit, write

SIZES = ((1000, 256), (2000, 512), (5000, 512))
TAKES = 3
TOO_LONG = {("imd", "resi", 5000)}  # the reference did not finish it in five minutes either


def reference() -> dict[tuple[str, int, int], dict[str, float]]:
    """CPU seconds, unit and peak of the reference by its abbreviation, n and d."""
    with (INPUTS / "reference.csv").open() as file:
        rows = list(csv.DictReader(file))
    numbers = ("cpu_seconds", "unit_seconds", "peak_mb")
    return {(row["measure"], int(row["n"]), int(row["d"])): {key: float(row[key]) for key in numbers} for row in rows}


def rows(sizes: tuple[tuple[int, int], ...] = SIZES) -> Iterator[dict[str, Any]]:
    figures = reference()
    for n, d in sizes:
        x, y = networks(n, d).values()
        unit()
        measures.get("cka")(x, y)  # threads and libraries start up here, not in the first row
        for measure in everything():
            if (measure.name, measure.info.variant, n) not in TOO_LONG:
                yield _row(measure, x, y, figures)


def everything() -> list[measures.Measure]:
    """All measures of representations that need no option, and the reference's forms after them."""
    published = [measures.get(name) for name in measures.names()]
    published = [m for m in published if m.info.on == "representation" and not m.missing_options]
    return published + [m.variants["resi"] for m in published if "resi" in m.variants]


def _row(measure: measures.Measure, x: Any, y: Any, figures: dict[Any, Any]) -> dict[str, Any]:
    n, d = x.shape
    alias = next((a for a in measure.info.aliases if (a, n, d) in figures), None)
    theirs = None if alias is None else figures[alias, n, d]
    taken = cost(lambda: measure(x, y))
    for _ in range(TAKES - 1):
        if theirs is None or taken.units <= _units(theirs):
            break
        again = cost(lambda: measure(x, y))
        taken = replace(taken, seconds=min(taken.seconds, again.seconds))
    row: dict[str, Any] = {
        "measure": measure.name,
        "variant": measure.info.variant or "published",
        "n": n,
        "d": d,
        "value": taken.value,
        "cpu_seconds": taken.seconds,
        "units": taken.units,
        "peak_mb": taken.peak_mb,
        "first_peak_mb": taken.first_mb,
    }
    if theirs is None:
        return row
    units = _units(theirs)
    return row | {
        "reference": alias,
        "reference_units": units,
        "reference_peak_mb": theirs["peak_mb"],
        "times_faster": units / taken.units,
        "no_slower": units >= taken.units,
        "no_more_memory": round(taken.peak_mb, 1) <= theirs["peak_mb"],
        "no_more_at_first": round(taken.first_mb, 1) <= theirs["peak_mb"],
    }


def _units(theirs: dict[str, float]) -> float:
    return theirs["cpu_seconds"] / theirs["unit_seconds"]


def main() -> None:
    write("single", rows())


if __name__ == "__main__":
    main()
