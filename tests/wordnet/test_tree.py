"""The order of meaning, and groups of kin in it."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from likewise.errors import InputError
from likewise.wordnet import branches, classes, find, lists, order
from tests.wordnet.helpers import refused, steps_up


def test_kin_are_neighbours_in_the_order() -> None:
    names = classes("cifar10").names
    found = [names[i] for i in order(classes("cifar10").wnids)]
    assert " ".join(found) == "bird frog dog cat horse deer airplane ship automobile truck"


def test_the_order_does_not_depend_on_the_order_given() -> None:
    wnids = list(classes("imagenet1k").wnids)
    expected = [wnids[i] for i in order(wnids)]
    random.Random(0).shuffle(wnids)
    assert [wnids[i] for i in order(wnids)] == expected


def test_an_ancestor_comes_before_what_is_under_it() -> None:
    assert order(["tabby.n.01", "animal.n.01", "cat.n.01"]) == [1, 2, 0]


def test_classes_fall_into_a_few_groups_of_kin() -> None:
    names = classes("cifar10").names
    groups = dict(zip(names, branches(classes("cifar10").wnids), strict=True))
    vehicles = {name for name, group in groups.items() if group == "vehicle.n.01"}
    assert vehicles == {"airplane", "automobile", "ship", "truck"}
    assert {groups[name] for name in set(names) - vehicles} == {"vertebrate.n.01"}


@pytest.mark.parametrize("most", [1, 2, 8, 16])
@pytest.mark.parametrize("name", lists())
def test_groups_are_few_hold_their_members_and_are_no_crumbs(name: str, most: int) -> None:
    wnids = classes(name).wnids
    groups = branches(wnids, most)
    assert len(set(groups)) <= most
    assert all(g in steps_up(find(w).name) for g, w in zip(groups, wnids, strict=True))
    small = [group for group in set(groups) if groups.count(group) < 3]
    assert len(small) <= 1  # what is left over at the root


def test_groups_stay_together_in_the_order() -> None:
    wnids = classes("cifar100").wnids
    groups = branches(wnids)
    ordered = [groups[i] for i in order(wnids, groups)]
    borders = sum(a != b for a, b in pairwise(ordered))
    assert borders == len(set(groups)) - 1
    assert sorted(order(wnids, groups)) == list(range(100))


def test_groups_that_do_not_fit_are_refused() -> None:
    assert refused(InputError, branches, ["dog.n.01"], 0) == "most is 0. Give at least 1 group."
    assert refused(InputError, order, ["dog.n.01"], []) == (
        "there are 1 synsets and 0 groups. Give one group per synset."
    )
