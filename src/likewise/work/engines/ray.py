"""Ray: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from likewise._base.optional import require
from likewise.work.engines.base import Engine, Remote, engine


@engine("ray")
def ray(address: str | None, *, workers: int | None = None, **options: Any) -> Engine:
    """The cluster this process is connected to, else the one at an address, else a new one on this machine.

    Options are Ray's own for a task, such as `num_gpus`.
    """
    library = require("ray", extra="ray", to="run on Ray")
    if not library.is_initialized():
        new = {} if address else {"include_dashboard": False}
        library.init(address, log_to_driver=False, **new)
    remote = library.remote(**{"max_retries": 0, **options})(_call)  # we try again ourselves

    def submit(*task: Any) -> Future[Any]:
        future: Future[Any] = remote.remote(*task).future()
        return future

    return Remote(submit, workers or max(1, int(library.cluster_resources().get("CPU", 1))), apart=True)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
