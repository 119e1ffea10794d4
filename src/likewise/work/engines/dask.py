"""Dask: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

from likewise._base.optional import require
from likewise.work.engines.base import Engine, engine, engine_of


@engine("dask")
def dask(address: str | None) -> Engine:
    """A client of the cluster at an address like tcp://10.0.0.1:8786, or of a new one on this machine."""
    return engine_of(require("distributed", extra="distributed", to="run on Dask").Client(address))
