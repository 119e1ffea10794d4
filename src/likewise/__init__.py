"""likewise: how alike are these neural networks, and what follows from it?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a type checker sees of `_HOMES`; a test holds the two together
    from likewise import classes as classes
    from likewise import errors as errors
    from likewise import measures as measures
    from likewise import networks as networks
    from likewise import testing as testing
    from likewise import wordnet as wordnet
    from likewise.classes import Inspector as Inspector
    from likewise.comparing import compare as compare
    from likewise.intervals import bootstrap as bootstrap
    from likewise.layer_matrix import LayerMatrix as LayerMatrix
    from likewise.layer_pairs import layerwise as layerwise
    from likewise.matrix import Comparison as Comparison
    from likewise.matrix import SimilarityMatrix as SimilarityMatrix
    from likewise.networks import network as network
    from likewise.networks import train as train
    from likewise.score import Score as Score
    from likewise.trust import calibrate as calibrate
    from likewise.views import Activations as Activations
    from likewise.views import Outputs as Outputs
    from likewise.views import Views as Views
    from likewise.views import extract as extract
    from likewise.views import layers as layers

    data: Any  # a module that can be called

__version__ = "0.1.0"

# Names are looked up on first use, so that `import likewise` stays light.
_HOMES = {
    "Activations": "likewise.views",
    "Inspector": "likewise.classes",
    "LayerMatrix": "likewise.layer_matrix",
    "Outputs": "likewise.views",
    "Comparison": "likewise.matrix",
    "Score": "likewise.score",
    "SimilarityMatrix": "likewise.matrix",
    "Views": "likewise.views",
    "bootstrap": "likewise.intervals",
    "calibrate": "likewise.trust",
    "classes": "likewise.classes",
    "compare": "likewise.comparing",
    "data": "likewise.data",
    "errors": "likewise.errors",
    "extract": "likewise.views",
    "layers": "likewise.views",
    "layerwise": "likewise.layer_pairs",
    "measures": "likewise.measures",
    "network": "likewise.networks",
    "networks": "likewise.networks",
    "testing": "likewise.testing",
    "train": "likewise.networks",
    "wordnet": "likewise.wordnet",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"likewise.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
