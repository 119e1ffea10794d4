"""Attack transfer: two networks are alike if what fools one fools the other.

`sat` scores all pairs of networks, `one_sided` a new one with each of a zoo, `during` the epochs of a training; `load`
reads what `likewise transfer --out` wrote, `answers` collects the logits of networks, `success` attacks one network,
`robustness` attacks it without gradients, and `sketch` keeps so little of networks that thousands are compared. The
room imports `_base`, `work`, `data`, `networks`, `views`, `matrices`, `measures` and `attacks`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.transfer.cost import plan, preset
from likewise.transfer.linear import Sketches, sketch
from likewise.transfer.logits import Answers, answers
from likewise.transfer.matrix import TransferMatrix, load
from likewise.transfer.scores import one_sided_score, sat_score
from likewise.transfer.success_rates import Success, robustness, success
from likewise.transfer.transferability import OneSided, during, one_sided, sat

__all__ = [
    "Answers",
    "OneSided",
    "Sketches",
    "Success",
    "TransferMatrix",
    "answers",
    "during",
    "load",
    "one_sided",
    "one_sided_score",
    "plan",
    "preset",
    "robustness",
    "sat",
    "sat_score",
    "sketch",
    "success",
]
lazy(__name__)
