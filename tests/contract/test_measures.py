"""Facts are declared once and tested both ways, for every measure and variant."""

import inspect
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import measures
from likewise._base.optional import Library
from likewise.errors import MissingDependencyError
from likewise.measures.registry import MEASURES, RESI
from likewise.testing import ContractError, check_measure
from likewise.views import Activations, Outputs

CONFOUNDER = np.random.default_rng(1).normal(size=(60, 5))
ALL = [m.bind(confounder=CONFOUNDER) if m.missing_options else m for m in MEASURES if m.info.on != "networks"]
VARIANTS = [variant for m in MEASURES for variant in m.variants.values()]


@pytest.mark.parametrize("measure", [*ALL, *VARIANTS], ids=lambda m: m.key)
def test_declared_facts_hold_and_undeclared_ones_do_not(measure) -> None:
    assert check_measure(measure).lies == []


def test_all_of_resi_and_more_are_there() -> None:
    known = {alias for m in MEASURES for alias in m.info.aliases}
    assert len(RESI) == 23
    assert known >= RESI
    assert len(measures.names()) >= 40


@pytest.mark.parametrize("measure", list(MEASURES), ids=lambda m: m.key)
def test_every_measure_has_an_example(measure) -> None:
    """That it runs is seen with all other doctests."""
    assert f"measures.{measure.original.__name__}" in measure.info.example or measure.info.on == "networks"
    assert measure.info.example
    assert ">>>" not in measure.explain()


def libraries():
    """Every library that a measure of ours may need, as `Library` is made in its module."""
    modules = {sys.modules[m.original.__module__] for m in MEASURES}
    return [value for module in modules for value in vars(module).values() if isinstance(value, Library)]


@pytest.mark.parametrize("widths", [(6, 6), (4, 6)])
@pytest.mark.parametrize("measure", [*ALL, *VARIANTS], ids=lambda m: m.key)
def test_a_measure_needs_the_libraries_it_declares_and_no_others(measure, widths, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, size=60)
    x, y = (
        Activations(values, outputs=Outputs(values[:, :4] + np.eye(4)[labels], labels))
        for values in (rng.normal(size=(60, width)) for width in widths)
    )
    assert measure.missing((60, *widths)) is None, "a library of the extra 'measures' is not installed"
    for library in libraries():
        monkeypatch.setitem(sys.modules, library.module, None)  # as if it were not installed
    library = measure.missing((60, *widths))
    if library is None:
        assert np.isfinite(measure(x, y))
        return
    with pytest.raises(MissingDependencyError) as caught:
        measure(x, y)
    assert str(caught.value) == library.remedy


def test_libraries_are_asked_for_by_declaration_only() -> None:
    assert {library.module for library in libraries()} == {"ot", "ripser"}
    for module in {sys.modules[m.original.__module__] for m in MEASURES}:
        assert "require(" not in inspect.getsource(module), f"{module.__name__} needs what it does not declare"


def liar(**facts):
    def centred_cosine(x, y):
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        return float(abs((x * y).sum()) / np.linalg.norm(x) / np.linalg.norm(y))

    truth = {
        "symmetric": True,
        "invariant_to": {"scale", "shift"},
        "bounds": (0, 1),
        "identity": 1,
        "larger_is": "more alike",
    }
    return measures.register(centred_cosine, name="liar", **{**truth, **facts})


@pytest.fixture(autouse=True)
def _no_liar_stays():
    yield
    if "liar" in MEASURES:
        measures.unregister("liar")


def test_an_honest_third_party_measure_passes() -> None:
    assert check_measure(liar()).lies == []


@pytest.mark.parametrize(
    ("facts", "lie"),
    [
        ({"symmetric": False}, "it is declared asymmetric"),
        ({"invariant_to": {"scale", "shift", "rotation"}}, "it notices a rotation"),
        ({"invariant_to": {"scale"}}, "it ignores a shift"),
        ({"bounds": (0, 0.5)}, "1 is above the declared 0.5"),
        ({"identity": 0}, "a network with itself scores 1, not 0"),
        ({"paired": False}, "it looks at single inputs"),
        ({"larger_is": "less alike", "metric": True}, "it violates the triangle inequality"),
    ],
)
def test_a_lying_measure_is_caught(facts, lie) -> None:
    with pytest.raises(ContractError, match="does not keep its contract") as caught:
        check_measure(liar(**facts))
    assert lie in str(caught.value)


@pytest.mark.parametrize("measure", [m for m in ALL if m.info.on == "representation"], ids=lambda m: m.key)
def test_numpy_and_torch_of_both_precisions_give_the_same(measure) -> None:
    import torch

    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 7)).astype(np.float32)
    y = (x @ rng.normal(size=(7, 7)) + rng.normal(size=(60, 7))).astype(np.float32)
    expected = measure(x.astype(np.float64), y.astype(np.float64))
    assert measure(torch.from_numpy(x), torch.from_numpy(y)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert measure(x, y) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert np.isfinite(measure(torch.from_numpy(x).half(), torch.from_numpy(y).half()))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(14, 40), d=st.integers(2, 50), e=st.integers(2, 50))
@pytest.mark.parametrize(
    "measure",
    [m for m in ALL if m.info.on == "representation" and m.name not in ("rtd", "cka-deconfounded")],
    ids=lambda m: m.key,
)
def test_values_stay_in_their_range_whatever_the_shapes(measure, seed, n, d, e) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, e)) * rng.exponential(size=e)
    value = measure(x, y)
    low, high = measure.info.bounds
    assert low is None or value >= low - 1e-9
    assert high is None or value <= high + 1e-9
    if measure.info.symmetric:
        assert measure(y, x) == pytest.approx(value, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("jaccard", {"k": 23}),
        ("mutual-knn", {"k": 23}),
        ("rank-similarity", {"k": 23}),
        ("shape", {"alpha": 0.0}),
        ("shape", {"alpha": 1.0}),
        ("svcca", {"variance": 1.0}),
        ("gulp", {"ridge": 0.1}),
    ],
)
def test_scores_that_sizes_alone_decide_are_declared_by_the_options(name, options) -> None:
    report = check_measure(measures.get(name, **options), strict=False)
    assert [lie for lie in report.lies if "noise" in lie] == []


def test_a_measure_that_hides_its_saturation_is_caught() -> None:
    def explained(x, y):
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        basis = np.linalg.svd(y, full_matrices=False)[0][:, : min(len(y) - 1, y.shape[1])]
        return float((basis.T @ x).std() > 0 and ((basis.T @ x) ** 2).sum() / (x**2).sum())

    lies = check_measure(explained, strict=False).lies
    assert "noise always scores the same at n = 24, d = 5 and 23" in lies
    assert "noise always scores the same at n = 24, d = 23 and 5" not in lies
