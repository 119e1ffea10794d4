"""What the groups of a run are trained on, as pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.benchmark import plot_inputs, run
from likewise.errors import InputError

FEW = {"seeds": 3, "group": 2, "layered": 2, "train": 40, "probe": 30, "training": {"epochs": 1}}
HOW = {"measures": "cka", "progress": False, "preset": FEW}


def test_images_of_every_group_stand_in_rows_with_their_labels(tmp_path: Path) -> None:
    out = tmp_path / "run"
    made = run("vision", "digits", "mlp", groundings=["shortcut", "augmentation"], out=out, **HOW)
    figure = plot_inputs(made, tmp_path / "inputs.png")
    assert (tmp_path / "inputs.png").stat().st_size > 10_000
    rows = [figure.axes[at : at + 8] for at in range(0, 48, 8)]
    names = ["shortcut\n0", "shortcut\n0.75", "shortcut\n1", "augmentation\n1000", "augmentation\n2000"]
    assert [row[0].get_ylabel() for row in rows] == [*names, "augmentation\n4000"]
    assert all(axis.get_title().isdigit() for row in rows for axis in row)
    shown = [np.stack([axis.images[0].get_array() for axis in row]) for row in rows]
    assert shown[0].shape == (8, 8, 8, 3)  # discs are in colour
    assert shown[3].shape == (8, 8, 8)
    assert (shown[0] != shown[2]).any()
    plain = made.plan().domain.load("digits", "train").inputs[:8, 0].numpy()
    spread = [float(np.abs(noisy - plain).mean()) for noisy in shown[3:]]
    assert 0 < spread[0] < spread[2]
    again = plot_inputs(out)  # by its folder too
    assert np.array_equal(again.axes[0].images[0].get_array(), shown[0][0])


def test_texts_of_every_group_are_written_under_its_name(tmp_path: Path) -> None:
    made = run("language", "sentences", "bert-tiny", groundings=["shortcut"], out=tmp_path, **HOW)
    lines = [text.get_text() for text in plot_inputs(made).texts]
    heads = [line for line in lines if line.startswith("shortcut ")]
    plan = made.plan()
    assert heads == [f"shortcut {share:g}" for share in plan.domain.levels("shortcut", plan.experiment)]
    last = lines[lines.index("shortcut 1") + 1 :]
    classes = plan.domain.load("sentences", "train").classes
    told = [line for line in last if not line.startswith(" ")]
    assert told == [line for line in told if line.startswith(f"{classes[int(line.split('[CLASS')[1][0])]}: [CLASS")]
    assert len(told) == 3


def test_graphs_and_runs_without_groups_have_no_picture(tmp_path: Path) -> None:
    nodes = run("graph", "digits-graph", "gcn", groundings=["labels"], out=tmp_path / "graph", **HOW)
    with pytest.raises(InputError) as error:
        plot_inputs(nodes)
    assert str(error.value) == f"{tmp_path / 'graph'} is of graph inputs, which have no picture."
    seeds = run("vision", "digits", "mlp", groundings=["accuracy"], out=tmp_path / "seeds", **HOW)
    with pytest.raises(InputError) as error:
        plot_inputs(seeds)
    assert str(error.value) == f"{tmp_path / 'seeds'} has no groups of networks, so no inputs were changed."
