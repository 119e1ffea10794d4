"""From a measure of one's own to its place on the board: rows, their checksum, ranks and intervals."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

import likewise
from likewise.benchmark import Board, Submission, from_folder, submit
from likewise.benchmark.board import standings
from likewise.benchmark.board.submissions import Cell, load_rows, save_rows
from likewise.errors import InputError
from tests.benchmark.board.made import cached

PLACE = {"data": "made", "network": "noise", "preset": "small", "seed": 0, "coverage": 1.0, "valid": True}


def spread_ratio(x, y):  # type: ignore[no-untyped-def]
    """How near the spreads of two networks are."""
    low, high = sorted([x.var(), y.var()])
    return float(low / high)


@pytest.fixture(scope="module")
def rows() -> list[Submission]:
    return submit(["cka", "procrustes", spread_ratio], cached(), submitter="", progress=False)


def cell(value: float | None, domain: str = "vision", grounding: str = "labels", **without: float | None) -> Cell:
    metric = "auprc" if grounding == "labels" else "spearman"
    return Cell(**PLACE, domain=domain, grounding=grounding, metric=metric, value=value, without=without)  # type: ignore[arg-type]


def made(rows: list[Submission], **cells: tuple[Cell, ...]) -> Board:
    return Board([replace(rows[0], measure=name, cells=of) for name, of in cells.items()])


def test_a_row_holds_what_the_benchmark_gives(rows: list[Submission], tmp_path: Path) -> None:
    """The same representations, as a folder evaluates them."""
    networks = {}
    trial = cached().trials[1].trial
    for name, group in zip(trial.views, trial.groups, strict=True):
        np.save(tmp_path / f"{name}.npy", trial.views[name].values)
        networks[name] = {"representation": f"{name}.npy", "group": group}
    (tmp_path / "manifest.json").write_text(json.dumps({"networks": networks, "grounding": "labels"}))
    expected = from_folder(tmp_path, ["cka", "procrustes"], progress=False)
    expected = expected[(expected["metric"] == "auprc") & (expected["variant"] == "published")]
    got = [next(one for one in row.cells if one.grounding == "labels") for row in rows[:2]]
    assert [one.value for one in got] == pytest.approx(expected["value"].tolist(), abs=1e-8)
    assert [one.place for one in rows[0].cells] == [one.place for one in rows[2].cells]
    assert [(one.grounding, one.metric) for one in rows[0].cells[:5]] == [
        ("outputs", "spearman_jsd"),
        ("outputs", "spearman_disagreement"),
        ("labels", "auprc"),
        ("shortcut", "auprc"),
        ("layers", "spearman"),
    ]


def test_leaving_a_network_out_gives_what_views_without_it_give(rows: list[Submission]) -> None:
    from likewise.benchmark import CachedViews, Trial

    views = cached()
    trial = views.trials[1].trial
    fewer = {name: view for name, view in trial.views.items() if name != "a1"}
    alone = CachedViews.of([(views.trials[1].settings, Trial("labels", fewer, ("a", "a", "b", "b", "b")))])
    (row,) = submit("cka", alone, progress=False)
    labels = next(one for one in rows[0].cells if one.grounding == "labels")
    assert list(labels.without) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert labels.without["a1"] == pytest.approx(row.cells[0].value, abs=1e-8)


def test_a_row_says_what_it_is_of(rows: list[Submission]) -> None:
    assert repr(rows[0]) == f"Submission('cka', 10 cells, views={cached().digest!r})"
    assert rows[0].invariant_to == ("permutation", "rotation", "scale", "shift")
    assert (rows[2].measure, rows[2].family, rows[2].source) == ("spread-ratio", "custom", "given by the user")
    assert set(rows[0].versions) == {"likewise", "torch", "numpy", "python"}
    assert rows[0].versions["likewise"] == likewise.__version__


def test_a_measure_of_outputs_is_evaluated_on_groups_only() -> None:
    (row,) = submit("jsd", cached(), progress=False)
    assert {one.grounding for one in row.cells} == {"labels", "shortcut"}


def test_rows_come_back_as_they_were_saved(rows: list[Submission], tmp_path: Path) -> None:
    assert load_rows(save_rows(rows, tmp_path / "rows.json")) == rows
    assert load_rows(rows[1].save(tmp_path / "row.json")) == [rows[1]]


def test_a_changed_row_is_refused(rows: list[Submission], tmp_path: Path) -> None:
    path = rows[0].save(tmp_path / "row.json")
    row = json.loads(path.read_text())
    row["cells"][0]["value"] = 1.0
    path.write_text(json.dumps(row))
    with pytest.raises(InputError) as caught:
        load_rows(path)
    assert str(caught.value) == (
        f"{path} holds no row of a board (the row of 'cka' does not match its checksum). Make it by `likewise "
        "benchmark submit`."
    )


def test_the_same_numbers_come_from_other_threads(tmp_path: Path) -> None:
    """Another process with another number of threads stands for another machine: sums come in another order."""
    cached().save(tmp_path / "views")
    program = (
        "import sys\nfrom likewise.benchmark import submit\n"
        "from likewise.benchmark.board.submissions import save_rows\n"
        "save_rows(submit(['cka', 'procrustes', 'svcca'], sys.argv[1], progress=False), sys.argv[2])"
    )
    values = []
    for threads in ("1", "2"):
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        words = [sys.executable, "-c", program, str(tmp_path / "views.safetensors"), str(tmp_path / f"{threads}.json")]
        subprocess.run(words, check=True, env=environment)
        found = load_rows(tmp_path / f"{threads}.json")
        values.append([value for row in found for one in row.cells for value in (one.value, *one.without.values())])
    assert values[0] == pytest.approx(values[1], abs=1e-6, nan_ok=True)


def test_ranks_are_means_over_cells_and_undefined_is_last(rows: list[Submission]) -> None:
    board = made(
        rows,
        good=(cell(0.9, a=0.9), cell(0.5, "graph", a=0.5)),
        poor=(cell(0.3, a=0.3), cell(0.8, "graph", a=0.8)),
        silent=(cell(None, a=None), cell(0.1, "graph", a=0.1)),
    )
    found = {one.submission.measure: one for one in board.standings()}
    assert [found[name].rank for name in ("good", "poor", "silent")] == [1.5, 1.5, 3.0]
    assert [found[name].undefined for name in ("good", "poor", "silent")] == [0, 0, 1]
    assert found["silent"].value == 0.1
    assert [one.submission.measure for one in board.standings("labels", "graph")] == ["poor", "good", "silent"]
    assert (board.questions, board.domains) == (["all", "labels"], ["all", "vision", "graph"])


def test_a_cell_that_is_not_valid_counts_for_nobody(rows: list[Submission]) -> None:
    wrong = replace(cell(0.0, "graph", a=0.0), valid=False)
    board = made(rows, first=(cell(0.9, a=0.9), wrong), second=(cell(0.3, a=0.3), replace(wrong, value=1.0)))
    assert [(one.submission.measure, one.cells) for one in board.standings()] == [("first", 1), ("second", 1)]
    with pytest.raises(InputError) as caught:
        board.standings("labels", "graph")
    assert str(caught.value) == "no valid cell is of the question 'labels' and the domain 'graph'."


def test_a_measure_without_some_cell_is_not_ranked_there(rows: list[Submission]) -> None:
    board = made(
        rows,
        whole=(cell(0.9, a=0.9), cell(0.2, grounding="accuracy", a=0.2)),
        outputs=(cell(0.95, a=0.95),),
    )
    assert [one.submission.measure for one in board.standings()] == ["whole"]
    assert [one.submission.measure for one in board.standings("labels")] == ["outputs", "whole"]


def test_intervals_are_those_of_a_jackknife_by_hand(rows: list[Submission]) -> None:
    first = {"a": 0.8, "b": 0.3, "c": 0.7}
    second = {"a": 0.5, "b": 0.6, "c": 0.4}
    board = made(rows, first=(cell(0.6, **first),), second=(cell(0.5, **second),))
    one = next(standing for standing in board.standings() if standing.submission.measure == "first")
    fewer = [rankdata([-first[name], -second[name]])[0] for name in first]
    half = 4.302652729911275 * math.sqrt(2 / 3 * sum((rank - 1) ** 2 for rank in fewer))  # t of 3 - 1 degrees
    assert (one.low, one.high) == (1.0, min(2.0, 1 + half))
    wide = 4.302652729911275 * math.sqrt(2 / 3 * sum((value - 0.6) ** 2 for value in first.values()))
    assert (one.value_low, one.value_high) == pytest.approx((max(-1, 0.6 - wide), min(1, 0.6 + wide)))


def test_intervals_hold_the_place_of_a_measure_that_is_better_by_a_little() -> None:
    """Draws of networks whose similarity is known to two measures up to noise: the true mean is held as it should be.

    Each network adds its own noise to a pair of measures; values are means over networks, so that what leaving one
    out gives is known, and the expectation is 0.1 and 0.
    """
    draw, held = np.random.default_rng(0), []
    (row,) = submit("cka", cached(), progress=False)
    for _ in range(200):
        noise = draw.normal(0.0, 0.3, size=12)
        without = {str(i): float(np.delete(noise, i).mean()) for i in range(12)}
        board = Board([replace(row, measure="m", cells=(cell(float(noise.mean()), **without),))])
        (one,) = board.standings()
        held.append(one.value_low <= 0 <= one.value_high)
    assert 0.9 <= np.mean(held) <= 0.99


def test_rows_of_other_views_are_refused(rows: list[Submission]) -> None:
    other = replace(rows[1], views="0" * 24)
    with pytest.raises(InputError) as caught:
        Board([rows[0], other])
    assert str(caught.value) == (
        f"'procrustes' was evaluated on the cached views {'0' * 24}, and 'cka' on {rows[0].views}. Give rows of the "
        "same views."
    )


def test_a_measure_is_given_once(rows: list[Submission]) -> None:
    with pytest.raises(InputError, match=r"^there are two rows of 'cka'\. Give each measure once\.$"):
        Board([rows[0], rows[0]])
    assert len(Board([rows[0], replace(rows[0], submitter="somebody")]).rows) == 2


def test_the_rows_that_ship_are_of_one_set_of_views() -> None:
    board = Board.load()
    assert {"cka", "procrustes", "rsa"} <= {row.measure for row in board.rows}
    assert all(row.submitter == "" for row in board.rows)
    assert standings.OURS.stat().st_size < 1_000_000
    tables = standings.to_plain(board)["tables"]
    assert set(tables) <= {" ".join(pair) for pair in itertools.product(board.questions, board.domains)}
    assert "all all" in tables


def test_a_row_adds_no_cells_of_its_own(tmp_path: Path) -> None:
    """One more cell, or one that it alone calls valid, and no other measure would have all cells."""
    shipped = load_rows(standings.OURS)[0]
    made_up = replace(shipped.cells[0], data="mine", value=1.0)
    path = save_rows([replace(shipped, measure="mine", cells=(*shipped.cells, made_up))], tmp_path / "row.json")
    with pytest.raises(InputError) as error:
        Board.load(path)
    assert str(error.value) == (
        f"the row of 'mine' has a cell of {made_up.grounding!r} on 'mine', which the cached views {shipped.views} do "
        "not give. Evaluate it again on them."
    )
    valid = next(cell for cell in shipped.cells if cell.valid is not False)
    others = tuple(cell for cell in shipped.cells if cell is not valid)
    with pytest.raises(InputError) as error:
        Board([shipped, replace(shipped, measure="mine", cells=(*others, replace(valid, valid=False)))])
    assert str(error.value) == (
        f"{shipped.measure!r} has valid groups for {valid.grounding!r} of {valid.data!r}, and 'mine' says they are "
        "not. Evaluate both again on the cached views."
    )
