"""Classes are matched by WordNet id or by name, never by their position."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import wordnet
from likewise.wordnet import ClassNames, match, recognised


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
    assert match(ClassNames(("tabby", "tabby cat")), ClassNames(("Egyptian cat", "n02123045"))) == [None, None]


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
