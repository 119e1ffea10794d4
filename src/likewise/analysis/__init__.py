"""From a similarity matrix to findings: families of networks, maps, and which components make the difference.

Everything here takes any `SimilarityMatrix`, whichever measure made it, and none of it knows networks or data.
The room imports `_base` to `transfer`.
"""

from __future__ import annotations

from likewise.analysis.agreement import Agreement, agreement
from likewise.analysis.clusters import Clusters, clusters, embed
from likewise.analysis.components import Importance, component_importance, keywords

__all__ = [
    "Agreement",
    "Clusters",
    "Importance",
    "agreement",
    "clusters",
    "component_importance",
    "embed",
    "keywords",
]
