"""What an engine is, and how one is found by its name.

An engine runs a function over tasks and yields results as they come. `Local` runs them on threads of this
process; `Remote` sends them to an executor: worker processes, Dask, Ray, or whatever looks like
`concurrent.futures.Executor`. A module of this package adds an engine with the decorator `engine`.
"""

from __future__ import annotations

import inspect
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

import cloudpickle
import torch
from threadpoolctl import threadpool_limits

from likewise._base.registry import Registry, parse_options
from likewise.errors import InputError, LikewiseError, WorkerError, brief, first_line

S = TypeVar("S")
T = TypeVar("T")
# what Dask, Ray and submitit raise for a task whose worker was lost
_LOST = ("KilledWorker", "WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "UncompletedJobError")
_LIBRARIES = ("distributed", "ray", "submitit")
MOST_WORKERS = 10_000


@dataclass(frozen=True)
class WorkerDied:
    """Stands for the result of a task that ended its worker, the second time while it ran alone."""

    reason: str


class Engine(Protocol):
    """Runs tasks, `workers` at a time."""

    workers: int

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T | WorkerDied], None, None]:
        """Tasks with their results, as they come. Close it to stop."""
        ...


Maker = Callable[..., Engine]
ENGINES: Registry[Maker] = Registry("engine", group="likewise.engines", modules=("likewise.work.engines.*",))


def engine(name: str) -> Callable[[Maker], Maker]:
    """Name a function that makes an engine; it receives what follows the name and a colon, and options by keyword."""

    def register(make: Maker) -> Maker:
        return ENGINES.add(name, make, module=make.__module__)

    return register


def engine_of(engine: Any, *, workers: int | None = None, options: Mapping[str, Any] | str | None = None) -> Engine:
    """None, "processes[:N]", "dask[:ADDRESS]", "ray[:ADDRESS]", "slurm", a Dask client, any executor, or an engine.

    Args:
        engine: One of these.
        workers: How many tasks run at a time, where a name leaves it open.
        options: What a library takes for every task, such as `{"num_gpus": 1}` of Ray, or typed: "num_gpus=1".
    """
    settings = engine_settings(engine, workers, options)
    if isinstance(engine, str):
        name, colon, argument = engine.partition(":")
        if name not in ENGINES:
            *names, last = ENGINES.names()
            raise InputError(f"no engine named {engine!r}. There are {', '.join(names)} and {last}.")
        maker = ENGINES.get(name)
        _check_options(name, maker, settings)
        return maker(argument if colon else None, **settings)
    if engine is None:
        return Local()
    if isinstance(engine, (Local, Remote)):
        return engine
    if hasattr(engine, "get_executor"):  # a Dask client
        return Remote(engine.get_executor(pure=False).submit, max(1, len(engine.nthreads())))
    if hasattr(engine, "submit"):
        return Remote(engine.submit, int(getattr(engine, "_max_workers", 4)))
    raise InputError(
        f"{brief(engine)} is not an engine. Pass None, 'processes', 'dask', 'ray', 'slurm', or an executor."
    )


def engine_settings(engine: Any, workers: int | None, options: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """What is said of an engine beside its name, checked; refused where there is no name.

    Args:
        engine: What `engine_of` takes.
        workers: How many tasks run at a time.
        options: What its library takes for every task.
    """
    options = parse_options(options, "engine_options") if isinstance(options, str) else options or {}
    if not isinstance(options, Mapping):
        raise InputError(f"engine_options is {brief(options)}. Give options by name, as in {{'num_gpus': 1}}.")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers is {brief(workers)}. Give at least 1.")
    if workers is not None and workers > MOST_WORKERS:
        raise InputError(f"workers is {brief(workers)}. Give at most {MOST_WORKERS:,}.")
    settings = {**options, **({} if workers is None else {"workers": workers})}
    if settings and not isinstance(engine, str):
        raise InputError(
            f"{' and '.join(settings)} belongs to an engine by name, such as 'ray', and the engine is {brief(engine)}. "
            "Leave it out."
        )
    return settings


def _check_options(name: str, maker: Maker, options: Mapping[str, Any]) -> None:
    parameters = list(inspect.signature(maker).parameters.values())[1:]
    if any(entry.kind is entry.VAR_KEYWORD for entry in parameters):
        return
    for option in options:
        if option not in {entry.name for entry in parameters}:
            takes = " and ".join(entry.name for entry in parameters) or "none"
            raise InputError(f"engine {name!r} has no option {option!r}. It takes {takes}.")


class Local:
    """Threads of this process. A function may be a closure, and tasks any objects."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or torch.get_num_threads()

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T], None, None]:
        """Tasks with their results, as they come. Close it to stop."""
        if self.workers == 1:
            yield from ((task, function(task)) for task in tasks)
            return
        pool = ThreadPoolExecutor(self.workers, initializer=lambda: torch.set_num_threads(1))
        running: dict[Future[T], S] = {}
        try:
            with threadpool_limits(1, user_api="blas"):
                for task in tasks:
                    running[pool.submit(function, task)] = task
                    if len(running) >= 8 * self.workers:
                        yield from _finished(running)
                while running:
                    yield from _finished(running)
        finally:
            pool.shutdown(cancel_futures=True)


def _finished(running: dict[Future[T], S]) -> Iterator[tuple[S, T]]:
    """Wait for some of the running tasks; they are no longer among the running."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        yield running.pop(future), future.result()


@dataclass(frozen=True)
class Raised:
    """Stands for the result of a task that failed: errors of ours keep their sentence, whatever carries them."""

    error: Exception


def call(function: Callable[[S], T], task: S) -> T | Raised:
    """Run a task in a worker."""
    try:
        return function(task)
    except Exception as error:
        if type(error).__name__ == "UncompletedJobError":  # what submitit says to a task whose time is over
            raise
        trace = f"In the worker:\n{traceback.format_exc()}"
        try:
            cloudpickle.loads(cloudpickle.dumps(error))
        except Exception:  # it cannot travel
            error = WorkerError(f"a task failed: {type(error).__name__}: {first_line(error)}.")
        error.add_note(trace)
        return Raised(error)


class Remote:
    """Other processes, here or elsewhere: `submit` hands them a task, `close` ends those that were started for it.

    A task whose worker is lost runs again, and where that ends its worker too, yields `WorkerDied`; all others go on.
    If workers are `apart`, one that is lost was ended by its task. Otherwise any task that was under way may have done
    it, so each of them runs again alone. Unless it is `quick`, a task takes long to begin, so that tasks of a moment
    are better kept here. `submit` starts workers anew, or raises what says that it cannot.
    """

    def __init__(
        self,
        submit: Callable[..., Future[Any]],
        workers: int,
        close: Callable[[bool], None] = lambda finished: None,
        *,
        apart: bool = False,
        quick: bool = True,
    ) -> None:
        self.workers, self.quick = workers, quick
        self._submit, self._close, self._apart = submit, close, apart

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T | WorkerDied], None, None]:
        """Tasks with their results, as they come. Close it to stop, and the workers started for it."""
        fresh, again = iter(tasks), deque[S]()
        running: dict[Future[T | Raised], tuple[S, bool]] = {}
        finished = False
        try:
            while True:
                for task, second in self._next(fresh, again, len(running)):
                    running[self._send(function, task)] = (task, second)
                if not running:
                    finished = True
                    return
                for (task, second), future in self._settled(running):
                    if not _is_lost(future.exception()):
                        yield task, _result(future)
                    elif second:
                        yield task, WorkerDied("the process that computed it was killed, twice")
                    else:
                        again.append(task)
        finally:
            self._close(finished)  # first: loky fails on tasks that were cancelled before
            for future in running:
                future.cancel()

    def _next(self, fresh: Iterator[S], again: deque[S], running: int) -> Iterator[tuple[S, bool]]:
        """What to send, and whether for the second time: one task more than workers, so that none of them waits."""
        room = self.workers + 1 - running if self._apart or not again else 1
        while again and room:
            yield again.popleft(), True
            room -= 1
        yield from ((task, False) for task in islice(fresh, room))

    def _send(self, function: Callable[[S], T], task: S) -> Future[T | Raised]:
        try:
            return self._submit(call, function, task)
        except BrokenExecutor as error:
            raise WorkerError(
                f"the executor given as engine lost a worker and takes no more work ({error}). Pass a "
                "new one, or engine='processes', which starts workers again; with a store, what was "
                "computed is kept."
            ) from error
        except LikewiseError:
            raise
        except Exception as error:  # whatever a library says to what it cannot send
            raise _not_run(error) from error

    def _settled(self, running: dict[Future[T], S]) -> list[tuple[S, Future[T]]]:
        """Wait for some of the running tasks; for all of them where a worker was lost, unless workers are apart."""
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        if not self._apart and any(_is_lost(future.exception()) for future in done):
            done, _ = wait(running)
        return [(running.pop(future), future) for future in done]


def _is_lost(error: BaseException | None) -> bool:
    kind = type(error)
    return isinstance(error, BrokenExecutor) or (
        kind.__name__ in _LOST and kind.__module__.partition(".")[0] in _LIBRARIES
    )


def _not_run(error: BaseException) -> WorkerError:
    """The error for a task that did not come to run: `call` catches what tasks raise."""
    return WorkerError(
        f"a task could not be run by the engine: {type(error).__name__}: {first_line(error)}. Workers need what is "
        "installed here, and what they are sent may hold no open files, locks or the like."
    )


def _result(future: Future[T | Raised]) -> T:
    try:
        result = future.result()
    except LikewiseError:
        raise
    except Exception as error:
        raise _not_run(error) from error
    if isinstance(result, Raised):
        raise result.error
    return result
