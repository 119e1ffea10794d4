"""Descriptive measures by hand."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from likewise import measures
from tests.measures.families.oracles import X, Y, unit


def test_uniformity_is_on_the_sphere_without_the_diagonal() -> None:
    numbers = [math.log(np.mean(np.exp(-2 * pdist(unit(v)) ** 2))) for v in (X, Y)]
    assert measures.uniformity_difference(X, Y) == pytest.approx(abs(numbers[0] - numbers[1]), abs=1e-12)
