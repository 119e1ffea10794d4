"""The most alike layers of two networks compared with the most alike ones of shuffled inputs."""

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.matrices.layers import LayerMatrix
from likewise.measures.numerics.minibatch import MinibatchCKA
from tests.helpers import sentence


class Half(nn.Module):
    """A deep network that sees only some columns of its inputs, so that two of them share nothing."""

    def __init__(self, columns: slice, depth: int = 4) -> None:
        super().__init__()
        self.columns = columns
        self.steps = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(depth)))

    def forward(self, x):
        return self.steps(x[:, self.columns])


def two_nets(seed=0):
    torch.manual_seed(seed)
    return Half(slice(0, 6)), Half(slice(6, 12))


def rows_of(net, inputs):
    return [view.values.numpy() for view in likewise.extract(net, inputs, "steps.?", progress=False).values()]


def null_by_loops(left, right, measure, shuffles, seed):
    """All layers of the second network in one order; scores of bare arrays."""
    rng, n = np.random.default_rng(seed), len(left[0])
    orders = [rng.permutation(n) for _ in range(shuffles)]
    return np.array([[[likewise.compare(x, y[order], measure) for y in right] for x in left] for order in orders])


@pytest.mark.parametrize("name", ["cka", "procrustes", "mutual-knn", "linear-regression"])
def test_the_null_of_the_most_alike_layers_by_plain_loops(name) -> None:
    nets, inputs = two_nets(), torch.randn(40, 12)
    matrix = likewise.layerwise(
        *nets, inputs, measure=name, layers="steps.?", calibrate=12, seed=3, memory="50MB", progress=False
    )
    nulls = null_by_loops(*(rows_of(net, inputs) for net in nets), name, 12, 3)
    sign = 1 if matrix.larger_is == "more alike" else -1
    most = sign * (sign * nulls).reshape(12, -1).max(axis=1)
    best = sign * (sign * matrix.values).max()
    maximum = matrix.maximum
    assert (maximum["value"], maximum["null_mean"]) == pytest.approx((best, most.mean()))
    assert matrix[maximum["row"], maximum["column"]] == best
    assert maximum["p"] == (1 + (sign * most >= sign * best).sum()) / 13
    assert matrix.extra["p"] == pytest.approx((1 + (sign * nulls >= sign * matrix.values).sum(axis=0)) / 13)
    beyond = sign * most[:, None, None] >= sign * matrix.values
    assert matrix.extra["p_search"] == pytest.approx((1 + beyond.sum(axis=0)) / 13)
    assert matrix.extra["null_mean"] == pytest.approx(nulls.mean(axis=0))


@pytest.mark.parametrize("rows_per_input", [1, 3])
def test_the_streamed_null_shuffles_whole_inputs_within_batches_for_all_layers_alike(rows_per_input) -> None:
    rng = np.random.default_rng(0)
    batches = [
        [[torch.from_numpy(rng.normal(size=(n, d))) for d in widths] for widths in ((4, 6), (5, 3, 7))]
        for n in (12, 18)
    ]
    sums = MinibatchCKA(5, seed=2)
    for a, b in batches:
        sums.add(a, b, rows_per_input=rows_per_input)
    starts, orders = (0, 12), []
    for start, (a, _) in zip(starts, batches, strict=True):
        draw = np.random.default_rng([2, start])
        blocks = np.arange(len(a[0])).reshape(-1, rows_per_input)
        orders.append([blocks[draw.permutation(len(blocks))].ravel() for _ in range(5)])
    for k in range(5):
        plain = MinibatchCKA()
        for (a, b), batch_orders in zip(batches, orders, strict=True):
            plain.add(a, [rows[batch_orders[k]] for rows in b])
        assert sums.nulls()[k].numpy() == pytest.approx(plain.values().numpy())


def test_a_search_over_layers_of_unrelated_networks_finds_nothing_beyond_chance() -> None:
    """Of 60 pairs: each layer alone would call many alike, the most alike one about one in twenty."""
    alone = searched = 0
    for seed in range(60):
        inputs = torch.randn(40, 12, generator=torch.Generator().manual_seed(seed))
        matrix = likewise.layerwise(*two_nets(seed), inputs, layers="steps.?", calibrate=19, seed=seed, progress=False)
        alone += bool((matrix.extra["p"] <= 0.05).any())
        searched += matrix.maximum["p"] <= 0.05
    assert alone >= 9
    assert searched <= 8  # of 60 at 5 %: more in one of 250 runs


def test_clips_change_places_as_a_whole_and_a_series_is_shifted() -> None:
    """Unrelated networks on clips: input by input nearly all pairs of networks would be called alike."""
    labels, clips, frames = np.repeat(np.arange(20), 5), 0, 0
    for seed in range(30):
        draw = torch.Generator().manual_seed(seed)
        inputs = torch.randn(20, 12, generator=draw).repeat_interleave(5, 0) + 0.3 * torch.randn(
            100, 12, generator=draw
        )
        show = {"layers": "steps.?", "calibrate": 19, "seed": seed, "progress": False}
        matrix = likewise.layerwise(*two_nets(seed), inputs, clusters=labels, **show)
        clips += matrix.maximum["p"] <= 0.05
        if seed < 8:
            frames += likewise.layerwise(*two_nets(seed), inputs, **show).maximum["p"] <= 0.05
    assert "the most alike of shuffled 20 clusters of inputs have" in str(matrix)
    assert frames >= 6
    assert clips <= 5  # of 30 at 5 %: more in one of 300 runs


@pytest.mark.parametrize("units", ["clusters", "series"])
def test_the_null_of_clusters_and_series_by_plain_loops(units) -> None:
    nets, inputs = two_nets(), torch.randn(40, 12)
    options = {"clusters": np.repeat(np.arange(10), 4)} if units == "clusters" else {"series": True}
    matrix = likewise.layerwise(*nets, inputs, layers="steps.?", calibrate=8, seed=5, progress=False, **options)
    left, right = (rows_of(net, inputs) for net in nets)
    rng = np.random.default_rng(5)
    if units == "clusters":
        orders = [np.arange(40).reshape(10, 4)[rng.permutation(10)].ravel() for _ in range(8)]
    else:
        orders = [np.roll(np.arange(40), shift) for shift in 1 + rng.permutation(39)[:8]]
    nulls = np.array([[[likewise.compare(x, y[order]) for y in right] for x in left] for order in orders])
    assert matrix.extra["null_mean"] == pytest.approx(nulls.mean(axis=0))
    assert matrix.maximum["null_mean"] == pytest.approx(nulls.reshape(8, -1).max(axis=1).mean())
    assert matrix.values == pytest.approx(np.array([[likewise.compare(x, y) for y in right] for x in left]))


def test_the_verdict_is_told_saved_and_read_again(tmp_path) -> None:
    nets, inputs = two_nets(), torch.randn(60, 12)
    apart = likewise.layerwise(*nets, inputs, layers="steps.?", calibrate=39, progress=False)
    twins = likewise.layerwise([nets[0], nets[0]], data=inputs, layers="steps.?", calibrate=39, progress=False)
    assert ", 1, more than chance over all 16 pairs of layers: the most alike of shuffled inputs have 0." in str(twins)
    assert str(twins).endswith("calibrated 1, p = 0.025 from 39 shuffles")
    assert ", no more than chance over all 16 pairs of layers: " in str(apart)
    read = LayerMatrix.load(twins.save(tmp_path / "m"))
    assert read.maximum == twins.maximum
    assert np.array_equal(read.extra["p_search"], twins.extra["p_search"])
    assert str(read) == str(twins)


def test_what_has_no_null_is_refused() -> None:
    nets, inputs = two_nets(), torch.randn(40, 12)
    assert sentence(ValueError, likewise.layerwise, nets[0], data=inputs, calibrate=True) == (
        "layers of one network are always alike. Leave calibrate out, or name another network."
    )
    assert sentence(ValueError, likewise.layerwise, *nets, inputs, measure="imd", calibrate=True) == (
        "imd has no null: it does not look at single inputs, so shuffling them gives no null. Leave calibrate out, or "
        "choose another measure."
    )
    assert sentence(ValueError, likewise.layerwise, *nets, inputs, calibrate="yes") == (
        "calibrate must be True, False or a number of shuffles, got 'yes'."
    )
    assert sentence(ValueError, likewise.layerwise, *nets, inputs, series=True) == (
        "clusters and series are for chance. Pass calibrate=True too."
    )
    assert sentence(ValueError, likewise.layerwise, *nets, inputs, clusters=[0] * 40, calibrate=True) == (
        "clusters puts all inputs into one cluster, so none can change places. Give several."
    )
