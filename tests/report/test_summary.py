"""The first screen: what it says holds of the numbers, and nothing is said where it does not."""

from __future__ import annotations

import re

import numpy as np
import pytest

import likewise
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.page import contents, render
from likewise.report.runs import Runs
from likewise.report.summary import ALIKE, ALONE, NEXT, ODD
from tests.report.first_screen import check
from tests.report.helpers import arrays
from tests.report.test_findings import attacked, blocks

NAMES = [f"n{i}" for i in range(8)]


def matrix(values: np.ndarray, measure: str, names: list[str] = NAMES) -> SimilarityMatrix:
    return SimilarityMatrix(names, values, measure=measure, larger_is="more alike", about={"n": 400})


def zoo(accuracy: float, odd: bool) -> Runs:
    """Families of four and three, and a network apart by representations and classes, or not; attacks on them."""
    sizes = (4, 3, 1)
    attacks = attacked([0.95] * 7 + [accuracy])
    alike = [blocks(sizes, seed=seed) for seed in range(3)]
    if odd:
        for values in alike:
            values[7, :7] -= 0.3
            values[:7, 7] -= 0.3
    measures = ("cka-debiased", "error-consistency", "class-alignment")
    matrices = [matrix(values, name) for values, name in zip(alike, measures, strict=True)]
    return Runs(matrices=[*matrices, attacks], transfers=[attacks])


def test_all_three_questions_are_answered_where_the_numbers_do() -> None:
    runs = zoo(0.2, odd=True)
    page = contents(runs)
    assert check(page, runs) == {ALIKE, ODD, NEXT}
    texts = {question: finding.text for question, finding in page.summary.sentences.items()}
    assert texts[ALIKE] == "n0, n1, n2 and n3 are alike; so are n4, n5 and n6."
    assert texts[ODD] == (
        "n7: of all networks it is least like the others, by all 3 ways of looking (representations, answers and "
        "classes)."
    )
    assert texts[NEXT].startswith("Find out why n7 is right on only ")
    html = render(page)
    for text in texts.values():
        assert html.count(f"<dd>{text} ") == 1


def test_a_network_that_only_errs_more_is_not_the_odd_one_out() -> None:
    """By attacks it would be, and those say nothing of it; its accuracy is said."""
    draw = np.random.default_rng(3)
    noise = [np.full((8, 8), 0.5) + draw.normal(scale=0.05, size=(8, 8)) for _ in range(3)]
    attacks = attacked([0.95] * 7 + [0.2])
    measures = ("cka-debiased", "error-consistency", "class-alignment")
    matrices = [matrix((v + v.T) / 2, name) for v, name in zip(noise, measures, strict=True)]
    runs = Runs(matrices=[*matrices, attacks], transfers=[attacks])
    page = contents(runs)
    assert check(page, runs) == {NEXT}
    assert page.summary.sentences[NEXT].text.startswith("Find out why n7 is right on only ")
    assert [row.note for row in page.summary.rows if row.name == "n7"] == ["accuracy far from the others'"]


def test_equal_accuracies_are_no_reason_to_look_at_a_network() -> None:
    runs = zoo(0.95, odd=True)
    page = contents(runs)
    check(page, runs)
    assert "Find out why" not in page.summary.sentences[NEXT].text
    assert page.networks.outside == frozenset()


def test_networks_without_families_are_not_said_to_be_alike() -> None:
    draw = np.random.default_rng(1).random((8, 8))
    runs = Runs(matrices=[matrix((draw + draw.T) / 2, "cka-debiased")])
    page = contents(runs)
    assert check(page, runs) == {NEXT}
    assert page.summary.sentences[NEXT].text == (
        "Compare again with --calibrate --intervals: so far, nothing tells these scores from chance."
    )
    assert not any(row.odd or row.alone for row in page.summary.rows)


def test_views_that_disagree_name_no_odd_one() -> None:
    matrices = []
    for row, measure in enumerate(("cka-debiased", "error-consistency", "class-alignment")):
        values = np.full((8, 8), 0.8) + np.random.default_rng(row).normal(scale=0.01, size=(8, 8))
        values = (values + values.T) / 2
        values[row] = values[:, row] = 0.1
        matrices.append(matrix(values, measure))
    runs = Runs(matrices=matrices)
    page = contents(runs)
    check(page, runs)
    assert not any(row.odd for row in page.summary.rows)
    assert "least like the others" not in page.summary.sentences.get(ODD, page.summary.sentences[NEXT]).text


@pytest.mark.parametrize("count", [2, 4])
def test_a_pair_is_alike_only_beyond_chance(count: int) -> None:
    compared = likewise.compare(arrays(count, kinds=1), "cka", calibrate=60, intervals=True, progress=False)
    runs = Runs(matrices=[compared])
    page = contents(runs)
    assert check(page, runs) == {ALIKE, NEXT}
    assert "more alike than chance: cka is " in page.summary.sentences[ALIKE].text
    unlike = likewise.compare(arrays(count, kinds=count), "cka", calibrate=60, progress=False)
    assert ALIKE not in contents(Runs(matrices=[unlike])).summary.sentences


def test_no_similarity_is_minus_nothing() -> None:
    compared = likewise.compare(arrays(2, kinds=1), "cka-debiased", calibrate=60, progress=False)
    sentence = contents(Runs(matrices=[compared])).summary.sentences[ALIKE].text
    assert sentence.endswith("where shuffled inputs give 0.00.")


def test_several_networks_alone_are_no_odd_one() -> None:
    values = blocks((4, 3, 1, 1), seed=0)
    runs = Runs(matrices=[matrix(values, "cka-debiased", [f"n{i}" for i in range(9)])])
    page = contents(runs)
    assert check(page, runs) == {ALIKE, ALONE, NEXT}
    assert page.summary.sentences[ALONE].text == "n7 and n8 are each in no family with any other network."


def test_a_table_has_no_empty_columns() -> None:
    html = render(contents(Runs(matrices=[matrix(blocks((4, 4)), "cka")])))
    assert re.findall(r'<th scope="col">(.*?)</th>', html) == ["network", "family", "nearest, by cka"]
    html = render(contents(zoo(0.2, odd=True)))
    heads = ["network", "accuracy (95 % interval)", "family", "nearest, by cka-debiased"]
    assert re.findall(r'<th scope="col">(.*?)</th>', html) == heads


def test_an_unfinished_run_says_so_first() -> None:
    runs = Runs(matrices=[matrix(blocks((8,)), "cka")], missing=["the comparison was stopped."])
    page = contents(runs)
    assert page.summary.sentences[NEXT].text == "Finish the run: the same command resumes where it was stopped."
    html = render(page)
    assert html.index("the comparison was stopped.") < html.index("What next")
