"""Every long job gives the same on every engine, to the last bit, though a worker of each is killed from outside.

Clusters run where LIKEWISE_CLUSTERS is set, as it is in CI: there a library that is missing is a failure.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

import pytest

ROOT = Path(__file__).parents[2]
CLUSTERS = pytest.mark.skipif("LIKEWISE_CLUSTERS" not in os.environ, reason="takes minutes: set LIKEWISE_CLUSTERS=1")
JOBS = "extract compare layerwise diff train inspect attack sat unseen evaluate demo"
PATHS = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
PATIENCE = 3600  # seconds; minutes where nothing else runs


def run_jobs(engine: str, folder: Path, jobs: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "contract" / "jobs.py"), engine, str(folder), *jobs.split()],
        env={**os.environ, "PYTHONPATH": PATHS, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("same:", "killed once", "other:"))]
    assert lines == [f"same: {jobs}", f"killed once, tried twice: {jobs}", "other:"], done.stderr


def test_jobs_give_the_same_on_processes_one_of_which_is_killed(tmp_path: Path) -> None:
    run_jobs("processes:2", tmp_path, "extract layerwise train")


@CLUSTERS
@pytest.mark.parametrize("engine", ["processes:2", "dask-cluster", "slurm:local"])
def test_every_long_job_gives_the_same_on_an_engine_that_loses_workers(tmp_path: Path, engine: str) -> None:
    run_jobs(engine, tmp_path, JOBS)


READY = """
import sys, time, ray
address, deadline = sys.argv[1], time.monotonic() + float(sys.argv[2])
while True:
    try:
        if not ray.is_initialized():
            ray.init(address, log_to_driver=False)
        if ray.cluster_resources().get("CPU", 0) >= 2:
            break
        reason = ray.nodes()
    except Exception as error:
        reason = error
    if time.monotonic() > deadline:
        sys.exit(f"the cluster is not ready: {reason}")
    time.sleep(0.5)
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def ray_cluster() -> Iterator[tuple[str, dict[str, str]]]:
    """A head and two workers on loopback, with a token and a home of their own; ended by their process ids."""
    home = Path(tempfile.mkdtemp(prefix="ray-"))  # the paths of sockets may have about a hundred letters
    environment = {
        "HOME": str(home),
        "RAY_TMPDIR": str(home),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": PATHS,
    }
    address = f"127.0.0.1:{free_port()}"
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--node-ip-address=127.0.0.1"]
    start += ["--min-worker-port=0", "--max-worker-port=0"]  # else several nodes on one machine take the same ones
    head = ["--head", f"--port={address.rpartition(':')[2]}", "--num-cpus=0", "--include-dashboard=false"]
    worker = [f"--address={address}", "--num-cpus=1"]
    nodes: list[subprocess.Popen[bytes]] = []

    def begin(words: list[str]) -> None:
        with (home / f"node {len(nodes)}.log").open("w") as log:
            nodes.append(subprocess.Popen([*start, *words], env={**os.environ, **environment}, stdout=log, stderr=log))

    try:
        begin(head)
        deadline = time.monotonic() + 300
        while not accepts(address) and nodes[0].poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        command = [sys.executable, "-c", READY, address, str(PATIENCE)]
        with (home / "ready.log").open("w") as log:
            nodes.append(subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log))
        while nodes[1].poll() is None:
            if sum(node.poll() is None for node in nodes[2:]) < 2:  # a node gives up after half a minute
                begin(worker)
            time.sleep(0.2)
        assert nodes[1].returncode == 0, "".join(log.read_text() for log in home.glob("*.log"))
        yield f"ray:{address}", environment
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait(300)
        rmtree(home, ignore_errors=True)


def accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as caller:
        return caller.connect_ex((host, int(port))) == 0


@CLUSTERS
def test_every_long_job_gives_the_same_on_ray_that_loses_workers(
    tmp_path: Path, ray_cluster: tuple[str, dict[str, str]]
) -> None:
    engine, environment = ray_cluster
    run_jobs(engine, tmp_path, JOBS, **environment)


@CLUSTERS
@pytest.mark.parametrize("library", ["loky", "distributed", "ray", "submitit"])
def test_what_engines_need_is_installed(library: str) -> None:
    assert find_spec(library) is not None, f"pip install -c constraints.txt {library}"
