"""Each metric in both forms against a plain loop, and one value of each by hand."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import permutation_test, spearmanr

from likewise.benchmark.evaluation import (
    Evidence,
    auprc,
    conformity,
    layer_conformity,
    layer_spearman,
    spearman,
)
from likewise.errors import InputError
from tests.benchmark.helpers import (
    evidence,
    loop_auprc,
    loop_conformity,
    loop_layer_spearman,
    loop_quadruples,
    loop_spearman,
    loop_triples,
    network_pairs,
    noise,
)

FORMS = ("published", "resi")
DIRECTIONS = ("more alike", "less alike")


def spoilt(values: np.ndarray, kind: str) -> np.ndarray:
    """Values with what measures really give: ties, undefined pairs, negative and infinite distances."""
    spoil = np.random.default_rng(1).random(values.shape) < 0.25
    if np.array_equal(values, np.swapaxes(values, -1, -2)):
        spoil = np.triu(spoil, 1) | np.swapaxes(np.triu(spoil, 1), -1, -2)
    return {
        "plain": values,
        "ties": np.round(values),
        "equal": np.ones_like(values),
        "zero": np.minimum(np.round(values), 0),
        "undefined": np.where(spoil, np.nan, values),
        "negative": values - 1000,
        "infinite": np.where(spoil, np.inf, values),
    }[kind]


KINDS = ("plain", "ties", "equal", "zero", "undefined", "negative", "infinite")
CASES = pytest.mark.parametrize(
    ("symmetric", "larger_is", "kind"),
    [(symmetric, larger_is, kind) for symmetric in (True, False) for larger_is in DIRECTIONS for kind in KINDS],
)


@CASES
def test_the_correlation_over_pairs_is_that_of_a_loop(symmetric: bool, larger_is: str, kind: str) -> None:
    given = evidence(spoilt(noise(3, 7, symmetric), kind), "", larger_is, jsd=noise(4, 7))
    for form in FORMS:
        found = spearman(given, "jsd", variant=form, permutations=99)
        if kind == "equal":
            assert math.isnan(found.value)
            assert found.p is None
        else:
            assert found.value == pytest.approx(loop_spearman(given, "jsd"))
            assert 0 < found.p <= 1
        defined = [not math.isnan(given.values[pair]) for pair in network_pairs(given)]
        assert found.coverage == pytest.approx(np.mean(defined))


def test_pairs_whose_truth_is_undefined_are_left_out() -> None:
    truth = spoilt(noise(4, 7), "undefined")
    given = evidence(noise(3, 7), jsd=truth)
    for form in FORMS:
        assert spearman(given, "jsd", variant=form, permutations=9).value == pytest.approx(loop_spearman(given, "jsd"))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", ["plain", "undefined"])
def test_the_published_p_permutes_networks(symmetric: bool, kind: str) -> None:
    given = evidence(spoilt(noise(3, 5, symmetric), kind), jsd=noise(8, 5))
    found = spearman(given, "jsd", permutations=4000)
    orders = [list(order) for order in permutations(range(5))]
    every = [
        loop_spearman(evidence(given.values, jsd=given.truths["jsd"][np.ix_(order, order)]), "jsd") for order in orders
    ]
    exact = np.mean(np.abs(every) >= abs(found.value) - 1e-12)
    assert found.p == pytest.approx(exact, abs=0.03)
    assert (found.low, found.high) == pytest.approx(np.quantile(every, [0.025, 0.975]), abs=0.05)


def test_the_reference_p_permutes_pairs() -> None:
    given = evidence(noise(3), jsd=noise(3) * -1 + noise(5))
    pairs = np.triu_indices(6, 1)
    one, two = -given.values[pairs], given.truths["jsd"][pairs]
    oracle = permutation_test(
        (one,), lambda x: spearmanr(x, two).statistic, permutation_type="pairings", n_resamples=999
    )
    found = spearman(given, "jsd", variant="resi")
    assert found.value == pytest.approx(oracle.statistic)
    assert found.p == pytest.approx(oracle.pvalue, abs=0.05)


def test_a_correlation_is_the_same_when_made_again_and_other_with_another_seed() -> None:
    given = evidence(noise(3), jsd=noise(8))
    assert spearman(given, "jsd") == spearman(given, "jsd")
    assert spearman(given, "jsd").p != spearman(given, "jsd", seed=1).p


@CASES
@pytest.mark.parametrize("groups", ["aabbbcc", "aaabbbb", "bacabca"])
def test_auprc_is_that_of_a_loop(symmetric: bool, larger_is: str, kind: str, groups: str) -> None:
    given = evidence(spoilt(noise(3, 7, symmetric), kind), groups, larger_is)
    for form in FORMS:
        found = auprc(given, variant=form)
        if kind == "infinite" and form == "published":  # no loss of order: infinite is largest
            finite = np.where(np.isposinf(given.values), 1e6, given.values)
            assert found.value == pytest.approx(loop_auprc(evidence(finite, groups, larger_is), form))
        else:
            assert found.value == pytest.approx(loop_auprc(given, form), nan_ok=True)


def test_the_reference_turns_the_order_of_negative_distances_and_the_published_form_does_not() -> None:
    inside = {(0, 1), (1, 0), (2, 3), (3, 2)}
    values = np.array([[-2.0 if (i, j) in inside else -1.0 for j in range(4)] for i in range(4)])
    assert auprc(evidence(values, "aabb", "less alike")).value == 1
    assert auprc(evidence(values, "aabb", "less alike"), variant="resi").value == pytest.approx(1 / 5)
    assert auprc(evidence(values + 3, "aabb", "less alike"), variant="resi").value == 1


def test_an_infinite_distance_leaves_the_reference_without_a_value() -> None:
    values = noise(0)
    values[0, 1] = values[1, 0] = np.inf
    assert math.isnan(auprc(evidence(values, "aaabbb", "less alike"), variant="resi").value)
    assert auprc(evidence(values, "aaabbb", "less alike")).value > 0


@pytest.mark.parametrize("symmetric", [True, False])
def test_chance_is_the_share_of_pairs_inside_a_group(symmetric: bool) -> None:
    """With three groups of five: 10 pairs inside and 50 with others, as in the paper."""
    given = evidence(noise(0, 15, symmetric), "aaaaabbbbbccccc")
    assert auprc(given).chance == pytest.approx(10 / 60)
    assert auprc(given, variant="resi").chance == pytest.approx(10 / 60)
    equal = evidence(np.ones((15, 15)), "aaaaabbbbbccccc")
    assert auprc(equal).value == auprc(equal).chance == pytest.approx(1 / 6)
    random = [auprc(evidence(noise(seed, 15, symmetric), "aaaaabbbbbccccc")).value for seed in range(60)]
    assert np.mean(random) == pytest.approx(0.21, abs=0.03)  # a little above, since few pairs are found early by luck


@CASES
@pytest.mark.parametrize("groups", ["aabbbcc", "bacabca"])
@pytest.mark.parametrize("ties", ["conform", "half", "violate"])
def test_conformity_is_that_of_a_loop(symmetric: bool, larger_is: str, kind: str, groups: str, ties: str) -> None:
    given = evidence(spoilt(noise(3, 7, symmetric), kind), groups, larger_is)
    for form in FORMS:
        found = conformity(given, variant=form, ties=ties)
        assert found.value == pytest.approx(loop_conformity(given, form, ties))
        assert found.ties == ties


def test_a_tie_conforms_as_published_and_violates_in_the_reference() -> None:
    given = evidence(noise(3, 7, rounded=0), "aabbbcc")
    assert conformity(given) == conformity(given, ties="conform")
    assert conformity(given, variant="resi") == conformity(given, variant="resi", ties="violate")
    assert conformity(given, variant="resi").value < conformity(given).value


@pytest.mark.parametrize("metric", [auprc, conformity])
@pytest.mark.parametrize("form", FORMS)
def test_what_has_no_pair_of_a_kind_has_no_value(metric: object, form: str) -> None:
    undefined = noise(0)
    undefined[:2, :2] = np.nan
    for given in (evidence(noise(0), "aaaaaa"), evidence(noise(0), "abbbbb"), evidence(undefined, "aabbbb")):
        assert math.isnan(metric(given, variant=form).value)  # type: ignore[operator]


def test_coverage_is_the_share_of_pairs_that_are_defined() -> None:
    values = noise(0)
    values[0, 1] = values[1, 0] = values[0, 5] = values[5, 0] = np.nan
    given = evidence(values, "aaabbb")
    # per group 3 pairs inside and 9 with others; (0, 1) is one inside of a, (0, 5) is one with others of both groups
    for found in (auprc(given), conformity(given), auprc(given, variant="resi"), conformity(given, variant="resi")):
        assert found.coverage == pytest.approx(21 / 24)


def layered(seed: int, symmetric: bool, kind: str, rounded: int = 9) -> np.ndarray:
    return np.stack([spoilt(noise(seed + n, 5, symmetric, rounded), kind) for n in range(3)])


@CASES
def test_the_layer_metrics_are_those_of_loops(symmetric: bool, larger_is: str, kind: str) -> None:
    given = evidence(layered(3, symmetric, kind), larger_is=larger_is)
    for form in FORMS:
        found = layer_spearman(given, variant=form).value
        assert found == pytest.approx(loop_layer_spearman(given, form), nan_ok=True)
    for ties in ("conform", "half", "violate"):
        assert layer_conformity(given, ties=ties).value == pytest.approx(loop_quadruples(given, ties))
        resi = layer_conformity(given, variant="resi", ties=ties)
        assert resi.value == pytest.approx(loop_triples(given, ties))


def test_layers_that_drift_apart_conform_in_every_form() -> None:
    apart = np.abs(np.subtract.outer(range(6), range(6)))[None].astype(float)
    for form in FORMS:
        assert layer_spearman(evidence(apart, larger_is="less alike"), variant=form).value == 1
        assert layer_conformity(evidence(apart, larger_is="less alike"), variant=form).value == 1
        assert layer_spearman(evidence(apart), variant=form).value == -1
    # of C(8, 4) = 70 quadruples 15 hold a pair against itself
    assert layer_conformity(evidence(apart)).value == pytest.approx(15 / 70)
    assert layer_conformity(evidence(apart), variant="resi").value == 0


def test_an_undefined_measure_does_not_conform() -> None:
    given = evidence(np.full((2, 4, 4), np.nan))
    for metric in (layer_spearman, layer_conformity):
        for form in FORMS:
            found = metric(given, variant=form)
            assert math.isnan(found.value)
            assert found.coverage == 0


def test_a_network_without_a_value_is_left_out_of_the_mean_and_shows_in_the_coverage() -> None:
    apart = np.abs(np.subtract.outer(range(4), range(4))).astype(float)
    given = evidence(np.stack([apart, np.full((4, 4), np.nan)]), larger_is="less alike")
    for form in FORMS:
        assert layer_conformity(given, variant=form).value == 1
        assert layer_conformity(given, variant=form).coverage == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"larger_is": "closer"},
            "larger_is is 'closer'. Choose 'more alike' or 'less alike'.",
        ),
        (
            {"values": np.ones((3, 4))},
            "the values of cka are an array of shape (3, 4). Give one row and column per network, or such a square of "
            "layers per network.",
        ),
        (
            {"truths": {"jsd": np.ones((4, 4))}},
            "'jsd' is an array of shape (4, 4), and the values of cka are an array of shape (3, 3). Give both the same "
            "networks.",
        ),
        ({"groups": ("a", "b")}, "there are 2 groups for 3 networks. Name the group of each network."),
    ],
)
def test_evidence_that_does_not_fit_together_is_refused(given: dict[str, object], message: str) -> None:
    usual = {"measure": "cka", "larger_is": "more alike", "symmetric": True, "values": np.ones((3, 3))}
    with pytest.raises(InputError) as error:
        Evidence(**{**usual, **given})  # type: ignore[arg-type]
    assert str(error.value) == message


@pytest.mark.parametrize(("spread", "undefined"), [(1e-15, True), (1e-6, False)])
def test_values_that_differ_by_rounding_alone_correlate_with_nothing(spread: float, undefined: bool) -> None:
    apart = np.abs(np.subtract.outer([0, 1, 3, 7], [0, 1, 3, 7])).astype(float)
    given = Evidence("regression", "more alike", True, 1 - spread * apart, truths={"accuracy": apart})
    assert np.isnan(spearman(given, "accuracy").value) == undefined
