"""Classes are matched by WordNet id or by name, never by their position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import classes, wordnet
from likewise.classes import ClassSimilarity, Inspector, from_weights, from_wordnet
from likewise.data import Data
from likewise.errors import InputError
from likewise.wordnet import ClassNames, match, recognised

MINI = wordnet.classes("mini-imagenet")  # in Ravi and Larochelle's order, not that of the ids
SORTED = sorted(MINI.wnids)


def test_lists_are_matched_across_spelling_case_and_order() -> None:
    fashion = wordnet.classes("fashion-mnist").names
    folders = ["ankle_boot", "bag", "coat", "t-shirt top", "SNEAKER"]
    places = match(ClassNames(tuple(folders)), ClassNames(fashion))
    assert [fashion[place] for place in places if place is not None] == [
        "Ankle boot",
        "Bag",
        "Coat",
        "T-shirt/top",
        "Sneaker",
    ]


def test_published_labels_are_found_by_any_of_their_words() -> None:
    published = ClassNames(("tench, Tinca tinca", "goldfish, Carassius auratus", "junco, snowbird"))
    assert match(ClassNames(("n01443537", "snowbird", "Tench")), published) == [1, 2, 0]
    # the first word counts more than the others
    published = ClassNames(("spiny lobster, crawfish, crayfish", "crayfish, crawfish, crawdad"))
    assert match(ClassNames(("crayfish", "spiny lobster")), published) == [1, 0]
    assert match(ClassNames(("crawfish",)), published) == [None]


def test_an_ambiguous_word_is_no_match() -> None:
    imagenet = wordnet.classes("imagenet1k")
    known = ClassNames(imagenet.names, imagenet.wnids)
    assert match(ClassNames(("crane", "goldfish", "cat", "dog")), known) == [None, 1, None, None]
    # with ids the bird is the bird
    assert match(ClassNames(("crane",), ("n02012849",)), known) == [134]


def test_ids_that_differ_outweigh_a_name_that_agrees() -> None:
    rodent, device = ClassNames(("mouse",), ("n02330245",)), ClassNames(("mouse",), ("n03793489",))
    assert match(rodent, device) == [None]


def test_two_classes_never_share_a_place() -> None:
    assert match(ClassNames(("tabby", "tabby cat")), ClassNames(("Egyptian cat", "n02123045"))) == [
        None,
        None,
    ]


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(100)))
def test_any_order_of_a_list_is_found_again(order: list[int]) -> None:
    known = wordnet.classes("cifar100")
    wanted = ClassNames(tuple(known.names[i].upper().replace("_", " ") for i in order))
    assert match(wanted, ClassNames(known.names, known.wnids)) == order


def test_a_published_list_is_recognised_in_its_own_order_only() -> None:
    imagenet = wordnet.classes("imagenet1k")
    spelled = list(imagenet.names)
    spelled[134] = "crane bird"  # as torchvision has it
    assert recognised(spelled).wnids == imagenet.wnids
    assert recognised(spelled[::-1]).wnids is None


# A named reference


def test_a_named_reference_is_matched_with_ids_in_another_order() -> None:
    inspector = Inspector(SORTED, reference="mini-imagenet")
    assert inspector.reference is not None
    assert inspector.classes == tuple(SORTED)
    np.testing.assert_array_equal(inspector.reference.values, wordnet.similarity(SORTED))
    assert list(inspector.reference.wnids or ()) == SORTED


def test_a_named_reference_is_matched_with_names_in_another_order() -> None:
    names = sorted(wordnet.classes("cifar100").names, reverse=True)
    inspector = Inspector([name.title() for name in names], reference="cifar100")
    assert inspector.reference is not None
    expected = from_wordnet("cifar100").only(names)
    np.testing.assert_array_equal(inspector.reference.values, expected.values)


def test_data_brings_its_ids_to_a_named_reference() -> None:
    order = [2, 0, 1]
    ids = [MINI.wnids[i] for i in order]
    images = torch.rand(3, 3, 4, 4)
    data = Data("folder", "image", images, [0, 1, 2], ("a", "b", "c"), tuple(ids))
    inspector = Inspector(data, reference="mini-imagenet")
    assert inspector.reference is not None
    np.testing.assert_array_equal(inspector.reference.values, wordnet.similarity(ids))


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


def refused(act: Any) -> str:
    with pytest.raises(InputError) as error:
        act()
    return str(error.value)


def test_what_a_reference_does_not_have_is_refused_by_name() -> None:
    names = ["dog", "cat", "newt", "unicorn"]
    assert refused(lambda: Inspector(names, reference="cifar10")) == (
        "the reference 'cifar10' has no class that is surely 'newt', 'unicorn'; it has 'airplane', "
        "'automobile', 'bird' and 7 more. Classes are matched by WordNet id or by name, never by "
        "position: name them as it does, or give one WordNet id per class."
    )


def test_a_matrix_without_names_is_no_reference_for_named_classes() -> None:
    nameless = ClassSimilarity(np.eye(2))
    assert refused(lambda: Inspector(["cat", "dog"], reference=nameless)) == (
        "the reference has no class that is surely 'cat', 'dog'; it has '0', '1'. Classes are matched "
        "by WordNet id or by name, never by position: name them as it does, or give one WordNet id "
        "per class."
    )


def test_mistakes_are_ranked_by_the_rows_of_their_own_classes() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3))
    names = ("cat", "dog", "newt", "ship")
    data = Data("few", "image", torch.rand(4, 1, 3, 3), [0, 1, 2, 3], names)
    turned = from_weights(rows, names).only(names[::-1])
    expected = classes.mistakes(data, [1, 2, 3, 0], from_weights(rows, names), count=4)
    found = classes.mistakes(data, [1, 2, 3, 0], turned, count=4)

    def said(figure: Any) -> list[str]:
        return [text.get_text() for axis in figure.axes for text in axis.texts]

    assert said(found) == said(expected)
    other = from_weights(rows, ["cat", "dog", "newt", "boat"])
    assert refused(lambda: classes.mistakes(data, [1, 2, 3, 0], other)) == (
        "the similarity NCSM has no class that is surely 'ship'; it has 'cat', 'dog', 'newt' and 1 "
        "more. Classes are matched by WordNet id or by name, never by position: name them as it does, "
        "or give one WordNet id per class."
    )
