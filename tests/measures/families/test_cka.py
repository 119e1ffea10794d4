"""CKA and its relatives against their formulas, and where estimates are lost."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

import likewise
from likewise import measures
from likewise.errors import UndefinedError
from likewise.measures import get
from tests.measures.families.oracles import HIDDEN, RNG, N, X, Y, centred, related, with_a_large_row
from tests.measures.helpers import activations


def hsic1(k, l):
    """Song et al. 2012, equation 5, entry by entry."""
    n = len(k)
    k, l = k.copy(), l.copy()
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    one = np.ones(n)
    total = np.trace(k @ l) + one @ k @ one * (one @ l @ one) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (one @ k @ l @ one)) / (n * (n - 3))


def debiased_by_hand(x, y):
    k, l = x @ x.T, y @ y.T
    return hsic1(k, l) / math.sqrt(hsic1(k, k) * hsic1(l, l))


@pytest.mark.parametrize("wide", [False, True])
def test_debiased_cka_is_the_ratio_of_unbiased_hsic(wide) -> None:
    x, y = RNG.normal(size=(2, 40, 90 if wide else 12)) + 3
    y = y + x[:, : y.shape[1]]
    assert measures.cka_debiased(x, y) == pytest.approx(debiased_by_hand(x, y), abs=1e-10)


def test_minibatch_cka_is_a_ratio_of_sums_never_a_mean_of_ratios() -> None:
    sums = np.zeros(3)
    for start in range(0, 70, 25):
        k, l = (v[start : start + 25] @ v[start : start + 25].T for v in (X, Y))
        sums += len(k) * np.array([hsic1(k, l), hsic1(k, k), hsic1(l, l)])
    expected = sums[0] / math.sqrt(sums[1] * sums[2])
    assert measures.get("cka-minibatch", batch=25)(X, Y) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("bandwidth", [0.2, 0.5, 2.0])
def test_rbf_cka_with_the_median_distance(bandwidth) -> None:
    h = np.eye(70) - 1 / 70
    kernels = []
    for v in (X, Y):
        width = bandwidth * np.median(pdist(v))
        kernels.append(h @ np.exp(-(cdist(v, v) ** 2) / (2 * width**2)) @ h)
    k, l = kernels
    expected = (k * l).sum() / np.linalg.norm(k) / np.linalg.norm(l)
    assert measures.get("cka-rbf", bandwidth=bandwidth)(X, Y) == pytest.approx(expected, rel=1e-4)


def test_deconfounded_cka_is_cka_of_what_the_inputs_do_not_explain() -> None:
    inputs = RNG.normal(size=(70, 5)) + HIDDEN[:, :5]
    grams = [(centred(v) @ centred(v).T).ravel() for v in (X, Y, inputs)]
    left, right = (g - grams[2] * (g @ grams[2]) / (grams[2] @ grams[2]) for g in grams[:2])
    expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    score = measures.get("cka-deconfounded", confounder=inputs)
    assert score(X, Y) == pytest.approx(expected, abs=1e-10)


def test_a_short_last_batch_weighs_as_little_as_it_holds() -> None:
    rng = np.random.default_rng(516)
    x = rng.normal(size=(516, 30))
    y = x @ rng.normal(size=(30, 30)) / 5 + rng.normal(size=(516, 30))
    assert measures.cka_minibatch(x, y) == pytest.approx(measures.cka_debiased(x, y), abs=0.01)


@pytest.mark.parametrize("bandwidth", [1e-3, 0.5, 30.0, 1e3])
def test_a_wide_bandwidth_leaves_all_digits(bandwidth) -> None:
    x, y = related()
    measure = measures.get("cka-rbf", bandwidth=bandwidth)
    assert measure(x, x) == pytest.approx(1, abs=1e-12)
    assert 0 <= measure(x, y) <= 1
    if bandwidth == 1e3:  # exp(-t) is 1 - t, so that only squared distances are left
        assert measure(x, y) == pytest.approx(measures.cka(x, y), abs=1e-4)


@pytest.mark.parametrize("name", ["cka-debiased", "cka-minibatch"])
def test_an_unbiased_estimate_lost_to_one_large_input_is_refused(name) -> None:
    x, y = with_a_large_row(1e9)
    with pytest.raises(UndefinedError) as refusal:
        measures.get(name)(x, y)
    assert str(refusal.value) == (
        "the unbiased estimate of the similarity of 'x' with itself is lost to rounding: some inputs are "
        "far larger than others. Scale the rows, or leave those out."
    )
    x, y = with_a_large_row(1e4)  # of extended precision: 14 digits of it
    rows = (x - x.mean(axis=0)).astype(np.longdouble), (y - y.mean(axis=0)).astype(np.longdouble)
    k, l = (v @ v.T * (1 - np.eye(N)) for v in rows)

    def hsic(k, l):
        whole = k.sum() * l.sum() / ((N - 1) * (N - 2))
        return (k * l).sum() + whole - 2 / (N - 2) * (k.sum(axis=0) @ l.sum(axis=0))

    expected = float(hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l)))
    assert measures.get(name)(x, y) == pytest.approx(expected, rel=1e-6)


def turn(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def test_cka_rbf_is_the_same_whatever_the_memory() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 5)) * 0.1
    x[1::2] += 5
    y = x + rng.normal(size=(3000, 5))
    roomy, tight = (float(likewise.compare(x, y, "cka-rbf", memory=memory)) for memory in ("2GB", "50MB"))
    assert tight == pytest.approx(roomy, rel=1e-9)


@pytest.mark.parametrize("memory", ["1GB", "10MB"])
@pytest.mark.parametrize("shares", [(90, 10), (80, 20)])
@pytest.mark.parametrize("shift", [0, 1e4])
def test_cka_rbf_without_a_scale_is_refused(shares, shift, memory) -> None:
    z = np.repeat(np.eye(2), np.multiply(shares, 8), axis=0) @ turn(np.random.default_rng(0), 2)
    with pytest.raises(UndefinedError) as refusal:
        likewise.compare(z + shift, z, "cka-rbf", memory=memory)
    assert str(refusal.value) == (
        "more than half of the pairs of inputs are equal in 'x', so its distances have no scale. "
        "Use cka, or show the networks inputs that differ."
    )


def test_what_a_confounder_leaves_is_computed_in_double_precision() -> None:
    x, y = activations(1), activations(2)
    with pytest.raises(UndefinedError, match="the confounder explains all of one side"):
        get("cka-deconfounded", confounder=x)(x, y)
    wide = [v.astype(np.float64) for v in (x, y, activations(3))]
    expected = get("cka-deconfounded", confounder=wide[2])(*wide[:2])
    found = get("cka-deconfounded", confounder=activations(3))(x, y)
    assert found == pytest.approx(expected, abs=1e-9)
