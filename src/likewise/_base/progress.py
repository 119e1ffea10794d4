"""What people see while work runs: a progress bar or lines, and warnings that point at the line of the caller."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Style = Literal["bar", "plain", "log", "none"]
STYLES: dict[Style, str] = {
    "bar": "a bar at a terminal, else nothing",
    "plain": "lines, as they fit into a log",
    "log": "a bar at a terminal, else lines of what takes long",
    "none": "nothing",
}
EVERY = 10.0  # seconds between two lines
_style: ContextVar[Style] = ContextVar("style", default="bar")


@contextmanager
def progress_as(style: Style) -> Iterator[None]:
    """Show the progress of what runs inside in this way."""
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


class Progress:
    """Counts finished work."""

    def __init__(self, total: int, what: str, *, show: bool = True) -> None:
        self.total, self.what = total, what
        self._style = _style.get()
        self._show = show and total > 1 and sys.stderr is not None and self._style != "none"
        self._bar: Any = None
        self._task: Any = None
        self._lines: _Lines | None = None

    def __enter__(self) -> Progress:
        if self._show and self._style == "plain":
            self._lines = _Lines(self.total, self.what, every=True)
        elif self._show:
            from rich import progress
            from rich.console import Console

            console = Console(stderr=True)
            if not console.is_terminal:
                self._lines = _Lines(self.total, self.what) if self._style == "log" else None
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
        if self._lines is not None:
            self._lines.advance(steps)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._lines is not None:
            self._lines.end()


class _Lines:
    """Progress as lines on stderr: one when `EVERY` seconds have passed since the last, with `every` the ends too."""

    def __init__(self, total: int, what: str, *, every: bool = False) -> None:
        self._total, self._what, self._every, self._done = total, what, every, 0
        self._start = self._last = time.monotonic()
        if every:
            self._write()

    def advance(self, steps: int) -> None:
        self._done += steps
        if time.monotonic() - self._last >= EVERY and self._done < self._total:
            self._write()

    def end(self) -> None:
        if self._every or self._last > self._start:
            self._write()

    def _write(self) -> None:
        self._last = time.monotonic()
        took = self._last - self._start
        left = took / self._done * (self._total - self._done) if self._done else 0.0
        more = f", about {_clock(left)} left" if 0 < self._done < self._total else ""
        print(f"{self._what}: {self._done} of {self._total} after {_clock(took)}{more}", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    """Seconds as people read them.

    >>> _clock(5.2), _clock(83), _clock(7325)
    ('5 s', '1:23', '2:02:05')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


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
