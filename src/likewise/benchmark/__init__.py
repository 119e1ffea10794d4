"""The benchmark: which measure may be trusted, and for which question.

Networks are made so that what they share is known; a measure is good if its values follow that.
The room imports `_base` to `analysis`.
"""
