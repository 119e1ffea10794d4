"""What the process that hands out work holds while others do it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PROGRAM = """
import json
from perf.engines import memory

print(json.dumps([memory(m, n=300)["peak_mb"] for m in (8, 32)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux only")
def test_four_times_as_many_networks_take_no_more_memory_of_the_process_that_hands_them_out() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, check=True)
    few, many = json.loads(done.stdout)
    assert many < few + 10  # it was 1.5 MB for every network
