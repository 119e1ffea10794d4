"""Dask and Ray: errors keep their sentence, and a task that ends its worker is tried twice."""

import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[3]
PATHS = f"{ROOT / 'src'}{os.pathsep}{ROOT}"

SCRIPT = """
import sys
from tests.work.engines.deadly import WRONG, cube
from likewise.errors import InputError
from likewise.work.engines import engine_of

def main(name, folder):
    engine = engine_of(name)
    results = dict(engine.run(cube, [(number, folder) for number in range(WRONG)]))
    print([results[number, folder] for number in range(WRONG)])
    try:
        list(engine.run(cube, [(WRONG, folder)]))
    except InputError as error:
        print(type(error).__name__, error)

if __name__ == "__main__":  # which workers of Dask import
    main(*sys.argv[1:])
"""


@pytest.mark.parametrize(("name", "library"), [("dask", "distributed"), ("ray", "ray")])
def test_errors_keep_their_sentence_and_a_deadly_task_is_tried_twice(tmp_path: Path, name: str, library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: pip install 'likewise[{name}]'")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as home:  # a short path, for sockets
        environment = {"HOME": home, "RAY_TMPDIR": home, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": PATHS}
        done = subprocess.run(
            [sys.executable, str(script), name, str(tmp_path)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=1800,
        )
    died = "WorkerDied(reason='the process that computed it was killed, twice')"
    lines = [line for line in done.stdout.splitlines() if "(raylet)" not in line]  # Ray tells of lost workers there
    assert lines == [
        f"[0, 1, 8, {died}, 64]",
        "InputError five is wrong. Give another number.",
    ], done.stderr
    assert (tmp_path / "tries").read_text() == "xx"


@pytest.mark.parametrize("name", ["dask", "ray"])
@pytest.mark.parametrize("address", [None, "tcp://10.0.0.1:8786"])
def test_a_cluster_that_we_start_opens_no_dashboard(
    name: str, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the library is told, which stands in for one that would start processes."""
    told: dict[str, object] = {}

    def start(address: str | None, **options: object) -> SimpleNamespace:
        told.update(options)
        return SimpleNamespace(nthreads=dict, get_executor=lambda **options: None)

    library = SimpleNamespace(
        Client=start, init=start, is_initialized=lambda: False, remote=lambda **options: id, cluster_resources=dict
    )
    if name == "dask":
        pytest.importorskip("dask", reason="dask is not installed: pip install 'likewise[dask]'")
    module = import_module(f"likewise.work.engines.{name}")
    monkeypatch.setattr(module, "require", lambda *names, **options: library)
    getattr(module, name)(address)
    dashboard = {"dask": ("dashboard_address", None), "ray": ("include_dashboard", False)}[name]
    assert (dashboard in told.items()) == (address is None)
