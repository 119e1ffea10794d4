"""The registry of class indices: one declaration gives all that is shown of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from likewise.classes import INDICES, Inspector, index
from likewise.classes.epoch_report import Snapshot, headlines, panels

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
    absent = ("fooling_rate", "left_out", "loss", "validation_loss", "lr")
    names = {i.name for i in INDICES if "adversarial" not in i.name and i.name not in absent}
    assert set(report) == names | {f"{i.name}_train" for i in INDICES if i.per_split}


def test_the_table_in_the_docs_is_that_of_the_declarations() -> None:
    page = class_indices.PAGE.read_text(encoding="utf-8")
    assert class_indices.updated(page) == page, "run python scripts/class_indices.py"
