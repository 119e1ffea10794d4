"""Class similarity matrices: from whatever there is, with their classes, and back from a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import likewise
from likewise import classes, wordnet
from likewise.classes import (
    Inspector,
    alignment,
    from_confusion,
    from_features,
    from_logits,
    from_weights,
    from_wordnet,
)
from likewise.data import Data
from likewise.errors import InputError, LikewiseError, UnknownNameError
from tests.classes.helpers import METRICS, NAMES, NET, PATHS, SYNSETS, TEXTS, WEIGHTS, drawn, refusals, refused, warned

CLOSE = {"rtol": 0, "atol": 1e-12}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def cosines(rows: np.ndarray) -> list[list[float]]:
    return [[cosine(a, b) for b in rows] for a in rows]


test_an_error_is_a_sentence = refusals(
    (lambda: from_weights([1.0, 2.0, 3.0]), "weights must be (classes, width), got (3,). Pass one row per class."),
    (
        lambda: from_weights(np.ones((4, 3, 3, 3))),
        "weights must be (classes, width), got (4, 3, 3, 3). Pass one row per class.",
    ),
    (
        lambda: from_weights([["a", "b"], ["c", "d"]]),
        "the matrix of weights holds str32 entries, not numbers. Pass an array of one numeric type.",
    ),
    (
        lambda: from_weights(nn.Sequential(nn.ReLU())),
        "Sequential has no classifier that could be found: it has no layers with weights. Name the layer "
        "yourself: head='name' where it is asked for, or net.head_layer = 'name'. Or take class means: "
        "from_features(net, data), on the command line --data.",
    ),
    (
        lambda: from_weights(nn.Sequential(nn.Conv2d(3, 4, 3))),
        "Sequential has no classifier that could be found: its last layer with weights, '0', is a Conv2d. "
        "Name the layer yourself: head='name' where it is asked for, or net.head_layer = 'name'. Or take class means: "
        "from_features(net, data), on the command line --data.",
    ),
    (
        lambda: from_weights(nn.Sequential(nn.Linear(3, 4)), head="9"),
        "Sequential has no layer named '9'.",
        UnknownNameError,
    ),
    (
        lambda: from_confusion(np.zeros((2, 3))),
        "a confusion matrix is square, one row per true class; got (2, 3). Or pass labels and predictions.",
    ),
    (
        lambda: from_confusion([0, 1, 2, 1]),
        "a confusion matrix is square, one row per true class; got (4,). Or pass labels and predictions.",
    ),
    (
        lambda: from_confusion([[1, -1], [0, 2]]),
        "a confusion matrix holds counts; some entries are negative or not finite.",
    ),
    (
        lambda: from_confusion([0, 1, 1], [0, 1]),
        "predictions must be 3 whole numbers from 0, got int64 of shape (2,). Give one class index per input.",
    ),
    (
        lambda: from_confusion(np.zeros(0, int), np.zeros(0, int)),
        "there are no labels and no predictions. Give one of each per input.",
    ),
    (
        lambda: from_confusion([0, 1], [0.5, 1.0]),
        "predictions must be 2 whole numbers from 0, got float64 of shape (2,). Give one class index per input.",
    ),
    (
        lambda: from_confusion([0, 3], [0, 1], NAMES),
        "labels must be whole numbers from 0 to 2, got numbers from 0 to 3. Give one class index per input.",
    ),
    (
        lambda: from_confusion([0, 1], [0, -1]),
        "predictions must be 2 whole numbers from 0, got numbers from -1 to 0. Give one class index per input.",
    ),
    (
        lambda: from_features(np.ones((4, 2)), [0, 1, 1]),
        "labels must be 4 whole numbers from 0, got int64 of shape (3,). Give one class index per input.",
    ),
    (
        lambda: from_features(np.ones((0, 2)), np.zeros(0, int)),
        "features must be (inputs, width), got (0, 2). Give one row per input.",
    ),
    (
        lambda: from_features(np.ones((2, 2)), [1, 3], NAMES),
        "labels must be 2 whole numbers from 0 to 2, got numbers from 1 to 3. Give one class index per input.",
    ),
    (lambda: from_logits(np.ones((1, 3))), "logits must be (inputs, classes), at least two inputs; got (1, 3)."),
    (
        lambda: from_wordnet(Data("words", "text", ["a", "b"], [0, 1], ("good", "bad"))),
        "the names of classes do not tell what 'good' mean: 'good' may be good.n.01 (a kind of advantage.n.01), "
        "good.n.02 (a kind of morality.n.01), good.n.03 (a kind of quality.n.01), commodity.n.01 (a kind of "
        "artifact.n.01). Say which is meant, as in senses={'good': 'good.n.01'} or --sense 'good=good.n.01'.",
    ),
    (
        lambda: from_wordnet(["catt.n.01", "cat.n.01"]),
        "no synset 'catt.n.01' in WordNet 3.0. Did you mean 'catty.n.01'?",
        UnknownNameError,
    ),
    (
        lambda: from_wordnet(["mouse", "cat.n.01"]),
        "the noun 'mouse' has 4 senses in WordNet 3.0: mouse.n.01 (a kind of rodent.n.01), shiner.n.01 (a "
        "kind of bruise.n.01), mouse.n.03 (a kind of person.n.01), mouse.n.04 (a kind of "
        "electronic_device.n.01). Give the name or the id of the one that is meant.",
    ),
    (
        lambda: from_wordnet("cifar10", measure="paht"),
        "no measure of WordNet named 'paht'. Known are path, wup, lch. Did you mean 'path'?",
        UnknownNameError,
    ),
)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(1, 5))
def test_weights_give_the_cosines_of_a_plain_loop(seed: int, count: int, width: int) -> None:
    rows = drawn(count, width, seed=seed)
    found = from_weights(rows)
    np.testing.assert_allclose(found.values, cosines(rows), **CLOSE)
    assert (np.diag(found.values) == 1).all()
    assert np.array_equal(found.values, found.values.T)
    assert (found.kind, found.short, found.about) == ("weights", "NCSM", {"width": width})


def test_a_networks_last_layer_is_its_classifier_and_its_bias_says_nothing() -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    before = from_weights(net)
    np.testing.assert_allclose(before.values, cosines(net[2].weight.detach().numpy()), atol=1e-6)
    assert np.array_equal(before.values, from_weights(net[2].weight).values)
    with torch.no_grad():
        net[2].bias += torch.tensor([9.0, -9.0, 0.0, 100.0])
    assert np.array_equal(from_weights(net).values, before.values)


def test_another_layer_can_be_named() -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    found = from_weights(net, head="0")
    assert (len(found), found.about["width"]) == (8, 6)
    assert np.array_equal(found.values, from_weights(net[0].weight).values)


def test_a_convolution_of_one_pixel_is_a_classifier() -> None:
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 1), nn.AdaptiveAvgPool2d(1))
    flat = net[2].weight.detach()[:, :, 0, 0]
    assert np.array_equal(from_weights(net).values, from_weights(flat).values)
    assert np.array_equal(from_weights(net[2].weight).values, from_weights(flat).values)


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("make", "layer", "background"),
    [
        (lambda models: models.squeezenet1_1(weights=None, num_classes=7), "classifier.1", 0),
        (
            lambda models: models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
                weights=None, weights_backbone=None, num_classes=7
            ),
            "roi_heads.box_predictor.cls_score",
            1,
        ),
    ],
    ids=["squeezenet", "a detector"],
)
def test_networks_whose_classifier_is_not_the_last_linear_layer(make: Any, layer: str, background: int) -> None:
    from torchvision import models

    net = make(models)
    weight = net.get_submodule(layer).weight.flatten(1)[background:]
    assert len(from_weights(net)) == 7 - background
    assert np.array_equal(from_weights(net).values, from_weights(weight).values)
    assert np.array_equal(from_weights(net, head=layer).values, from_weights(weight).values)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_short_floats_are_read_exactly_and_multiplied_in_double(kind: torch.dtype) -> None:
    # 300 squared is beyond float16, so nothing may be computed in it
    weight = (300 * torch.from_numpy(drawn(5, 40))).to(kind)
    exact = weight.to(torch.float64).numpy()
    np.testing.assert_allclose(from_weights(weight).values, cosines(exact), **CLOSE)
    net = nn.Linear(40, 5).to(kind)
    net.weight.data = weight
    assert np.array_equal(from_weights(nn.Sequential(net)).values, from_weights(weight).values)
    if kind == torch.float16:
        assert np.array_equal(from_weights(weight.numpy()).values, from_weights(weight).values)


def test_parallel_weights_are_exactly_alike_and_opposite_ones_exactly_unlike() -> None:
    row = drawn(31)
    values = from_weights([row, 3 * row, -7 * row]).values
    assert values.max() == 1
    assert values.min() == -1
    np.testing.assert_allclose(values[0], [1, 1, -1], **CLOSE)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_labels_and_their_confusion_matrix_agree(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(count), draw.integers(0, count, 30)])
    answers = draw.integers(0, count, len(truth))
    table = [[0] * count for _ in range(count)]
    for right, answer in zip(truth, answers, strict=True):
        table[right][answer] += 1
    expected = [[1 if i == j else n / sum(row) for j, n in enumerate(row)] for i, row in enumerate(table)]
    names = [f"class {i}" for i in range(count)]
    from_labels = from_confusion(truth, answers, names)
    from_tensors = from_confusion(torch.tensor(truth), torch.tensor(answers), names)
    np.testing.assert_allclose(from_labels.values, expected, **CLOSE)
    assert np.array_equal(from_tensors.values, from_labels.values)
    assert np.array_equal(from_confusion(table).values, from_labels.values)
    assert (from_labels.short, from_labels.about) == ("CCSM-test", {"samples": len(truth)})


def test_mistakes_are_not_symmetric_and_rows_are_the_truth() -> None:
    found = from_confusion([[8, 2, 0], [0, 5, 5], [0, 0, 1]], classes=["cat", "dog", "ship"])
    assert (found["cat", "dog"], found["dog", "cat"]) == (0.2, 0.0)
    assert (found["dog", "ship"], found["ship", "dog"]) == (0.5, 0.0)


@pytest.mark.parametrize("by", ["rows", "all"])
def test_a_normalised_confusion_matrix_gives_the_same(by: str) -> None:
    table = np.array([[8.0, 2.0, 0.0], [1.0, 5.0, 4.0], [3.0, 3.0, 24.0]])
    shares = table / (table.sum(axis=1, keepdims=True) if by == "rows" else table.sum())
    np.testing.assert_allclose(from_confusion(shares).values, from_confusion(table).values, **CLOSE)


def test_the_split_of_mistakes_and_features_is_part_of_their_name() -> None:
    assert from_confusion([[1, 1], [1, 1]], split="train").short == "CCSM-train"
    assert from_confusion([[1, 1], [1, 1]], split=None).short == "CCSM"
    assert from_features(drawn(4, 3), [0, 0, 1, 1], split="train").short == "TNCSM-train"
    assert from_logits(drawn(4, 3)).short == "LCSM-test"


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 4))
def test_features_give_the_cosines_of_class_means(seed: int, count: int, width: int) -> None:
    draw = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(count), draw.integers(0, count, 15)])
    features = draw.normal(size=(len(labels), width)) + 1
    means = []
    for c in range(count):
        own = [row for row, label in zip(features, labels, strict=True) if label == c]
        means.append([sum(column) / len(own) for column in zip(*own, strict=True)])
    found = from_features(features, labels)
    np.testing.assert_allclose(found.values, cosines(np.array(means)), rtol=0, atol=1e-9)
    assert found.about == {"samples": len(labels), "width": width}
    tensors = from_features(torch.from_numpy(features), torch.from_numpy(labels))
    assert np.array_equal(tensors.values, found.values)


def test_a_network_and_data_give_the_class_means_of_what_its_classifier_is_given() -> None:
    images = torch.rand(9, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    data = Data("pets", "image", images, [0, 1, 2] * 3, NAMES, PATHS.wnids)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Linear(5, 7)).eval()
    found = from_features(net, data, progress=False)
    with torch.no_grad():
        expected = from_features(net[1](images.flatten(1)), data.labels, NAMES)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-6)
    assert (found.classes, found.wnids) == (NAMES, PATHS.wnids)
    about = {"samples": 9, "width": 5, "network": "Sequential", "layer": "penultimate"}
    assert found.about == about
    other = from_features(net, data, layers="0", progress=False)
    assert other.about == about | {"width": 12, "layer": "0"}
    assert refused(InputError, from_features, net, [images]) == (
        "class means are of data whose classes have names, got list. Give likewise.data.Data or an address, such as "
        "'imagefolder:PATH', or features and labels."
    )


def test_networks_and_views_give_what_their_arrays_give() -> None:
    images = torch.rand(9, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    data = Data("pets", "image", images, [0, 1, 2] * 3, NAMES, PATHS.wnids)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Linear(5, 3)).eval()
    view = likewise.extract(net, data, progress=False)
    logits, labels = view.outputs.logits, [0, 1, 2] * 3
    expected = {
        from_logits: from_logits(logits),
        from_confusion: from_confusion(labels, logits.argmax(dim=1)),
        from_features: from_features(view.values, labels),
    }
    for function, by_arrays in expected.items():
        by_network = function(net, data=data, progress=False)
        np.testing.assert_allclose(by_network.values, by_arrays.values, rtol=0, atol=1e-6)
        np.testing.assert_allclose(function(view).values, by_arrays.values, rtol=0, atol=1e-6)
    assert from_features(net, data=data, progress=False).classes == NAMES
    assert from_confusion(net, data=data, classes=NAMES, progress=False).classes == NAMES


def test_several_networks_give_one_similarity_each_by_name() -> None:
    widths = {"small": 5, "wide": 9}
    nets = {name: nn.Sequential(nn.Flatten(), nn.Linear(4, n), nn.Linear(n, 3)).eval() for name, n in widths.items()}
    both = from_weights(nets)
    assert list(both) == ["small", "wide"]
    for name, net in nets.items():
        np.testing.assert_array_equal(both[name].values, from_weights(net).values)
    named = from_weights(nets, head={"wide": "1"})
    assert {name: one.about["width"] for name, one in named.items()} == {"small": 5, "wide": 4}
    assert list(from_weights(list(nets.values()))) == ["Sequential", "Sequential#2"]
    data = Data("few", "image", torch.rand(9, 1, 2, 2), [0, 1, 2] * 3, NAMES)
    views = likewise.extract(nets, data, progress=False)
    by_view, by_net = from_logits(views), from_logits(nets, data=data, progress=False)
    for name in nets:
        np.testing.assert_allclose(by_view[name].values, by_net[name].values, atol=1e-6)
    layers = from_features(nets, data=data, layers={"wide": "0"}, progress=False)
    assert {name: one.about["width"] for name, one in layers.items()} == {"small": 5, "wide": 4}
    assert list(from_features([drawn(4, 2), drawn(4, 3)], [0, 0, 1, 1])) == ["0", "1"]
    assert refused(LikewiseError, from_weights, nets, batch_size=2) == (
        "from_weights has no use for batch_size. Leave it out."
    )


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        (
            from_logits,
            {},
            "Flatten is a network, and from_logits needs to know what to show it. Pass data=, like "
            "data='cifar10:test[:1000]'.",
        ),
        (from_logits, {"layers": "0"}, "from_logits has no use for layers. Leave it out."),
        (from_features, {"batchsize": 2}, "from_features has no option 'batchsize'. Did you mean 'batch_size'?"),
        (from_confusion, {"devise": "cpu"}, "from_confusion has no option 'devise'. Did you mean 'device'?"),
        (from_weights, {"data": "digits"}, "from_weights has no use for data. Leave it out."),
        (
            from_weights,
            {"head": {"a": "0"}},
            "from_weights looks at one network, so head is the name of its classifier. Give head='name'.",
        ),
    ],
)
def test_an_option_that_cannot_be_honoured_is_one_sentence(
    function: Callable[..., Any], options: dict[str, Any], sentence: str
) -> None:
    assert refused(LikewiseError, function, nn.Flatten(), **options) == sentence


def test_answers_and_labels_are_asked_for_where_a_view_has_none() -> None:
    assert refused(InputError, from_logits, likewise.views.Activations(drawn(4, 3), name="a")) == (
        "'a' has no record of answers. Pass logits, or a network and data."
    )
    answers = likewise.views.Outputs(drawn(4, 3))
    view = likewise.views.Activations(drawn(4, 3), name="a", outputs=answers)
    assert refused(InputError, from_confusion, view) == (
        "mistakes of 'a' cannot be counted without labels. Show the network labelled data."
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 20), st.integers(2, 6))
def test_logits_give_numpys_correlation(seed: int, inputs: int, count: int) -> None:
    logits = drawn(inputs, count, seed=seed)
    found = from_logits(logits)
    np.testing.assert_allclose(found.values, np.corrcoef(logits, rowvar=False), rtol=0, atol=1e-9)
    assert found.about == {"samples": inputs}
    shifted = from_logits(torch.from_numpy(logits + 10))
    np.testing.assert_allclose(shifted.values, found.values, rtol=0, atol=1e-9)


def test_a_list_data_and_synsets_give_the_same_similarity() -> None:
    known = wordnet.classes("cifar10")
    data = Data("ten", "image", torch.zeros(0, 3, 2, 2), torch.zeros(0, dtype=torch.long), known.names, known.wnids)
    by_name, by_data = from_wordnet("cifar10"), from_wordnet(data)
    by_id = from_wordnet(known.wnids, names=known.names)
    by_synset = from_wordnet([wordnet.find(w).name for w in known.wnids], names=known.names)
    for found in (by_data, by_id, by_synset):
        assert np.array_equal(found.values, by_name.values)
        assert (found.classes, found.wnids) == (known.names, known.wnids)
        assert (found.kind, found.short, found.about) == ("wordnet", "SCSM", {"measure": "path"})


def test_data_without_ids_means_what_its_names_say() -> None:
    found = from_wordnet(TEXTS)  # a cat, a dog and a ship
    assert np.array_equal(found.values, from_wordnet(["cat.n.01", "dog.n.01", "ship.n.01"]).values)
    assert found.classes == NAMES
    big = from_wordnet(TEXTS, senses={"cat": "big_cat.n.01"})
    assert np.array_equal(big.values, from_wordnet(["big_cat.n.01", "dog.n.01", "ship.n.01"]).values)


def test_synsets_are_classes_under_the_names_they_were_given_by() -> None:
    found = from_wordnet(["dog.n.01", "n02123045"])
    assert found.classes == ("dog.n.01", "n02123045")
    assert found.wnids == ("n02084071", "n02123045")
    assert found["dog.n.01", "n02123045"] == 0.25  # dog - canine - carnivore - ... - cat - tabby


@pytest.mark.parametrize("measure", wordnet.MEASURES)
def test_the_measure_of_wordnet_can_be_chosen(measure: str) -> None:
    found = from_wordnet(SYNSETS, measure=measure)
    assert np.array_equal(found.values, wordnet.similarity(SYNSETS, measure))
    assert found.about == {"measure": measure}


def test_everything_the_room_names_is_there() -> None:
    assert all(getattr(classes, name) is not None for name in classes.__all__)
    with pytest.raises(AttributeError) as error:
        classes.nothing  # noqa: B018
    assert str(error.value) == "module 'likewise.classes' has no attribute 'nothing'"


def test_a_class_without_samples_leaves_a_row_of_zeros_in_the_confusion() -> None:
    found, said = warned(from_confusion, [[3, 1, 0], [0, 0, 0], [0, 0, 2]], classes=NAMES)
    assert said == ["no sample of 'dog' was classified: its row of the confusion matrix is zero."]
    assert found.values.tolist() == [[1, 0.25, 0], [0, 1, 0], [0, 0, 1]]
    _, said = warned(from_confusion, [0, 5], [0, 1])
    assert said == ["no sample of '1', '2', '3' and 1 more was classified: its row of the confusion matrix is zero."]


def test_a_class_without_samples_has_no_mean_feature() -> None:
    found, said = warned(from_features, WEIGHTS[:2], [0, 2], NAMES)
    assert said == [
        "the similarity of 'dog' is undefined: it has no sample, or its mean feature is zero, or not finite."
    ]
    assert np.isnan(found.values).tolist() == [[False, True, False], [True] * 3, [False, True, False]]


def test_a_logit_that_never_changes_correlates_with_nothing() -> None:
    logits = [[0.1, 1.0, 3.0], [0.1, 2.0, 2.0], [0.1, 4.0, 1.0]]  # the mean of three 0.1 is not 0.1
    found, said = warned(from_logits, logits, NAMES)
    assert said == ["the similarity of 'cat' is undefined: its logit is the same for every input, or not finite."]
    assert np.isnan(found.values[0]).all()
    assert np.isfinite(found.values[1:, 1:]).all()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_weight_row_without_direction_is_undefined_and_nothing_is_raised(value: float) -> None:
    weights = WEIGHTS.copy()
    weights[1] = value
    found, said = warned(from_weights, weights, NAMES, wnids=PATHS.wnids)
    assert said == ["the similarity of 'dog' is undefined: its weights are all zero, or not finite."]
    assert repr(found) == "ClassSimilarity(NCSM, 3 classes, 5 entries undefined)"
    assert found["cat", "ship"] == NET["cat", "ship"]
    for metric in METRICS:
        agreement = alignment(found, PATHS, metric, permutations=5)
        assert math.isnan(agreement)
        assert math.isnan(agreement.z)
        assert math.isnan(agreement.p)
        assert math.isnan(agreement.calibrated)
    assert math.isnan(classes.wsi(found).mean)
    assert math.isnan(classes.idm(found, [[1, 0, 0], [1, 1, 0], [0, 0, 1]]))
    assert sorted(found.order()) == sorted(NAMES)
    assert found.closest("dog") == []
    _, said = warned(Inspector(NAMES, reference=PATHS).report, weights)
    assert said[0].startswith("the similarity of 'dog' is undefined: ")
