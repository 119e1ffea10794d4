"""Pictures of families, looked at through what was drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from likewise import analysis
from tests.analysis.helpers import families


def test_the_matrix_is_drawn_by_family_beside_a_map(tmp_path: Path) -> None:
    given, _ = families((4, 3, 5))
    found = analysis.clusters(given, 3)
    figure = analysis.plot_families(found, tmp_path / "families.png")
    assert (tmp_path / "families.png").stat().st_size > 10_000
    heat, places = figure.axes[:2]
    order = [name for group in found.groups() for name in group]
    assert [label.get_text() for label in heat.get_yticklabels()] == order
    drawn = np.ma.filled(heat.images[0].get_array(), np.nan)
    wanted = given.reordered(order).values
    off = ~np.eye(12, dtype=bool)
    assert np.array_equal(drawn[off], wanted[off])
    assert np.isnan(np.diag(drawn)).all()
    assert [len(part.get_offsets()) for part in places.collections] == [5, 4, 3]
    assert sorted(text.get_text() for text in places.texts) == sorted(given.names)


def test_many_networks_are_named_by_their_family() -> None:
    given, _ = families((15, 15, 15))
    heat, places = analysis.plot_families(analysis.clusters(given, 3), how="mds").axes[:2]
    assert [label.get_text() for label in heat.get_yticklabels()] == ["family 0", "family 1", "family 2"]
    assert not places.texts
    assert places.get_title() == "map (mds), stability 1.00"
