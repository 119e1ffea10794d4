"""The advice on a change of embedding models: verdicts, neighbours, maps and thresholds by plain loops; refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from perf.upgrades import KINDS, advised, made, truth

from likewise.analysis import Upgrade, upgrade
from likewise.analysis.embeddings.search import Recall
from likewise.cli.upgrade import upgrade as command
from likewise.errors import InputError, OptionError
from likewise.matrices.shares import wilson
from tests.cli.conftest import invoke
from tests.helpers import sentence

Array = np.ndarray[Any, Any]


def vectors(n: int = 60, width: int = 6, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n, width))


def turned(old: Array, width: int | None = None) -> Array:
    square = np.linalg.qr(np.random.default_rng(9).normal(size=(old.shape[1], old.shape[1])))[0]
    return np.asarray(old @ square[:, :width])


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / np.sqrt(one @ one) / np.sqrt(other @ other))


def nearest(items: Array, query: Array, k: int, own: int | None = None) -> list[int]:
    others = [i for i in range(len(items)) if i != own]
    return sorted(others, key=lambda i: -cosine(items[i], query))[:k]


def shared(one: list[int], other: list[int]) -> float:
    return len(set(one) & set(other)) / len(one)


# --- verdicts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [*range(len(KINDS)), 6, 7, 8])
def test_the_verdict_is_what_happens_to_other_items_and_queries(number: int) -> None:
    case = made(number)
    assert advised(number, case).verdict == truth(case)[0]


def test_all_three_verdicts_are_among_the_cases() -> None:
    assert {truth(made(number))[0] for number in (0, 1, 4)} == {"keep", "map", "embed again"}


def test_the_same_vectors_are_kept_and_nothing_else_changes() -> None:
    result = upgrade(vectors(), 3 * vectors(), threshold=0.5)
    assert result.as_is is not None
    low, high = wilson(1.0, 60)
    assert (result.verdict, result.as_is) == ("keep", Recall(1.0, low, high))
    assert [one.new for one in result.thresholds.values()] == pytest.approx([0.5] * 3, abs=0.02)
    assert [kept.value for kept in result.kept.values()] == [1, 1]


def test_a_limit_that_nothing_reaches_asks_for_embedding_again() -> None:
    old = vectors(200)
    new = old + 0.05 * vectors(200, seed=1)
    found = upgrade(old, new, recall=0.5)
    assert found.as_is is not None
    assert (found.verdict, upgrade(old, new, recall=found.as_is.value).verdict) == ("keep", "keep")
    assert upgrade(old, new, recall=0.999).verdict == "embed again"


# --- figures by plain loops ---------------------------------------------------------------------------


def test_neighbours_kept_are_those_of_plain_loops() -> None:
    old, new = vectors(40), vectors(40) + 0.5 * vectors(40, seed=1)
    result = upgrade(old, new, k=[1, 3])
    for k, kept in result.kept.items():
        shares = [shared(nearest(old, old[i], k, i), nearest(new, new[i], k, i)) for i in range(40)]
        assert kept.value == pytest.approx(np.mean(shares))
        assert kept.low < kept.value < kept.high
    assert result.by_chance == {1: 1 / 39, 3: 3 / 39}


def test_recall_of_queries_is_that_of_plain_loops() -> None:
    old, new = vectors(40), vectors(40) + 0.3 * vectors(40, seed=1)
    queries = vectors(15, seed=2), vectors(15, seed=2) + 0.3 * vectors(15, seed=3)
    result = upgrade(old, new, queries=queries, k=3)
    pairs = list(zip(*queries, strict=True))
    kept = [shared(nearest(old, before, 3), nearest(new, after, 3)) for before, after in pairs]
    as_is = [shared(nearest(old, after, 10), nearest(new, after, 10)) for _, after in pairs]
    assert result.as_is is not None
    assert (result.kept[3].value, result.as_is.value) == (pytest.approx(np.mean(kept)), pytest.approx(np.mean(as_is)))
    assert dict(result.counts) == {"items": 40, "queries": 15, "old width": 6, "new width": 6}


def test_ties_at_the_last_place_count_as_kept() -> None:
    old = np.repeat(vectors(10), 4, axis=0)  # of 3 twins, whichever 1 is returned is among the nearest
    assert upgrade(old, turned(old), k=[1, 2]).kept[1].value == 1


def test_a_map_is_tried_on_items_that_it_was_not_learned_from() -> None:
    old, new = vectors(30, 25), vectors(30, 25, seed=1)  # learned from all, ridge would fit nearly exactly
    assert max(recall.value for recall in upgrade(old, new).maps.values()) < 0.6


def test_the_map_carries_other_vectors_of_the_old_model_over() -> None:
    old = vectors(80)
    result = upgrade(old, turned(old) + np.eye(6)[0])
    rotation = upgrade(old, turned(old)).map
    others = vectors(5, seed=4)
    lengths = np.linalg.norm(others, axis=1, keepdims=True)
    assert rotation(others) == pytest.approx(turned(others / lengths), abs=1e-6)
    assert np.linalg.norm(result.map(others), axis=1) == pytest.approx(np.ones(5))
    assert repr(rotation) == "VectorMap('procrustes', 6 to 6)"


def test_the_threshold_lets_as_many_pairs_through() -> None:
    old, new = vectors(40), vectors(40) + 0.3 * vectors(40, seed=1)
    found = upgrade(old, new, threshold=0.4).thresholds["embed again"]
    pairs = [(i, j) for i in range(40) for j in range(40) if i != j]
    before = {pair for pair in pairs if cosine(old[pair[0]], old[pair[1]]) >= 0.4}
    scores = sorted((cosine(new[i], new[j]) for i, j in pairs), reverse=True)
    assert found.new == pytest.approx(scores[len(before) - 1])
    after = {(i, j) for i, j in pairs if cosine(new[i], new[j]) >= found.new - 1e-12}
    assert found.agreement == pytest.approx(len(before & after) / len(after))
    assert found.per_query == len(before) / 40
    assert found.low < found.new < found.high


def test_the_threshold_by_labels_keeps_the_precision() -> None:
    labels = np.arange(60) % 4
    centres = 2 * np.eye(4, 6)[labels]
    old, new = centres + vectors(60), centres + 1.2 * vectors(60, seed=1)
    found = upgrade(old, new, threshold=0.5, labels=labels).thresholds["embed again"]
    pairs = [(i, j) for i in range(60) for j in range(60) if i != j]

    same = np.array([labels[i] == labels[j] for i, j in pairs])
    before, after = (np.array([cosine(rows[i], rows[j]) for i, j in pairs]) for rows in (old, new))
    asked = same[before >= 0.5].mean()
    precise = {score: same[after >= score - 1e-12].mean() for score in after}
    lowest = min(score for score, precision in precise.items() if precision >= asked)
    assert found.new == pytest.approx(lowest)
    assert found.precision == (pytest.approx(asked), pytest.approx(precise[lowest]))


def test_labels_that_the_new_model_knows_nothing_of_have_no_threshold() -> None:
    labels = np.repeat([0, 1], 30)
    old = np.stack([4.0 * labels - 2, np.ones(60)], axis=1) + 0.1 * vectors(60, 2)
    new = np.stack([np.tile([-2.0, 2.0], 30), np.ones(60)], axis=1) + 0.1 * vectors(60, 2, seed=1)
    result = upgrade(old, new, threshold=0.9, labels=labels)
    found = result.thresholds["embed again"]
    assert (np.isnan([found.new, found.low, found.high]).all(), found.precision[0]) == (True, 1.0)
    assert str(found) == "an old score of 0.9 (29 items per query) has no new one: none is as precise (1.00)"


def test_intervals_hold_the_mean_of_other_queries_about_as_often_as_they_say() -> None:
    """Of 300 intervals of 100 queries, each with a rate of its own and 10 neighbours: 95 %, give or take 4."""
    draw = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        found = Recall.of(torch.from_numpy(draw.binomial(10, draw.beta(6, 2, size=100)) / 10))
        held += found.low <= 0.75 <= found.high
    assert 0.91 <= held / 300 <= 0.99


def test_half_precision_and_extreme_scales_change_nothing() -> None:
    old, new = vectors(50).astype(np.float16), turned(vectors(50))
    plain = upgrade(old.astype(np.float64), new)
    for other in (upgrade(old, new), upgrade(old.astype(np.float64) * 1e200, 1e-200 * new)):
        assert (other.verdict, other.maps["ridge"]) == (plain.verdict, plain.maps["ridge"])


# --- what is shown ------------------------------------------------------------------------------------


def saved(folder: Path, **arrays: Array) -> list[str]:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [str(folder / f"{name}.npy") for name in arrays]


def test_the_command_prints_what_the_call_returns(tmp_path: Path) -> None:
    old = vectors(250)
    queries = vectors(30, seed=5)
    files = saved(tmp_path, old=old, new=turned(old), q=queries, r=turned(queries))
    expected = upgrade(old, turned(old), queries=(queries, turned(queries)))
    words = (*files[:2], "--queries", *files[2:])
    assert invoke(command, *words) == f"{expected}\n"
    assert json.loads(invoke(command, *words, "--json")) == json.loads(json.dumps(expected.record()))
    assert [row["k"] for row in expected.record()["kept"]] == [1, 10, 100]
    assert str(expected).startswith(
        "map: old vectors mapped by procrustes give 1.00 [0.89, 1.00] of the 10 nearest items, and 0.9 is asked for; "
        "a close call, which more queries would decide\n"
        "250 items, 30 queries, 6 to 6 columns\n"
    )


def test_labels_are_read_from_files(tmp_path: Path) -> None:
    labels = np.arange(60) % 2
    files = saved(tmp_path, old=vectors(), new=turned(vectors()), labels=labels)
    found = json.loads(invoke(command, *files[:2], "--labels", files[2], "--threshold", "0.2", "--json"))
    expected = upgrade(vectors(), turned(vectors()), threshold=0.2, labels=labels)
    assert found["thresholds"] == json.loads(json.dumps(expected.record()))["thresholds"]
    old, new = found["thresholds"]["embed again"]["precision"]
    assert 0 < old <= new


def test_a_close_call_and_too_few_items_for_a_map_are_said() -> None:
    old = vectors(60, 30)
    text = str(upgrade(old, turned(old)[:, :20] + 0.1 * vectors(60, 20, seed=1)))
    assert "; a map of 30 columns may do better with more than these items\n" in text
    old = vectors(200)
    new = old + 0.05 * vectors(200, seed=1)
    limit = upgrade(old, new).as_is
    assert limit is not None
    assert "; a close call, which more queries would decide\n" in str(upgrade(old, new, recall=limit.value))


# --- refusals -----------------------------------------------------------------------------------------

OLD = vectors()
HOLE, ZERO = OLD.copy(), OLD.copy()
HOLE[3, 2], ZERO[[4, 7]] = np.nan, 0
REFUSALS: list[tuple[tuple[Array, Array], dict[str, Any], str]] = [
    (
        (OLD, OLD[:50]),
        {},
        "cannot compare 'old' with 'new': they have 60 and 50 rows. Show both networks the same inputs.",
    ),
    ((OLD[:1], OLD[:1]), {}, "'old' has one row. A comparison needs at least two inputs."),
    ((OLD[:5], OLD[:5]), {}, "there are 5 items, and neighbours of few say little. Give at least 20."),
    (
        (OLD, HOLE),
        {},
        "'new' has NaN or infinite entries in 1 of 60 rows and 1 of 6 columns, the first at row 3, column 2. Drop or "
        "repair them.",
    ),
    (
        (ZERO, OLD),
        {},
        "'old' has 2 rows of zeros, the first at row 4, and a cosine needs a direction. Drop these items from all "
        "files.",
    ),
    (
        (OLD, np.ones((60, 3))),
        {},
        "all rows of 'new' point the same way, so that no item is nearer than another. Check how they were made.",
    ),
    ((OLD, OLD), {"k": 59}, "k is 59, and a query can find 59 items. Give fewer than that."),
    ((OLD, OLD), {"k": 0}, "k must be a whole number of at least 1, got 0."),
    ((OLD, OLD), {"k": []}, "k is empty. Give at least one number of neighbours."),
    ((OLD, OLD), {"recall": 1.5}, "recall must be above 0 and at most 1, got 1.5."),
    (
        (OLD, OLD),
        {"queries": OLD},
        "queries must be two arrays, of the old and of the new model. Pass queries=(old, new).",
    ),
    (
        (OLD, OLD),
        {"queries": (OLD[:, :5], OLD)},
        "'the old queries' has 5 columns and the old items have 6. Embed queries and items by one model.",
    ),
    (
        (OLD, OLD),
        {"queries": (OLD[:12], OLD)},
        "cannot compare 'the old queries' with 'the new queries': they have 12 and 60 rows. Show both networks the "
        "same inputs.",
    ),
    ((OLD, OLD), {"queries": (OLD[:5], OLD[:5])}, "there are 5 queries, and an interval needs 10. Give more."),
    (
        (OLD, OLD),
        {"query_labels": [1]},
        "query_labels are given without labels of the items. Give labels too, or neither.",
    ),
    (
        (OLD, OLD),
        {"labels": [1] * 60, "query_labels": [1]},
        "query_labels are given without queries. Leave them out, or give the queries.",
    ),
    (
        (OLD, OLD),
        {"labels": [1] * 60, "queries": (OLD, OLD)},
        "labels of the items are given and those of the queries are not. Give query_labels too.",
    ),
    (
        (OLD, OLD),
        {"labels": [1, 2]},
        "labels must be 60 whole numbers from 0, got int64 of shape (2,). Give one class index per input.",
    ),
    ((OLD, OLD), {"seed": -1}, "seed is -1. Give a whole number from 0 to 4294967295."),
]


@pytest.mark.parametrize(("arrays", "options", "refusal"), REFUSALS)
def test_what_means_nothing_is_refused_in_one_sentence(
    arrays: tuple[Array, Array], options: dict[str, Any], refusal: str
) -> None:
    assert sentence(InputError, upgrade, *arrays, **options) == refusal


@pytest.mark.parametrize(("score", "ends"), [(2.0, "no item reaches"), (-1.5, "every item reaches")])
def test_a_threshold_that_cuts_nothing_is_refused(score: float, ends: str) -> None:
    cosines = [cosine(OLD[i], OLD[j]) for i in range(60) for j in range(60) if i != j]
    assert sentence(InputError, upgrade, OLD, OLD, threshold=score) == (
        f"{ends} a threshold of {score:.4g}: old scores run from {min(cosines):.4g} to {max(cosines):.4g}. Give one "
        "between."
    )


def test_a_map_refuses_vectors_of_another_width() -> None:
    fitted: Upgrade = upgrade(OLD, OLD)
    assert sentence(InputError, fitted.map, vectors(5, 4)) == (
        "the vectors have 4 columns, and the map takes 6. Pass vectors of the old model."
    )


def test_the_command_refuses_files_that_it_cannot_read(tmp_path: Path) -> None:
    (file,) = saved(tmp_path, old=OLD)
    two = tmp_path / "two.npz"
    np.savez(two, a=OLD, b=OLD)
    missing = str(tmp_path / "missing.npy")
    assert sentence(InputError, invoke, command, file, missing) == f"no file {missing!r}. Check the path."
    assert sentence(InputError, invoke, command, file, str(two)) == (
        f"{str(two)!r} holds 2 arrays. Name one, as in '{two}:a'."
    )
    assert sentence(OptionError, invoke, command, file, file, "--query-labels", file) == (
        "--query-labels has no effect without --queries and --labels. Leave it out."
    )
