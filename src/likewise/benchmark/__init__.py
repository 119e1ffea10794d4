"""The benchmark: which measure may be trusted, and for which question.

Networks are made so that what they share is known; a measure is good if its values follow that.
The room imports `_base` to `analysis`.
"""

from __future__ import annotations

from likewise.benchmark.advice import Advice, advise
from likewise.benchmark.claims import check_claims
from likewise.benchmark.paper import compare_with_paper, paper_results
from likewise.benchmark.ranks import Ranks, ranks
from likewise.benchmark.results import Results
from likewise.benchmark.sweep import sweep
from likewise.benchmark.tables import Table, table

__all__ = [
    "Advice",
    "Ranks",
    "Results",
    "Table",
    "advise",
    "check_claims",
    "compare_with_paper",
    "paper_results",
    "ranks",
    "sweep",
    "table",
]
