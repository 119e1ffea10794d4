"""Slurm, through submitit: every task is a job of the queue; "slurm:local" runs them as processes of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import torch

from likewise._base.optional import require
from likewise.errors import InputError, WorkerError, first_line
from likewise.work.engines.base import Engine, Remote, engine

JOBS = 32  # at a time in the queue
_WAIT = 0.2  # seconds between two looks at the jobs
_WEEK = 7 * 24 * 60  # minutes: processes of this machine wait for nobody, and submitit would end them after five


@engine("slurm")
def slurm(cluster: str | None, *, workers: int | None = None, folder: str | None = None, **parameters: Any) -> Engine:
    """So many jobs at a time (32; one per core of this machine), with submitit's parameters, such as `timeout_min`.

    Tasks and results go through files in `folder`, which all nodes have to see; by default one in the working folder,
    which is removed at the end.
    """
    library = require("submitit", extra="slurm", to="run on Slurm")
    limit = {"timeout_min": _WEEK} if cluster == "local" else {}
    queue = Queue(library, cluster or "slurm", folder, {"name": "likewise", **limit, **parameters})
    queue.check()
    workers = workers or (torch.get_num_threads() if cluster == "local" else JOBS)
    return Remote(queue.submit, workers, queue.close, apart=True, quick=False)


class Queue:
    """Jobs as futures: a thread looks at those that have not ended."""

    def __init__(self, library: Any, cluster: str, folder: str | None, parameters: dict[str, Any]) -> None:
        self._library, self._cluster, self._parameters = library, cluster, parameters
        self._named, self._folder = folder, ""
        self._executor: Any = None
        self._running: dict[Any, Future[Any]] = {}
        self._lock = threading.Lock()

    def check(self) -> None:
        """Refuse a cluster or parameters that submitit does not have, before there is a job."""
        self._open()
        self.close(finished=True)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a job to the queue."""
        with self._lock:
            if self._executor is None:
                self._open()
            future: Future[Any] = Future()
            self._running[self._executor.submit(function, *arguments)] = future
        return future

    def _open(self) -> None:
        self._folder = self._named or mkdtemp(prefix=".likewise-jobs-", dir=Path.cwd())
        try:
            executor = self._library.AutoExecutor(folder=self._folder, cluster=self._cluster)
            executor.update_parameters(**self._parameters)
        except Exception as error:  # whatever it says to a machine without Slurm, or to parameters
            self._remove_files()
            raise InputError(
                f"submitit cannot run jobs as {self._cluster!r}: {first_line(error).rstrip('.?')}. Run this where "
                "sbatch runs, with options that submitit has, such as slurm_partition; 'slurm:local' needs no Slurm."
            ) from error
        self._executor = executor
        threading.Thread(target=self._watch, args=(self._executor,), daemon=True).start()

    def _watch(self, executor: Any) -> None:
        while self._executor is executor:
            with self._lock:
                running = list(self._running.items())
            for job, future in running:
                if _has_ended(job):
                    with self._lock:
                        self._running.pop(job, None)
                    _settle(job, future)
            time.sleep(_WAIT)

    def close(self, finished: bool) -> None:
        """Cancel what runs, and remove the files of jobs."""
        with self._lock:
            self._executor = None
            running = list(self._running)
            self._running.clear()
        for job in running:
            with suppress(Exception):  # one that has ended since may not be there any more
                job.cancel()
        self._remove_files()

    def _remove_files(self) -> None:
        if self._folder and self._named is None:
            rmtree(self._folder, ignore_errors=True)
            self._folder = ""


def _has_ended(job: Any) -> bool:
    """Whether a job is over; one that cannot be looked at counts as that, and `_settle` says why."""
    try:
        return bool(job.done())
    except Exception:
        return True


def _settle(job: Any, future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        error = job.exception()
        if error is None:
            future.set_result(job.result())
        elif type(error).__name__ == "FailedJobError":  # our own errors are results
            future.set_exception(WorkerError(_failure(str(error))))
        else:
            future.set_exception(error)
    except Exception as error:
        future.set_exception(WorkerError(f"a job cannot be looked at: {first_line(error)}. Run again to resume."))


def _failure(text: str) -> str:
    """Why a job brought no result, from what it left: a traceback between two lines of dashes, then its files."""
    trace = next((part for part in text.split("-" * 22) if "Traceback" in part), text)
    reason = trace.strip().splitlines()[-1].rstrip(".")
    if "timed-out" in reason:
        return (
            "a job reached its time limit, which is five minutes where nothing else is said. Give it more, as in "
            "engine_options={'timeout_min': 600}, and run again to resume."
        )
    return f"a job could not begin: {reason}. Install on the nodes what is installed here."
