"""Off the CPU: every measure gives there what it gives here, whatever precision the device has.

`test_devices.py` runs this file in a process of its own: a device stays registered, and torch then prefers it.
"""

import copy
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.measures.registry import MEASURES
from likewise.views import Activations, Outputs
from likewise.views.layers import layers
from tests.device import registered

N = 60
CONFOUNDER = np.random.default_rng(1).normal(size=(N, 3))
FORMS = [
    form.bind(confounder=CONFOUNDER) if form.missing_options else form
    for m in MEASURES
    if m.info.on != "networks"
    for form in (m, *m.variants.values())
]


@pytest.fixture
def accelerator() -> Iterator[str]:
    """The name of a device that is not the CPU, and has double precision as CUDA has."""
    yield from registered(double=True)


@pytest.fixture
def accelerator_without_double() -> Iterator[str]:
    """The same of one without double precision, as Apple's GPUs are."""
    yield from registered(double=False)


def views(device="cpu", second="cpu"):
    rng = np.random.default_rng(0)
    hidden, labels = rng.normal(size=(N, 6)), rng.integers(0, 4, N)
    made = []
    for width, place in ((8, device), (9, second)):
        values = hidden @ rng.normal(size=(6, width)) + 0.5 * rng.normal(size=(N, width))
        logits = 2 * np.eye(4)[labels] + rng.normal(size=(N, 4))
        outputs = Outputs(torch.from_numpy(logits).float().to(place), labels)
        made.append(Activations(torch.from_numpy(values).float().to(place), name=f"d{width}", outputs=outputs))
    return made


def score(measure, pair):
    try:
        return float(likewise.compare(*pair, measure))
    except likewise.errors.UndefinedError as error:
        return str(error)


def network(seed):
    torch.manual_seed(seed)
    parts = nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    return nn.Sequential(*parts).eval()


IMAGES = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def same(value, expected):
    return value == expected if isinstance(expected, str) else value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("measure", FORMS, ids=lambda m: m.key)
def test_a_score_is_the_same_on_every_device(measure, accelerator) -> None:
    expected = score(measure, views())
    assert same(score(measure, views(accelerator, accelerator)), expected)
    assert same(score(measure, views(accelerator, "cpu")), expected)


def test_a_device_without_double_precision_leaves_measures_to_the_cpu(accelerator_without_double) -> None:
    pair = views(accelerator_without_double, accelerator_without_double)
    assert {view.values.device.type for view in pair} == {view.outputs.logits.device.type for view in pair} == {"cpu"}
    for measure in ("cka", "aligned-cosine", "imd", "mutual-knn", "jsd"):
        assert same(score(measure, pair), score(measure, views()))
    counts = torch.arange(20).reshape(10, 2).to(accelerator_without_double)  # whole numbers become double
    assert likewise.compare(counts, counts.cpu(), "cka") == 1


def test_many_views_on_several_devices_are_compared(accelerator) -> None:
    x, y = views()
    expected = likewise.compare({"a": x, "b": y, "c": x}, ["cka", "rsa", "jaccard"], progress=False)
    moved = {"a": x.to(accelerator), "b": y, "c": x.to(accelerator)}
    for key, matrix in likewise.compare(moved, ["cka", "rsa", "jaccard"], progress=False).items():
        np.testing.assert_allclose(matrix.values, expected[key].values, rtol=1e-12)


@pytest.mark.parametrize("key", ["cka-debiased", "procrustes", "mutual-knn"])
def test_nulls_and_intervals_follow_the_views(key, accelerator) -> None:
    here, there = views(), views(accelerator, accelerator)
    p = [likewise.calibrate(*pair, key, permutations=19).p for pair in (here, there)]
    assert p[0] == p[1]
    low = [likewise.bootstrap(*pair, key).low for pair in (here, there)]
    assert low[1] == pytest.approx(low[0], rel=1e-9)


@pytest.mark.parametrize("double", [True, False])
def test_networks_on_two_devices_are_compared_layer_by_layer(double, request) -> None:
    device = request.getfixturevalue("accelerator" if double else "accelerator_without_double")
    a, b = network(0), network(1)
    expected = likewise.layerwise(a, b, IMAGES, layers="all", progress=False).values
    for here, there in ((a, b), (copy.deepcopy(a).to(device), b), (a, copy.deepcopy(b).to(device))):
        values = likewise.layerwise(here, there, IMAGES, layers="all", progress=False).values
        np.testing.assert_allclose(values, expected, rtol=1e-5)


@pytest.mark.parametrize("double", [True, False])
def test_the_difference_of_networks_on_two_devices_is_that_on_one(double, request) -> None:
    device = request.getfixturevalue("accelerator" if double else "accelerator_without_double")
    a, b = network(0), copy.deepcopy(network(0))
    with torch.no_grad():
        b[2].weight += 0.1
    expected = likewise.diff(a, b, IMAGES, progress=False)
    moved = likewise.diff(copy.deepcopy(a).to(device), b, IMAGES, progress=False)
    assert moved.verdict == expected.verdict
    assert moved.weights.changed == expected.weights.changed
    assert [layer.name for layer in layers(copy.deepcopy(a).to(device), IMAGES)] == [
        layer.name for layer in layers(a, IMAGES)
    ]
