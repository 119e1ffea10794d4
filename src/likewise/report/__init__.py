"""The report: results of any runs as one HTML file that needs nothing from outside. And the demo, which makes some.

`read_runs` reads folders and files that commands wrote, `report` writes the page. The room imports `_base` to
`benchmark`.
"""

from __future__ import annotations

from likewise.report.findings import Finding
from likewise.report.page import report
from likewise.report.runs import Runs, read_runs

__all__ = ["Finding", "Runs", "read_runs", "report"]
