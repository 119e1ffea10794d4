"""Ray: a cluster of its own on this machine, or one that runs at an address."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from likewise._base.optional import require
from likewise.work.engines.base import Engine, Remote, engine


@engine("ray")
def ray(address: str | None) -> Engine:
    """The cluster this process is connected to, else the one at an address, else a new one on this machine."""
    library = require("ray", extra="distributed", to="run on Ray")
    if not library.is_initialized():
        library.init(address, log_to_driver=False)

    def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = library.remote(function).remote(*arguments).future()
        return future

    return Remote(submit, workers=8)
