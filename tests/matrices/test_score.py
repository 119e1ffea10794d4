"""A score is a number in files, one line at a prompt, and is compared with chance on request."""

import copy
import csv
import gc
import io
import json
import logging
import pickle
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison import significance
from likewise.matrices.score import Score
from likewise.measures.workspace import Workspace
from tests.helpers import sentence


def networks(n=80, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 6))
    return [hidden @ rng.normal(size=(6, d)) + noise * rng.normal(size=(n, d)) for d in (12, 7)]


def strangers(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(2, n, d))


def of_classes(seed=0):
    """Two networks that share nothing but the class of an input."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(5), 20)
    return labels, [np.eye(5)[labels] @ rng.normal(size=(5, 8)) + rng.normal(size=(100, 8)) for _ in "ab"]


def alive(kind):
    return sum(issubclass(type(each), kind) for each in gc.get_objects())


def test_a_score_is_a_number_in_files_strings_and_logs(caplog) -> None:
    x, y = networks()
    score = likewise.compare(x, y, "cka")
    number = repr(float(score))
    out = io.StringIO()
    csv.writer(out).writerow(["cka", score])
    assert out.getvalue() == f"cka,{number}\r\n"
    assert str(score) == f"{score}" == f"{score!s}" == number
    assert f"{score:.3f}" == f"{float(score):.3f}"
    assert json.dumps(score) == number
    assert pd.DataFrame({"cka": [score]}).cka.dtype == np.float64
    with caplog.at_level(logging.INFO):
        logging.getLogger("run").info("cka %s, %.2f", score, score)
    assert caplog.messages == [f"cka {number}, {float(score):.2f}"]


def test_a_prompt_shows_one_line_and_computes_nothing(monkeypatch) -> None:
    def refuse(*given, **how):
        raise AssertionError("shown, not asked")

    x, y = networks()
    scores = [likewise.compare(x, y, name) for name in ("cka", "procrustes")]
    monkeypatch.setattr(significance, "null_draws", refuse)
    monkeypatch.setattr(measures.Measure, "score", refuse)
    cka, procrustes = scores
    assert repr(cka) == f"cka = {float(cka):.4g} (0 … 1, larger is more alike; 1 with itself)"
    assert repr(scores) == f"[{cka!r}, {procrustes!r}]"
    assert "\n" not in repr(scores)
    assert "larger is less alike; 0 with itself" in repr(procrustes)


def test_the_explanation_adds_the_verdict() -> None:
    x, y = strangers(100, 512)
    lines = likewise.compare(x, y, "cka").explain().splitlines()
    assert lines[0] == "cka = 0.837 (0 … 1, larger is more alike; 1 with itself)"
    start, _, p = lines[1].partition(" (p = ")
    assert start == "0.84 is what noise gives at n = 100, d = 512"
    assert p.endswith(" from 99 shuffles of the inputs).")
    assert float(p.split()[0]) > 0.05
    x, y = networks()
    assert likewise.compare(x, y, "procrustes").verdict == (
        "More alike than noise, which gives 1.3 at n = 80, d = 12 and 7 (p = 0.02 from 99 shuffles of the inputs)."
    )


def test_a_notebook_shows_the_verdict_but_not_inside_a_list() -> None:
    x, y = networks()
    score = likewise.compare(x, y, "cka")
    shown = []
    for stack in ([0], [0, 1]):
        score._repr_pretty_(SimpleNamespace(text=shown.append, stack=stack), cycle=False)
    assert shown == [score.explain(), repr(score)]
    bar = f'<meter min="0" max="1" value="{score:.4g}">{score:.4g}</meter>'
    assert score._repr_html_() == f"<p>x and y: <b>{score!r}</b> {bar}</p><p>{score.verdict}</p>"


def test_names_of_people_are_no_markup_in_a_notebook() -> None:
    score = Score(0.5, measure="<cka>", names=("<script>", "b&c"), paired=False)
    page = score._repr_html_()
    assert page.startswith("<p>&lt;script&gt; and b&amp;c: <b>&lt;cka&gt; = 0.5")
    assert "meter" not in page  # its range has no ends


def test_the_explanation_does_not_depend_on_the_clock(monkeypatch) -> None:
    x, y = networks()
    expected = likewise.compare(x, y, "cka").explain()
    assert "More alike than noise" in expected
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))  # a slow machine: an hour between two looks
    assert likewise.compare(x, y, "cka").explain() == expected


@pytest.mark.parametrize(
    ("n", "d", "name", "shuffled"),
    [
        (100, 512, "cka", True),
        (100, 512, "procrustes", True),
        (100, 512, "permutation-procrustes", False),  # an assignment of 512 neurons per shuffle
        (1000, 128, "cka", True),
        (3000, 128, "cka", False),
        (300, 16, "mutual-knn", True),
        (2000, 16, "mutual-knn", False),
        (100, 16, "rtd", False),
    ],
)
def test_whether_inputs_are_shuffled_follows_from_sizes_and_the_declared_cost(n, d, name, shuffled) -> None:
    score = Score(0.5, measure=name, n=n, widths=(d, d))
    judge = significance.Judge.of((np.empty(0), np.empty(0)), measures.get(name), None)
    assert judge._quick(score) is shuffled


def test_a_measure_of_ones_own_is_not_shuffled_unasked() -> None:
    calls = []

    def own(x, y):
        calls.append(1)
        return float(x.mean() * y.mean())

    x, y = networks()
    score = likewise.compare(x, y, own)
    assert len(calls) == 1
    assert score.explain().splitlines()[1] == "The same call with calibrate=True tells it from noise."
    assert len(calls) == 1


def test_kept_scores_hold_numbers_and_no_arrays() -> None:
    x, y = strangers(100, 16)
    likewise.compare(x, y, "mutual-knn")
    gc.collect()
    tensors = alive(torch.Tensor)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [likewise.compare(x, y, "mutual-knn") for _ in range(200)]
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert (after - before) / len(kept) < 1024
    assert (alive(Workspace), alive(torch.Tensor)) == (0, tensors)


def test_when_the_arrays_are_gone_or_changed_the_verdict_names_the_call() -> None:
    call = "likewise.compare(x, y, 'cka', calibrate=True) tells it from noise."
    x, y = networks()
    gone, changed = likewise.compare(x.copy(), y, "cka"), likewise.compare(x, y, "cka")
    lists = likewise.compare(x.tolist(), y.tolist(), "cka")
    x[:] = np.random.default_rng(1).normal(size=x.shape)
    assert [gone.verdict, changed.verdict, lists.verdict] == [call] * 3


def test_views_and_tensors_have_a_verdict_too() -> None:
    x, y = networks()
    views = [likewise.Activations(v, name=n) for v, n in ((x, "first"), (y, "second"))]
    tensors = [torch.from_numpy(v) for v in (x, y)]
    expected = likewise.compare(x, y, "cka").verdict
    assert likewise.compare(*views, "cka").verdict == expected
    assert likewise.compare(*tensors, "cka").verdict == expected


def test_a_score_says_when_shuffling_says_nothing() -> None:
    x, y = networks()
    for calibrate in (False, True):
        assert likewise.compare(x, y, "imd", calibrate=calibrate).verdict == (
            "It does not look at single inputs, so shuffling them gives no null."
        )


def test_a_pickled_or_copied_score_keeps_what_it_is() -> None:
    x, y = networks()
    score = likewise.compare(x, y, "jaccard", k=5, calibrate=19)
    for other in (pickle.loads(pickle.dumps(score)), copy.deepcopy(score)):
        assert type(other) is likewise.Score
        assert (float(other), repr(other)) == (float(score), repr(score))
        assert (other.measure, other.names, other.n, other.widths) == ("jaccard[k=5]", ("x", "y"), 80, (12, 7))
        assert (other.larger_is, other.bounds, other.identity) == ("more alike", (0, 1), 1)
        assert other.calibration == score.calibration
        assert other.explain() == score.explain()


def test_networks_that_share_only_their_classes_are_not_more_alike_than_these() -> None:
    labels, (x, y) = of_classes()
    assert likewise.compare(x, y, "cka").verdict.startswith("More alike than noise, which gives ")
    views = [likewise.Activations(v, outputs=likewise.Outputs(np.eye(5)[labels], labels)) for v in (x, y)]
    verdict = likewise.compare(*views, "cka").verdict
    assert " is what the 5 classes alone give at n = 100, d = 8 (p = " in verdict
    assert verdict.endswith(" from 99 shuffles of the inputs within classes).")
    z = x @ np.random.default_rng(9).normal(size=(8, 8))
    related = [views[0], likewise.Activations(z, outputs=views[0].outputs)]
    assert likewise.compare(*related, "cka").verdict.startswith(
        "More alike than the 5 classes alone would make them, which give "
    )


def test_a_calibrated_score_carries_its_null() -> None:
    x, y = networks()
    score = likewise.compare(x, y, "cka", calibrate=True)
    alone = likewise.calibrate(x, y, "cka")
    assert score.calibration == alone
    assert score.calibration.permutations == 200
    assert score == alone.value
    assert score.verdict == (
        f"More alike than noise, which gives {alone.null_mean:.2g} at n = 80, d = 12 and 7 "
        "(p = 0.01 from 200 shuffles of the inputs)."
    )
    row = score.to_frame().iloc[0]
    assert (row.value, row.p, row.null_mean) == (score, alone.p, alone.null_mean)
    assert likewise.compare(x, y, "cka").calibration is None


def test_calibration_within_classes_reaches_the_score() -> None:
    labels, (x, y) = of_classes()
    free = likewise.compare(x, y, "cka", calibrate=99)
    within = likewise.compare(x, y, "cka", calibrate=99, within=labels)
    assert free.calibration.p == 0.01
    assert within.calibration.p > 0.05
    assert within.calibration.groups == 5
    assert within.verdict.endswith(" from 99 shuffles of the inputs within classes).")


def test_within_and_calibrate_are_checked() -> None:
    x, y = networks()
    assert sentence(ValueError, likewise.compare, x, y, "cka", within=np.zeros(80)) == (
        "within says how inputs are shuffled. Pass calibrate=True too."
    )
    assert sentence(ValueError, likewise.compare, x, y, "cka", calibrate="yes") == (
        "calibrate must be True, False or a number of shuffles, got 'yes'."
    )


def test_a_saturated_score_says_so() -> None:
    x, y = (np.random.default_rng(seed).normal(size=(30, d)) for seed, d in enumerate((64, 5)))
    reason = (
        "64 neurons can express anything on 30 inputs, so any network with as many that are "
        "independent gets this score. Show the networks more inputs."
    )
    score = likewise.compare(x, y, "mean-cca")
    assert repr(score) == "mean-cca = 1 (0 … 1, larger is more alike; 1 with itself, saturated)"
    assert score.explain().splitlines()[1] == f"Saturated: {reason}"
    assert score.to_frame().saturated.tolist() == [reason]
    assert likewise.compare(x, y, "linear-regression").saturated == ""  # x from y
    assert likewise.compare(y, x, "linear-regression").saturated == reason
    assert likewise.compare(x, y, "cka").saturated == ""
    assert likewise.compare(x, y, "mutual-knn", k=29).saturated == (
        "with k = 29 all other of the 30 inputs are neighbours, so any network gets this score. Choose a smaller k."
    )
    flat = x[:, :3] @ np.random.default_rng(2).normal(size=(3, 64))  # wide, of rank 3
    assert likewise.compare(flat, y, "mean-cca").saturated == ""


def test_a_confounder_is_named_as_what_chance_keeps() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(60, 3))
    x, y = (np.tanh(shared @ rng.normal(size=(3, 8))) + rng.normal(size=(60, 8)) for _ in "ab")
    measure = measures.get("cka-deconfounded", confounder=shared)
    for score in (likewise.compare(x, y, measure), likewise.compare(x, y, measure, calibrate=99)):
        assert "is what the confounder alone gives at n = 60, d = 8 (p = " in score.verdict
        assert score.verdict.endswith(" shuffles of what the confounder leaves of the inputs).")
    gone = likewise.compare(x.copy(), y, measure)
    assert gone.verdict == "The same call with calibrate=True tells it from noise."
