"""What changed between a network and a fine-tuned, quantised, pruned or re-trained copy of it.

`diff` shows both the same inputs and compares layers, weights, answers and attacks, each in its own file. The room
imports `_base`, `work`, `data`, `networks`, `views`, `matrices`, `measures`, `comparison`, `language`
and `transfer`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.comparison.recordings.recorder import record_arrays
from likewise.comparison.recordings.recording import Recording
from likewise.difference.networks import diff
from likewise.difference.recorded import record
from likewise.difference.result import Diff

__all__ = ["Diff", "Recording", "diff", "record", "record_arrays"]
lazy(__name__)
