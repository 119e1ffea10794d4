"""Dask: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from types import NoneType
from typing import Any

from likewise._base.optional import require
from likewise.errors import InputError, WorkerError, brief, first_line
from likewise.work.engines.base import Engine, Remote, engine

# of a cluster of its own: we try again ourselves, and a busy machine may take minutes to start a lost worker again
_OWN = {"distributed.scheduler.allowed-failures": 0, "distributed.deploy.lost-worker-timeout": "1h"}


@engine("dask")
def dask(address: str | None, *, workers: int | None = None, resources: Mapping[str, float] | None = None) -> Engine:
    """The cluster at an address like tcp://10.0.0.1:8786, or a new one of so many workers on this machine.

    `resources` are what every task takes of its worker, such as `{"GPU": 1}`.
    """
    library = require("distributed", extra="dask", to="run on Dask")
    address, new = address or None, dict[str, Any]()
    if address is None:
        new = {"n_workers": workers, "threads_per_worker": 1}
        new |= {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        new["scheduler_kwargs"] = {"dashboard_address": "127.0.0.1:0"}  # its port is free, of several clusters too
    if not isinstance(resources, (Mapping, NoneType)):
        raise InputError(f"resources is {brief(resources)}. Give how many of which, as in {{'GPU': 1}}.")
    if resources and not address:
        new["resources"] = resources  # every worker of ours can run one task
    where = f"the Dask cluster at {address} cannot be reached" if address else "a Dask cluster cannot be started here"
    cluster = Cluster(
        partial(library.Client, address, **new), {} if resources is None else {"resources": dict(resources)}, where
    )
    if resources:
        _check_resources(cluster, resources)
    return Remote(cluster.submit, workers or max(1, len(cluster.client.nthreads())), cluster.close)


def _check_resources(cluster: Cluster, resources: Mapping[str, float]) -> None:
    """Refuse what no worker has: a task would wait for ever. A cluster without workers may get some."""
    info = cluster.client.scheduler_info(n_workers=-1)
    workers = [worker.get("resources") or {} for worker in info["workers"].values()]
    if workers and not any(
        all(worker.get(name, 0) >= least for name, least in resources.items()) for worker in workers
    ):
        words = ", ".join(f"{name}={least:g}" for name, least in resources.items())
        cluster.close(True)
        raise InputError(f"no worker of the Dask cluster has {words}. Start some with --resources {words!r}.")


class Cluster:
    """A client that is closed when its tasks are done, and opened again for more."""

    def __init__(self, opener: Callable[[], Any], options: dict[str, Any], failure: str) -> None:
        self._opener, self._options, self._failure = opener, options, failure
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
        self._opened.close()
        self.client = None

    def _open(self) -> None:
        dask = importlib.import_module("dask")
        with ExitStack() as opened:
            opened.enter_context(dask.config.set(_OWN))
            try:
                self.client = self._opener()
            except Exception as error:  # whatever it says to an address
                raise WorkerError(
                    f"{self._failure}: {first_line(error).rstrip('.')}. Write it like 'dask:tcp://10.0.0.1:8786', "
                    "where a scheduler runs, or 'dask' for one on this machine."
                ) from error
            opened.callback(lambda: self.client.close())
            self._opened = opened.pop_all()
        self._executor = self.client.get_executor(pure=False, **self._options)
