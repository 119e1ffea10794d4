"""Two views that cannot be compared: too few rows, other inputs, nothing that differs."""

import numpy as np

import likewise
from likewise import measures
from likewise.views import Activations
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))


def test_different_numbers_of_rows():
    assert sentence(ValueError, likewise.compare, X, X[:20]) == (
        "cannot compare 'x' with 'y': they have 30 and 20 rows. Show both networks the same inputs."
    )
    assert sentence(ValueError, likewise.compare, {"a": X, "b": X[:20]}, "cka") == (
        "cannot compare 'a' with 'b': they have 30 and 20 rows. Show both networks the same inputs."
    )


def test_views_of_different_probes():
    a, b = Activations(X, name="a", probe="cifar-1"), Activations(X, name="b", probe="cifar-2")
    assert sentence(ValueError, likewise.compare, a, b) == (
        "cannot compare 'a' with 'b': they were shown different inputs (30 of 'cifar-1', 30 of "
        "'cifar-2'). Extract both on one probe."
    )


def test_fewer_rows_than_the_measure_needs():
    assert sentence(ValueError, measures.jaccard, X[:8], X[:8]) == (
        "jaccard needs at least 11 rows, got 8. Show the networks more inputs or lower k."
    )
    assert sentence(ValueError, measures.cka_debiased, X[:3], X[:3]) == (
        "cka-debiased needs at least 4 rows, got 3. Show the networks more inputs."
    )
    assert sentence(ValueError, measures.cka, X[:1], X[:1]) == (
        "'x' has one row. A comparison needs at least two inputs."
    )


def test_a_constant_representation_is_refused_with_its_name():
    flat = Activations(np.full((30, 4), 0.1), name="layer4")
    assert sentence(ArithmeticError, measures.cka, X, flat) == (
        "'layer4' is constant: all 30 rows are the same, so there is nothing to compare. Look at another layer."
    )


def test_outputs_that_are_not_there():
    a = Activations(X, name="a")
    assert sentence(ArithmeticError, measures.disagreement, a, a) == (
        "'a' carries no outputs. Make it with Activations(..., outputs=Outputs(...))."
    )
