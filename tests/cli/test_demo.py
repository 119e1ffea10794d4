"""`likewise demo`: findings on stdout, and the path of the report last."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.cli.demo import demo
from likewise.report import digits_demo as room
from tests.cli.conftest import invoke
from tests.report.test_digits_demo import FEW

pytest.importorskip("sklearn")


def test_the_demo_prints_findings_and_the_path_of_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MEASURES", ("cka-debiased",))
    monkeypatch.setattr(room, "INPUT_MEASURES", ("pnka",))
    monkeypatch.setattr(room, "ATTACK", {"attack": "fgsm", "eps": 0.1})
    monkeypatch.setattr(room, "SHUFFLES", 19)
    monkeypatch.setattr(room.demo, "__kwdefaults__", {**room.demo.__kwdefaults__, "students": FEW})
    text = invoke(demo, str(tmp_path / "demo"))
    assert "\nWhat was found:\n  " in text
    assert "\n  What next: " in text
    assert text.endswith(f"\n{tmp_path / 'demo' / 'report.html'}\n")
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1_500_000
