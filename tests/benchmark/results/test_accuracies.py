"""Accuracies by group as points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from likewise.benchmark.results.accuracies import accuracies, plot_accuracies
from likewise.errors import InputError
from tests.benchmark.frames import results, row

NETWORKS = pd.DataFrame(
    [
        {"name": "a", "group": "clean", "groundings": "accuracy;labels", "seed": 0, "accuracy": 0.8, "network": "gcn"},
        {"name": "b", "group": "random", "groundings": "labels", "seed": 0, "accuracy": 0.2, "network": "gcn"},
        {"name": "c", "group": "random", "groundings": "labels", "seed": 0, "accuracy": 0.3, "network": "gat"},
        {"name": "d", "group": "p = 1", "groundings": "shortcut", "seed": 0, "accuracy": 0.5, "network": "gcn"},
    ]
)
ROWS = [row(), row(grounding="shortcut"), row(grounding="accuracy", metric="spearman")]


def test_each_grounding_by_groups_has_its_networks() -> None:
    found = accuracies(replace(results(ROWS), networks=NETWORKS))
    assert {title: rows["name"].tolist() for title, rows in found.items()} == {
        "label randomisation": ["a", "b", "c"],
        "shortcut": ["d"],
    }


def test_points_stand_above_their_group(tmp_path: Path) -> None:
    figure = plot_accuracies(replace(results(ROWS), networks=NETWORKS), tmp_path / "points.png")
    first = figure.axes[0]
    assert first.get_title() == "label randomisation"
    assert [text.get_text() for text in first.get_xticklabels()] == ["clean", "random"]
    points = {one.get_label(): one.get_offsets().data for one in first.collections}
    assert points["gcn"][:, 1].tolist() == [0.8, 0.2]
    assert points["gat"][:, 1].tolist() == [0.3]
    assert points["gat"][:, 0].round().tolist() == [1.0]
    assert (tmp_path / "points.png").stat().st_size > 10_000


def test_hollow_points_show_what_the_change_did() -> None:
    networks = NETWORKS.assign(fit=["0.9", "0.7", "0.6", ""])  # as a file has them
    first, second = plot_accuracies(replace(results(ROWS), networks=networks)).axes[:2]
    assert first.get_title() == "label randomisation (hollow: on training data)"
    hollow = [one for one in first.collections if not len(one.get_facecolor())]
    assert [point for one in hollow for point in one.get_offsets().data[:, 1].tolist()] == [0.9, 0.7, 0.6]
    assert second.get_title() == "shortcut"  # it has no column


def test_without_networks_or_groups_there_is_nothing_to_show() -> None:
    with pytest.raises(InputError) as error:
        accuracies(results(ROWS))
    assert str(error.value) == (
        "these runs kept no networks.csv, so accuracies are not known. Run the benchmark again."
    )
    with pytest.raises(InputError) as error:
        accuracies(replace(results(ROWS[2:]), networks=NETWORKS))
    assert str(error.value) == "no grounding by groups is among these results, so there are no groups to show."
