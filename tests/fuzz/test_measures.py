"""Odd input never gives a measure away; the long run is `python -m tests.fuzz.measures`."""

import math
import warnings

import numpy as np
import pytest

from likewise.errors import UndefinedError
from likewise.measures import Info, Measure
from likewise.measures.registry import MEASURES
from tests.fuzz.measures import every_measure, fuzz, summary


def test_no_measure_is_caught_at_fault() -> None:
    findings = fuzz(calls=1200, seed=20)
    assert list(summary(findings))[1:] == []
    assert findings.calls >= 1200
    assert findings.refused < findings.calls / 2


def test_every_measure_and_variant_is_tried() -> None:
    forms = every_measure()
    assert {m.name for m in forms} == {m.name for m in MEASURES}
    assert sum(m.info.variant is None for m in forms) == len(forms) - sum(len(m.variants) for m in MEASURES)


def faulty(kind):
    """A measure with one fault, or none."""

    def function(pair):
        x, y = (float(np.abs(rep.unscaled.numpy()).max()) for rep in (pair.a, pair.b))
        if kind == "foreign" and x > 100:
            return 1 / 0
        if kind == "warning" and x > 100:
            warnings.warn("careless", stacklevel=1)
        if kind == "bounds" and x > 100:
            return 1.0000001
        if kind == "asymmetric":
            return 1.0 if x >= y else 0.5
        if kind == "identity" and x == y:
            return 0.9
        if kind == "scale":
            return 1.0 if x == y else 1 / (1 + abs(math.log(x + 1) - math.log(y + 1)))
        if min(x, y) == 0:
            raise UndefinedError("it is zero.")
        return 1.0

    facts = {"family": "rsm", "larger_is": "more alike", "bounds": (0, 1), "source": "none"}
    info = Info(name="faulty", identity=1, invariant_to=frozenset({"scale"}), **facts)
    return Measure(info, function)


@pytest.mark.parametrize("kind", ["foreign", "warning", "bounds", "asymmetric", "identity", "scale"])
def test_the_fuzzer_finds_a_fault_that_is_there(kind) -> None:
    findings = fuzz(calls=400, measures=[faulty(kind)])
    found = {what for _, what, _, _ in findings.found}
    assert ("foreign" if kind == "warning" else kind) in found


def test_the_fuzzer_finds_nothing_in_a_sound_measure() -> None:
    assert fuzz(calls=400, measures=[faulty("")]).found == []


def test_a_case_comes_back_by_its_number() -> None:
    first = fuzz(calls=400, measures=[faulty("bounds")]).found[0]
    again = fuzz(calls=0, measures=[faulty("bounds")], case=first[0]).found
    assert first in again
