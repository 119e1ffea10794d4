"""Ray: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from likewise._base.optional import require
from likewise._base.progress import warn
from likewise.errors import InputError, WorkerError, first_line
from likewise.work.engines.base import Engine, Remote, engine


@engine("ray")
def ray(address: str | None, *, workers: int | None = None, **options: Any) -> Engine:
    """The cluster this process is connected to, else the one at an address, else a new one on this machine.

    Options are Ray's own for a task, such as `num_gpus`.
    """
    library = require("ray", extra="ray", to="run on Ray")
    if not library.is_initialized():
        _connect(library, address or None)
    elif address and address != (here := library.get_runtime_context().gcs_address):
        warn(f"this process is connected to the Ray cluster at {here}, where tasks run, and not to {address}.")
    try:
        remote = library.remote(**{"max_retries": 0, **options})(_call)  # we try again ourselves
    except Exception as error:  # whatever it says to options
        raise InputError(f"Ray cannot run tasks with {options}: {first_line(error).rstrip('.')}.") from error
    _check_gpus(library.cluster_resources(), options)

    def submit(*task: Any) -> Future[Any]:
        future: Future[Any] = remote.remote(*task).future()
        return future

    return Remote(submit, workers or max(1, int(library.cluster_resources().get("CPU", 1))), apart=True)


def _connect(library: Any, address: str | None) -> None:
    new = {} if address else {"include_dashboard": False}
    try:
        if address:
            _reach(address)
        library.init(address or "local", log_to_driver=False, **new)  # else one that was here once is waited for
    except Exception as error:  # whatever it says to an address, or to a token
        where = f"the Ray cluster at {address} cannot be reached" if address else "a Ray cluster cannot be started here"
        raise WorkerError(
            f"{where}: {first_line(error).rstrip('.')}. Write it like 'ray:10.0.0.1:6379', where a head runs, or 'ray' "
            "for one on this machine."
        ) from error


def _reach(address: str) -> None:
    """Knock where a head should listen: Ray itself would try for minutes. Other forms, as "auto", are left to it."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _check_gpus(resources: Mapping[str, float], options: Mapping[str, Any]) -> None:
    """Say that tasks may wait for ever; a cluster that grows may get what they ask for."""
    asked, there = options.get("num_gpus") or 0, resources.get("GPU", 0)
    if asked > there:
        warn(f"tasks ask for {asked:g} GPUs and the Ray cluster has {there:g}: they wait until it has more.")


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
