"""Warnings that point at the line of the caller, however deep inside this package they arise."""

from __future__ import annotations

import sys
import warnings


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """A warning at the innermost line outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "likewise":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)
