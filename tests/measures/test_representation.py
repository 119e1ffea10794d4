"""What a network spans, whatever the precision, the mean and the scales of its neurons."""

import numpy as np
import pytest
import torch

from likewise import measures
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations


@pytest.mark.parametrize(("n", "d"), [(300, 40), (60, 90)])
@pytest.mark.parametrize("name", ["mean-cca", "svcca", "pwcca", "eos", "gulp", "linear-regression", "shape", "riemann"])
def test_rounding_of_single_precision_adds_no_directions(name, n, d) -> None:
    """Neurons that depend on one another, as networks give them: what remains is noise, not rank."""
    rng = np.random.default_rng(n)
    hidden, weights = rng.normal(size=(n, 8)), rng.normal(size=(8, d))
    other = rng.normal(size=(n, 6)) + hidden[:, :6]
    given = hidden.astype("f") @ weights.astype("f") + np.float32(3)
    exact = measures.get(name)(hidden @ weights + 3, other)
    assert measures.get(name)(given, other) == pytest.approx(exact, rel=1e-4)


def test_single_precision_keeps_small_directions_that_are_real() -> None:
    rng = np.random.default_rng(0)
    scales = np.logspace(0, -5, 6)
    x = (rng.normal(size=(200, 6)) * scales).astype("f")
    y = (x + 1e-9 * rng.normal(size=x.shape)).astype("f")
    assert measures.mean_cca(x, y) == pytest.approx(1, abs=1e-6)
    assert measures.eos(x, rng.normal(size=(200, 6))) < 0.2  # of 6 directions, not of 1


SPACES = ["mean-cca", "svcca", "pwcca", "gulp", "shape", "linear-regression"]


def dependent(n=300):
    """Twenty neurons of rank ten, and fifteen others."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 10))
    x = np.hstack([x, x @ rng.normal(size=(10, 10))])
    return x, rng.normal(size=(n, 15)) + 0.5 * x[:, :15]


@pytest.mark.parametrize("name", [*SPACES, "eos"])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_rounding_is_no_direction_whatever_the_precision(name, kind) -> None:
    x, y = dependent()
    given = torch.tensor(x).to(getattr(torch, kind))
    rough = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}[kind]
    for one, other, exact in ((given, y, (x, y)), (y, given, (y, x))):
        assert measures.get(name)(one, other) == pytest.approx(measures.get(name)(*exact), rel=rough)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(("kind", "offset"), [("f4", 1e5), ("f8", 1e3), ("f8", 1e6)])
def test_a_large_mean_adds_no_direction(name, kind, offset) -> None:
    x, y = dependent()
    moved = (x + offset).astype(kind)
    rough = 0.02 if kind == "f4" else 1e-6
    assert measures.get(name)(moved, y) == pytest.approx(measures.get(name)(x, y), rel=rough)


@pytest.mark.parametrize("offset", [0, 30, 100, 300, 1000])
def test_wide_networks_span_everything_but_the_mean(offset) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 90)), rng.normal(size=(40, 60))
    assert measures.gulp(x + offset, y) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", ["linear-regression", "gulp", "riemann", "eos", "mean-cca", "shape"])
def test_a_neuron_far_larger_than_the_others_hides_none(name) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 10))
    y = x[:, :6] + rng.normal(size=(300, 6))
    constant = np.hstack([x, np.full((300, 1), 1e8)]).astype("f4")
    huge = x.astype("f4")
    huge[:, 0] *= 1e8
    for z in (constant, huge):
        assert measures.get(name)(y, z) == pytest.approx(measures.get(name)(y, z.astype("f8")), rel=1e-5)


@pytest.mark.parametrize("name", [*SPACES, "eos", "riemann"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [10, 100, 300, 900, 3000])
def test_a_large_neuron_in_half_precision_hides_none(name, kind, size) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 24))
    y = x @ rng.normal(size=(24, 20)) / 5 + rng.normal(size=(500, 20))
    x[:, 0] *= size
    given = torch.tensor(x).to(getattr(torch, kind))
    assert measures.get(name)(given, y) == pytest.approx(measures.get(name)(given.double(), y), rel=1e-6)


def by_distances(x: np.ndarray, distances: bool) -> Representation:
    """A network of several, of which the distances are wanted or not."""
    return Representation(Activations(x), Workspace(10**8, networks=3, distances=distances))


@pytest.mark.parametrize(
    "rows", ["gram_rows", "raw_gram_rows", "squared_distance_rows", "cosine_rows", "correlation_rows"]
)
def test_kept_distances_serve_for_inner_products(rows) -> None:
    x = np.random.default_rng(0).normal(size=(300, 8)) + 1
    x[7] = x[3]
    saved, plain = (by_distances(x, given) for given in (True, False))
    assert saved.gram_by_distances
    assert not plain.gram_by_distances
    found, expected = (getattr(rep, rows)(40, 130) for rep in (saved, plain))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13 * float(plain.squares.max()))
    keys = [key for _, (key, *_) in saved.workspace._held]
    assert Representation.distances in keys
    assert Representation.gram not in keys  # one n x n matrix, not two


def test_kept_distances_are_symmetric_and_zero_for_equal_rows() -> None:
    x = np.random.default_rng(0).normal(size=(300, 8))
    x[7] = x[3]
    saved, plain = (by_distances(x, given).distances for given in (True, False))
    torch.testing.assert_close(saved, plain, rtol=1e-12, atol=1e-7)  # equal rows: the root of rounding
    assert torch.equal(saved, saved.T)
    assert not saved.diagonal().any()


def test_rows_of_very_different_lengths_keep_their_inner_products() -> None:
    x = np.random.default_rng(0).normal(size=(300, 8))
    x[0] *= 1e6
    assert not by_distances(x, distances=True).gram_by_distances


def test_neighbours_on_lists_have_the_same_cosines_from_kept_distances() -> None:
    x = np.random.default_rng(0).normal(size=(300, 8)) + 1
    columns = torch.randint(0, 300, (300, 5), generator=torch.Generator().manual_seed(0))
    found, expected = (by_distances(x, given).cosines_at(columns) for given in (True, False))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_correlations_of_rows_keep_their_digits_beside_one_huge_value() -> None:
    """Squares of all other rows lie below the smallest numbers once the huge value is brought to 1."""
    x = np.random.default_rng(0).normal(size=(24, 8))
    x[3, 2] = 1e160
    rows = x / np.abs(x).max(axis=1, keepdims=True)
    found = Representation(Activations(x)).correlation_rows(0, 24).numpy()
    assert found == pytest.approx(np.corrcoef(rows), abs=1e-12)
