"""Results of Raw Zero-Shot from drawn soft labels, for tests of what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.zeroshot import ZeroShot


def drawn(network: str = "net", classes: tuple[str, ...] = tuple("abcd"), samples: int = 12, **more: Any) -> ZeroShot:
    """Answers of both networks drawn at random, another draw for another name."""
    draw = np.random.default_rng(list(network.encode()))
    n = len(classes)
    full = tuple(draw.dirichlet(np.ones(n), size=samples) for _ in classes)
    part = tuple(draw.dirichlet(np.ones(n - 1), size=samples) for _ in classes)
    return ZeroShot(network, classes, (full,), (part,), **more)
