"""Ranks of measures over cells and their picture; gains over the paper's measures, by hand and by SciPy's interval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from likewise.benchmark.results.paper import paper_results
from likewise.benchmark.results.ranks import gains, ranks
from likewise.errors import InputError
from tests.benchmark.frames import results, row

NAMES = ("cka", "rsa", "gulp", "nbs")


def cell(values: tuple[float | None, ...], **changes: object) -> list[dict[str, object]]:
    return [row(measure=name, value=value, **changes) for name, value in zip(NAMES, values, strict=True)]


def test_equal_values_share_the_mean_of_their_ranks_and_undefined_ones_the_last() -> None:
    found = ranks(results(cell((0.9, 0.9, 0.5, None)))).frame
    assert found["rank"].tolist() == [1.5, 1.5, 3.0, 4.0]
    assert found["undefined"].tolist() == [0, 0, 0, 1]
    found = ranks(results(cell((0.9, None, -0.5, None)))).frame
    assert found["rank"].tolist() == [1.0, 3.5, 2.0, 3.5]  # even a negative value beats none


def test_repetitions_are_ranked_one_by_one_and_averaged() -> None:
    found = ranks(results(cell((0.9, 0.8, 0.5, 0.1)) + cell((0.7, 0.8, 0.5, None), seed=1))).frame
    assert found["rank"].tolist() == [1.5, 1.5, 3.0, 4.0]
    assert found["undefined"].tolist() == [0, 0, 0, 0.5]


def test_domains_are_summed_up_apart_and_together() -> None:
    found = ranks(results(cell((0.4, 0.3, 0.2, 0.1)) + cell((0.1, 0.3, 0.4, 0.2), domain="vision", data="digits")))
    assert found.domains == ["graph", "vision", "overall"]
    assert found.of("vision").loc["GULP"].tolist() == [1.0]
    overall = found.summary().query("domain == 'overall'").set_index("label")
    assert overall["median"].to_dict() == {"CKA": 2.5, "RSA": 2.0, "GULP": 2.0, "nbs": 3.5}
    assert overall["cells"].tolist() == [2, 2, 2, 2]
    with pytest.raises(InputError) as error:
        found.of("language")
    assert str(error.value) == ("there are no ranks of the domain 'language'. There are 'graph', 'vision', 'overall'.")


def test_what_is_left_out_is_said() -> None:
    rows = cell((0.4, 0.3, 0.2, 0.1)) + cell((0.1, 0.2, 0.3, 0.4), data="flickr", valid=False)
    rows += [*cell((None, None, None, 0.4), data="ogbn-arxiv"), row(measure="eos", value=0.9)]
    found = ranks(results(rows))
    assert found.notes == (
        "Left out: 1 of 3 cells, whose groups are not valid.",
        "Left out: 'eos', which some cells lack.",
        "Left out: 1 of 2 cells, in which most measures are undefined.",
    )
    assert found.frame["rank"].tolist() == [1, 2, 3, 4]
    assert str(found).startswith("graph: ranks of 4 measures, 1 is best\n")
    assert str(found).endswith("\n".join(found.notes))


def test_nothing_to_rank_is_refused() -> None:
    with pytest.raises(InputError) as error:
        ranks(results(cell((0.1, 0.2, 0.3, 0.4), valid=False)))
    assert str(error.value) == ("no cell is left to rank by. Left out: 1 of 1 cells, whose groups are not valid.")
    with pytest.raises(InputError) as error:
        ranks(results([row(), row(measure_variant="resi")]))
    assert str(error.value) == (
        "these results hold measures in two forms. Choose measure_variant='published' or 'resi'."
    )
    with pytest.raises(InputError) as error:
        ranks(results([row()]), variant="resi")
    assert str(error.value) == "there are no results in the form 'resi' to rank. Choose another form."


def test_the_papers_figure_2_is_drawn_sorted_by_median(tmp_path: Path) -> None:
    found = ranks(paper_results(), variant="resi")
    figure = found.plot(tmp_path / "ranks.png")
    assert [axis.get_title() for axis in figure.axes] == [
        "graph (63 cells)",
        "language (14 cells)",
        "vision (48 cells)",
        "overall (125 cells)",
    ]
    names = [[text.get_text() for text in axis.get_yticklabels()] for axis in figure.axes]
    assert [shown[0] for shown in names] == ["2nd-Cos", "AlignCos", "Jaccard", "2nd-Cos"]
    assert all(len(shown) == 23 for shown in names)
    assert names[0][-1] == "PWCCA"  # no figure on graphs, so last there
    assert found.notes == ("Left out: 1 of 126 cells, in which most measures are undefined.",)
    assert (tmp_path / "ranks.png").stat().st_size > 30_000


def places(cka: list[float], mutual: list[float], **changes: object) -> list[dict[str, object]]:
    pairs = [("cka", cka), ("rsa", [0.1] * len(cka)), ("mutual-knn", mutual)]
    return [
        row(measure=name, value=value, network=f"net{number}", **changes)
        for name, values in pairs
        for number, value in enumerate(values)
    ]


def test_a_gain_is_over_the_best_of_the_paper_with_students_interval() -> None:
    found = gains(results(places([0.5, 0.6, 0.7], [0.7, 0.75, 0.95]))).iloc[0]
    assert (found["best of the 23"], found["measure"], found["places"]) == ("CKA", "mutual-knn", 3)
    differences = np.array([0.2, 0.15, 0.25])
    low, high = stats.t.interval(0.95, 2, differences.mean(), stats.sem(differences))
    assert found["gain"] == pytest.approx(0.2)
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert found["beats"]


def test_repetitions_are_no_new_places() -> None:
    rows = places([0.5], [0.9], seed=0) + places([0.7], [0.9], seed=1)
    found = gains(results(rows)).iloc[0]
    assert (found["places"], found["gain"]) == (1, pytest.approx(0.3))
    assert np.isnan(found["low"])
    assert found["beats"] is None


def test_domains_stand_alone_and_together() -> None:
    rows = places([0.5, 0.6], [0.4, 0.5]) + places([0.5, 0.6], [0.9, 1.0], domain="vision", data="digits")
    found = gains(results(rows)).set_index("domain")
    assert found["gain"].to_dict() == {
        "graph": pytest.approx(-0.1),
        "vision": pytest.approx(0.4),
        "all": pytest.approx(0.15),
    }
    assert found["beats"].tolist() == [False, True, False]


def test_what_is_not_valid_is_left_out() -> None:
    rows = places([0.5, 0.6], [0.9, 0.9]) + places([0.5], [0.1], data="flickr", valid=False)
    found = gains(results(rows))
    assert found["measure"].tolist() == ["mutual-knn"]
    assert found["places"].tolist() == [2]


def test_what_is_undefined_in_a_place_is_judged_on_the_others_and_comes_later() -> None:
    rows = places([0.5, 0.6], [0.9, 0.9])
    rows += [row(measure="pnka", value=1.0, network="net0"), row(measure="eos", value=0.8, network="net0")]
    found = gains(results(rows))
    assert found["measure"].tolist() == ["mutual-knn", "pnka"]
    assert found["places"].tolist() == [2, 1]
    assert found["best of the 23"].tolist() == ["CKA", "EOS"]  # the latter knows net0 alone
    assert found["gain"].tolist() == [pytest.approx(0.35), pytest.approx(0.2)]


def test_results_without_a_valid_cell_are_refused() -> None:
    with pytest.raises(InputError) as error:
        gains(results(places([0.5], [0.9], valid=False)))
    assert str(error.value) == "no valid cell holds measures in this form. Run the benchmark with --measures all."
