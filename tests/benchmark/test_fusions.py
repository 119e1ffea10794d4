"""Fusions of measures evaluated on a run, and the truth drawn beside what measures say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.analysis import fuse
from likewise.benchmark import BenchmarkRun, Fusion, Results, evaluate_fusions, plot_truth, run
from likewise.benchmark.evaluation import Evidence
from likewise.comparison.compare import compare
from likewise.errors import InputError

FEW = {"seeds": 3, "group": 2, "layered": 2, "train": 60, "probe": 30, "training": {"epochs": 1}}
MEASURES = ["cka", "procrustes", "linear-regression"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkRun:
    out = tmp_path_factory.mktemp("fusions") / "run"
    groundings = ["labels", "accuracy", "layers"]
    return run("vision", "digits", "mlp", groundings=groundings, out=out, measures=MEASURES, preset=FEW, progress=False)


def test_measures_beside_fusions_are_as_in_the_run(made: BenchmarkRun) -> None:
    frame = evaluate_fusions(made.out, {"both": Fusion()}, MEASURES, progress=False).frame
    keys = ["grounding", "metric", "variant", "measure", "ties"]
    ours, theirs = (
        table.fillna({"ties": ""}).set_index(keys)["value"] for table in (frame, Results.load(made.out).frame)
    )
    assert set(ours.index) - set(theirs.index) == {key for key in ours.index if key[3] == "both"}
    assert np.allclose(ours.reindex(theirs.index), theirs, equal_nan=True, rtol=1e-12)


def test_a_fusion_is_that_of_the_matrices_of_its_measures(made: BenchmarkRun) -> None:
    fusion = Fusion("ranks", {"cka": 2.0, "linear-regression": 1.0})
    frame = evaluate_fusions(made, {"two": fusion}, MEASURES, progress=False).form().frame
    (trial,) = made.trials(["labels"])
    fused = fuse(compare(dict(trial.views), ["cka", "linear-regression"], progress=False), weights=fusion.weights)
    values = fused.reordered(list(trial.views)).values
    evidence = Evidence("two", "more alike", True, values, trial.groups)
    expected = {
        one.metric: one.value
        for one in trial.rule.evaluate(evidence)
        if one.variant == "published" and one.ties in (None, "conform")
    }
    rows = frame[(frame["measure"] == "two") & (frame["grounding"] == "labels")]
    assert dict(zip(rows["metric"], rows["value"], strict=True)) == pytest.approx(expected)


def test_a_fusion_of_what_is_not_evaluated_is_refused(made: BenchmarkRun) -> None:
    with pytest.raises(InputError) as error:
        evaluate_fusions(made, {"two": Fusion("ranks", {"rsa": 1.0})}, MEASURES)
    assert str(error.value) == "the fusion 'two' weighs 'rsa', which is not among the measures. Name it among them too."


def test_the_true_groups_stand_beside_what_each_measure_says_the_best_first(made: BenchmarkRun, tmp_path: Path) -> None:
    figure = plot_truth(made, tmp_path / "truth.png", measures=MEASURES)
    assert (tmp_path / "truth.png").stat().st_size > 5000
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles[0] == "true: groups"
    qualities = [float(title.split()[-1]) for title in titles[1:]]
    assert qualities == sorted(qualities, reverse=True)
    (trial,) = made.trials(["labels"])
    truth = np.asarray(figure.axes[0].images[0].get_array().filled(np.nan))
    for i, one in enumerate(trial.groups):
        for j, other in enumerate(trial.groups):
            assert np.isnan(truth[i, j]) if i == j else truth[i, j] == (one == other)


def test_answers_and_layers_have_a_truth_too(made: BenchmarkRun) -> None:
    for grounding, title in (("accuracy", "true: accuracy"), ("layers", "true: layers apart")):
        figure = plot_truth(made.out, grounding=grounding, measures=["cka"])
        assert figure.axes[0].get_title() == title


def test_a_grounding_that_the_run_has_not_is_refused(made: BenchmarkRun) -> None:
    with pytest.raises(InputError) as error:
        plot_truth(made, grounding="shortcut")
    assert str(error.value) == f"{made.out} has no grounding 'shortcut'. It has 'labels', 'accuracy', 'layers'."
