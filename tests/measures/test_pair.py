"""Two views that cannot be compared: too few rows, other inputs, nothing that differs."""

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison.intervals import GROUPS, Groups
from likewise.comparison.units import Units
from likewise.measures.numerics.algebra import svd
from likewise.measures.pair import pair_of
from likewise.views import Activations
from perf import coverage
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))


def test_different_numbers_of_rows() -> None:
    assert sentence(ValueError, likewise.compare, X, X[:20]) == (
        "cannot compare 'x' with 'y': they have 30 and 20 rows. Show both networks the same inputs."
    )
    assert sentence(ValueError, likewise.compare, {"a": X, "b": X[:20]}, "cka") == (
        "cannot compare 'a' with 'b': they have 30 and 20 rows. Show both networks the same inputs."
    )


def test_views_of_different_probes() -> None:
    a, b = Activations(X, name="a", probe="cifar-1"), Activations(X, name="b", probe="cifar-2")
    assert sentence(ValueError, likewise.compare, a, b) == (
        "cannot compare 'a' with 'b': they were shown different inputs (30 of 'cifar-1', 30 of "
        "'cifar-2'). Extract both on one probe; data that is shuffled or augmented anew is another each time."
    )


def test_fewer_rows_than_the_measure_needs() -> None:
    assert sentence(ValueError, measures.jaccard, X[:8], X[:8]) == (
        "jaccard needs at least 11 rows, got 8. Show the networks more inputs or lower k."
    )
    assert sentence(ValueError, measures.cka_debiased, X[:3], X[:3]) == (
        "cka-debiased needs at least 4 rows, got 3. Show the networks more inputs."
    )
    assert sentence(ValueError, measures.cka, X[:1], X[:1]) == (
        "'x' has one row. A comparison needs at least two inputs."
    )


def test_a_constant_representation_is_refused_with_its_name() -> None:
    flat = Activations(np.full((30, 4), 0.1), name="layer4")
    assert sentence(ArithmeticError, measures.cka, X, flat) == (
        "'layer4' is constant: all 30 rows are the same, so there is nothing to compare. Look at another layer."
    )


def test_outputs_that_are_not_there() -> None:
    a = Activations(X, name="a")
    assert sentence(ArithmeticError, measures.disagreement, a, a) == (
        "'a' carries no outputs. Make it with Activations(..., outputs=Outputs(...))."
    )


RNG = np.random.default_rng(0)


LEFT = RNG.normal(size=(80, 12))


RIGHT = LEFT @ RNG.normal(size=(12, 12)) + RNG.normal(size=(80, 12))


@pytest.fixture
def decompositions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the matrices whose singular vectors were computed."""
    shapes: list[tuple[int, ...]] = []

    def counted(matrix: torch.Tensor, **options: bool) -> object:
        shapes.append(tuple(matrix.shape))
        return svd(matrix, **options)

    monkeypatch.setattr("likewise.measures.pair.svd", counted)
    return shapes


def test_both_directions_of_pwcca_come_from_one_decomposition(
    decompositions: list[tuple[int, ...]],
) -> None:
    matrix = likewise.compare({"x": LEFT, "y": RIGHT}, "pwcca", progress=False)
    assert len(decompositions) == 1
    alone = [likewise.measures.pwcca(a, b) for a, b in ((LEFT, RIGHT), (RIGHT, LEFT))]
    assert [matrix["x", "y"], matrix["y", "x"]] == pytest.approx(alone, rel=1e-12)
    assert matrix["x", "y"] != pytest.approx(matrix["y", "x"], rel=1e-6)


def test_canonical_correlations_follow_from_the_directions_where_these_are_known(
    decompositions: list[tuple[int, ...]],
) -> None:
    pair, fresh = pair_of(LEFT, RIGHT), pair_of(LEFT, RIGHT)
    left, rho, right = pair.canonical
    assert pair.correlations is rho
    assert rho.numpy() == pytest.approx(fresh.correlations.numpy(), abs=1e-12)
    assert (left * rho @ right.T).numpy() == pytest.approx(pair.overlap.numpy(), abs=1e-12)
    assert pair.swapped.canonical == (right, rho, left)
    assert len(decompositions) == 1


@pytest.mark.parametrize(
    ("trial", "left_out"), [(93, 28), (98, 48)]
)  # numpy gives up on the first, Intel on the second
def test_column_spaces_that_share_many_directions_are_decomposed(trial, left_out) -> None:
    views, _ = coverage.Cell(400, 240).inputs(trial)
    kept = list(Groups.of(Units.single(400), GROUPS, trial).remaining())[left_out]
    pair = pair_of(*(view.values[kept] for view in views))
    left, rho, right = pair.canonical
    assert int((rho > 1 - 1e-10).sum()) >= 112
    assert torch.allclose((left * rho) @ right.T, pair.overlap, atol=1e-12)
    assert 0.5 < measures.get("pwcca").score(pair) < 1
