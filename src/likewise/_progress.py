"""Progress of long work, on stderr, where somebody looks at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def tracked(steps: Iterable[T], label: str, *, total: int | None, show: bool) -> Iterator[T]:
    """The steps as they are, with a bar on stderr while they last."""
    if not show:
        yield from steps
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(steps, label, total=total, console=Console(stderr=True), transient=True)
