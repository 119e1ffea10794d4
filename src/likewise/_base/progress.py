"""A progress bar on stderr: shown to people at a terminal, silent for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Progress:
    """Counts finished work."""

    def __init__(self, total: int, what: str, *, shown: bool = True) -> None:
        self.total, self.what = total, what
        self.shown = shown and total > 1 and sys.stderr is not None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self.shown:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            console = Console(stderr=True)
            if not console.is_terminal:
                return self
            self._bar = Bar(*columns, console=console)
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
    with Progress(total or 0, what, shown=show) as bar:
        for step in steps:
            yield step
            bar.advance()
