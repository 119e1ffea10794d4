"""likewise: how alike are these neural networks, and what follows from it?"""

from __future__ import annotations

from importlib import import_module
from typing import Any

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
    "bootstrap": "likewise.trust",
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
