"""Inputs that belong together: clusters change places and are left out as a whole, a series is shifted in a circle."""

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison.intervals import Groups
from likewise.comparison.units import Units, units_of
from likewise.errors import InputError, UndefinedError
from likewise.views import Activations, Outputs

CLIPS = np.repeat(np.arange(20), 10)


def clips(seed, labels=CLIPS, width=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(labels.max() + 1, width))[labels] + 0.3 * rng.normal(size=(len(labels), width))


def autoregressive(seed, n=800, width=5, memory=0.8):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, width))
    for step in range(1, n):
        values[step] = memory * values[step - 1] + (1 - memory**2) ** 0.5 * values[step]
    return values


def test_whole_clusters_take_the_place_of_others_of_their_size() -> None:
    labels = np.array([4, 4, 9, 9, 9, 4, 7, 7, 7, 1, 1, 1, 3, 3, 3])
    units = units_of([Activations(np.eye(15))], clusters=labels)
    seen = set()
    for order in units.orders(200, 0):
        assert sorted(order) == list(range(15))
        for label in np.unique(labels):
            rows = order[labels == label]
            assert len(set(labels[rows])) == 1
            assert (np.diff(rows) > 0).all()  # frame by frame
        seen.add(tuple(labels[order]))
    assert len(seen) > 60  # of 120


def test_clusters_of_unequal_size_keep_to_their_size_and_to_labels() -> None:
    labels = np.repeat(np.arange(12), [2, 3] * 6)
    within = np.repeat(np.arange(12) // 6, [2, 3] * 6)
    units = units_of([Activations(np.eye(30))], clusters=labels, within=within)
    for order in units.orders(50, 0):
        assert (np.bincount(labels)[labels[order]] == np.bincount(labels)[labels]).all()
        assert (within[order] == within).all()


def test_clusters_of_one_input_are_inputs() -> None:
    x, y = clips(0), clips(1)
    alone = likewise.calibrate(x, y, permutations=19)
    assert likewise.calibrate(x, y, permutations=19, clusters=[f"clip {i}" for i in range(200)]) == alone
    assert likewise.bootstrap(x, y, clusters=np.arange(200)) == likewise.bootstrap(x, y)


def test_unrelated_networks_on_clips_are_alike_no_more_often_than_chance() -> None:
    small = {"inputs": 0, "clusters": 0, "unequal": 0}
    sizes = np.repeat(np.arange(24), [4, 8, 12] * 8)
    for seed in range(60):
        x, y = clips(2 * seed), clips(2 * seed + 1)
        small["inputs"] += likewise.calibrate(x, y, "cka", permutations=19).p <= 0.05
        small["clusters"] += likewise.calibrate(x, y, "cka", permutations=19, clusters=CLIPS).p <= 0.05
        x, y = clips(2 * seed, sizes), clips(2 * seed + 1, sizes)
        small["unequal"] += likewise.calibrate(x, y, "cka", permutations=19, clusters=sizes).p <= 0.05
    assert small["inputs"] == 60
    assert max(small["clusters"], small["unequal"]) <= 8  # of 60 at 5 %: at most 8 in 99 of 100 runs


def test_an_interval_leaves_whole_clusters_out() -> None:
    split = Groups.of(units_of([Activations(np.zeros((200, 1)))], clusters=CLIPS), 25, 0)
    assert split.count == 20
    for kept, gone in zip(split.remaining(), [10] * 20 + [20] * 20, strict=True):
        assert len(kept) == 200 - gone
        assert set(np.bincount(CLIPS[kept], minlength=20)) == {0, 10}


def test_the_interval_of_a_mean_over_clusters_is_that_of_their_means() -> None:
    """Of a score that is a mean over inputs, the jackknife over clusters is the t interval of the cluster means."""
    from scipy import stats

    agree = (np.random.default_rng(0).random(20) < 0.5)[CLIPS] ^ (np.random.default_rng(1).random(200) < 0.1)
    logits = [np.eye(2)[np.zeros(200, int)], np.eye(2)[(~agree).astype(int)]]
    result = likewise.bootstrap(*logits, "disagreement", clusters=CLIPS)
    means = (~agree).reshape(20, 10).mean(axis=1)
    reach = stats.t(19).ppf(0.975) * means.std(ddof=1) / 20**0.5
    # on the scale of log-odds, of which this is the first order
    ends = np.log([result.low / (1 - result.low), result.high / (1 - result.high)])
    value = result.value
    assert (ends[1] - ends[0]) / 2 == pytest.approx(reach / (value * (1 - value)), rel=0.02)


def test_a_series_is_shifted_in_a_circle_at_most_once_by_each_number_of_steps() -> None:
    units = Units(np.arange(50), memory=1.0)
    orders = list(units.orders(200, 0))
    assert len(orders) == len({tuple(order) for order in orders}) == 49
    assert all((np.diff(order) % 50 == 1).all() for order in orders)
    result = likewise.calibrate(*np.random.default_rng(0).normal(size=(2, 50, 3)), permutations=200, series=True)
    assert result.permutations == 49


def test_unrelated_series_are_alike_no_more_often_than_chance() -> None:
    small = {"inputs": 0, "series": 0}
    for seed in range(40):
        x, y = autoregressive(2 * seed), autoregressive(2 * seed + 1)
        small["inputs"] += likewise.calibrate(x, y, "cka", permutations=19).p <= 0.05
        small["series"] += likewise.calibrate(x, y, "cka", permutations=19, series=True).p <= 0.05
    assert small["inputs"] > 30
    assert small["series"] <= 6  # of 40 at 5 %: at most 6 in 99 of 100 runs


def test_stretches_of_a_series_are_longer_than_it_takes_to_forget() -> None:
    views = [Activations(autoregressive(0)), Activations(np.random.default_rng(0).normal(size=(800, 4)))]
    units = units_of(views, series=True)
    assert units.memory == pytest.approx(9, rel=0.4)  # (1 + 0.8) / (1 - 0.8)
    split = Groups.of(units, 25, 0)
    assert all((np.diff(np.sort(members)) == 1).all() for members in split.members)
    assert split.members.shape[1] >= 2 * units.memory


def test_frames_of_several_rows_are_the_steps_of_a_series() -> None:
    units = units_of([Activations(autoregressive(0).repeat(2, axis=0))], clusters=np.arange(1600) // 2, series=True)
    assert units.count == 800
    assert units.memory == pytest.approx(9, rel=0.4)
    order = next(units.orders(1, 0))
    assert (order.reshape(-1, 2) % 2 == [0, 1]).all()


def test_tables_and_matrices_follow_a_pair() -> None:
    x, y = clips(0), clips(0) + clips(1)
    pair = likewise.calibrate(x, y, "cka", permutations=19, clusters=CLIPS)
    matrix = likewise.compare({"a": x, "b": y}, "cka", calibrate=19, intervals=True, clusters=torch.tensor(CLIPS))
    assert matrix.extra["p"][0, 1] == pair.p
    assert matrix.extra["null_mean"][0, 1] == pytest.approx(pair.null_mean)
    interval = likewise.bootstrap(x, y, "cka", clusters=CLIPS)
    assert matrix.extra["low"][0, 1] == pytest.approx(interval.low)
    assert likewise.compare(x, y, "cka", calibrate=19, clusters=CLIPS).calibration.null_mean == pytest.approx(
        pair.null_mean
    )


def test_results_say_what_was_shuffled_and_left_out() -> None:
    x, y = clips(0), clips(0) + clips(1)
    score = likewise.compare(x, y, "cka", calibrate=19, clusters=CLIPS)
    assert "; 20 clusters of inputs shuffled give " in str(score.calibration)
    assert score.explain().endswith("(p = 0.1 from 19 shuffles of the 20 clusters of inputs).")
    matrix = likewise.compare({"a": x, "b": y}, "cka", calibrate=19, clusters=CLIPS)
    assert any("from 19 shuffles of the 20 clusters of inputs" in line for line in matrix.legend())
    assert likewise.bootstrap(x, y, clusters=CLIPS).method == "jackknife over groups of 20 clusters of inputs"
    remembered = [Activations(values, clusters=CLIPS) for values in (x, y)]
    assert "shuffles of the 20 clusters of inputs" in likewise.compare(*remembered, "cka").explain()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"clusters": np.arange(7)}, "clusters has the shape (7,) for 200 inputs. Pass one label per input."),
        ({"clusters": "clips"}, "clusters='clips' is no list of labels. Pass one label per input."),
        ({"clusters": [0.0, np.nan] * 100}, "clusters has 100 labels that are NaN. Pass one number or word per input."),
        (
            {"clusters": [1] * 200},
            "clusters puts all inputs into one cluster, so none can change places. Give several.",
        ),
        (
            {"clusters": np.repeat(np.arange(8), [5, 6, 7, 8, 9, 10, 75, 80])},
            "0 of the 8 clusters have another of the same size to change places with, which is too few for a null. "
            "Keep equally many inputs of every cluster, or show more clusters.",
        ),
        (
            {"series": True, "within": CLIPS},
            "series=True shifts inputs in time, and within would keep them in place. Leave one out.",
        ),
        ({"series": "yes"}, "series must be True or False, got 'yes'."),
    ],
)
def test_units_that_cannot_be_are_refused(options, sentence) -> None:
    x, y = clips(0), clips(1)
    with pytest.raises(InputError) as error:
        likewise.calibrate(x, y, **options)
    assert str(error.value) == sentence


def test_what_is_too_short_or_too_few_for_an_interval_is_refused() -> None:
    with pytest.raises(InputError) as error:
        likewise.bootstrap(clips(0), clips(1), clusters=np.arange(200) // 40)
    assert str(error.value) == "there are 5 clusters of inputs, and an interval needs 8. Show the networks more."
    with pytest.raises(InputError) as error:
        likewise.bootstrap(clips(0), clips(1), "rsa", clusters=np.maximum(np.arange(200) - 120, 0))
    assert str(error.value) == (
        "the largest of the 80 clusters holds 121 of the 200 inputs, so that an interval would rest on few of them. "
        "Keep about equally many inputs of every cluster."
    )
    x, y = (autoregressive(seed, n=100, memory=0.95) for seed in range(2))
    for function, what in ((likewise.bootstrap, "an interval"), (likewise.calibrate, "a null")):
        with pytest.raises(InputError) as error:
            function(x, y, series=True)
        assert str(error.value) == (
            "the 100 steps of the series make about 6.2 independent ones, since it takes 16 to forget, and "
            f"{what} needs 20. Show more of the series."
        )


def test_clusters_that_nothing_would_use_are_refused() -> None:
    for options in ({"clusters": CLIPS}, {"series": True}):
        with pytest.raises(InputError) as error:
            likewise.compare(clips(0), clips(1), **options)
        assert str(error.value) == (
            "clusters and series are for chance and intervals. Pass calibrate=True or intervals=True too."
        )


def test_a_confounder_has_no_null_for_clusters() -> None:
    measure = measures.get("cka-deconfounded", confounder=clips(2)[:, :2])
    with pytest.raises(UndefinedError) as error:
        likewise.calibrate(clips(0), clips(1), measure, clusters=CLIPS)
    assert str(error.value) == (
        "cka-deconfounded has no null for inputs that belong together: what a confounder leaves is shuffled input by "
        "input. Show one input of every cluster."
    )


def test_mistakes_keep_to_labels_inside_clusters() -> None:
    labels = np.tile([0, 1, 2, 1, 0], 40)
    views = [
        Activations(values, outputs=Outputs(values, labels))
        for values in np.random.default_rng(0).normal(size=(2, 200, 3))
    ]
    result = likewise.calibrate(*views, "same-mistake", permutations=9, clusters=np.arange(200) // 5)
    assert result.groups == 3
