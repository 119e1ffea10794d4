"""Searches by numbers alone: their draws, their bounds, and that they do what slow plain ones do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import differential_evolution as scipys

from likewise.attacks.searches import (
    Array,
    Box,
    Space,
    cma_es,
    differential_evolution,
    latin_hypercube,
    partners,
)

LOWER = np.array([0.0, 0.0, 3.0, 249.0, 100.0, -7.0])
UPPER = np.array([32.0, 256.0, 13.0, 255.0, 100.5, 0.0])


def space(entries: int, *, separate: bool = False) -> Space:
    draw = np.random.default_rng(entries)
    upper = draw.integers(5, 256, entries).astype(float)
    return Space(np.floor(upper * draw.random(entries)), 5.0, np.zeros(entries), upper, lambda rows: rows, separate)


def test_numbers_are_brought_into_bounds_as_cma_does() -> None:
    cma = pytest.importorskip("cma")
    handler, box = cma.BoundTransform([LOWER, UPPER]), Box(LOWER, UPPER)
    draw = np.random.default_rng(0)
    vectors = np.concatenate([scale * draw.normal(size=(100, 6)) + 50 for scale in (3, 60, 2000)])
    expected = np.stack([handler.repair(row.copy()) for row in vectors])
    np.testing.assert_allclose(box.inside(vectors), expected, rtol=0, atol=1e-10)
    for start in (LOWER, UPPER, LOWER + (UPPER - LOWER) * draw.random(6)):
        np.testing.assert_allclose(box.source(start), handler.inverse(start.copy()), rtol=1e-12)
        np.testing.assert_allclose(box.inside(box.source(start)[None])[0], start, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("entries", "separate"), [(5, False), (40, True)])
def test_cma_es_goes_where_cma_goes_with_bounds_of_its_own(entries: int, separate: bool) -> None:
    cma = pytest.importorskip("cma")
    where, draw = space(entries, separate=separate), np.random.default_rng(3)
    goal = 1.3 * where.upper * np.random.default_rng(1).random(entries)  # some of it beyond the bounds
    options = {
        "bounds": [where.lower, where.upper],
        "popsize": 12,
        "CMA_diagonal": separate,
        "randn": lambda *shape: draw.standard_normal(shape),
        "seed": float("nan"),
        "verbose": -9,
    }
    other = cma.CMAEvolutionStrategy(where.start, where.spread, options)
    search = cma_es(where, 15, 12, seed=3)
    found = next(search)
    for _ in range(14):
        expected = other.ask()
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-6, atol=1e-6)
        other.tell(expected, _distances(np.stack(expected), goal))
        found = search.send(_distances(found, goal))


def _distances(vectors: Array, goal: Array) -> Array:
    found: Array = ((vectors - goal) ** 2).sum(axis=1)
    return found


def test_a_latin_hypercube_has_one_point_in_every_interval_of_every_entry() -> None:
    points = latin_hypercube(np.random.default_rng(0), 50, 3)
    assert np.array_equal(np.sort(np.floor(50 * points), axis=0), np.tile(np.arange(50.0)[:, None], (1, 3)))
    orders = points.argsort(axis=0)
    assert not any(np.array_equal(orders[:, one], orders[:, two]) for one, two in [(0, 1), (0, 2), (1, 2)])


def test_partners_are_any_two_others() -> None:
    draw, seen = np.random.default_rng(0), np.zeros((5, 5, 5))
    for _ in range(2000):
        one, two = partners(draw, 5)
        seen[np.arange(5), one, two] += 1
    for member in range(5):
        others = [other for other in range(5) if other != member]
        pairs = [(one, two) for one in others for two in others if one != two]
        counts = np.array([seen[member, one, two] for one, two in pairs])
        assert counts.sum() == 2000  # nothing but two others, and these are different
        assert ((counts - 2000 / 12) ** 2 / (2000 / 12)).sum() < 31.3  # chi square of 11 degrees, p = 0.001


def test_evolution_does_what_a_loop_over_candidates_does() -> None:
    where = space(7)
    search, draw = differential_evolution(where, 3, 70, seed=9), np.random.default_rng(9)
    lower, width = where.lower.astype(np.float32), (where.upper - where.lower).astype(np.float32)
    members = lower + width * latin_hypercube(draw, 70, 7)
    found = next(search)
    np.testing.assert_array_equal(found, members)
    values = _distances(members, where.upper)
    for _ in range(3):
        trials, best = np.empty_like(members), members[values.argmin()].copy()
        share, (one, two) = np.float32(draw.uniform(0.5, 1)), partners(draw, 70)
        fresh = np.concatenate([draw.random((count, 7), dtype=np.float32) for count in (64, 6)])
        for row in range(70):
            for entry in range(7):
                value = (members[one[row], entry] - members[two[row], entry]) * share + best[entry]
                inside = lower[entry] <= value <= lower[entry] + width[entry]
                trials[row, entry] = value if inside else lower[entry] + width[entry] * fresh[row, entry]
        found = search.send(_distances(found, where.upper))
        np.testing.assert_array_equal(found, trials)
        better = _distances(trials, where.upper)
        for row in range(70):
            if better[row] <= values[row]:
                members[row], values[row] = trials[row], better[row]


def test_evolution_gets_as_far_as_scipys() -> None:
    where, ours, theirs = space(5), [], []
    goal = where.upper * np.random.default_rng(2).random(5)
    for seed in range(20):
        search, least = differential_evolution(where, 12, 50, seed), np.inf
        found = next(search)
        while True:
            least = min(least, _distances(found, goal).min())
            try:
                found = search.send(_distances(found, goal))
            except StopIteration:
                break
        ours.append(least)
        options = {"popsize": 10, "recombination": 1, "tol": 0, "atol": -1, "polish": False, "updating": "deferred"}
        bounds = list(zip(where.lower, where.upper, strict=True))
        theirs.append(scipys(lambda x: float(((x - goal) ** 2).sum()), bounds, maxiter=12, rng=seed, **options).fun)
    # the logarithms of what is left spread by about 1 over seeds, so their means by 0.3: four times that
    assert abs(np.log(ours).mean() - np.log(theirs).mean()) < 1.2
