"""The benchmark: which measure may be trusted, and for which question.

Networks are made so that what they share is known; a measure is good if its values follow that. The room imports
`_base`, `work`, `data`, `networks`, `views`, `matrices`, `measures`, `comparison` and `analysis`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.benchmark.board.cached_views import CachedViews
from likewise.benchmark.board.standings import Board, Standing
from likewise.benchmark.board.submissions import Submission, submit
from likewise.benchmark.domains import DOMAINS, Domain, domain
from likewise.benchmark.evaluation import Evidence, Quality
from likewise.benchmark.folder import from_folder
from likewise.benchmark.fusions import Fusion, evaluate_fusions
from likewise.benchmark.groundings import GROUNDINGS, Grounding, grounding
from likewise.benchmark.pictures import plot_inputs
from likewise.benchmark.planning import plan
from likewise.benchmark.results.advice import Advice, advise
from likewise.benchmark.results.claims import check_claims
from likewise.benchmark.results.frame import Results
from likewise.benchmark.results.paper import compare_with_paper, paper_results
from likewise.benchmark.results.ranks import Ranks, gains, ranks
from likewise.benchmark.results.tables import Table, table
from likewise.benchmark.results.truth import plot_truth
from likewise.benchmark.runs import BenchmarkRun, across, run
from likewise.benchmark.sweeps import sweep
from likewise.benchmark.trials import Trial

__all__ = [
    "DOMAINS",
    "GROUNDINGS",
    "Advice",
    "BenchmarkRun",
    "Board",
    "CachedViews",
    "Domain",
    "Evidence",
    "Fusion",
    "Grounding",
    "Quality",
    "Ranks",
    "Results",
    "Standing",
    "Submission",
    "Table",
    "Trial",
    "across",
    "advise",
    "check_claims",
    "compare_with_paper",
    "domain",
    "evaluate_fusions",
    "from_folder",
    "gains",
    "grounding",
    "paper_results",
    "plan",
    "plot_inputs",
    "plot_truth",
    "ranks",
    "run",
    "submit",
    "sweep",
    "table",
]
lazy(__name__)
