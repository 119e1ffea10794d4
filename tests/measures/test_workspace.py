"""The limit of what may be held in memory."""

import pytest

from likewise.measures import workspace
from likewise.measures.workspace import Workspace, parse_memory


@pytest.mark.parametrize(("free", "limit"), [(9 * 10**9, 6 * 10**9), (10**6, 10**9)])
def test_by_default_two_thirds_of_free_memory_may_be_held_and_a_gigabyte_at_least(monkeypatch, free, limit) -> None:
    monkeypatch.setattr(workspace, "free_memory", lambda: free)
    assert parse_memory(None) == Workspace().limit == limit


@pytest.mark.parametrize(
    ("memory", "size"), [("4GB", 4 * 10**9), ("500 mb", 5 * 10**8), ("2GiB", 2 * 10**9), (1e8, 10**8)]
)
def test_sizes_are_read_with_and_without_units(memory, size) -> None:
    assert parse_memory(memory) == size
