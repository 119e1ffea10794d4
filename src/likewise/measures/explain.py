"""The recipe of a measure in words, made from its facts."""

from __future__ import annotations

import inspect
import textwrap

from likewise.matrices.score import range_text
from likewise.measures.facts import Measure


def explain(measure: Measure) -> str:
    """Everything a reader needs to compare a number with another tool's."""
    info = measure.info
    lines = [f"{measure.key}  ({info.family})", "", *_wrap(info.summary)]
    if info.recipe:
        lines += ["", *_wrap(info.recipe)]
    lines += ["", *(f"  {name:<14}{value}" for name, value in facts(measure).items())]
    if measure.defaults:
        lines += ["", "Options:", *(f"  {_option(measure, name)}" for name in measure.defaults)]
    for name, other in measure.variants.items():
        lines += ["", *_wrap(f'variant="{name}": {other.info.differs}')]
    if info.differs:
        lines += ["", *_wrap(f"Differs from the default: {info.differs}")]
    return "\n".join(lines)


def facts(measure: Measure) -> dict[str, str]:
    """The facts as words, in the order of every table."""
    info, saturation = measure.info, measure.saturation
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


def _option(measure: Measure, name: str) -> str:
    default = measure.defaults[name]
    must = default is inspect.Parameter.empty
    return f"{name} must be given" if must else f"{name} = {measure.resolved[name]!r}"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 96)
