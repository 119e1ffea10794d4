"""Class similarity matrices: from whatever there is, with their classes, and back from a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from likewise import classes, wordnet
from likewise.classes import (
    ClassSimilarity,
    from_confusion,
    from_features,
    from_logits,
    from_weights,
    from_wordnet,
)
from likewise.data import Data

CLOSE = {"rtol": 0, "atol": 1e-12}
NAMES = ("cat", "dog", "frog", "ship", "truck")
SYNSETS = ("cat.n.01", "dog.n.01", "frog.n.01", "ship.n.01", "truck.n.01")
PATHS = from_wordnet(SYNSETS, names=NAMES)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def cosines(rows: np.ndarray) -> list[list[float]]:
    return [[cosine(a, b) for b in rows] for a in rows]


# From weights


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
    ("make", "layer"),
    [
        (lambda models: models.squeezenet1_1(weights=None, num_classes=7), "classifier.1"),
        (
            lambda models: models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
                weights=None, weights_backbone=None, num_classes=7
            ),
            "roi_heads.box_predictor.cls_score",
        ),
    ],
    ids=["squeezenet", "a detector"],
)
def test_networks_whose_classifier_is_not_the_last_linear_layer(make: Any, layer: str) -> None:
    from torchvision import models

    net = make(models)
    weight = net.get_submodule(layer).weight.flatten(1)
    assert len(from_weights(net)) == 7
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


# From mistakes


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


# From features and logits


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


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 20), st.integers(2, 6))
def test_logits_give_numpys_correlation(seed: int, inputs: int, count: int) -> None:
    logits = drawn(inputs, count, seed=seed)
    found = from_logits(logits)
    np.testing.assert_allclose(found.values, np.corrcoef(logits, rowvar=False), rtol=0, atol=1e-9)
    assert found.about == {"samples": inputs}
    shifted = from_logits(torch.from_numpy(logits + 10))
    np.testing.assert_allclose(shifted.values, found.values, rtol=0, atol=1e-9)


# From WordNet


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


def test_imagenets_two_cranes_have_different_names() -> None:
    found = from_wordnet("imagenet1k")
    assert len(set(found.classes)) == 1000
    both = [found.classes.index(name) for name in ("crane", "crane#2")]
    assert [wordnet.find(found.wnids[i]).name for i in both] == ["crane.n.05", "crane.n.04"]
    assert found["crane", "bittern"] > found["crane#2", "bittern"]


def test_a_number_behind_a_repeated_name_is_one_that_is_free() -> None:
    found = ClassSimilarity(np.eye(4), ["crane", "crane", "crane#2", "crane"])
    assert found.classes == ("crane", "crane#3", "crane#2", "crane#4")


# What a matrix can do


def test_entries_are_read_by_the_names_of_their_classes() -> None:
    found = ClassSimilarity([[1, 0.9, 0.1], [0.8, 1, 0.2], [0.3, 0.4, 1]], ["a", "b", "c"])
    assert (found["a", "b"], found["b", "a"], found["c", "c"]) == (0.9, 0.8, 1.0)
    assert found.to_frame().loc["c", "b"] == 0.4
    assert repr(found) == "ClassSimilarity(CSM, 3 classes)"
    assert ClassSimilarity(np.eye(2)).classes == ("0", "1")


def test_a_matrix_is_a_copy_that_nobody_changes() -> None:
    given = np.eye(3)
    found = ClassSimilarity(given)
    given[0, 1] = 5
    assert found["0", "1"] == 0
    with pytest.raises(ValueError, match="read-only"):
        found.values[0, 1] = 1


def test_the_closest_are_sorted_without_the_class_itself_and_what_is_undefined() -> None:
    row = [0.3, 1, np.nan, 0.9, 0.3]
    found = ClassSimilarity([[1, 0, 0, 0, 0], row, *np.eye(5)[2:]], list("abcde"))
    assert found.closest("b") == [("d", 0.9), ("a", 0.3), ("e", 0.3)]
    assert found.closest("b", 1) == [("d", 0.9)]


def test_some_classes_in_another_order_keep_their_values_and_ids() -> None:
    found = PATHS.only(["ship", "cat"])
    assert found.classes == ("ship", "cat")
    assert found.wnids == (PATHS.wnids[3], PATHS.wnids[0])
    assert found["ship", "cat"] == PATHS["ship", "cat"]
    assert (found.kind, found.about) == (PATHS.kind, PATHS.about)


def test_kin_are_side_by_side_where_meanings_are_known() -> None:
    mixed = PATHS.only(["truck", "cat", "ship", "frog", "dog"])
    assert mixed.order() == PATHS.order() == ["frog", "dog", "cat", "ship", "truck"]
    assert mixed.sorted().classes == tuple(mixed.order())
    for a in NAMES:
        for b in NAMES:
            assert mixed.sorted()[a, b] == PATHS[a, b]
    weights = from_weights(drawn(5, 3), NAMES, wnids=PATHS.wnids)
    assert weights.order() == PATHS.order()  # by meaning, whatever the network finds


def test_without_meanings_the_alike_are_side_by_side() -> None:
    two_kinds = np.array([[1.0, 0], [0, 1], [0.9, 0.1], [0.1, 0.9], [0.95, 0]])
    order = from_weights(two_kinds, list("abcde")).order()
    places = sorted(order.index(name) for name in "ace")
    assert sorted(order) == list("abcde")
    assert places[2] - places[0] == 2


def test_groups_are_the_branches_of_wordnet() -> None:
    found = from_wordnet("cifar10")
    assert found.groups() == list(wordnet.branches(found.wnids))
    assert set(found.groups()) == {"vehicle.n.01", "vertebrate.n.01"}
    assert from_weights(drawn(4, 3)).groups() is None
    half = from_weights(drawn(3, 3), wnids=["n02084071", None, "n02123045"])
    assert (half.ids, half.groups()) == (None, None)


@pytest.mark.parametrize("wnids", [None, ("n02084071", None, "n02123045")])
def test_a_saved_matrix_comes_back_as_it_was(tmp_path: Path, wnids: Any) -> None:
    values = [[1, np.nan, 0.1], [0.3, 1, 1 / 3], [0.1, 0.2, 1]]
    made = ClassSimilarity(values, ["a", "é", "c"], "features", "train", wnids, {"width": 7})
    path = made.save(tmp_path / "deep" / "matrix.safetensors")
    assert path == tmp_path / "deep" / "matrix.safetensors"
    back = ClassSimilarity.load(path)
    assert np.array_equal(back.values, made.values, equal_nan=True)
    for fact in ("classes", "kind", "split", "wnids", "about", "short"):
        assert getattr(back, fact) == getattr(made, fact)
    assert repr(back) == "ClassSimilarity(TNCSM-train, 3 classes, 1 entries undefined)"


def test_everything_the_room_names_is_there() -> None:
    assert all(getattr(classes, name) is not None for name in classes.__all__)
    with pytest.raises(AttributeError) as error:
        classes.nothing  # noqa: B018
    assert str(error.value) == "module 'likewise.classes' has no attribute 'nothing'"
