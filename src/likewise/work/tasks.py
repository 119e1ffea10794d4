"""Long jobs on an engine: a task is a call of a named function with plain arguments.

What a task makes stays in a store or a folder that all workers see, under keys that follow from the arguments; or it is
a small result that is sent back. So workers are sent addresses, not networks and data, and a task whose worker was lost
is made again from what it had left there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from likewise._base.progress import Progress
from likewise.errors import InputError, WorkerError, brief
from likewise.work.engines import Local, WorkerDied, engine_of

_PLAIN = (str, int, float, bool, type(None), PathLike)


@dataclass(frozen=True)
class Call:
    """A function of a module with its arguments; `label` is what errors call it."""

    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


def make(call: Call) -> Any:
    """Run a call; the whole task of a worker."""
    return call.function(*call.arguments, **call.keywords)


def run_calls(calls: Sequence[Call], engine: Any, label: str, *, progress: bool = True) -> list[Any]:
    """The results of calls, in their order.

    Args:
        calls: What is to be made; its arguments are plain.
        engine: An engine, or what `engine_of` takes.
        label: What the bar says.
        progress: Whether it is shown.

    Raises:
        WorkerError: A call ended its worker twice.
    """
    numbered = list(enumerate(calls))
    results: dict[int, Any] = {}
    with Progress(len(calls), label, show=progress) as bar, closing(engine_of(engine).run(_numbered, numbered)) as done:
        for (number, call), result in done:
            if isinstance(result, WorkerDied):
                raise WorkerError(f"{call.label} was not made: {result.reason}. Run again to resume.")
            results[number] = result
            bar.advance()
    return [results[number] for number in range(len(calls))]


def _numbered(task: tuple[int, Call]) -> Any:
    return make(task[1])


def check_plain(verb: str, **arguments: Any) -> None:
    """Refuse what cannot be sent to workers as it is: networks and data have to be addresses.

    Args:
        verb: The function that was called, for messages.
        **arguments: What it was given, by name.
    """
    for name, value in arguments.items():
        if not _is_plain(value):
            raise InputError(
                f"{verb} on an engine sends addresses to its workers, and {name} is {brief(value)}. Give its address, "
                "or leave the engine out."
            )


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, [*value, *value.values()]))
    return all(map(_is_plain, value)) if isinstance(value, (list, tuple)) else isinstance(value, _PLAIN)


def is_remote(engine: Any) -> bool:
    """Whether an engine runs tasks in other processes."""
    return engine is not None and not isinstance(engine, Local)
