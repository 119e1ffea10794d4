"""A view checks itself when it is made: shapes, numbers that are numbers, labels."""

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.views import Activations, Outputs
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((30,), "Pass (inputs, neurons): one row per input, even if there is one neuron."),
        (
            (30, 4, 5),
            "Choose a reduction of the tokens: reduce='mean', 'cls', 'last' or 'flatten'.",
        ),
        ((30, 4, 5, 5), "Choose a reduction of the maps: reduce='mean', 'flatten' or 'spatial'."),
        ((30, 2, 2, 2, 2), "Choose a reduction of the maps: reduce='mean', 'flatten' or 'spatial'."),
    ],
)
def test_other_shapes_need_a_reduction(shape, advice) -> None:
    listed = ", ".join(map(str, shape))
    assert sentence(ValueError, measures.cka, np.ones(shape), X) == (
        f"'x' has shape ({listed}), not (inputs, neurons). {advice}"
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_say_where(bad) -> None:
    y = X.copy()
    y[7, 2] = y[9, 2] = y[9, 4] = bad
    assert sentence(ValueError, measures.cka, X, y) == (
        "'y' has NaN or infinite entries in 2 of 30 rows and 2 of 5 columns, the first at row 7, "
        "column 2. Drop or repair them."
    )


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_means_of_many_rows_keep_their_digits(layout, kind) -> None:
    rows = np.full((20_003, 3), 0.1, dtype=kind)  # neither binary nor a whole number of eights
    rows[:, 1] = np.arange(20_003)  # mean 20,002 / 2
    mean = Activations(layout(rows)).mean
    assert mean.tolist() == pytest.approx([float(kind(0.1)), 10_001, float(kind(0.1))], rel=1e-14)


def test_finite_numbers_whose_sum_overflows_are_no_infinity() -> None:
    huge = Activations(np.full((30, 2), 1.7e308))
    assert torch.isfinite(huge.mean).all()
    assert measures.cka(X, X * 1e60) == pytest.approx(1)


def test_object_text_and_complex_arrays() -> None:
    mixed = np.array([[1, "a"], [2, "b"]], dtype=object)
    assert sentence(ValueError, measures.cka, mixed, mixed) == (
        "'x' holds object entries, not numbers. Pass an array of one numeric type."
    )
    assert sentence(ValueError, measures.cka, torch.ones(5, 2, dtype=torch.complex64), X) == (
        "'x' holds complex entries. Pass its real part or its modulus."
    )


@pytest.mark.parametrize("shape", [(0, 5), (30, 0)])
def test_empty_arrays(shape) -> None:
    assert sentence(ValueError, measures.cka, np.ones(shape), X) == (
        f"'x' is empty: its shape is ({shape[0]}, {shape[1]}). Pass at least two rows and one column."
    )
    assert sentence(ValueError, likewise.compare, {}, "cka") == (
        "compare needs two arrays or networks, or a list or mapping of them; it was given none."
    )


def test_labels_are_checked() -> None:
    logits = X[:, :3]
    assert sentence(ValueError, measures.get("same-mistake"), logits, logits) == (
        "the true labels of 'x' and 'y' are not known. Pass labels=..., or views with Outputs(logits, labels)."
    )
    assert sentence(ValueError, Outputs, logits, np.full(30, 3)) == (
        "labels must be 30 whole numbers from 0 to 2, got numbers from 3 to 3. Give one class index per input."
    )
    assert sentence(ValueError, Outputs, logits, np.zeros(29, dtype=int)) == (
        "labels must be 30 whole numbers from 0 to 2, got int64 of shape (29,). Give one class index per input."
    )
    assert sentence(ValueError, measures.disagreement, logits, X[:, :4]) == (
        "'x' and 'y' answer with 3 and 4 classes. Only networks with the same classes can be compared by their outputs."
    )


def test_only_what_a_first_look_can_tell_counts_as_variation() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4))
    about_mean = ((rows - rows.mean(axis=0)) ** 2).sum()
    assert Activations(rows).variation == pytest.approx(about_mean)
    assert Activations(rows.astype(np.float32) + 1).variation == pytest.approx(about_mean, rel=1e-5)
    for unclear in (np.ones((50, 4)), rows + 100, 1e-200 * rows, 1e200 * rows):  # constant, on a mean, of odd scale
        assert Activations(unclear).variation == 0
