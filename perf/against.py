"""The matrix job beside the same job of an earlier revision, in turns: what a change costs or saves here.

    python -m perf.against a7c5d68
    python -m perf.against a7c5d68 22-n5000

Units take the speed of a machine's products out, but decompositions, sorts and fresh memory are not as much
faster or slower from machine to machine as products are. A ratio of two revisions in one run is.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from perf.common import write

JOBS = ("22-n2000", "22-n5000")
ROUNDS = 5
HERE = Path(__file__).parents[1]


def unpack(revision: str, folder: Path) -> None:
    """The files of a revision."""
    packed = subprocess.run(["git", "archive", revision], cwd=HERE, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def run(root: Path, job: str) -> dict[str, Any]:
    """The row of a job, by the benchmark and the library in this folder."""
    path = os.pathsep.join(map(str, (root / "src", root)))
    package = "perf" if (root / "perf").exists() else "benchmarks"  # its name before
    command = [sys.executable, "-m", f"{package}.matrix", job]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True
    )
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def rows(revision: str, jobs: Sequence[str]) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder)
        unpack(revision, earlier)
        for job in jobs:
            rounds = [(run(earlier, job), run(HERE, job)) for _ in range(ROUNDS)]
            before, now = ([row["cpu_seconds"] for row in side] for side in zip(*rounds, strict=True))
            ratios = [new / old for old, new in zip(before, now, strict=True)]
            yield {
                "job": job,
                "revision": revision,
                "ratio": statistics.median(ratios),
                "ratio_of_best": min(now) / min(before),
                "ratios": _listed(ratios),
                "cpu_seconds_before": _listed(before),
                "cpu_seconds": _listed(now),
                "units_before": _listed([old["units"] for old, _ in rounds]),
                "units": _listed([new["units"] for _, new in rounds]),
            }


def _listed(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:.3g}" for number in numbers)


def main(revision: str, *jobs: str) -> None:
    write("against", rows(revision, jobs or JOBS))


if __name__ == "__main__":
    main(*sys.argv[1:])
