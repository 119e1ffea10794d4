"""What the pictures of a class show, by its name alone."""

from __future__ import annotations

import pytest

from likewise.errors import InputError, LikewiseError, UnknownNameError
from likewise.wordnet import ClassNames, classes, depicted, find, lists
from tests.helpers import sentence as refusal


def meanings(*names: str, senses: dict[str, str] | None = None) -> list[str]:
    return [find(wnid).name for wnid in depicted(ClassNames(names), senses)]


@pytest.mark.parametrize("dataset", lists())
def test_the_classes_of_a_known_list_mean_what_the_list_says(dataset: str) -> None:
    known = classes(dataset)
    assert depicted(ClassNames(known.names)) == known.wnids


def test_a_few_classes_mean_what_they_mean_in_the_lists_that_have_them() -> None:
    # the first senses of these nouns are a light beam, a wax, a tree and a person
    assert meanings("ray", "seal", "orange", "Hot-Dog") == ["ray.n.07", "seal.n.09", "orange.n.01", "hotdog.n.02"]
    assert meanings("tulips", "sunflowers", "roses") == ["tulip.n.01", "sunflower.n.01", "rose.n.01"]
    assert meanings("tabby, tabby cat", "T-shirt") == ["tabby.n.01", "jersey.n.03"]


def test_ids_and_nouns_of_one_sense_are_what_they_are() -> None:
    assert meanings("n02084071", "mouse.n.04", "okapi") == ["dog.n.01", "mouse.n.04", "okapi.n.01"]
    assert depicted(ClassNames(("mouse", "cat"), ("n02330245", None))) == ("n02330245", "n02121620")


def test_what_a_name_means_can_be_said() -> None:
    assert meanings("cat", "fish", senses={"fish": "fish.n.01"}) == ["cat.n.01", "fish.n.01"]
    assert meanings("cat", "dog", senses={"cat": "n02127808"}) == ["big_cat.n.01", "dog.n.01"]


SENTENCES: dict[str, tuple[type[LikewiseError], tuple[str, ...], dict[str, str]]] = {
    "the names of classes do not tell what 'mouse' mean: 'mouse' may be mouse.n.01 (a kind of rodent.n.01), "
    "shiner.n.01 (a kind of bruise.n.01), mouse.n.03 (a kind of person.n.01), mouse.n.04 (a kind of "
    "electronic_device.n.01). Say which is meant, as in senses={'mouse': 'mouse.n.01'} or --sense "
    "'mouse=mouse.n.01'.": (InputError, ("cat", "mouse"), {}),
    "the names of classes do not tell what 'diningtabel', 'zzzqq' mean: 'diningtabel' may be dining_table.n.01 (a kind "
    "of table.n.03). Say which is meant, as in senses={'diningtabel': 'dining_table.n.01'} or --sense "
    "'diningtabel=dining_table.n.01'.": (InputError, ("diningtabel", "zzzqq"), {}),
    "the names of classes do not tell what 'zzzqq' mean: WordNet 3.0 has no noun like 'zzzqq'. Say which is meant, as "
    "in senses={'zzzqq': 'entity.n.01'} or --sense 'zzzqq=entity.n.01'.": (InputError, ("zzzqq", "cat"), {}),
    "no class named 'dgo'. Did you mean 'dog'?": (UnknownNameError, ("cat", "dog"), {"dgo": "dog.n.01"}),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_names_do_not_tell_is_refused_with_what_they_may_mean(sentence: str) -> None:
    kind, names, senses = SENTENCES[sentence]
    assert refusal(kind, depicted, ClassNames(names), senses) == sentence
