"""Pictures for a paper: every panel as PDF and SVG, with the numbers of the page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.classes import Inspector
from likewise.comparison.influence import influence
from likewise.data import Data
from likewise.errors import StoreError
from likewise.matrices.layers import LayerMatrix
from likewise.report import Runs, figures
from likewise.report.page import contents
from tests.report.helpers import arrays
from tests.report.test_findings import attacked
from tests.zeroshot.helpers import drawn


@pytest.fixture(scope="module")
def runs() -> Runs:
    draw = np.random.default_rng(0)
    given, labels = arrays(4, n=40, names=("<b>", "net-1", "$x_1$", "net/3")), np.arange(40) % 4
    views = {
        name: likewise.Activations(values, name=name, outputs=likewise.Outputs(draw.normal(size=(40, 4)), labels))
        for name, values in given.items()
    }
    data = Data("images", "image", draw.random((40, 1, 8, 8)), labels, ("a", "b", "c", "d"))
    compared = likewise.compare(views, ["cka", "rsa", "disagreement"], progress=False)
    watch = Inspector(["a", "b", "c", "d"])
    for epoch in (1, 2):
        watch.update(np.eye(4)[labels] + draw.normal(size=(40, 4)) / epoch, labels)
        watch.report(draw.normal(size=(4, 12)))
    transfer = attacked([0.95] * 4).reordered(["n0", "n1", "n2"])
    return Runs(
        matrices=[*compared.values(), transfer],
        transfers=[transfer],
        inputs=[influence(views, ["pnka"], data=data, progress=False)],
        inspections={"watched": watch},
        layers=[LayerMatrix("a", "b", ["x", "y"], ["y", "z"], [[1.0, 0.5], [0.2, 0.4]], "cka")],
        zeroshot=[drawn("one")],
    )


def test_every_panel_is_drawn_in_both_kinds(runs: Runs, tmp_path: Path) -> None:
    page = contents(runs)
    paths = figures(out=tmp_path / "out", page=page)
    assert sorted(tmp_path.joinpath("out").glob("*.*g")) + sorted(tmp_path.joinpath("out").glob("*.pdf")) == sorted(
        paths, key=lambda path: (path.suffix != ".svg", path)
    )
    drawn_panels = {path.name.partition("-")[0] for path in paths}
    assert drawn_panels == {panel.id for panel in page.panels if panel.blocks}
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(b"%PDF-") if path.suffix == ".pdf" else b"<svg" in content[:2000], path
    assert not any(re.search(r"[<$/]", path.name) for path in paths)


def test_a_folder_of_somebody_else_is_refused(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(StoreError) as error:
        figures(runs, out=tmp_path)
    assert str(error.value) == (
        f"{tmp_path} holds files that likewise did not write. Name a new or an empty folder, as in "
        f"{tmp_path / 'likewise'}."
    )
