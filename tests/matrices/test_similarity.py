"""A matrix of networks: names, marks for scores that say nothing and for scores beyond chance, text, pictures."""

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise import measures
from likewise.views import Activations
from tests.helpers import sentence
from tests.matrices.helpers import views

REASON = (
    "64 neurons can express anything on 40 inputs, so any network with as many that are "
    "independent gets this score. Show the networks more inputs."
)
CHANCE = "* more alike than chance: q <= 0.05 over 6 pairs, from 99 shuffles of the inputs"
POOLED = "; p below 0.11 from the shuffles of all 6 pairs, standardised"


RNG = np.random.default_rng(11)
HIDDEN = RNG.normal(size=(90, 6))
VIEWS = {
    name: np.maximum(HIDDEN @ RNG.normal(size=(6, d)) + 0.6 * RNG.normal(size=(90, d)), 0)
    for name, d in zip("abcd", (10, 10, 14, 120), strict=True)
}


def test_matrices_of_the_wrong_shape() -> None:
    assert sentence(ValueError, likewise.SimilarityMatrix, ["a", "b"], np.ones((3, 3))) == (
        "2 names need a 2 x 2 matrix, got (3, 3)."
    )
    assert sentence(ValueError, likewise.SimilarityMatrix, ["a", "a"], np.ones((2, 2))) == (
        "the name 'a' is given twice. Names must differ."
    )
    matrix = likewise.SimilarityMatrix(["resnet", "vit"], np.eye(2))
    assert sentence(KeyError, matrix.__getitem__, ("resnet", "vitt")) == (
        "no network named 'vitt'. Did you mean 'vit'?"
    )


def test_the_direction_must_be_known() -> None:
    names, values = ["a", "b"], [[0, 1], [1, 0]]
    assert sentence(ValueError, likewise.SimilarityMatrix, names, values, "procrustes") == (
        "nothing says whether a larger procrustes is more or less alike. Pass larger_is='more alike' or 'less alike', "
        "or the measure itself: measure=likewise.measures.get(...)."
    )
    assert likewise.SimilarityMatrix(names, values).larger_is == "more alike"
    assert likewise.SimilarityMatrix(names, values, "mine", "less alike").larger_is == "less alike"
    known = likewise.SimilarityMatrix(names, values, measures.get("procrustes"))
    assert (known.measure, known.larger_is, known.bounds[0]) == ("procrustes", "less alike", 0)


def test_a_comparison_finds_a_matrix_by_alias_with_and_without_options() -> None:
    found = likewise.compare({k: VIEWS[k] for k in "ab"}, ["cka", "jaccard[k=3]", "jaccard[k=5]", "procrustes[resi]"])
    assert found["CKA"] is found["linear_cka"] is found["cka"]
    assert found["OrthProc"] is found["OrthProc[resi]"] is found["procrustes[resi]"]
    assert found["Jaccard[k=5]"] is found["jaccard[k=5]"]
    for name in ("jaccard", "rsa", "cka[resi]"):
        with pytest.raises(likewise.errors.UnknownNameError, match="in this comparison"):
            found[name]


def test_numbers_are_shown_and_taken_as_arrays() -> None:
    matrix = likewise.compare(VIEWS, "cka")
    shown = str(matrix).splitlines()
    assert shown[0] == "SimilarityMatrix('cka', 4 networks), larger is more alike"
    assert shown[1].split() == [*"abcd"]
    assert float(shown[2].split()[2]) == pytest.approx(matrix["a", "b"], rel=1e-3)
    assert f"{matrix['a', 'b']:.4g}" in matrix._repr_html_()
    assert np.array_equal(np.asarray(matrix), matrix.values)
    view = Activations(VIEWS["a"])
    assert np.array_equal(np.asarray(view), VIEWS["a"])
    assert view.shape == VIEWS["a"].shape
    assert len(view) == 90


def test_a_comparison_shows_one_row_per_measure_and_one_column_per_pair() -> None:
    three = {name: VIEWS[name] for name in "abc"}
    header = str(likewise.compare(three, ["cka", "jaccard"])).splitlines()[1]
    assert header.split() == ["pair", *"a~b", *"a~c", *"b~c"]
    assert "b → a" in str(likewise.compare(three, ["cka", "linear-regression"]))


def test_a_matrix_is_saved_and_loaded_whole(tmp_path) -> None:
    matrix = likewise.compare({**VIEWS, "dead": np.ones((90, 5))}, ["cka"], calibrate=True)["cka"]
    loaded = likewise.SimilarityMatrix.load(matrix.save(tmp_path / "cka"))
    assert loaded.names == matrix.names
    assert np.array_equal(loaded.values, matrix.values, equal_nan=True)
    assert loaded.reasons == matrix.reasons
    assert np.array_equal(loaded.extra["p"], matrix.extra["p"], equal_nan=True)
    comparison = likewise.compare(VIEWS, ["cka", "rsa"])
    again = likewise.Comparison.load(comparison.save(tmp_path / "all"))
    assert again["rsa"]["a", "b"] == comparison["rsa"]["a", "b"]


def test_a_picture_shows_every_network(tmp_path) -> None:
    figure = likewise.compare(VIEWS, "cka").plot(tmp_path / "cka.png")
    labels = {tick.get_text() for tick in figure.axes[0].get_xticklabels()}
    assert labels == set("abcd")
    assert (tmp_path / "cka.png").read_bytes()[:4] == b"\x89PNG"
    figure = likewise.compare(VIEWS, ["cka", "procrustes", "jaccard"]).plot(tmp_path / "all.png")
    assert sum(bool(axis.images) for axis in figure.axes) == 3


def test_pictures_are_in_the_order_of_the_table() -> None:
    near = {name: VIEWS["a"] + 0.1 * i * VIEWS["b"] for name, i in zip("pqr", (0, 9, 1), strict=True)}
    comparison = likewise.compare(near, ["cka", "jaccard"])
    assert comparison["cka"].order() != list(near)  # sorted, they would stand otherwise
    for figure in (comparison.plot(), comparison["cka"].plot()):
        assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == list(near)
        np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), comparison["cka"].values)
    names = [tick.get_text() for tick in comparison["cka"].sorted().plot().axes[0].get_xticklabels()]
    assert names == comparison["cka"].order()


@pytest.mark.parametrize(
    ("measure", "values", "ends"),
    [
        ("cka", [[1, 0.84], [0.85, 1]], (0, 1)),
        ("rsa", [[1, 0.84], [0.85, 1]], (-1, 1)),
        ("cka-debiased", [[1, 0.84], [0.85, 1]], (0, 1)),  # it may be any number below 1; 0 is chance
        ("cka-debiased", [[1, -0.2], [0.85, 1]], (0, 1)),  # one scale in all pictures of a measure
        ("procrustes[resi]", [[0, 1.2], [1.3, 0]], (0, 2**0.5)),
        ("", [[3, 2], [2, 3]], (2, 3)),
    ],
)
def test_colours_span_the_range_of_the_measure_or_else_of_the_values(
    measure: str, values: list[list[float]], ends: tuple[float, float]
) -> None:
    matrix = likewise.SimilarityMatrix(["a", "b"], values, measure and measures.get(measure))
    assert matrix.plot().axes[0].images[0].get_clim() == ends


def test_untrained_networks_are_named_wherever_a_matrix_is_shown(tmp_path) -> None:
    matrix = likewise.compare(["zoo:mlp", "zoo:lenet,seed=1"], "cka", data="digits:test[:40]", progress=False)
    note = "Untrained, with random weights: mlp, lenet,seed=1."
    accuracy = "accuracy: mlp 12.5 %, lenet,seed=1 7.5 %"
    assert str(matrix).splitlines()[-2:] == [accuracy, note]
    assert note in matrix._repr_html_()
    assert matrix.plot().axes[0].get_xlabel() == f"{accuracy}\n{note}"
    assert likewise.SimilarityMatrix.load(matrix.save(tmp_path / "m")).notes() == [accuracy, note]
    several = likewise.compare(["zoo:mlp", "zoo:lenet,seed=1"], ["cka", "rsa"], data="digits:test[:40]", progress=False)
    assert str(several).splitlines()[-1] == note
    assert str(several).count("Untrained") == 1


def test_a_saturated_pair_is_marked_in_print_notebook_frame_and_file(tmp_path) -> None:
    matrix = likewise.compare(views(), "mean-cca")
    assert set(matrix.saturated) == {(x, y) for x in matrix for y in matrix if x != y and "wide" in (x, y)}
    assert set(matrix.saturated.values()) == {REASON}
    lines = str(matrix).splitlines()
    assert lines[2].split() == ["wide", "1", "1†", "1†", "1†"]
    assert "†" not in "".join(lines[3].split()[2:])
    assert lines[-1] == f"† saturated: {REASON}"
    assert ">1†</td>" in matrix._repr_html_()
    assert REASON in matrix._repr_html_()
    frame = matrix.to_frame(long=True).set_index(["a", "b"])
    assert frame.saturated["wide", "a"] == REASON
    assert frame.saturated["a", "b"] == frame.saturated["wide", "wide"] == ""
    matrix.to_frame(long=True).to_csv(tmp_path / "scores.csv", index=False)
    assert (pd.read_csv(tmp_path / "scores.csv").saturated == REASON).sum() == 6
    loaded = likewise.SimilarityMatrix.load(matrix.save(tmp_path / "m"))
    assert loaded.saturated == matrix.saturated
    assert str(loaded) == str(matrix)


def test_the_second_network_of_a_regression_saturates_it() -> None:
    matrix = likewise.compare(views(), "linear-regression")
    assert set(matrix.saturated) == {("a", "wide"), ("b", "wide"), ("noise", "wide")}


def test_a_picture_marks_saturated_pairs() -> None:
    matrix = likewise.compare(views(), "mean-cca")
    axis = matrix.plot().axes[0]
    assert sum(text.get_text() == "1.00†" for text in axis.texts) == 6
    assert axis.get_xlabel().replace("\n", " ") == f"† saturated: {REASON}"
    many = {f"n{i}": np.random.default_rng(i).normal(size=(12, 4)) for i in range(25)}
    many["wide"] = np.random.default_rng(99).normal(size=(12, 30))
    axis = likewise.compare(many, "mean-cca").plot().axes[0]
    assert len(axis.collections[0].get_offsets()) == 50
    both = likewise.compare(views(), ["mean-cca", "cka"]).plot()
    assert sum(text.get_text().endswith("†") for text in both.axes[0].texts) == 6
    assert not any(text.get_text().endswith("†") for text in both.axes[1].texts)


def test_marks_follow_the_networks_when_they_are_sorted() -> None:
    matrix = likewise.compare(views(), "mean-cca", calibrate=9)
    turned = matrix.reordered(["noise", "b", "a", "wide"])
    assert turned["b", "wide"] == matrix["b", "wide"]
    assert turned.extra["p"][1, 3] == matrix.extra["p"][2, 0]
    assert turned.saturated == matrix.saturated


def test_pairs_beyond_chance_are_marked_by_their_false_discovery_rate() -> None:
    comparison = likewise.compare(views(), ["cka", "procrustes"], calibrate=99)
    matrix = comparison["cka"]
    related = [(x, y) for x in matrix for y in matrix if x != y and "noise" not in (x, y)]
    frame = matrix.to_frame(long=True).set_index(["a", "b"])
    assert frame.q[related].tolist() == pytest.approx([2 / (1 + 6 * 99)] * 6)  # beyond all shuffles of six pairs, three
    assert (frame.q[[("wide", "noise"), ("a", "noise")]] > 0.05).all()
    lines = str(matrix).splitlines()
    assert [word.endswith("*") for word in lines[2].split()[1:]] == [False, True, True, False]
    assert lines[-1] == CHANCE + POOLED
    shown = str(comparison).splitlines()
    assert shown[-1] == CHANCE + POOLED
    assert shown[1].split()[0] == "pair"
    assert shown[3].split()[0] == "cka"
    assert [word.endswith("*") for word in shown[3].split()[1:]] == [True, True, False, True, False, False]
    page = comparison._repr_html_()
    assert "<th>procrustes</th>" in page
    assert "Comparison(2 measures, 4 networks)" in page


def test_the_legend_says_when_classes_were_kept() -> None:
    labels = np.repeat(np.arange(4), 10)
    matrix = likewise.compare(views(), "cka", calibrate=99, within=labels)
    assert str(matrix).splitlines()[-1] == CHANCE + " within 4 classes" + POOLED
    few, enough = (likewise.compare(views(), "cka", calibrate=shuffles) for shuffles in (19, 20))
    assert str(few).endswith("; one pair alone would need calibrate=20")
    assert "need" not in str(enough)
    without_null_first = likewise.compare(views(), ["imd", "cka"], calibrate=99)
    assert str(without_null_first).splitlines()[-1] == CHANCE + POOLED


def test_no_star_is_given_to_strangers_but_by_chance() -> None:
    rng = np.random.default_rng(3)
    matrix = likewise.compare({str(i): rng.normal(size=(30, 4)) for i in range(8)}, "cka", calibrate=99)
    assert (matrix.extra["p"] <= 0.05).sum() / 2 >= 1  # some of 28 by chance
    assert not (matrix.extra["q"] <= 0.05).any()


def test_numbers_of_a_measure_that_is_not_symmetric_are_listed_both_ways() -> None:
    frame = likewise.compare(views(), ["cka", "linear-regression"], calibrate=9).numbers()
    assert (frame.measure == "cka").sum() == 6
    assert (frame.measure == "linear-regression").sum() == 12
    assert list(frame.columns)[:4] == ["a", "b", "measure", "value"]
