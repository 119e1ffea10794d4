"""Options of measures varied: what a text stands for, and the results of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest

from likewise.benchmark.results.frame import Results
from likewise.benchmark.results.tables import table
from likewise.benchmark.sweeps import expand, sweep_with
from likewise.errors import InputError, OptionError
from likewise.measures import Measure
from tests.benchmark.frames import row


@pytest.mark.parametrize(
    ("spec", "measures"),
    [
        ("jaccard[k=5,10]", ["jaccard[k=5]", "jaccard[k=10]"]),
        ("cka", ["cka"]),
        ("jaccard[resi, k=5, 10]", ["jaccard[resi, k=5]", "jaccard[resi, k=10]"]),
        ("f[a=1,2, b=x,y]", ["f[a=1, b=x]", "f[a=1, b=y]", "f[a=2, b=x]", "f[a=2, b=y]"]),
    ],
)
def test_several_values_stand_for_several_measures(spec: str, measures: list[str]) -> None:
    assert expand(spec) == measures


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("jaccard[k=5,10", "'jaccard[k=5,10' cannot be read. Write options in brackets: 'jaccard[k=5,10,20]'."),
        ("jaccard[k=,5]", "'jaccard[k=,5]' cannot be read at 'k='. Write 'jaccard[k=5,10,20]'."),
        ("jaccard[resi, 5]", "'jaccard[resi, 5]' cannot be read at '5'. Write 'jaccard[k=5,10,20]'."),
    ],
)
def test_what_cannot_be_read_is_shown(spec: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        expand(spec)
    assert str(error.value) == sentence


def evaluate(measures: Sequence[Measure]) -> pd.DataFrame:
    """Results as a run has them: by the name of the measure, its value here a hundredth of k."""
    return pd.DataFrame(
        [
            row(measure=m.name, measure_variant=m.info.variant or "published", value=m.options.get("k", 10) / 100)
            for m in measures
        ]
    )


def test_results_are_told_apart_by_the_options_in_the_name() -> None:
    found = sweep_with(evaluate, ["jaccard[k=5,10,20]", "cka"])
    assert found["measure"].tolist() == ["jaccard[k=5]", "jaccard[k=10]", "jaccard[k=20]", "cka"]
    assert found["value"].tolist() == [0.05, 0.1, 0.2, 0.1]
    shown = table(Results.from_frame(found)).text()
    assert shown.index.tolist() == ["CKA", "Jaccard[k=10]", "Jaccard[k=20]", "Jaccard[k=5]", "chance"]


def test_a_wrong_option_is_refused_before_anything_is_computed() -> None:
    def never(measures: Sequence[Measure]) -> pd.DataFrame:
        raise AssertionError("nothing is to be computed")

    with pytest.raises(OptionError):
        sweep_with(never, ["jaccard[k=5]", "jaccard[kk=5,10]"])
    with pytest.raises(InputError) as error:
        sweep_with(never, [])
    assert str(error.value) == "no measure was given to vary. Name one with its options: 'jaccard[k=5,10,20]'."
