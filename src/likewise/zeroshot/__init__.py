"""Raw Zero-Shot: how good is a representation for a class that it never saw.

`run` trains a network without each class in turn and once with all, `from_folder` reads soft labels of your own, `dbi`
and `amalgam` are the metrics, `losses` holds them for a training. `plot_all` draws results, `attacked` attacks the
networks, `architectures` and `rank_correlations` compare both. The room imports `_base`, `work`, `data`, `networks`,
`matrices` and `transfer`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.zeroshot import losses
from likewise.zeroshot.attacks import attacked
from likewise.zeroshot.metrics import Metric, amalgam, davies_bouldin, dbi
from likewise.zeroshot.overview import summary
from likewise.zeroshot.pictures import embed_soft_labels, plot_all, plot_differences, plot_histograms, plot_maps
from likewise.zeroshot.protocol import run, unseen
from likewise.zeroshot.ranking import architectures, paper_table, rank_correlations
from likewise.zeroshot.result import ZeroShot, from_folder, means

__all__ = [
    "Metric",
    "ZeroShot",
    "amalgam",
    "architectures",
    "attacked",
    "davies_bouldin",
    "dbi",
    "embed_soft_labels",
    "from_folder",
    "losses",
    "means",
    "paper_table",
    "plot_all",
    "plot_differences",
    "plot_histograms",
    "plot_maps",
    "rank_correlations",
    "run",
    "summary",
    "unseen",
]
lazy(__name__)
