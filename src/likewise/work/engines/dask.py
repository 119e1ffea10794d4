"""Dask: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from likewise._base.optional import require
from likewise.work.engines.base import Engine, Remote, engine


@engine("dask")
def dask(address: str | None, *, workers: int | None = None, resources: dict[str, float] | None = None) -> Engine:
    """The cluster at an address like tcp://10.0.0.1:8786, or a new one of so many workers on this machine.

    `resources` are what every task takes of its worker, such as `{"GPU": 1}`.
    """
    library = require("distributed", extra="dask", to="run on Dask")
    new = (
        {}
        if address
        else {
            "n_workers": workers,
            "threads_per_worker": 1,
            "dashboard_address": None,
            "silence_logs": logging.CRITICAL,
        }
    )
    cluster = Cluster(partial(library.Client, address, **new), {} if resources is None else {"resources": resources})
    return Remote(cluster.submit, workers or max(1, len(cluster.client.nthreads())), cluster.close)


class Cluster:
    """A client that is closed when its tasks are done, and opened again for more."""

    def __init__(self, opener: Callable[[], Any], options: dict[str, Any]) -> None:
        self._opener, self._options = opener, options
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
        dask = importlib.import_module("dask")
        with dask.config.set({"distributed.scheduler.allowed-failures": 0}):  # of a cluster of its own: we try again
            self.client = self._opener()
        self._executor = self.client.get_executor(pure=False, **self._options)
