"""Class similarity: what a network finds alike, from its weights, its mistakes and its features.

What draws or trains is imported on first use; the numbers need neither. The room imports `_base`, `work`, `wordnet`,
`data`, `networks`, `views`, `matrices`, `measures`, `comparison` and `attacks`.
"""

from typing import TYPE_CHECKING

from likewise._base.lazy import lazy
from likewise.classes.agreement import Alignment, alignment
from likewise.classes.confusion import Templates, hierarchical_distance, idm, interval, ranks, templates
from likewise.classes.epoch_report import INDICES, index
from likewise.classes.from_sources import from_confusion, from_features, from_logits, from_weights, from_wordnet
from likewise.classes.indices import wsi
from likewise.classes.learning.phases import Phases, phases
from likewise.classes.similarity import ClassSimilarity

if TYPE_CHECKING:
    from likewise.classes.inspector import Inspector, inspect
    from likewise.classes.pictures import animate, curves, histogram, joint, matrices, mistakes

__all__ = [
    "INDICES",
    "Alignment",
    "ClassSimilarity",
    "Inspector",
    "Phases",
    "Templates",
    "alignment",
    "animate",
    "curves",
    "from_confusion",
    "from_features",
    "from_logits",
    "from_weights",
    "from_wordnet",
    "hierarchical_distance",
    "histogram",
    "idm",
    "index",
    "inspect",
    "interval",
    "joint",
    "matrices",
    "mistakes",
    "phases",
    "ranks",
    "templates",
    "wsi",
]
lazy(__name__)
