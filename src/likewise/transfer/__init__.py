"""Attack transfer: two networks are alike if what fools one fools the other.

`answers` asks networks for their logits on labelled data. The room imports `_base` to `classes`.
"""

from __future__ import annotations

from likewise.transfer.answers import Answers, answers

__all__ = ["Answers", "answers"]
