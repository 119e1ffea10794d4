"""Neighbour measures against plain loops, with ties and crowds."""

import math

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.measures.numerics.neighbor_lists import neighbor_lists
from likewise.measures.representation import Representation
from likewise.views import Activations
from tests.measures.families.oracles import X, Y, unit
from tests.measures.helpers import exact_lists, kinds, one_hot, turn


def neighbours(v, k):
    """Nearest by cosine, the point itself left out, ties by input order."""
    near = np.round(unit(v) @ unit(v).T, 12)
    np.fill_diagonal(near, -np.inf)
    return [np.argsort(-row, kind="stable")[:k] for row in near]


def second_order_by_hand(x, y, k):
    cosines = [unit(v) @ unit(v).T for v in (x, y)]
    scores = []
    for i, (left, right) in enumerate(zip(neighbours(x, k), neighbours(y, k), strict=True)):
        union = sorted({*left, *right})
        p, q = cosines[0][i, union], cosines[1][i, union]
        scores.append(p @ q / np.linalg.norm(p) / np.linalg.norm(q))
    return np.mean(scores)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_second_order_cosine_takes_similarities_not_distances(k) -> None:
    expected = second_order_by_hand(X, Y, k)
    assert measures.get("2nd-Cos", k=k)(X, Y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 4, 10])
def test_neighbour_measures_never_count_the_point_itself(k) -> None:
    x, y = np.repeat(X[:30], 2, axis=0), np.repeat(Y[:30], 2, axis=0)  # every point twice
    x, y = x[::-1].copy(), y[::-1].copy()
    jaccard, mutual = [], []
    for left, right in zip(neighbours(x, k), neighbours(y, k), strict=True):
        shared = len({*left} & {*right})
        jaccard.append(shared / len({*left} | {*right}))
        mutual.append(shared / k)
    assert measures.get("jaccard", k=k)(x, y) == pytest.approx(np.mean(jaccard), abs=1e-12)
    assert measures.get("mutual-knn", k=k)(x, y) == pytest.approx(np.mean(mutual), abs=1e-12)


def test_rank_similarity_by_a_plain_loop() -> None:
    scores = []
    for left, right in zip(neighbours(X, 10), neighbours(Y, 10), strict=True):
        common = {*left} & {*right}
        places = [(list(left).index(j) + 1, list(right).index(j) + 1) for j in common]
        total = sum(2 / ((1 + abs(r - s)) * (r + s)) for r, s in places)
        scores.append(total / sum(1 / i for i in range(1, len(common) + 1)) if common else 0)
    assert measures.rank_similarity(X, Y) == pytest.approx(np.mean(scores), abs=1e-12)


def neighbour_mask(gram, k):
    hollow = gram - np.diag(np.full(len(gram), np.inf))
    near = np.argsort(-hollow, axis=1)[:, :k]
    mask = np.zeros_like(gram)
    np.put_along_axis(mask, near, 1, axis=1)
    return mask


CKNNA_CASES = [(X, Y), (unit(X), unit(Y)), (X + 5, Y - 3)]


@pytest.mark.parametrize(("x", "y"), CKNNA_CASES)
def test_cknna_is_the_papers_equation(x, y) -> None:
    k = 8
    grams = [v @ v.T for v in (x, y)]
    masks = [neighbour_mask(g, k) for g in grams]
    rows = [g - g.mean(axis=1, keepdims=True) for g in grams]

    def alignment(a, b):
        return (masks[a] * masks[b] * rows[a] * rows[b]).sum()

    expected = alignment(0, 1) / math.sqrt(alignment(0, 0) * alignment(1, 1))
    assert measures.get("cknna", k=k)(x, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("x", "y"), CKNNA_CASES)
def test_cknna_has_the_authors_code_as_a_variant(x, y) -> None:
    k, n = 8, 70
    grams = [v @ v.T for v in (x, y)]
    masks = [neighbour_mask(g, k) for g in grams]

    def hsic(a, b):  # Song et al. 2012, equation 5, of matrices that are not symmetric
        first, second = (masks[a] * masks[b] * grams[c] for c in (a, b))
        whole = first.sum() * second.sum() / ((n - 1) * (n - 2))
        middle = 2 * (first @ second).sum() / (n - 2)
        return ((first * second.T).sum() + whole - middle) / (n * (n - 3))

    for a, b in ((0, 1), (1, 0)):
        expected = hsic(a, b) / (math.sqrt(hsic(a, a) * hsic(b, b)) + 1e-6)
        found = measures.get("cknna", variant="platonic", k=k)((x, y)[a], (x, y)[b])
        assert found == pytest.approx(expected, rel=1e-9)


OWN = ["jaccard", "mutual-knn", "rank-similarity", "second-order-cosine", "cknna"]


@pytest.mark.parametrize("name", OWN)
def test_p_of_unrelated_networks_with_ties_is_small_no_more_often_than_it_should(name) -> None:
    small = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = one_hot(rng, 60), one_hot(rng, 60)
        if name == "second-order-cosine":
            x, y = x + 0.1, y + 0.1
        small += likewise.calibrate(x, y, name, permutations=39, seed=seed).p < 0.05
    assert small / 60 < 0.15


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", ["classes", "grid with zero rows", "twins", "turned classes"])
def test_ties_are_the_same_after_a_turn_and_at_another_scale(name, kind) -> None:
    rng = np.random.default_rng(3)
    x = kinds(rng, 100)[kind]
    if name == "second-order-cosine":
        x = x + 0.3
    for other in (x @ turn(rng, x.shape[1]), 3 * x, 0.1 * x @ turn(rng, x.shape[1])):
        assert measures.get(name, k=7)(x, other) == pytest.approx(1, abs=1e-12)


def test_ties_go_by_input_order_in_cknna() -> None:
    x = np.repeat(np.eye(2), 4, axis=0)  # inputs 0-3 and 4-7 are the same
    lists = neighbor_lists(Representation(Activations(x)), 2, "inner")
    assert lists[:4].tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]


@pytest.mark.parametrize("variant", [None, "resi"])
def test_crowded_and_unrelated_is_not_alike(variant) -> None:
    rng = np.random.default_rng(0)
    x, y = ((rng.normal(size=(200, 16)) + 1e6).astype("f4") for _ in "ab")
    lists = [[set(row) for row in exact_lists(v, 10)] for v in (x, y)]
    expected = np.mean([len(a & b) / len(a | b) for a, b in zip(*lists, strict=True)])
    assert measures.get("jaccard", variant)(x, y) == pytest.approx(expected, abs=1e-12)
