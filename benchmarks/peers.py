"""Beside other libraries and plain textbook code: same input, same run, value and CPU seconds.

Everyone gets one thread, so that CPU seconds are work and not threads waiting for each other.
Peers that are not installed are skipped and noted (`pip install torch-cka ckatorch rsatoolbox`).
Each is given what its documentation asks for; torch-cka takes networks and a loader and works in
float32, so it is shown identity layers and one batch of all inputs, and agrees to fewer digits.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch

from benchmarks.common import Cost, cost, networks, write
from likewise import measures

SIZES = ((1000, 256), (2000, 512))
Score = Callable[[np.ndarray, np.ndarray], float]


def textbook_cka(x: np.ndarray, y: np.ndarray) -> float:
    """Two Gram matrices, centred on both sides, and their inner products."""
    k, h = (_doubly_centred(v @ v.T) for v in (x, y))
    return float((k * h).sum() / np.sqrt((k * k).sum() * (h * h).sum()))


def textbook_cka_debiased(x: np.ndarray, y: np.ndarray) -> float:
    """HSIC1 of Song et al. 2012, term by term."""
    k, h = (v @ v.T for v in (x, y))
    for gram in (k, h):
        np.fill_diagonal(gram, 0)
    return float(_hsic1(k, h) / np.sqrt(_hsic1(k, k) * _hsic1(h, h)))


def textbook_rsa(x: np.ndarray, y: np.ndarray) -> float:
    """Correlations of rows above the diagonal, ranked, and the correlation of the ranks."""
    above = np.triu_indices(len(x), 1)
    ranks = [np.corrcoef(v)[above].argsort().argsort() for v in (x, y)]
    return float(np.corrcoef(*ranks)[0, 1])


def textbook_procrustes(x: np.ndarray, y: np.ndarray) -> float:
    """Centre, scale to norm 1, and the singular values of the cross-covariance."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return float(np.sqrt(2 - 2 * np.linalg.svd(x.T @ y, compute_uv=False).sum()))


def textbook_jaccard(x: np.ndarray, y: np.ndarray, k: int = 10) -> float:
    """Neighbour lists by cosine, compared as sets, input by input."""
    lists = []
    for values in (x, y):
        rows = values / np.linalg.norm(values, axis=1, keepdims=True)
        near = rows @ rows.T
        np.fill_diagonal(near, -np.inf)
        lists.append([set(order[:k]) for order in np.argsort(-near, axis=1)])
    return float(np.mean([len(a & b) / len(a | b) for a, b in zip(*lists, strict=True)]))


def _doubly_centred(gram: np.ndarray) -> np.ndarray:
    return gram - gram.mean(axis=0) - gram.mean(axis=1, keepdims=True) + gram.mean()


def _hsic1(k: np.ndarray, h: np.ndarray) -> float:
    n = len(k)
    product = k @ h
    total = np.trace(product) + k.sum() * h.sum() / (n - 1) / (n - 2)
    return float(total - 2 / (n - 2) * product.sum())


def torch_cka(x: np.ndarray, y: np.ndarray) -> float:
    from torch.utils.data import DataLoader, TensorDataset
    from torch_cka import CKA

    loaders = [
        DataLoader(TensorDataset(torch.from_numpy(v).float()), batch_size=len(v)) for v in (x, y)
    ]
    identity = [torch.nn.Sequential(torch.nn.Identity()) for _ in loaders]
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = CKA(*identity, "x", "y", model1_layers=["0"], model2_layers=["0"])
        both.compare(*loaders)
    return float(both.export()["CKA"][0, 0])


def ckatorch(x: np.ndarray, y: np.ndarray, unbiased: bool = False) -> float:
    from ckatorch import cka_base

    return float(cka_base(torch.from_numpy(x), torch.from_numpy(y), unbiased=unbiased))


def rsatoolbox(x: np.ndarray, y: np.ndarray) -> float:
    from rsatoolbox.data import Dataset
    from rsatoolbox.rdm import calc_rdm, compare

    first, second = (calc_rdm(Dataset(v), method="correlation") for v in (x, y))
    return float(compare(first, second, method="spearman")[0, 0])


PEERS: dict[str, dict[str, Score]] = {
    "cka": {"textbook": textbook_cka, "ckatorch": ckatorch},
    "cka-debiased": {
        "textbook": textbook_cka_debiased,
        "ckatorch": lambda x, y: ckatorch(x, y, unbiased=True),
        "torch-cka": torch_cka,
    },
    "rsa": {"textbook": textbook_rsa, "rsatoolbox": rsatoolbox},
    "procrustes": {"textbook": textbook_procrustes},
    "jaccard": {"textbook": textbook_jaccard},
}


def rows() -> Iterator[dict[str, Any]]:
    for n, d in SIZES:
        x, y = networks(n, d).values()
        for name, others in PEERS.items():
            ours = _cost(measures.get(name), x, y)
            for peer, score in others.items():
                what = {"measure": name, "n": n, "d": d, "peer": peer}
                yield what | _beside(peer, score, ours, x, y)


def _cost(score: Score, x: np.ndarray, y: np.ndarray) -> Cost:
    score(x[:50], y[:50])  # so that imports are not counted
    return cost(lambda: score(x, y))


def _beside(peer: str, score: Score, ours: Cost, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    release = _release(peer)
    if release is None:
        return {"note": f"{peer} is not installed"}
    theirs = _cost(score, x, y)
    return {
        "version": release,
        "value": ours.value,
        "peer_value": theirs.value,
        "cpu_seconds": ours.seconds,
        "peer_cpu_seconds": theirs.seconds,
        "times_faster": theirs.seconds / ours.seconds,
        "peak_mb": ours.first_mb,
        "peer_peak_mb": theirs.first_mb,
    }


def _release(peer: str) -> str | None:
    try:
        return version("numpy" if peer == "textbook" else peer)
    except PackageNotFoundError:
        return None


def main() -> None:
    write("peers", rows())


if __name__ == "__main__":
    main()
