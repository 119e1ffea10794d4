"""Views: what is looked at in a network, frozen and validated. They know nothing of measures.

Extraction (`likewise.extract`, `likewise.layers`) brings networks and data along, so it is not imported
here: whoever has arrays needs neither. The room imports `_base`, `work`, `wordnet`, `data` and `networks`.
"""

from typing import TYPE_CHECKING

from likewise._base.lazy import lazy

if TYPE_CHECKING:  # imported on first use: commands read the options of `show` without torch
    from likewise.views.activations import Activations, Outputs
    from likewise.views.reduction import Reduction, reduced

__all__ = ["Activations", "Outputs", "Reduction", "reduced"]
lazy(__name__)
