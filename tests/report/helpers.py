"""Comparisons of networks whose likeness is known, and what a page holds."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

import likewise
from likewise.matrices.similarity import Comparison

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
