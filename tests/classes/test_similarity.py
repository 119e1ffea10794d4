"""The matrix of class similarity: names, order, groups, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from likewise import wordnet
from likewise.classes import ClassSimilarity, Inspector, from_weights, from_wordnet
from likewise.errors import StoreError, UnknownNameError
from tests.classes.helpers import NET, SYNSETS, drawn, refusals, refused

NAMES = ("cat", "dog", "frog", "ship", "truck")


PATHS = from_wordnet(SYNSETS, names=NAMES)


test_an_error_is_a_sentence = refusals(
    (
        lambda: ClassSimilarity(np.zeros((2, 3))),
        "a class similarity matrix is square, one row and one column per class, at least two; got (2, 3).",
    ),
    (
        lambda: ClassSimilarity([[1.0]]),
        "a class similarity matrix is square, one row and one column per class, at least two; got (1, 1).",
    ),
    (
        lambda: ClassSimilarity(np.eye(2), kind="weigths"),
        "no kind of class similarity named 'weigths'. Did you mean 'weights'?",
        UnknownNameError,
    ),
    (
        lambda: ClassSimilarity(np.eye(3), wnids=["n02084071"]),
        "3 classes need as many WordNet ids, got 1. Give None for a class that has none.",
    ),
    (lambda: ClassSimilarity(np.eye(3), ["a", "b"]), "3 classes need 3 names, got 2."),
    (lambda: NET["catt", "dog"], "no class named 'catt'. Did you mean 'cat'?", UnknownNameError),
    (lambda: NET.only(["cat", "horse"]), "no class named 'horse'. Choose from 'cat', 'dog', 'ship'.", UnknownNameError),
)


def test_imagenets_two_cranes_have_different_names() -> None:
    found = from_wordnet("imagenet1k")
    assert len(set(found.classes)) == 1000
    both = [found.classes.index(name) for name in ("crane", "crane#2")]
    assert [wordnet.find(found.wnids[i]).name for i in both] == ["crane.n.05", "crane.n.04"]
    assert found["crane", "bittern"] > found["crane#2", "bittern"]


def test_a_number_behind_a_repeated_name_is_one_that_is_free() -> None:
    found = ClassSimilarity(np.eye(4), ["crane", "crane", "crane#2", "crane"])
    assert found.classes == ("crane", "crane#3", "crane#2", "crane#4")


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


def test_a_matrix_is_matched_with_classes_in_another_order() -> None:
    paths = from_wordnet("cifar10")
    names = list(paths.classes)[::-1]
    inspector = Inspector(names, reference=paths)
    assert inspector.reference is not None
    assert inspector.reference.classes == tuple(names)
    np.testing.assert_array_equal(inspector.reference.values, paths.values[::-1, ::-1])


def test_ids_are_not_laid_over_the_same_ids_in_another_order() -> None:
    wnids = ["n02084071", "n02121620", "n04194289"]
    inspector = Inspector(wnids, reference=wnids[::-1])
    assert inspector.reference is not None
    np.testing.assert_array_equal(inspector.reference.values, wordnet.similarity(wnids))


def test_a_file_that_holds_no_class_similarity(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    sentence = f"{path} holds no class similarity. Give a file that ClassSimilarity.save wrote."
    path.write_bytes(b"something else")
    assert refused(StoreError, ClassSimilarity.load, path) == sentence
    save_file({"values": np.eye(3)}, path)
    assert refused(StoreError, ClassSimilarity.load, path) == sentence
    path.write_bytes(NET.save(path).read_bytes()[:-8])
    assert refused(StoreError, ClassSimilarity.load, path) == sentence
