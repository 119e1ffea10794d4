"""The action for continuous integration: its script is run as a forge would run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NETS = """
import torch
from torch import nn

def build(start=0):
    torch.manual_seed(start)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
"""


def run(folder: Path, network: str, thresholds: str = "") -> tuple[int, str, str]:
    """The exit code of the script, what it reports as its output, and the summary."""
    output, summary = folder / "output", folder / "summary"
    output.write_text("")
    summary.write_text("")
    names = {"NETWORK": network, "DATA": "digits:test[:40]", "BASELINE": "base.likewise", "THRESHOLDS": thresholds}
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, **names, **files, "PATH": path, "PYTHONPATH": source, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(["bash", str(ROOT / "scripts/diff_action.sh")], env=environment, cwd=folder, timeout=600)
    return done.returncode, output.read_text(), summary.read_text()


def test_the_first_run_records_and_later_ones_compare(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    code, output, summary = run(tmp_path, "nets.py:build")
    assert (code, output) == (0, "verdict=recorded\n")
    assert "base.likewise" in summary
    code, output, summary = run(tmp_path, "nets.py:build", "--fail-over disagreement=0")
    assert (code, output) == (0, "verdict=identical\n")
    assert summary.startswith("### ")
    code, output, _ = run(tmp_path, "nets.py:build,start=5")
    assert (code, output) == (1, "verdict=different\n")


def test_the_action_hands_over_what_the_script_reads() -> None:
    text = (ROOT / "action.yml").read_text()
    script = (ROOT / "scripts" / "diff_action.sh").read_text()
    given = set(re.findall(r"^        ([A-Z]+): \$\{\{ inputs\.", text, re.M)) - {"EXTRAS"}
    assert given == {"NETWORK", "DATA", "BASELINE", "THRESHOLDS"}
    assert all(f"${name}" in script or f"${{{name}" in script for name in given)
    assert "scripts/diff_action.sh" in text
