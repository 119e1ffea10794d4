"""Views: what is looked at in a network, frozen and validated. They know nothing of measures.

Extraction brings networks and data along, so it is imported when first asked for: whoever has
arrays needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likewise.views.activations import Activations, Outputs
from likewise.views.reduction import Reduction, reduced

if TYPE_CHECKING:
    from likewise.views.extraction import extract
    from likewise.views.kept import Views
    from likewise.views.listing import Layer, layers

_HOMES = {"Layer": "listing", "Views": "kept", "extract": "extraction", "layers": "listing"}
__all__ = ["Activations", "Layer", "Outputs", "Reduction", "Views", "extract", "layers", "reduced"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise.views' has no attribute {name!r}")
    return getattr(import_module(f"likewise.views.{_HOMES[name]}"), name)
