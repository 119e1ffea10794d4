"""likewise: how alike are these neural networks, and what follows from it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._base.lazy import lazy

if TYPE_CHECKING:  # imported on first use, so that `import likewise` stays light
    from likewise import (
        analysis,
        attacks,
        benchmark,
        classes,
        data,
        errors,
        language,
        measures,
        networks,
        report,
        testing,
        transfer,
        wordnet,
        zeroshot,
    )
    from likewise.classes import Inspector
    from likewise.comparison.compare import compare
    from likewise.comparison.influence import influence
    from likewise.comparison.intervals import bootstrap
    from likewise.comparison.layerwise import layerwise
    from likewise.comparison.pointwise import pointwise
    from likewise.comparison.recordings.recording import Recording
    from likewise.comparison.significance import calibrate
    from likewise.data import dataset
    from likewise.difference import diff, record
    from likewise.matrices.layers import LayerMatrix
    from likewise.matrices.score import Score
    from likewise.matrices.similarity import Comparison, SimilarityMatrix
    from likewise.networks import network, train
    from likewise.views import Activations, Outputs
    from likewise.views.activations import Views
    from likewise.views.extract import extract
    from likewise.views.layers import layers
    from likewise.views.show import Show

__version__ = "0.1.0"
__all__ = [
    "Activations",
    "Comparison",
    "Inspector",
    "LayerMatrix",
    "Outputs",
    "Recording",
    "Score",
    "Show",
    "SimilarityMatrix",
    "Views",
    "__version__",
    "analysis",
    "attacks",
    "benchmark",
    "bootstrap",
    "calibrate",
    "classes",
    "compare",
    "data",
    "dataset",
    "diff",
    "errors",
    "extract",
    "influence",
    "language",
    "layers",
    "layerwise",
    "measures",
    "network",
    "networks",
    "pointwise",
    "record",
    "report",
    "testing",
    "train",
    "transfer",
    "wordnet",
    "zeroshot",
]
lazy(__name__)
