"""Language models: how far the next tokens of two of them differ, with texts as the unit.

`answers` shows two networks the same texts; `TokenAnswers` holds what each of them says of every token, and sums it up
with intervals over texts. The package imports `_base`, `data`, `networks`, `views`, `matrices`, `measures` and
`comparison`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.language.reading import answers
from likewise.language.result import Estimate, TokenAnswers
from likewise.language.samples import SamplesChange, TaskChange, paired_samples

__all__ = ["Estimate", "SamplesChange", "TaskChange", "TokenAnswers", "answers", "paired_samples"]
lazy(__name__)
