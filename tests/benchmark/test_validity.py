"""Whether groups are what they should be, read off accuracies."""

from __future__ import annotations

from likewise.benchmark.validity import Behaviour, judge


def group(name: str, accuracies: list[float], **checks: list[float]) -> list[Behaviour]:
    rows = [dict(zip(checks, values, strict=True)) for values in zip(*checks.values(), strict=True)]
    return [Behaviour(name, a, c, 0.1, 0.2) for a, c in zip(accuracies, rows or [{}] * len(accuracies), strict=True)]


def test_groups_that_answer_differently_well_are_valid() -> None:
    networks = group("clean", [0.9, 0.8], fit=[1.0, 1.0]) + group("random", [0.1, 0.2], fit=[0.6, 0.7])
    assert judge("labels", networks).valid


def test_groups_may_be_told_apart_by_what_shows_their_change_alone() -> None:
    same = group("none", [0.8, 0.9], augmented=[0.3, 0.4]) + group("noise", [0.9, 0.8], augmented=[0.7, 0.6])
    assert judge("augmentation", same).valid


def test_groups_that_answer_alike_are_named() -> None:
    # of the four pairs, 0.8 and 0.9 against 0.85 and 0.95: 0.9 > 0.85 is one of four, so three are in one order
    same = group("a", [0.8, 0.9], augmented=[0.5, 0.5]) + group("b", [0.85, 0.95], augmented=[0.5, 0.5])
    assert judge("augmentation", same).reason == "'a' and 'b' answer alike (75% of pairs in one order)"


def test_labels_that_were_not_learned_are_named() -> None:
    networks = group("clean", [0.9, 0.8], fit=[1.0, 1.0]) + group("random", [0.1, 0.1], fit=[0.2, 0.21])
    assert judge("labels", networks).reason == "2 networks of 'random' did not learn their labels"


def test_every_group_is_named_with_its_own_idle_networks() -> None:
    networks = group("clean", [0.9, 0.8, 0.1], fit=[1.0, 0.2, 0.1]) + group("random", [0.1, 0.1], fit=[0.9, 0.21])
    found = judge("labels", networks).reason
    assert found == "2 networks of 'clean' and 1 network of 'random' did not learn their labels"


def test_networks_that_learned_nothing_or_the_same_cannot_tell_accuracies_apart() -> None:
    assert judge("layers", group("a", [0.1, 0.5])).reason == "1 of 2 networks are no better than chance"
    assert judge("predictions", group("a", [0.5, 0.5])).reason == "all networks are equally accurate"
    assert judge("layers", group("a", [0.5, 0.5])).valid
    assert judge("predictions", group("a", [0.5, 0.6])).valid
