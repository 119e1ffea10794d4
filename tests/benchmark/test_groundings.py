"""The seven groundings, what each needs, and one of one's own."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.benchmark.evaluation import Evidence, Quality, auprc
from likewise.benchmark.groundings import GROUNDINGS, grounding
from likewise.errors import InputError, UnknownNameError
from tests.benchmark.helpers import evidence, loop_auprc, loop_quadruples, loop_spearman, noise

BY_GROUP = ("labels", "shortcut", "augmentation", "family")
TRUTHS = {name: noise(seed) for seed, name in enumerate(("accuracy", "jsd", "disagreement"), 20)}
FULL = {
    "predictions": evidence(noise(1), "", "more alike", **TRUTHS),
    "groups": evidence(noise(1), "aabbcc"),
    "layers": evidence(np.stack([noise(1), noise(2)])),
}


def rows(found: list[Quality]) -> list[tuple[str, str, str | None]]:
    return [(one.metric, one.variant, one.ties) for one in found]


def test_there_are_six_of_the_paper_and_family() -> None:
    assert GROUNDINGS.names() == ["accuracy", "outputs", "labels", "shortcut", "augmentation", "layers", "family"]
    assert [one.kind for one in GROUNDINGS] == ["predictions"] * 2 + ["groups"] * 3 + ["layers", "groups"]
    assert all(one.title and one.summary.endswith("?") for one in GROUNDINGS)


def test_predictions_are_correlated_in_both_forms() -> None:
    given = FULL["predictions"]
    found = GROUNDINGS.get("accuracy").evaluate(given)
    assert rows(found) == [("spearman", "published", None), ("spearman", "resi", None)]
    assert found[0].value == pytest.approx(loop_spearman(given, "accuracy"))
    found = GROUNDINGS.get("outputs").evaluate(given)
    assert rows(found) == [
        (f"spearman_{truth}", form, None) for truth in ("jsd", "disagreement") for form in ("published", "resi")
    ]
    assert found[0].value == found[1].value == pytest.approx(loop_spearman(given, "jsd"))
    assert found[2].value == found[3].value == pytest.approx(loop_spearman(given, "disagreement"))


@pytest.mark.parametrize("name", BY_GROUP)
def test_groups_are_told_apart_in_both_forms_and_by_each_rule_of_ties(name: str) -> None:
    found = GROUNDINGS.get(name).evaluate(FULL["groups"])
    assert rows(found) == [
        ("auprc", "published", None),
        ("auprc", "resi", None),
        ("conformity", "published", "conform"),
        ("conformity", "published", "half"),
        ("conformity", "published", "violate"),
        ("conformity", "resi", "violate"),
    ]
    assert found[0].value == pytest.approx(loop_auprc(FULL["groups"], "published"))


def test_layers_are_ordered_in_both_forms_and_by_each_rule_of_ties() -> None:
    found = GROUNDINGS.get("layers").evaluate(FULL["layers"])
    assert rows(found) == [
        ("spearman", "published", None),
        ("spearman", "resi", None),
        ("conformity", "published", "conform"),
        ("conformity", "published", "half"),
        ("conformity", "published", "violate"),
        ("conformity", "resi", "conform"),
    ]
    assert found[2].value == pytest.approx(loop_quadruples(FULL["layers"], "conform"))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "accuracy",
            evidence(noise(1), jsd=noise(2)),
            "the grounding 'accuracy' needs 'accuracy', which is not known of these networks. Give their outputs and "
            "the labels of the inputs, or leave the grounding out.",
        ),
        (
            "outputs",
            evidence(noise(1), jsd=noise(2)),
            "the grounding 'outputs' needs 'disagreement', which is not known of these networks. Give their outputs "
            "and the labels of the inputs, or leave the grounding out.",
        ),
        (
            "accuracy",
            evidence(noise(1, 2), accuracy=noise(2, 2)),
            "the grounding 'accuracy' compares pairs of networks, and there are 2 networks. Give three or more.",
        ),
        (
            "shortcut",
            evidence(noise(1)),
            "the grounding 'shortcut' needs groups, and none are given. Name the group of each network.",
        ),
        (
            "family",
            evidence(noise(1), "aaaaaa"),
            "the grounding 'family' compares groups, and all networks are in 'a'. Give two groups or more.",
        ),
        (
            "labels",
            evidence(noise(1), "aaabbc"),
            "the group 'c' has one network, so none to be like. Give it two or more, or leave it out.",
        ),
        (
            "layers",
            evidence(noise(1)),
            "the grounding 'layers' needs a square of layers per network, and the values of made are an array of shape "
            "(6, 6).",
        ),
        (
            "labels",
            evidence(np.ones((2, 4, 4)), "ab"),
            "the grounding 'labels' needs one row and column per network, and the values of made are an array of shape "
            "(2, 4, 4).",
        ),
        (
            "layers",
            evidence(np.ones((4, 2, 2))),
            "the grounding 'layers' compares distances between layers, and there are 2 layers. Give three or more.",
        ),
    ],
)
def test_what_a_grounding_lacks_is_said(name: str, given: Evidence, message: str) -> None:
    with pytest.raises(InputError) as error:
        GROUNDINGS.get(name).evaluate(given)
    assert str(error.value) == message


def test_a_grounding_of_ones_own_is_found_by_name_and_held_to_its_kind() -> None:
    @grounding(name="same-seed", title="same seed", kind="groups")
    def same_seed(given: Evidence) -> list[Quality]:
        """Are networks of one seed more alike?"""
        return [auprc(given)]

    try:
        assert GROUNDINGS.get("Same_Seed").evaluate(FULL["groups"]) == [auprc(FULL["groups"])]
        with pytest.raises(InputError, match="'same-seed' needs groups"):
            GROUNDINGS.get("same-seed").evaluate(FULL["predictions"])
    finally:
        GROUNDINGS.remove("same-seed")
    with pytest.raises(UnknownNameError) as error:
        GROUNDINGS.get("shortcuts")
    assert str(error.value) == "no grounding named 'shortcuts'. Did you mean 'shortcut'?"
    with pytest.raises(InputError) as refused:
        grounding(name="x", title="x", kind="colours")  # type: ignore[arg-type]
    assert str(refused.value) == ("the grounding 'x' has the kind 'colours'. Choose 'predictions', 'groups', 'layers'.")
