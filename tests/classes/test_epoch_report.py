"""The registry of class indices: one declaration gives all that is shown of one; and phases of a curve."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import classes
from likewise.classes import INDICES, Inspector, index, phases
from likewise.classes.epoch_report import Snapshot, headlines, panels
from tests.classes.helpers import few, refusals

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
import class_indices  # noqa: E402


def reported(inspector: Inspector) -> dict[str, float]:
    chance = np.random.default_rng(0)
    for split in ("test", "train"):
        labels = chance.integers(10, size=200)
        logits = chance.normal(size=(200, 10)) + 2 * np.eye(10)[labels]
        inspector.update(logits, labels, chance.normal(size=(200, 6)), split=split)
    return inspector.report(chance.normal(size=(10, 6)))


@pytest.fixture
def doubled() -> Iterator[None]:
    """An index of somebody else's."""

    @index(name="double_errors", per_split=True, chance="any", level=0.5, label="twice the errors", headline=True)
    def double_errors(epoch: Snapshot) -> float:
        """twice the number of mistakes"""
        return 2.0 * epoch.errors

    yield
    INDICES.remove("double_errors")


@pytest.mark.usefixtures("doubled")
def test_one_declaration_gives_report_chance_curve_headline_and_docs() -> None:
    inspector = Inspector("cifar10")
    report = reported(inspector)
    assert report["double_errors"] == 2 * report["errors"] > 0
    assert report["double_errors_train"] == 2 * report["errors_train"]
    assert inspector.chance()["double_errors"] == 0.5
    assert panels()["double_errors"] == "twice the errors"
    assert "twice the errors" in [axis.get_title() for axis in inspector.plot().axes]
    assert headlines()[-1] == "double_errors"
    assert "| `double_errors` | twice the number of mistakes | any |\n" in class_indices.table()


def test_what_an_index_needs_decides_whether_it_is_reported() -> None:
    inspector = Inspector(10)  # no reference
    report = reported(inspector)
    assert {"nidm", "wsi_max", "sai_ncsm_ccsm", "overfitting"} <= set(report)
    assert not {name for name in report if "widm" in name or "scsm" in name}
    assert "fooling_rate" not in report
    assert inspector.chance() == {}


def test_the_report_has_every_index_whose_needs_are_there_and_no_other() -> None:
    report = reported(Inspector("cifar10"))
    absent = ("fooling_rate", "left_out")
    names = {i.name for i in INDICES if "adversarial" not in i.name and i.name not in absent}
    assert set(report) == names | {f"{i.name}_train" for i in INDICES if i.per_split}


def test_the_table_in_the_docs_is_that_of_the_declarations() -> None:
    page = class_indices.PAGE.read_text(encoding="utf-8")
    assert class_indices.updated(page) == page, "run python scripts/class_indices.py"


PARTS = np.concatenate([np.linspace(0, 1, 11), np.linspace(0.97, 0.7, 10), np.full(39, 0.7)])


test_an_error_is_a_sentence = refusals(
    (lambda: classes.phases(range(9), [1, 2, 3]), "a curve is one number per epoch, got (9,) for 3 epochs.")
)


def test_surge_refinement_and_rest_are_told_apart() -> None:
    # The median of three takes the peak down to 0.97: 95 % of that, 0.9215, is reached by epoch 10.
    # A tenth of the climb around 0.7 ends at 0.797: epoch 16 is at 0.82, epoch 17 at 0.79.
    found = phases(PARTS)
    assert (found.surge_end, found.refinement_end, found.clear) == (10, 16, True)
    assert str(found) == "surge to epoch 10, refinement to epoch 16, then rest"


@few
@given(st.floats(0.01, 100), st.floats(-10, 10))
def test_phases_do_not_depend_on_the_scale_of_the_curve(scale: float, shift: float) -> None:
    assert phases(scale * PARTS + shift) == phases(PARTS)


def test_phases_are_told_in_the_numbers_of_the_epochs() -> None:
    found = phases(PARTS, range(100, 100 + 2 * len(PARTS), 2))
    assert (found.surge_end, found.refinement_end) == (120, 132)
    holes = np.insert(PARTS, 5, np.nan)
    found = phases(holes, [0, 1, 2, 3, 4, 99, *range(5, 60)])
    assert found == phases(PARTS)


def test_one_odd_epoch_is_no_top() -> None:
    odd = PARTS.copy()
    odd[40] = 5.0
    assert phases(odd) == phases(PARTS)


def test_a_curve_that_only_climbs_and_stays_has_no_refinement() -> None:
    # 1 - exp(-x / 3) is 95 % of the way at x = 3 ln 20 = 8.99
    found = phases(1 - np.exp(-np.arange(60) / 3))
    assert (found.surge_end, found.refinement_end) == (9, 9)
    assert str(found) == "surge to epoch 9, then rest"


@pytest.mark.parametrize("end", [0.6, 1.2], ids=["below its first top", "above it"])
def test_a_curve_that_falls_and_grows_again_has_another_course(end: float) -> None:
    """As with a learning rate that is far too high: an early top, a fall, and slow growth."""
    curve = np.concatenate([np.linspace(0.2, 0.8, 7), np.linspace(0.7, 0.1, 30), np.linspace(0.1, end, 363)])
    assert str(phases(curve)) == "no clear phases: the curve falls to epoch 36 and grows again"
    assert str(phases(curve[:10])).startswith("cannot tell yet")


def test_a_verdict_of_rest_needs_ten_epochs_of_it() -> None:
    verdicts = {length: phases(PARTS[:length]) for length in range(1, 60)}
    assert min(length for length, found in verdicts.items() if found.clear) == 27  # rest begins at 17
    assert all(found.clear for length, found in verdicts.items() if length >= 27)


@pytest.mark.parametrize("curve", [np.full(30, 0.4), np.linspace(1, 0, 30)], ids=["flat", "falling"])
def test_a_curve_that_does_not_climb_has_no_phases(curve: np.ndarray) -> None:
    found = phases(curve)
    assert (found.surge_end, found.refinement_end, found.clear) == (None, None, False)
    assert str(found) == "no clear phases: the curve does not climb from where it started"


@pytest.mark.parametrize("length", [8, 30, 100])
def test_noise_is_no_surge(length: int) -> None:
    draw = np.random.default_rng(0)
    found = [phases(draw.normal(size=length)).surge_end for _ in range(200)]
    assert sum(end is not None for end in found) < 0.05 * 200


def test_some_noise_does_not_hide_the_phases() -> None:
    for seed in range(20):
        noisy = PARTS + 0.01 * np.random.default_rng(seed).normal(size=len(PARTS))
        found = phases(noisy)
        assert found.surge_end == pytest.approx(10, abs=1)
        assert found.refinement_end == pytest.approx(16, abs=1)


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        (PARTS[:10], "cannot tell yet: 10 epochs are recorded, 20 are needed"),
        ([*PARTS[:7], *[np.nan] * 20], "cannot tell yet: 7 epochs are recorded, 20 are needed"),
        ([], "cannot tell yet: 0 epochs are recorded, 20 are needed"),
        (np.linspace(0, 1, 40), "cannot tell yet: the curve was still climbing when the record ended"),
        (
            [*PARTS[:11], *np.linspace(0.9, 0.1, 9)],
            "surge to epoch 9, then refinement, not followed by 10 epochs of rest yet",
        ),
        (PARTS[:25], "surge to epoch 10, then refinement, not followed by 10 epochs of rest yet"),
    ],
    ids=["short", "holes", "empty", "climbing", "falling at the end", "short rest"],
)
def test_what_cannot_be_told_has_a_reason(curve: np.ndarray, said: str) -> None:
    found = phases(curve)
    assert str(found) == said
    assert found.clear is False
