"""Comparisons of networks whose likeness is known, and what a page holds."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

import likewise
from likewise.matrices.similarity import Comparison, SimilarityMatrix

EVIL = ["<img src=x onerror=alert(1)>", "</script>", "<b>bold</b>", "'\"&amp;", "%{x}"]


def arrays(count: int, *, kinds: int = 2, n: int = 60, seed: int = 0, names: Sequence[str] = ()) -> dict[str, Any]:
    """Activations of networks of so many kinds; those of one kind see the same, with noise of their own."""
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(kinds, n, 6))
    called = [*names, *(f"net-{i}" for i in range(len(names), count))]
    return {
        name: hidden[i % kinds] @ draw.normal(size=(6, 12)) + 0.4 * draw.normal(size=(n, 12))
        for i, name in enumerate(called[:count])
    }


def compared(count: int, measures: Sequence[str] = ("cka", "rsa", "procrustes"), **how: Any) -> Comparison:
    """A comparison with nulls."""
    return likewise.compare(arrays(count, **how), list(measures), calibrate=60, progress=False)


def data_of(page: str) -> dict[str, Any]:
    """The data a page holds."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def unpacked(pack: dict[str, Any]) -> np.ndarray:
    """Numbers as the page reads them."""
    if "f4" in pack:
        return np.frombuffer(base64.b64decode(pack["f4"]), "<f4").reshape(pack["shape"]).astype(float)
    whole = np.frombuffer(base64.b64decode(pack["u2"]), "<u2").reshape(pack["shape"])
    return np.where(whole == 65535, np.nan, pack["low"] + whole / 65534 * (pack["high"] - pack["low"]))


def many(networks: int, measures: int, *, seed: int = 0) -> list[SimilarityMatrix]:
    """Matrices of a large zoo by many measures, with chance, q and intervals, made up."""
    draw, keys = np.random.default_rng(seed), list(likewise.measures.names())[:measures]
    names = [
        f"{('convnext', 'vit', 'resnet', 'mixer', 'swin')[i % 5]}_variant_{i}_patch16_224" for i in range(networks)
    ]
    kinds = np.arange(networks) % 5
    found = []
    for key in keys:
        info = likewise.measures.get(key).info
        noise = draw.normal(scale=0.08, size=(networks, networks))
        values = np.where(kinds[:, None] == kinds, 0.8, 0.3) + (noise + noise.T) / 2
        values = values.clip(0.01, 0.99) if info.larger_is == "more alike" else 1 - values.clip(0.01, 0.99)
        grids = {"null_mean": np.full_like(values, 0.1), "q": np.full_like(values, 0.01)}
        grids |= {"low": values - 0.02, "high": values + 0.02}
        found.append(
            SimilarityMatrix(names, values, measure=key, larger_is=info.larger_is, extra=grids, about={"n": 500})
        )
    return found
