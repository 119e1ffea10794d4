"""Evidence to evaluate, and the metrics again as plain loops over single comparisons."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from likewise.benchmark.evaluation import Evidence

WEIGHT = {"conform": 1.0, "half": 0.5, "violate": 0.0}


def noise(seed: int, m: int = 6, symmetric: bool = True, rounded: int = 9) -> np.ndarray:
    """Values of a measure over m networks; the diagonal, which no metric reads, is far from all."""
    values = np.random.default_rng(seed).normal(size=(m, m))
    values = np.round(values + values.T if symmetric else values, rounded)
    np.fill_diagonal(values, 99.0)
    return values


def evidence(values: np.ndarray, groups: str = "", larger_is: str = "more alike", **truths: np.ndarray) -> Evidence:
    """Evidence of a measure that is symmetric if its values are; each letter is the group of a network."""
    mirrored = np.swapaxes(values, -1, -2)
    symmetric = np.array_equal(values, mirrored, equal_nan=True)
    return Evidence("made", larger_is, symmetric, values, tuple(groups), truths)  # type: ignore[arg-type]


def alike(given: Evidence, *place: int) -> float:
    """How alike two networks or layers are, larger as more."""
    value = float(given.values[place])
    return value if given.larger_is == "more alike" else -value


def network_pairs(given: Evidence) -> list[tuple[int, int]]:
    size = len(given.values)
    return list(combinations(range(size), 2) if given.symmetric else permutations(range(size), 2))


def loop_spearman(given: Evidence, truth: str) -> float:
    """The correlation over pairs that are defined in both."""
    both = [(-alike(given, i, j), given.truths[truth][i, j]) for i, j in network_pairs(given)]
    both = [(a, b) for a, b in both if not math.isnan(a) and not math.isnan(b)]
    return float(spearmanr(*zip(*both, strict=True)).statistic)


def group_pairs(given: Evidence, group: str, variant: str) -> tuple[list[float], list[float]]:
    """Values inside a group and with others, as each form counts them, without undefined ones."""
    inside, across = [], []
    for i, j in permutations(range(len(given.values)), 2):
        first, second = given.groups[i] == group, given.groups[j] == group
        if first and second and (i < j or (variant == "published" and not given.symmetric)):
            inside.append(alike(given, i, j))
        published = first != second and (i < j or not given.symmetric)
        if (first and not second) if variant == "resi" else published:
            across.append(alike(given, i, j))
    return [v for v in inside if v == v], [v for v in across if v == v]


def loop_auprc(given: Evidence, variant: str) -> float:
    found = []
    for group in dict.fromkeys(given.groups):
        inside, across = group_pairs(given, group, variant)
        if not inside or not across:
            return math.nan
        scores = inside + across
        if variant == "resi" and given.larger_is == "less alike":
            largest = max(-score for score in scores)
            scores = [1 - (-score) / (largest if largest != 0 else 5e-5) for score in scores]
        if not np.isfinite(scores).all():
            return math.nan
        found.append(average_precision_score([1] * len(inside) + [0] * len(across), scores))
    return float(np.mean(found))


def loop_conformity(given: Evidence, variant: str, ties: str) -> float:
    found = []
    for group in dict.fromkeys(given.groups):
        inside, across = group_pairs(given, group, variant)
        points = [WEIGHT[ties] if a == b else float(b < a) for a in inside for b in across]
        if not points:
            return math.nan
        found.append(sum(points) / len(points))
    return float(np.mean(found))


def mean(found: list[float]) -> float:
    known = [value for value in found if value == value]
    return sum(known) / len(known) if known else math.nan


def loop_quadruples(given: Evidence, ties: str) -> float:
    """Eq. 7 for all 1 <= i <= j < k <= l <= L."""
    networks, size = given.values.shape[:2]
    found = []
    for n in range(networks):
        points = []
        for i in range(size):
            for j in range(i, size):
                for k in range(j + 1, size):
                    for l in range(k, size):
                        far, near = alike(given, n, i, l), alike(given, n, j, k)
                        if far == far and near == near:
                            same = i == j and k == l
                            points.append(1.0 if same else WEIGHT[ties] if far == near else float(far < near))
        found.append(sum(points) / len(points) if points else math.nan)
    return mean(found)


def chains(size: int) -> list[tuple[int, list[int]]]:
    """Each layer with those after it and with those before it, the nearest first."""
    forwards = [(s, list(range(s + 1, size))) for s in range(size)]
    return forwards + [(s, list(range(s - 1, -1, -1))) for s in range(size)]


def loop_triples(given: Evidence, ties: str) -> float:
    found = []
    for n in range(len(given.values)):
        points = []
        for source, targets in chains(given.values.shape[1]):
            for nearer, farther in combinations(targets, 2):
                near, far = alike(given, n, source, nearer), alike(given, n, source, farther)
                if far == far and near == near:
                    points.append(WEIGHT[ties] if far == near else float(far < near))
        found.append(sum(points) / len(points) if points else math.nan)
    return mean(found)


def loop_layer_spearman(given: Evidence, variant: str) -> float:
    networks, size = given.values.shape[:2]
    found = []
    for n in range(networks):
        if variant == "published":
            both = [(-alike(given, n, i, j), j - i) for i, j in combinations(range(size), 2)]
            found.append(rank_correlation([one for one in both if one[0] == one[0]]))
        else:
            each = [[(-alike(given, n, s, t), abs(t - s)) for t in targets] for s, targets in chains(size)]
            whole = [chain for chain in each if all(value == value for value, _ in chain)]
            found.append(mean([rank_correlation(chain) for chain in whole]))
    return mean(found)


def rank_correlation(both: list[tuple[float, int]]) -> float:
    """NaN of fewer than two values, and where all are equal."""
    if len({value for value, _ in both}) < 2:
        return math.nan
    return float(spearmanr(*zip(*both, strict=True)).statistic)
