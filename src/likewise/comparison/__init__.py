"""From networks, arrays or views to matrices: `compare`, `layerwise`, and what chance and sampling say of a score.

The one loop over pairs is in `schedule`. The room imports `_base`, `work`, `data`, `networks`, `views`, `matrices` and
`measures`.
"""
