"""Raw Zero-Shot: how good is a representation for a class that it never saw.

`run` trains a network without each class in turn and once with all, `from_folder` reads soft labels of your own, `dbi`
and `amalgam` are the metrics. The room imports `_base` to `matrices`.
"""

from __future__ import annotations

from likewise.zeroshot.metrics import Metric, amalgam, davies_bouldin, dbi
from likewise.zeroshot.result import ZeroShot, from_folder, means
from likewise.zeroshot.run import run, unseen

__all__ = ["Metric", "ZeroShot", "amalgam", "davies_bouldin", "dbi", "from_folder", "means", "run", "unseen"]
