"""Dask: a client is an engine, and so is the address of a cluster."""

import numpy as np
import pytest

import likewise
from likewise.errors import InputError, WorkerError
from likewise.work.engines import engine_of
from tests.helpers import sentence

distributed = pytest.importorskip("distributed")
RNG = np.random.default_rng(0)
VIEWS = {name: RNG.normal(size=(30, 4)) for name in "abcd"}


@pytest.fixture
def client():
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as client:
        yield client


def test_a_client_is_an_engine(client) -> None:
    there = likewise.compare(VIEWS, ["cka", "rsa"], engine=client)
    here = likewise.compare(VIEWS, ["cka", "rsa"])
    for name, matrix in here.items():
        assert there[name].values == pytest.approx(matrix.values, rel=1e-9)


def test_resources_that_no_worker_has_are_refused_and_workers_of_ours_have_them(client) -> None:
    address = f"dask:{client.scheduler.address}"
    assert sentence(InputError, engine_of, address, options={"resources": {"GPU": 1}}) == (
        "no worker of the Dask cluster has GPU=1. Start some with --resources 'GPU=1'."
    )
    assert sentence(InputError, engine_of, address, options={"resources": 3}) == (
        "resources is 3. Give how many of which, as in {'GPU': 1}."
    )


def test_an_address_where_nothing_can_be_is_refused() -> None:
    assert sentence(WorkerError, engine_of, "dask:nosuch") == (
        "the Dask cluster at nosuch cannot be reached: missing port number in address 'nosuch'. Write it like "
        "'dask:tcp://10.0.0.1:8786', where a scheduler runs, or 'dask' for one on this machine."
    )


def test_a_cluster_is_named_by_its_address(client) -> None:
    engine = engine_of(f"dask:{client.scheduler.address}")
    assert engine.workers == 1
    assert dict(engine.run(abs, range(-3, 0))) == {-3: 3, -2: 2, -1: 1}
