"""Cached views of made networks: two groups that share a signal each, answers, and layers that drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from likewise.benchmark import CachedViews, Trial
from likewise.benchmark.domains.base import LayerViews
from likewise.benchmark.validity import Validity
from likewise.views import Activations, Outputs


def trials(seed: int = 0, n: int = 30, domain: str = "vision") -> Iterator[tuple[Mapping[str, Any], Trial]]:
    """One run: output difference, label randomisation, a shortcut that nobody used, and layers."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(3, size=n)
    settings = {"domain": domain, "data": "made", "network": "noise", "preset": "small", "seed": seed}
    views = {}
    for group in "ab":
        shared = draw.normal(size=(n, 6))
        for number in range(3):
            logits = 2 * np.eye(3)[labels] + draw.normal(size=(n, 3)) + 3 * shared[:, :3]
            values = 1e6 * shared + 3e5 * draw.normal(size=shared.shape)
            views[f"{group}{number}"] = Activations(values, f"{group}{number}", outputs=Outputs(logits, labels))
    groups = tuple(name[0] for name in views)
    first = draw.normal(size=(n, 5))
    layers = [
        LayerViews({str(i): Activations(first + i * draw.normal(size=first.shape)) for i in range(3)}) for _ in range(2)
    ]
    yield settings, Trial("outputs", views)
    yield settings, Trial("labels", views, groups)
    yield settings, Trial("shortcut", views, groups, validity=Validity(False, "the shortcut was not used"))
    yield settings, Trial("layers", layers=layers)


def cached(seed: int = 0) -> CachedViews:
    """The views of two such runs in two domains."""
    return CachedViews.of([*trials(seed), *trials(seed + 1, domain="graph")])
