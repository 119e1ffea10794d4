"""Every long job gives the same on every engine, to the last bit; clusters run where LIKEWISE_CLUSTERS is set."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLUSTERS = pytest.mark.skipif("LIKEWISE_CLUSTERS" not in os.environ, reason="takes minutes: set LIKEWISE_CLUSTERS=1")
SAME = "same: extract compare sat layerwise diff train inspect"


def run_jobs(engine: str, folder: Path, environment: dict[str, str] | None = None) -> list[str]:
    source = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **(environment or {})}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "contract" / "jobs.py"), engine, str(folder)],
        env={**os.environ, **source},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(("same:", "other:"))]


@pytest.mark.parametrize(
    ("engine", "library"),
    [
        ("processes:2", "loky"),
        pytest.param("dask-cluster", "distributed", marks=CLUSTERS),
        pytest.param("slurm:local", "submitit", marks=CLUSTERS),
    ],
)
def test_every_long_job_gives_the_same_on_an_engine(tmp_path: Path, engine: str, library: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    assert run_jobs(engine, tmp_path) == [SAME, "other:"]


@pytest.fixture
def ray_cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A head and two workers on loopback, with a token and a home of their own; ended by their process ids."""
    environment = {
        "HOME": str(tmp_path),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    start = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--node-ip-address=127.0.0.1"]
    head = [*start, "--head", "--port=6399", "--num-cpus=0", "--include-dashboard=false"]
    worker = [*start, "--address=127.0.0.1:6399", "--num-cpus=1"]
    nodes = []
    try:
        for words in (head, worker, worker):
            with (tmp_path / f"ray {len(nodes)}.log").open("w") as log:
                nodes.append(subprocess.Popen(words, env={**os.environ, **environment}, stdout=log, stderr=log))
            time.sleep(8)
        assert [node.poll() for node in nodes] == [None] * 3, (tmp_path / "ray 0.log").read_text()
        yield "ray:127.0.0.1:6399", environment
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait(60)


@CLUSTERS
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'likewise[ray]'")
def test_every_long_job_gives_the_same_on_ray(tmp_path: Path, ray_cluster: tuple[str, dict[str, str]]) -> None:
    engine, environment = ray_cluster
    assert run_jobs(engine, tmp_path, environment) == [SAME, "other:"]
