"""Views: what is looked at in a network. Frozen and validated when made; they know nothing of measures."""

from likewise.views.activations import Activations, Outputs
from likewise.views.reduction import Reduction, reduced

__all__ = ["Activations", "Outputs", "Reduction", "reduced"]
