"""What changed between a network and a fine-tuned, quantised, pruned or re-trained copy of it.

`diff` shows both the same inputs and looks at layers, weights, answers and attacks, each in a file of its own. The room
imports `_base`, `data`, `networks`, `views`, `matrices`, `measures`, `comparison` and `transfer`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.difference.networks import diff
from likewise.difference.result import Diff

__all__ = ["Diff", "diff"]
lazy(__name__)
