"""Views: what is looked at in a network, frozen and validated. They know nothing of measures."""

from likewise.views.activations import Activations, Outputs
from likewise.views.extraction import extract
from likewise.views.kept import Views
from likewise.views.listing import Layer, layers
from likewise.views.reduction import Reduction, reduced

__all__ = ["Activations", "Layer", "Outputs", "Reduction", "Views", "extract", "layers", "reduced"]
