"""What a person reads: a page of findings, and what changed between two networks.

`diff` holds a network against a changed copy of it. The room imports `_base` to `benchmark`.
"""
