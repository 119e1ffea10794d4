"""Dask: a client is an engine, and so is the address of a cluster."""

import numpy as np
import pytest

import likewise
from likewise.work.engines import engine_of

distributed = pytest.importorskip("distributed")
RNG = np.random.default_rng(0)
VIEWS = {name: RNG.normal(size=(30, 4)) for name in "abcd"}


@pytest.fixture
def client():
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def test_a_client_is_an_engine(client) -> None:
    there = likewise.compare(VIEWS, ["cka", "rsa"], engine=client)
    here = likewise.compare(VIEWS, ["cka", "rsa"])
    for name, matrix in here.items():
        assert there[name].values == pytest.approx(matrix.values, rel=1e-9)


def test_a_cluster_is_named_by_its_address(client) -> None:
    engine = engine_of(f"dask:{client.scheduler.address}")
    assert engine.workers == 1
    assert dict(engine.run(abs, range(-3, 0))) == {-3: 3, -2: 2, -1: 1}
