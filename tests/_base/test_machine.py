"""What the system says of the processor."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from likewise._base import machine


def test_the_processor_is_described_by_the_first_entry_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = machine.processor.__wrapped__
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "CPU_INFO", info)
    info.write_bytes(b"processor\t: 0\nvendor_id\t: \xffAuthenticAMD\n\nprocessor\t: 1\n")
    assert ask() == "processor\t: 0\nvendor_id\t: \ufffdAuthenticAMD"
    info.unlink()
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert ask() == "arm"
