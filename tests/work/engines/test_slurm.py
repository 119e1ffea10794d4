"""Slurm: a job that cannot be looked at ends the run in a sentence, and never leaves it waiting."""

import os
from concurrent.futures import Future
from pathlib import Path

import pytest

from likewise.errors import WorkerError
from likewise.work.engines import Remote
from likewise.work.engines.slurm import Queue
from tests.helpers import sentence


class Job:
    """A job of a library of queues, which ends as it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.cancelled = error, False

    def done(self) -> bool:
        if self.error is not None:
            raise self.error
        return False

    def exception(self) -> None:
        self.done()

    def cancel(self) -> None:
        self.cancelled = True
        raise ProcessLookupError("it has ended")


class Library:
    """A library of queues whose jobs are made beforehand."""

    def __init__(self, *jobs: "Job | Ended") -> None:
        self.jobs = iter(jobs)

    def AutoExecutor(self, folder: str, cluster: str) -> "Library":  # noqa: N802
        return self

    def update_parameters(self, **parameters: object) -> None:
        """There are none."""

    def submit(self, function: object, *arguments: object) -> Job:
        return next(self.jobs)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_job_that_cannot_be_looked_at_ends_the_run(tmp_path: Path) -> None:
    other = Job()
    queue = Queue(Library(Job(OSError(116, os.strerror(116))), other), "slurm", None, {})
    run = Remote(queue.submit, 2, queue.close, apart=True).run(abs, [1, 2])
    assert sentence(WorkerError, list, run) == (
        f"a job cannot be looked at: [Errno 116] {os.strerror(116)}. Run again to resume."
    )
    assert other.cancelled
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_jobs_is_its_owners_alone_and_goes_with_them(tmp_path: Path) -> None:
    jobs = [Job(), Job()]
    queue = Queue(Library(*jobs), "slurm", None, {})
    futures: list[Future[object]] = [queue.submit(abs, number) for number in (1, 2)]
    [folder] = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    queue.close(finished=False)
    assert [job.cancelled for job in jobs] == [True, True]
    assert not any(future.done() for future in futures)  # who waits for them cancels them
    assert list(tmp_path.iterdir()) == []


class FailedJobError(Exception):
    """What submitit raises of a job that left a traceback, told by its name."""


class Ended:
    """A job that has left a traceback."""

    def __init__(self, last: str) -> None:
        line = "-" * 22
        self.error = FailedJobError(
            f"Job failed with trace:\n{line}\nTraceback\n  somewhere\n{last}\n{line}\nLogs:\n - 1.err"
        )

    def done(self) -> bool:
        return True

    def exception(self) -> Exception:
        return self.error


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (
            "submitit.core.utils.UncompletedJobError: Job not requeued because: timed-out and not checkpointable.",
            "a job reached its time limit, which is five minutes where nothing else is said. Give it more, as in "
            "engine_options={'timeout_min': 600}, and run again to resume.",
        ),
        (
            "ModuleNotFoundError: No module named 'likewise'",
            "a job could not begin: ModuleNotFoundError: No module named 'likewise'. Install on the nodes what is "
            "installed here.",
        ),
    ],
)
def test_a_job_without_a_result_says_why(last: str, said: str) -> None:
    queue = Queue(Library(Ended(last)), "slurm", None, {})
    assert sentence(WorkerError, list, Remote(queue.submit, 1, queue.close, apart=True).run(abs, [1])) == said
