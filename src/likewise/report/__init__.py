"""Results of any runs as one HTML file.

`read_runs` reads folders and files that commands wrote, `report` writes the page, `hub_page` a folder of it with a
card, `figures` its pictures, `demo` trains ten small networks and reports on them. The room imports `_base`, `work`,
`data`, `networks`, `views`, `matrices`, `measures`, `comparison`, `classes`, `transfer`, `zeroshot`, `analysis`,
`benchmark` and `difference`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.report.digits_demo import demo
from likewise.report.hub import hub_page
from likewise.report.page import report
from likewise.report.panels.panel import Finding
from likewise.report.paper_figures import figures
from likewise.report.runs import Runs, read_runs

__all__ = ["Finding", "Runs", "demo", "figures", "hub_page", "read_runs", "report"]
lazy(__name__)
