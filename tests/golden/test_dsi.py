"""Class similarity against numbers that were computed elsewhere by plain loops."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from likewise import classes
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "dsi"
NUMBERS = json.loads((GOLDEN / "golden_numeric.json").read_text())
ARRAYS = np.load(GOLDEN / "golden_numeric.npz")
CASES = ("n6", "n12", "n24")
METRICS = {  # ours, and what the golden file calls it
    "cosine": "cosine",
    "mse": "mse",
    "mae": "mae",
    "pearson": "extra_pearson",
    "ssim": "ssim_diag0_full_mirror",
}
CLOSE = {"rtol": 0, "atol": 1e-9}


def made(case: str) -> dict[str, classes.ClassSimilarity]:
    """All matrices of a case, from its raw inputs."""
    truth, answers = ARRAYS[f"{case}/y_true"], ARRAYS[f"{case}/y_pred"]
    count = int(case[1:])
    names = [str(i) for i in range(count)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one case has a class without samples
        confusion = classes.from_confusion(truth, answers, names)
    return {
        "ncsm": classes.from_weights(ARRAYS[f"{case}/weights"]),
        "ccsm": confusion,
        "tncsm": classes.from_features(ARRAYS[f"{case}/features"], ARRAYS[f"{case}/feature_labels"]),
        "scsm": classes.ClassSimilarity(ARRAYS[f"{case}/scsm"]),
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("kind", "stored"), [("ncsm", "ncsm_raw"), ("ccsm", "ccsm"), ("tncsm", "tncsm_raw")])
def test_matrices(case: str, kind: str, stored: str) -> None:
    np.testing.assert_allclose(made(case)[kind].values, ARRAYS[f"{case}/{stored}"], **CLOSE)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("pair", ["ncsm_scsm", "ncsm_ccsm", "ccsm_scsm", "tncsm_ncsm"])
@pytest.mark.parametrize("metric", METRICS)
def test_alignment(case: str, pair: str, metric: str) -> None:
    a, b = pair.split("_")
    found = classes.alignment(made(case)[a], made(case)[b], metric)
    np.testing.assert_allclose(found, NUMBERS[case]["sai"][pair][METRICS[metric]], **CLOSE)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ties", ["average", "stable", "min", "max"])
@pytest.mark.parametrize(("name", "kind"), [("network", "ncsm"), ("wordnet", "scsm")])
def test_idm_and_its_ranks(case: str, ties: str, name: str, kind: str) -> None:
    matrix, expected = made(case)[kind], NUMBERS[case]["idm"][f"{name}/{ties}"]
    np.testing.assert_allclose(classes.ranks(matrix, ties), ARRAYS[f"{case}/rank_{name}_{ties}"], **CLOSE)
    table = ARRAYS[f"{case}/confusion"]
    whole = classes.idm(matrix, table, ties=ties)
    errors = classes.idm(matrix, table, errors_only=True, ties=ties)
    np.testing.assert_allclose(whole, expected["idm"], **CLOSE)
    np.testing.assert_allclose(whole.accuracy, expected["accuracy"], **CLOSE)
    np.testing.assert_allclose(errors, expected["idm_errors"], **CLOSE)
    np.testing.assert_allclose(errors.unit, expected["idm_errors_unit"], **CLOSE)
    # the paper's DM / (1 - accuracy), with the "1 -" it forgot
    identity = 1 - (1 - whole) / (1 - whole.accuracy)
    np.testing.assert_allclose(identity, expected["idm_errors_from_identity"], **CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_wsi(case: str) -> None:
    found = classes.wsi(made(case)["ncsm"])
    for name, value in found._asdict().items():
        np.testing.assert_allclose(value, NUMBERS[case]["wsi"][name], **CLOSE)


def test_a_constant_matrix_has_no_cosine_but_a_distance() -> None:
    perfect = classes.from_confusion(np.eye(5, dtype=int))
    other = classes.from_weights(np.random.default_rng(0).normal(size=(5, 4)))
    assert np.isnan(classes.alignment(perfect, other))
    assert np.isnan(classes.alignment(perfect, other, "pearson"))
    assert np.isnan(classes.alignment(perfect, perfect))
    assert classes.alignment(perfect, perfect, "mse") == 0
    assert classes.alignment(perfect, perfect, "mae") == 0
    assert classes.alignment(perfect, other, "mse") > 0
