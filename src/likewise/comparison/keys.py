"""The keys under which a store holds scores: hashes of all that a score depends on."""

from __future__ import annotations

import json
from typing import Any

from likewise._base.hashing import digest, value_digest
from likewise.measures.facts import Measure
from likewise.views import Activations


def score_key(a: Activations, b: Activations, measure: Measure) -> str:
    """What a score depends on: both views' values, the measure, its variant, options and version."""
    return pair_key(view_key(a, measure), view_key(b, measure), measure_key(measure), measure.info.symmetric)


def view_key(view: Activations, measure: Measure) -> str:
    """A hash of what a measure looks at."""
    return view.digest_with_network if measure.info.on == "networks" else view.digest


def pair_key(a: str, b: str, measure: str, symmetric: bool) -> str:
    """The key of a score from the digests of both views and the measure's key."""
    first, second = (b, a) if symmetric and b < a else (a, b)
    return digest([f"{first} {second} {measure}"])


def measure_key(measure: Measure) -> str:
    """A hash of everything about a measure that its scores depend on."""
    options = {name: _plain(value) for name, value in sorted(measure.resolved.items())}
    # a function of the user's goes by what it computes, for want of a version; its name says nothing
    name, code = (measure.name, "") if measure.built_in else ("", value_digest(measure.given))
    facts = [name, measure.info.variant, measure.info.version, options, code]
    return digest([json.dumps(facts, sort_keys=True)])


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value_digest(value)
