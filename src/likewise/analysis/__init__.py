"""From a similarity matrix to findings: families of networks, maps, and which components explain it.

Everything here takes any `SimilarityMatrix`, whichever measure made it; ensembles take the answers of networks beside
it. Only `components` looks at networks themselves. The room imports `_base`, `networks`, `views`, `matrices`,
`measures` and `transfer`.
it. `components` looks at networks themselves, and `upgrade` at the vectors of two embedding models. The room imports
`_base`, `networks`, `views`, `matrices`, `measures` and `transfer`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.analysis.cluster_ensembles import errors_by_clusters
from likewise.analysis.component_analysis import Importance, component_importance, component_table, components, keywords
from likewise.analysis.embeddings.advice import Upgrade, upgrade
from likewise.analysis.ensembles import all_wrong, error_reduction, pair_reductions
from likewise.analysis.families import Clusters, clusters, embed, plot_families
from likewise.analysis.files import read_matrix, read_table
from likewise.analysis.matrix_agreement import Agreement, agreement
from likewise.analysis.picks import (
    GainPredictors,
    Pick,
    Trial,
    gain_predictors,
    greedy_members,
    pick_diverse,
    pick_ensemble,
    regrets,
)
from likewise.analysis.teachers import TeacherPick, pick_teacher, teacher_correlations
from likewise.matrices.fusion import fuse

__all__ = [
    "Agreement",
    "Clusters",
    "GainPredictors",
    "Importance",
    "Pick",
    "TeacherPick",
    "Trial",
    "Upgrade",
    "agreement",
    "all_wrong",
    "clusters",
    "component_importance",
    "component_table",
    "components",
    "embed",
    "error_reduction",
    "errors_by_clusters",
    "fuse",
    "gain_predictors",
    "greedy_members",
    "keywords",
    "pair_reductions",
    "pick_diverse",
    "pick_ensemble",
    "pick_teacher",
    "plot_families",
    "read_matrix",
    "read_table",
    "regrets",
    "teacher_correlations",
    "upgrade",
]
lazy(__name__)
