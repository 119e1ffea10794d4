"""The tests of `on_devices.py`, in a process of their own."""

import subprocess
import sys
from pathlib import Path


def test_every_measure_and_pass_over_layers_runs_on_every_device() -> None:
    file = Path(__file__).with_name("on_devices.py")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    run = subprocess.run(command, cwd=file.parents[2], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout.splitlines()[-1]
