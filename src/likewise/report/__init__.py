"""What a person reads: results of any runs as one HTML file, and what changed between two networks.

`read_runs` reads folders and files that commands wrote, `report` writes the page, `diff` holds a network against a
changed copy of it, `demo` makes results to show. The room imports `_base` to `benchmark`.
"""

from __future__ import annotations

from likewise.report.findings import Finding
from likewise.report.page import report
from likewise.report.runs import Runs, read_runs

__all__ = ["Finding", "Runs", "read_runs", "report"]
