"""What the fuzzer of measures feeds them: odd activations at odd scales, in odd containers.

Everything is drawn from one generator, so that a case comes back from its number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch

Rng = np.random.Generator
INPUTS = (2, 3, 4, 5, 6, 7, 9, 12, 16, 24, 40)
KINDS = ("f8", "f8", "f8", "f4", "f4", "f2", "bfloat16", "i8", "i1", "u2", "bool", ">f8", "longdouble")


def sizes(rng: Rng) -> tuple[int, int, int]:
    """Inputs and two widths: one neuron, as many as inputs, more and fewer."""
    n = int(rng.choice(INPUTS))
    widths = (1, 2, 3, n - 1, n, n + 1, 2 * n + 1, 8)
    a, b = (max(1, int(d)) for d in rng.choice(widths, 2))
    return n, a, b if rng.random() < 0.7 else a


def _network(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d))


def _relu(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.maximum(rng.normal(size=(n, d)), 0)


def _low_rank(rng: Rng, n: int, d: int) -> np.ndarray:
    rank = int(rng.integers(1, 4))
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))


def _ties(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.integers(-1, 2, size=(n, d)).astype("f8")


def _twins(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d))[rng.integers(0, max(2, n // 2), n)]


def _dead(rng: Rng, n: int, d: int) -> np.ndarray:
    x = rng.normal(size=(n, d))
    x[:, rng.random(d) < 0.4] = rng.choice([0.0, 0.0, 1.0, 1e9])
    x[rng.random(n) < 0.2] = 0.0
    return x


def _constant(rng: Rng, n: int, d: int) -> np.ndarray:
    x = np.full((n, d), rng.choice([0.0, 1.0, -3.0, 1e8]))
    x[rng.integers(n)] += rng.choice([0.0, 0.0, 1.0, 1e-9])
    return x


def _large_row(rng: Rng, n: int, d: int) -> np.ndarray:
    x = rng.normal(size=(n, d))
    x[rng.integers(n)] *= 10.0 ** rng.choice([3, 5, 8, 12, 100, 160, -12, -160])
    return x


def _large_neuron(rng: Rng, n: int, d: int) -> np.ndarray:
    x = rng.normal(size=(n, d))
    x[:, rng.integers(d)] *= 10.0 ** rng.choice([3, 5, 8, 12, 100, 160, -12, -160])
    return x


def _large_mean(rng: Rng, n: int, d: int) -> np.ndarray:
    shift = rng.normal(size=d) if rng.random() < 0.5 else 1.0
    return rng.normal(size=(n, d)) + shift * 10.0 ** rng.choice([2, 4, 6, 9, 12])


def _heavy(rng: Rng, n: int, d: int) -> np.ndarray:
    if rng.random() < 0.5:
        return rng.standard_cauchy(size=(n, d)) ** 3
    return rng.choice([-1, 1], size=(n, d)) * 10.0 ** rng.uniform(-8, 8, size=(n, d))


def _on_a_line(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.linspace(1, 2, n)[:, None] * rng.normal(size=d)


CONTENTS: tuple[Callable[[Rng, int, int], np.ndarray], ...] = (
    *(_network, _network, _relu, _low_rank, _ties, _twins, _dead, _constant),
    *(_large_row, _large_neuron, _large_mean, _heavy, _on_a_line),
)


def networks(rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Two networks' activations, often related."""
    n, a, b = sizes(rng)
    x = CONTENTS[rng.integers(len(CONTENTS))](rng, n, a)
    relation = rng.random()
    if relation < 0.4:
        with np.errstate(over="ignore", invalid="ignore"):
            y = x @ rng.normal(size=(a, b)) + rng.choice([0, 1e-9, 0.3]) * rng.normal(size=(n, b))
    elif relation < 0.5:
        y = rng.choice([-1.0, 1.0, 3.0]) * x[:, rng.permutation(a)]
    else:
        y = CONTENTS[rng.integers(len(CONTENTS))](rng, n, b)
    return x, y


def scale(rng: Rng) -> float:
    """Mostly 1, else anything a float can be multiplied by."""
    if rng.random() < 0.5:
        return 1.0
    return float(10.0 ** rng.choice([rng.uniform(-300, 300), rng.uniform(-45, 38), rng.uniform(-8, 8)]))


def scaled(x: np.ndarray, by: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(x * by)


def stored(x: np.ndarray, kind: str) -> Any:
    """The values in some type of numbers; what does not fit becomes infinite or wraps around."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "bfloat16":
            return torch.from_numpy(x).to(torch.bfloat16)
        if kind in ("i8", "i1", "u2", "bool"):
            return np.nan_to_num(x * 8).astype(kind)
        return x.astype(np.longdouble if kind == "longdouble" else kind)


def contained(rng: Rng, x: Any) -> Any:
    """The same numbers in a container that can be read."""
    if isinstance(x, torch.Tensor):
        return x
    plain = x.dtype.byteorder in "=|" and x.dtype != np.longdouble
    container = rng.integers(9)
    if container == 0 and plain:
        return torch.from_numpy(x)
    if container == 1 and plain and x.dtype.kind == "f":
        return torch.from_numpy(x).clone().requires_grad_()
    if container == 2:
        return x.tolist()
    if container == 3:
        return np.asfortranarray(x)
    if container == 4 and plain:
        return pd.DataFrame(x)
    if container == 5:
        return np.repeat(x, 2, axis=1)[:, ::2]
    return x


def refused(rng: Rng) -> Any:
    """Something that holds no matrix of numbers."""
    makers: list[Callable[[], Any]] = [
        lambda: None,
        lambda: 3.0,
        lambda: True,
        lambda: "rows",
        lambda: b"rows",
        lambda: [],
        lambda: [[1.0, 2.0], [3.0]],
        lambda: [["a"], ["b"]],
        lambda: {1, 2},
        lambda: {"a": [1.0]},
        lambda: (row for row in ([1.0], [2.0])),
        lambda: np.array(1.0),
        lambda: np.zeros(5),
        lambda: np.zeros((0, 3)),
        lambda: np.zeros((5, 0)),
        lambda: np.zeros((1, 3)),
        lambda: np.zeros((5, 2, 2)),
        lambda: np.zeros((5, 2), dtype=complex),
        lambda: np.zeros((5, 2), dtype=object),
        lambda: np.zeros((5, 2), dtype="M8[s]"),
        lambda: np.full((5, 2), np.nan),
        lambda: np.full((5, 2), -np.inf),
        lambda: np.ma.masked_less(np.ones((5, 2)), 2),
        lambda: pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
        lambda: scipy.sparse.csr_array(np.ones((5, 2))),
        lambda: torch.ones(5, 2).to_sparse(),
        lambda: torch.empty(5, 2, device="meta"),
        lambda: torch.quantize_per_tensor(torch.ones(5, 2), 0.1, 0, torch.qint8),
        lambda: torch.complex(torch.ones(5, 2), torch.ones(5, 2)),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: [torch.ones(2), torch.ones(3)],
        lambda: torch.nn.Linear(2, 2),
        lambda: object(),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return makers[rng.integers(len(makers))]()
