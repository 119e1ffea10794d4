"""The benchmark: which measure may be trusted, and for which question.

Networks are made so that what they share is known; a measure is good if its values follow that.
The room imports `_base` to `analysis`.
"""

from likewise.benchmark.domains import DOMAINS, Domain, domain
from likewise.benchmark.evaluation import Evidence, Quality
from likewise.benchmark.families import across
from likewise.benchmark.folder import from_folder
from likewise.benchmark.groundings import GROUNDINGS, Grounding, grounding
from likewise.benchmark.plan import plan
from likewise.benchmark.run import BenchmarkRun, run
from likewise.benchmark.trials import Trial

__all__ = [
    "DOMAINS",
    "GROUNDINGS",
    "BenchmarkRun",
    "Domain",
    "Evidence",
    "Grounding",
    "Quality",
    "Trial",
    "across",
    "domain",
    "from_folder",
    "grounding",
    "plan",
    "run",
]
