"""likewise: how alike are these neural networks, and what follows from it?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a type checker sees of `_HOMES`; a test holds the two together
    from likewise import analysis as analysis
    from likewise import attacks as attacks
    from likewise import benchmark as benchmark
    from likewise import classes as classes
    from likewise import data as data
    from likewise import errors as errors
    from likewise import measures as measures
    from likewise import networks as networks
    from likewise import report as report
    from likewise import testing as testing
    from likewise import transfer as transfer
    from likewise import wordnet as wordnet
    from likewise import zeroshot as zeroshot
    from likewise.classes import Inspector as Inspector
    from likewise.comparison.compare import compare as compare
    from likewise.comparison.influence import influence as influence
    from likewise.comparison.intervals import bootstrap as bootstrap
    from likewise.comparison.layerwise import layerwise as layerwise
    from likewise.comparison.pointwise import pointwise as pointwise
    from likewise.comparison.significance import calibrate as calibrate
    from likewise.data import dataset as dataset
    from likewise.difference.networks import diff as diff
    from likewise.matrices.layers import LayerMatrix as LayerMatrix
    from likewise.matrices.score import Score as Score
    from likewise.matrices.similarity import Comparison as Comparison
    from likewise.matrices.similarity import SimilarityMatrix as SimilarityMatrix
    from likewise.networks import network as network
    from likewise.networks import train as train
    from likewise.views import Activations as Activations
    from likewise.views import Outputs as Outputs
    from likewise.views.activations import Views as Views
    from likewise.views.extract import extract as extract
    from likewise.views.layers import layers as layers

__version__ = "0.1.0"

# Names are looked up on first use, so that `import likewise` stays light.
_HOMES = {
    "Activations": "likewise.views",
    "Inspector": "likewise.classes",
    "LayerMatrix": "likewise.matrices.layers",
    "Outputs": "likewise.views",
    "Comparison": "likewise.matrices.similarity",
    "Score": "likewise.matrices.score",
    "SimilarityMatrix": "likewise.matrices.similarity",
    "Views": "likewise.views.activations",
    "analysis": "likewise.analysis",
    "attacks": "likewise.attacks",
    "benchmark": "likewise.benchmark",
    "bootstrap": "likewise.comparison.intervals",
    "calibrate": "likewise.comparison.significance",
    "classes": "likewise.classes",
    "compare": "likewise.comparison.compare",
    "data": "likewise.data",
    "dataset": "likewise.data",
    "diff": "likewise.difference.networks",
    "errors": "likewise.errors",
    "extract": "likewise.views.extract",
    "influence": "likewise.comparison.influence",
    "layers": "likewise.views.layers",
    "layerwise": "likewise.comparison.layerwise",
    "measures": "likewise.measures",
    "network": "likewise.networks",
    "networks": "likewise.networks",
    "pointwise": "likewise.comparison.pointwise",
    "report": "likewise.report",
    "testing": "likewise.testing",
    "train": "likewise.networks",
    "transfer": "likewise.transfer",
    "wordnet": "likewise.wordnet",
    "zeroshot": "likewise.zeroshot",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    globals()[name] = found = home if home.__name__ == f"likewise.{name}" else getattr(home, name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
