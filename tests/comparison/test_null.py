"""What chance gives: shuffles within groups, measures that shuffling says nothing of, and confounders.

Networks that share the confounder only are no more alike than chance.
"""

import math

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison.null import ConfounderNull, null_draws
from likewise.comparison.schedule import Resources
from likewise.comparison.significance import calibrate_matrices
from likewise.comparison.units import Units
from likewise.errors import InputError, UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.views import Activations, Outputs

LABELS = np.repeat(np.arange(10), 20)
UNPAIRED = [m.name for m in select("all") if not m.info.paired]


def sharing_only_classes(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(10, 12))[LABELS] + 0.7 * rng.normal(size=(200, 12)) for _ in range(2)]


def test_a_shuffle_within_groups_keeps_every_input_in_its_group() -> None:
    groups = np.random.default_rng(0).integers(0, 5, size=60)
    orders = list(Units(np.arange(60), groups).orders(20, 1))
    for order in orders:
        assert sorted(order) == list(range(60))
        assert (groups[order] == groups).all()
    assert len({tuple(order) for order in orders}) == 20


def test_each_order_within_a_group_is_as_likely_as_any_other() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for order in Units(np.arange(5), np.array([0, 1, 0, 1, 0])).orders(6000, 0):
        counts[tuple(order[[0, 2, 4]])] = counts.get(tuple(order[[0, 2, 4]]), 0) + 1
    assert len(counts) == 6
    assert max(abs(n - 1000) for n in counts.values()) < 150  # five standard deviations


def test_networks_that_share_classes_only_are_alike_but_not_within_classes() -> None:
    small = {"all": 0, "within": 0}
    for seed in range(40):
        x, y = sharing_only_classes(seed)
        small["all"] += likewise.calibrate(x, y, "cka", permutations=39).p <= 0.05
        small["within"] += likewise.calibrate(x, y, "cka", permutations=39, within=LABELS).p <= 0.05
    assert small["all"] == 40
    assert small["within"] <= 6  # of 40 at 5 %: at most 6 in 99 of 100 runs


def test_labels_may_be_the_views_own() -> None:
    x, y = sharing_only_classes(0)
    views = [Activations(v, outputs=Outputs(v, LABELS), name=n) for v, n in ((x, "a"), (y, "b"))]
    own = likewise.calibrate(*views, "cka", permutations=19, within="labels")
    given = likewise.calibrate(x, y, "cka", permutations=19, within=torch.from_numpy(LABELS))
    assert (own.null_mean, own.p) == (given.null_mean, given.p)
    assert own.groups == 10
    assert str(own).startswith(f"cka = {own.value:.4g}; inputs shuffled within 10 groups give ")


def test_a_matrix_and_a_pair_are_shuffled_within_groups_alike() -> None:
    x, y = sharing_only_classes(0)
    pair = likewise.calibrate(x, y, "cka", permutations=19, within=LABELS)
    table = likewise.calibrate({"a": x, "b": y}, measure="cka", permutations=19, within=LABELS)
    assert table.null_mean[0, 1] == pytest.approx(pair.null_mean)
    a, b = (Representation(Activations(v)) for v in (x, y))
    scores = list(null_draws(Pair(a, b), measures.get("cka"), 19, 0, within=LABELS))
    assert np.mean(scores) == pytest.approx(pair.null_mean)
    matrices = likewise.compare({"a": x, "b": y}, ["cka"])
    cka = measures.get("cka")
    made = calibrate_matrices(
        dict(matrices),
        [Activations(v) for v in (x, y)],
        [cka],
        Resources(10**9),
        seed=0,
        permutations=19,
        within=LABELS,
    )
    assert made["cka"].extra["null_mean"][0, 1] == pytest.approx(pair.null_mean)


def wrong_answers(seed, n=200, classes=5):
    """Two networks that guess, and the labels they are held against."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, n, classes)), rng.integers(0, classes, size=n)


def test_mistakes_are_shuffled_among_inputs_of_one_label() -> None:
    """Networks that guess among five classes share one in four mistakes; across labels it was 3 / 16."""
    means, small = [], 0
    for seed in range(60):
        logits, labels = wrong_answers(seed)
        result = likewise.calibrate(*logits, measures.get("same-mistake", labels=labels), permutations=19)
        means.append(result.null_mean)
        small += result.p <= 0.05
    assert np.mean(means) == pytest.approx(0.25, abs=0.01)
    assert small <= 9  # of 60 at 5 %: more in one of 500 runs; across labels it was about 18


def test_mistakes_keep_to_labels_in_tables_printed_scores_and_other_groups() -> None:
    logits, labels = wrong_answers(0)
    views = [Activations(v, outputs=Outputs(v, labels), name=n) for v, n in zip(logits, "ab", strict=True)]
    alone = likewise.calibrate(*views, "same-mistake", permutations=19)
    assert alone.groups == 5
    table = likewise.calibrate({"a": views[0], "b": views[1]}, measure="same-mistake", permutations=19)
    assert table.null_mean[0, 1] == pytest.approx(alone.null_mean)
    pair = Pair(*(Representation(v) for v in views))
    assert np.mean(list(null_draws(pair, measures.get("same-mistake"), 19, 0))) == pytest.approx(alone.null_mean)
    halves = np.arange(200) % 2
    assert likewise.calibrate(*views, "same-mistake", permutations=5, within=halves).groups == 10
    assert likewise.calibrate(*views, "disagreement", permutations=5).groups == 0


@pytest.mark.parametrize(
    ("within", "sentence"),
    [
        (
            np.arange(7),
            "within has the shape (7,) for 200 inputs. Pass one label per input.",
        ),
        ([[1, 2], [3]] * 100, "within cannot be read as labels. Pass one number or word per input."),
        ([None] * 200, "within cannot be read as labels. Pass one number or word per input."),
        ([{"a": 1}] * 200, "within cannot be read as labels. Pass one number or word per input."),
        (torch.zeros(200).to_sparse(), "within is a tensor of layout sparse_coo. Pass its to_dense()."),
        (
            torch.zeros(200, device="meta"),
            "within is on the device 'meta', where tensors have no values. Compute it on another.",
        ),
        ("classes", "within='classes' is no list of labels. Pass one label per input, or 'labels' for the views' own."),
        (
            np.arange(200),
            "within gives each of the 200 inputs a label of its own, so none can change places. "
            "Pass labels that several inputs share.",
        ),
        (
            "labels",
            "within='labels' needs the true labels of the inputs, and no view has them. Pass "
            "within=<one label per input>, or views with Outputs(logits, labels).",
        ),
    ],
)
def test_groups_that_cannot_be_are_refused(within, sentence) -> None:
    with pytest.raises(InputError) as error:
        likewise.calibrate(*sharing_only_classes(0), "cka", permutations=9, within=within)
    assert str(error.value) == sentence


def test_views_that_differ_on_the_labels_are_refused() -> None:
    x, y = sharing_only_classes(0)
    views = [
        Activations(v, outputs=Outputs(v[:, :5], labels), name=name)
        for v, labels, name in ((x, LABELS % 5, "a"), (y, LABELS[::-1] % 5, "b"))
    ]
    with pytest.raises(InputError) as error:
        likewise.calibrate(*views, "cka", permutations=9, within="labels")
    assert str(error.value) == (
        "'a' and 'b' have different labels for the same inputs. Pass within=<one label per input>."
    )


@pytest.mark.parametrize("name", UNPAIRED)
def test_a_measure_blind_to_single_inputs_has_no_null(name) -> None:
    x, y = np.abs(np.random.default_rng(0).normal(size=(2, 60, 6)))
    result = likewise.calibrate(x, y, name, permutations=9)
    numbers = (result.null_mean, result.null_quantile, result.calibrated, result.p)
    assert np.isnan(numbers).all()
    assert str(result) == (
        f"{name} = {result.value:.4g}; it does not look at single inputs, so shuffling them gives no null."
    )
    table = likewise.compare({"a": x, "b": y, "c": x + y}, [name], calibrate=True).to_frame()
    assert table[["null_mean", "null_quantile", "calibrated", "p"]].isna().all(axis=None)


def test_answers_that_are_not_looked_at_one_by_one_have_no_null() -> None:
    labels = np.random.default_rng(1).integers(0, 4, size=60)
    logits = np.random.default_rng(0).normal(size=(2, 60, 4))
    for name, options in (("accuracy-difference", {"labels": labels}), ("class-alignment", {})):
        result = likewise.calibrate(*logits, measures.get(name, **options), permutations=9)
        assert np.isnan(result.p)
        assert np.isnan(result.null_mean)
        assert "shuffling them gives no null" in str(result)


# Confounders


def related_through(inputs, rng, shared=0.0, d=12):
    """Two networks of the inputs with noise of their own, and perhaps some that they share."""
    hidden = rng.normal(size=(len(inputs), 3))
    return [
        np.tanh(inputs @ rng.normal(size=(inputs.shape[1], d)))
        + rng.normal(size=(len(inputs), d))
        + shared * hidden @ rng.normal(size=(3, d))
        for _ in range(2)
    ]


def share_of_small_p(shared, trials, width=3):
    small, rng = 0, np.random.default_rng(0)
    for _ in range(trials):
        inputs = rng.normal(size=(60, width))
        measure = measures.get("cka-deconfounded", confounder=inputs)
        small += likewise.calibrate(*related_through(inputs, rng, shared), measure, permutations=19).p <= 0.05
    return small / trials


def test_networks_related_through_the_confounder_only_are_chance() -> None:
    """Shuffled inputs gave p <= 0.05 in most of these pairs."""
    assert share_of_small_p(0.0, 120) <= 0.12  # three standard deviations above 0.05


def test_networks_related_beyond_the_confounder_are_found() -> None:
    assert share_of_small_p(0.8, 30) >= 0.8


def test_what_the_confounder_explains_stays_and_the_rest_keeps_its_size() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(50, 3))
    x = inputs @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(50, 6))
    null = ConfounderNull(inputs)
    rep = Representation(Activations(x))
    shuffled = null.shuffle(rep, np.random.default_rng(1)).values.numpy()
    design = np.c_[np.ones(50), inputs]
    fits = [np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, shuffled)]
    assert fits[0] == pytest.approx(fits[1])
    assert not np.allclose(x, shuffled)
    assert x.T @ x == pytest.approx(shuffled.T @ shuffled)


def test_classes_to_shuffle_within_count_as_explained() -> None:
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(60, 2)), np.repeat(np.arange(4), 15)
    x = rng.normal(size=(4, 5))[labels] + rng.normal(size=(60, 5))
    rep = Representation(Activations(x))
    shuffled = ConfounderNull(inputs, labels).shuffle(rep, rng).values.numpy()
    for label in range(4):
        own = labels == label
        assert shuffled[own].mean(axis=0) == pytest.approx(x[own].mean(axis=0))


def test_a_confounder_that_explains_everything_leaves_no_null() -> None:
    rng = np.random.default_rng(0)
    x, y, inputs = rng.normal(size=(3, 40, 35))
    measure = measures.get("cka-deconfounded", confounder=inputs)
    with pytest.raises(UndefinedError) as error:
        likewise.calibrate(x, y, measure, permutations=9)
    assert str(error.value) == (
        "the confounder has 35 independent directions on 40 inputs, so hardly anything of a network is left "
        "that it does not explain, and there is no null. Show the networks more inputs, or reduce the "
        "confounder to fewer features."
    )
    pair = Pair(*(Representation(Activations(v)) for v in (x, y)))
    assert np.isnan(list(null_draws(pair, measure, 5, 0))).all()
    table = likewise.compare({"a": x, "b": y}, [measure], calibrate=True).to_frame()
    assert table.p.isna().all()


def test_pairs_in_a_table_have_the_null_of_single_pairs() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(40, 3))
    views = dict(zip("ab", related_through(inputs, rng), strict=True))
    measure = measures.get("cka-deconfounded", confounder=inputs)
    alone = likewise.calibrate(views["a"], views["b"], measure, permutations=9)
    table = likewise.calibrate(views, measure=measure, permutations=9)
    assert table.null_mean[0, 1] == pytest.approx(alone.null_mean)


def test_shuffles_without_a_score_do_not_count() -> None:
    labels = np.arange(60) % 6
    a, b = labels.copy(), labels.copy()
    a[:4], b[3:7] = (labels[:4] + 1) % 6, (labels[3:7] + 2) % 6
    views = [Activations(np.eye(6)[v], outputs=Outputs(np.eye(6)[v], labels)) for v in (a, b)]
    result = likewise.calibrate(*views, "same-mistake", permutations=99)
    assert (result.value, result.p) == (0, 1)
    assert math.isfinite(result.null_mean)


@pytest.mark.parametrize("name", ["procrustes-size", "rsm-difference", "permutation-procrustes"])
def test_chance_does_not_depend_on_the_unit_of_measure(name) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 5))
    y = x + 0.3 * rng.normal(size=(80, 5))
    plain, small = (likewise.calibrate(s * x, s * y, name, permutations=49) for s in (1, 1e-12))
    assert small.p == plain.p == 0.02
    assert small.calibrated == pytest.approx(plain.calibrated)


def test_a_confounder_is_drawn_with_its_inputs_and_named_apart() -> None:
    rng = np.random.default_rng(0)
    x, y, inputs, others = rng.normal(size=(4, 60, 5))
    one, two = (measures.get("cka-deconfounded", confounder=c) for c in (inputs, others))
    interval = likewise.bootstrap(x, y, one, groups=20)
    assert interval.low < interval.value < interval.high
    assert len(likewise.compare({"a": x, "b": y}, [one, two])) == 2
