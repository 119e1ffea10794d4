"""Canonical measures against the generalised eigenvalue problem."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from likewise import measures
from likewise.errors import UndefinedError
from likewise.measures.pair import Pair
from tests.measures.families.oracles import X, Y, canonical, centred, network


def test_svcca_keeps_the_components_that_explain_99_percent() -> None:
    kept = []
    for v in (X, Y):
        u, s, _ = np.linalg.svd(centred(v), full_matrices=False)
        share = np.cumsum(s**2) / np.sum(s**2)
        kept.append((u * s)[:, : int(np.argmax(share >= 0.99)) + 1])
    narrow, wide = sorted(kept, key=lambda v: v.shape[1])
    assert measures.svcca(X, Y) == pytest.approx(canonical(narrow, wide).mean(), abs=1e-9)


def test_mean_cca_is_the_mean_of_canonical_correlations() -> None:
    assert measures.mean_cca(X, Y) == pytest.approx(canonical(X, Y).mean(), abs=1e-9)


def pwcca_by_hand(x, y):
    """Morcos et al.: weights from the canonical variates h_i of the smaller side and its neurons."""
    x, y = centred(x), centred(y)
    a, b, c = x.T @ x, y.T @ y, x.T @ y
    squares, directions = scipy.linalg.eigh(c @ np.linalg.solve(b, c.T), a)
    weights = []
    for direction in directions.T:
        h = x @ direction
        weights.append(sum(abs(h @ neuron) for neuron in x.T) / np.linalg.norm(h))
    return np.average(np.sqrt(np.clip(squares, 0, 1)), weights=weights)


def test_pwcca_weights_by_canonical_variates_of_the_smaller_side() -> None:
    assert measures.pwcca(X, Y) == pytest.approx(pwcca_by_hand(X, Y), abs=1e-9)
    assert measures.pwcca(Y, X) == pytest.approx(pwcca_by_hand(X, Y), abs=1e-9)


def test_pwcca_takes_the_first_side_when_widths_are_equal() -> None:
    other = network(9)
    assert measures.pwcca(X, other) == pytest.approx(pwcca_by_hand(X, other), abs=1e-9)
    assert measures.pwcca(other, X) == pytest.approx(pwcca_by_hand(other, X), abs=1e-9)


def test_the_references_pwcca_keeps_its_digits_beside_a_large_input() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 8))
    x[5] *= 1e8
    assert measures.get("pwcca", variant="resi")(x, x) == pytest.approx(1, abs=1e-6)


def test_pwcca_of_a_network_that_expresses_anything_needs_no_canonical_directions(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(20, 30)), rng.normal(size=(20, 4))
    monkeypatch.setattr(Pair, "canonical", property(lambda pair: pytest.fail("decomposed")))
    assert measures.pwcca(wide, narrow) == measures.pwcca(narrow, wide) == measures.pwcca(wide, 2 * wide) == 1.0
    with pytest.raises(UndefinedError, match="is constant"):
        measures.pwcca(wide, np.ones((20, 3)))
