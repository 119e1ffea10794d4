"""Dask: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from likewise._base.optional import require
from likewise.work.engines.base import Engine, Remote, engine


@engine("dask")
def dask(address: str | None) -> Engine:
    """The cluster at an address like tcp://10.0.0.1:8786, or a new one on this machine."""
    library = require("distributed", extra="distributed", to="run on Dask")
    cluster = Cluster(partial(library.Client, address))
    return Remote(cluster.submit, max(1, len(cluster.client.nthreads())), cluster.close)


class Cluster:
    """A client that is closed when its tasks are done, and opened again for more."""

    def __init__(self, opener: Callable[[], Any]) -> None:
        self._opener = opener
        self.client: Any = None
        self._open()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a task to the cluster."""
        if self.client is None:
            self._open()
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def close(self, finished: bool) -> None:
        """Leave the cluster, which ends if it was started for this; what has not finished was cancelled."""
        if self.client is not None:
            self.client.close()
            self.client = None

    def _open(self) -> None:
        self.client = self._opener()
        self._executor = self.client.get_executor()
