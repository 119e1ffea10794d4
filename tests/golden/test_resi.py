"""Every number of the ReSi reference that is well posed, reproduced by variant="resi"."""

import json
import math

import numpy as np
import pytest

from likewise import measures
from likewise.errors import LikewiseError
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "resi"

# Ill-posed in the reference; may only shrink.
EXEMPT = {
    # the residue of a difference of large numbers, where the true distance is 0
    ("expected_swapped", "orthogonal_120x16", "ProcDist"),
    # a dead neuron makes the square root of a pseudo-inverse negative or not by rounding: float64 raises
    ("expected_float32", "degenerate_zero_row_col_90x20", "PWCCA"),
}


def cases(name, inputs):
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    arrays = dict(np.load(GOLDEN / f"{inputs}.npz"))
    return [
        pytest.param(
            name,
            case,
            measure,
            arrays[f"{case}__R"],
            arrays[f"{case}__Rp"],
            value,
            id=f"{case}-{measure}",
        )
        for case, values in expected.items()
        for measure, value in values.items()
    ]


def number(value):
    """The reference's number, or None where it had none."""
    if isinstance(value, dict):
        return value.get("exact_eigendecomposition_score")
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def check(name, case, measure, x, y, value, tolerance):
    reference = number(value)
    score = measures.get(measure, variant="resi")
    if reference is None or (name, case, measure) in EXEMPT:
        assert_defined_or_refused(score, x, y)
        return
    assert score(x, y) == pytest.approx(reference, rel=tolerance, abs=tolerance)


def assert_defined_or_refused(score, x, y):
    refusal, value = "", math.nan
    try:
        value = score(x, y)
    except LikewiseError as error:
        refusal = str(error)
    assert math.isfinite(value) or refusal.endswith(".")


@pytest.mark.parametrize(("name", "case", "measure", "x", "y", "value"), cases("expected", "inputs"))
def test_the_references_number_is_reproduced(name, case, measure, x, y, value) -> None:
    check(name, case, measure, x, y, value, 1e-6)


@pytest.mark.parametrize(("name", "case", "measure", "x", "y", "value"), cases("expected_swapped", "inputs"))
def test_the_references_number_is_reproduced_the_other_way_round(name, case, measure, x, y, value) -> None:
    check(name, case, measure, y, x, value, 1e-6)


@pytest.mark.parametrize(("name", "case", "measure", "x", "y", "value"), cases("expected_float32", "inputs"))
def test_the_references_number_is_reproduced_from_float32(name, case, measure, x, y, value) -> None:
    check(name, case, measure, x.astype(np.float32), y.astype(np.float32), value, 1e-3)


@pytest.mark.parametrize(("name", "case", "measure", "x", "y", "value"), cases("expected_shapes", "inputs_shapes"))
def test_the_references_way_with_tokens_and_maps_is_reproduced(name, case, measure, x, y, value) -> None:
    check(name, case, measure, x, y, value, 1e-6)


@pytest.mark.parametrize("variant", ["resi", None])
@pytest.mark.parametrize(
    ("name", "case", "measure", "x", "y", "value"),
    cases("expected_degenerate", "inputs_degenerate"),
)
def test_degenerate_input_gives_a_value_or_a_sentence(name, case, measure, x, y, value, variant) -> None:
    assert_defined_or_refused(measures.get(measure, variant=variant), x, y)


@pytest.mark.parametrize("case", ["constant_rows_vs_gauss_30x5", "zeros_vs_gauss_30x5", "gauss_vs_zeros_30x5"])
@pytest.mark.parametrize(
    "measure",
    ["CKA", "DistCorr", "GULP", "AngShape", "OrthProc", "LinReg", "SVCCA", "PWCCA", "RSA"],
)
def test_noise_of_a_constant_representation_is_never_a_score(case, measure) -> None:
    arrays = np.load(GOLDEN / "inputs_degenerate.npz")
    with pytest.raises(LikewiseError):
        measures.get(measure, variant="resi")(arrays[f"{case}__R"], arrays[f"{case}__Rp"])


IMD = [p for p in cases("expected", "inputs") if p.values[2] == "IMD"]


@pytest.mark.parametrize(("name", "case", "measure", "x", "y", "value"), IMD[::2])
def test_stochastic_imd_is_within_three_deviations_of_the_references(name, case, measure, x, y, value) -> None:
    score = measures.get("IMD", variant="resi", mode="stochastic")
    assert score(x, y) == pytest.approx(value["mean"], abs=3 * value["std"])


@pytest.mark.parametrize(("name", "case", "measure", "x", "y", "value"), IMD)
def test_our_stochastic_imd_has_hardly_any_noise(name, case, measure, x, y, value) -> None:
    score = measures.get("IMD", mode="stochastic")
    exact = value["exact_eigendecomposition_score"]
    assert score(x, y) == pytest.approx(exact, rel=2e-3, abs=1e-3)
