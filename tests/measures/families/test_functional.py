"""Functional measures by hand and against scipy."""

import numpy as np
import pytest

from likewise import measures
from likewise.views import Activations, Outputs
from tests.measures.families.oracles import RNG

# Functional measures, on six inputs and three classes by hand.
LABELS = np.array([0, 1, 2, 0, 1, 2])


FIRST, SECOND = (np.eye(3)[c] * 4.0 for c in ([0, 1, 2, 0, 2, 1], [0, 1, 1, 1, 2, 0]))


def test_functional_measures_by_hand() -> None:
    # right: first on 0-3 (4/6), second on 0, 1 (2/6); they differ on inputs 2, 3, 5
    assert measures.get("accuracy-difference", labels=LABELS)(FIRST, SECOND) == pytest.approx(2 / 6)
    assert measures.disagreement(FIRST, SECOND) == pytest.approx(3 / 6)
    # errors 1/3 and 2/3: from |1/3 - 2/3| = 1/3 to min(1, 1) = 1, so (1/2 - 1/3) / (2/3)
    normalised = measures.get("disagreement-normalised", labels=LABELS)
    assert normalised(FIRST, SECOND) == pytest.approx(1 / 4)
    # both right on 2, both wrong on 2: observed 4/6; expected 2/3 1/3 + 1/3 2/3 = 4/9
    kappa = measures.get("error-consistency", labels=LABELS)
    assert kappa(FIRST, SECOND) == pytest.approx((4 / 6 - 4 / 9) / (5 / 9))
    # both wrong on inputs 4 (both say 2) and 5 (1 and 0)
    assert measures.get("same-mistake", labels=LABELS)(FIRST, SECOND) == pytest.approx(1 / 2)


def test_jsd_is_scipys_in_base_two() -> None:
    from scipy.spatial.distance import jensenshannon

    logits = RNG.normal(size=(2, 50, 5)) * 3
    p, q = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in logits)
    expected = np.mean([jensenshannon(a, b, base=2) ** 2 for a, b in zip(p, q, strict=True)])
    assert measures.jsd(*logits) == pytest.approx(expected, abs=1e-12)


def test_jsd_tells_networks_apart_that_nearly_agree() -> None:
    logits = np.random.default_rng(0).normal(size=(200, 5)).astype("f4")
    near = logits.astype("f8") + 1e-4 * np.random.default_rng(1).normal(size=logits.shape)
    p, q = (np.exp(v) / np.exp(v).sum(1, keepdims=True) for v in (logits.astype("f8"), near))
    mid = (p + q) / 2
    exact = (p * np.log2(p / mid) + q * np.log2(q / mid)).sum(1).mean() / 2
    views = [Activations(v, outputs=Outputs(v)) for v in (logits, near)]
    assert measures.jsd(*views) == pytest.approx(exact, rel=1e-3)
