"""What people see while work runs: a progress bar at a terminal, and warnings that point at the line of the caller."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Progress:
    """Counts finished work."""

    def __init__(self, total: int, what: str, *, show: bool = True) -> None:
        self.total, self.what = total, what
        self._show = show and total > 1 and sys.stderr is not None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self._show:
            from rich import progress
            from rich.console import Console

            console = Console(stderr=True)
            if not console.is_terminal:
                return self
            done = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
            left = (progress.TextColumn("left"), progress.TimeRemainingColumn())
            self._bar = progress.Progress(progress.TextColumn("{task.description}"), *done, *left, console=console)
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=self.total)
        return self

    def advance(self, steps: int = 1) -> None:
        """Move the bar on."""
        if self._bar is not None:
            self._bar.advance(self._task, steps)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def tracked(steps: Iterable[T], what: str, *, total: int | None, show: bool) -> Iterator[T]:
    """The steps as they are, with a bar while they last; none where their number is unknown."""
    with Progress(total or 0, what, show=show) as bar:
        for step in steps:
            yield step
            bar.advance()


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """A warning at the innermost line outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "likewise":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)
