"""The simulations score what the public calls score, and go on where they stopped."""

import numpy as np
import pytest
from perf.parts import load_parts, run_parts

import likewise
from likewise import measures
from likewise.comparison.intervals import GROUPS, Groups, interval_of
from likewise.comparison.units import Units
from likewise.measures.registry import MEASURES
from perf import coverage, false_discoveries, false_positives

CELL = coverage.Cell(50, 20)


def test_a_trial_has_the_intervals_of_bootstrap() -> None:
    views, confounder = CELL.inputs(150)
    split = Groups.of(Units.single(50), GROUPS, 150)
    found = {name: (value, draws) for name, value, draws, _ in coverage.trial_rows(CELL, 150)}
    for name in ("cka", "gulp", "jaccard", "disagreement", "cka-deconfounded"):
        bound = {"confounder": confounder} if name == "cka-deconfounded" else {}
        measure = measures.get(name, **bound)
        value, draws = found[name]
        low, high = interval_of(measure.info, np.array(value), draws, split, 0.95)
        alone = likewise.bootstrap(*views, measure, seed=150)
        assert (float(low), float(high)) == pytest.approx((alone.low, alone.high))


def test_a_pair_has_the_p_of_calibrate() -> None:
    found = false_positives.p_values(50, 250)
    views = false_positives.unrelated(50, 250)
    for name in ("cka", "procrustes", "jaccard", "disagreement", "same-mistake"):
        alone = likewise.calibrate(*views, name, permutations=false_positives.SHUFFLES, seed=250)
        assert found[name] == alone.p


def test_every_paired_measure_is_tried() -> None:
    paired = {m.name for m in MEASURES if m.info.paired and m.info.family != "custom"}
    for tried in (CELL.measures(0), coverage.Cell(100, 20).measures(0)):
        missing = paired - {m.name for m in tried}
        assert missing <= set(coverage.SLOW)
    assert {m.name for m in coverage.Cell(100, 20).measures(0)} == paired
    assert {m.name for m in false_positives.measures(50, 0)} == paired - {"cka-deconfounded"}


def test_parts_that_are_there_are_not_done_again(tmp_path) -> None:
    done = []

    def work(numbers):
        done.extend(numbers)
        return {"cka": np.array(numbers, dtype=float)}

    run_parts(tmp_path, "cell", 20, work)
    run_parts(tmp_path, "cell", 35, work)
    assert done == list(range(35))
    assert list(load_parts(tmp_path, "cell")["cka"]) == list(range(35))


def test_a_zoo_has_the_p_and_q_of_compare(monkeypatch) -> None:
    monkeypatch.setattr(false_discoveries, "MEASURES", ("cka",))
    monkeypatch.setattr(false_discoveries, "SHUFFLES", 20)
    kept = false_discoveries.trials("pairs", range(3, 4))["cka"][0]
    shares = false_discoveries.discoveries(kept, "cka", np.array(false_discoveries.DESIGNS["pairs"]))
    views = {str(i): view for i, view in enumerate(false_discoveries.zoo("pairs", 3))}
    matrix = likewise.compare(views, "cka", calibrate=20, seed=3)
    upper = np.triu_indices(12, 1)
    related = np.array([(i, j) in ((0, 1), (2, 3), (4, 5)) for i, j in zip(*upper, strict=True)])
    assert shares["detected"] == (matrix.extra["q"][upper][related] <= 0.05).mean()
    assert shares["p <= .05"] == pytest.approx((matrix.extra["p"][upper][~related] <= 0.05).mean())
