"""Beside other libraries and plain numpy: same input, same run, value and CPU seconds.

Everyone gets one thread, so that CPU seconds are work and not threads waiting for each other.
Peers that are not installed are skipped and noted (`pip install torch-cka ckatorch pytorch-cka
rsatoolbox`; netrep comes from its repository). Each is given what its documentation asks for, in
the precision of the input where it can; torch-cka takes networks and a loader, so it is shown
identity layers and one batch of all inputs. `ours` is `likewise.compare`, with all its checks.

`milliseconds` are of the best call. `share` is a ratio of medians: of two best calls, one is luckier.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import cdist

import likewise
from perf.common import costs, networks, write

SIZES = ((100, 64), (1000, 512), (5000, 512))
LARGE = 2000  # inputs above which only what is quick is tried
Score = Callable[[np.ndarray, np.ndarray], float]


def numpy_cka(x: np.ndarray, y: np.ndarray) -> float:
    """Centre the columns, and three products: the line everybody writes."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    energy = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(np.linalg.norm(x.T @ y) ** 2 / energy)


def numpy_cka_debiased(x: np.ndarray, y: np.ndarray) -> float:
    """HSIC1 of Song et al. 2012 from two Gram matrices."""
    k, h = (v @ v.T for v in (x, y))
    for gram in (k, h):
        np.fill_diagonal(gram, 0)
    return float(_hsic1(k, h) / np.sqrt(_hsic1(k, k) * _hsic1(h, h)))


def numpy_rsa(x: np.ndarray, y: np.ndarray) -> float:
    """Correlations of rows above the diagonal, ranked, and the correlation of the ranks."""
    above = np.triu_indices(len(x), 1)
    ranks = [np.corrcoef(v)[above].argsort().argsort() for v in (x, y)]
    return float(np.corrcoef(*ranks)[0, 1])


def numpy_procrustes(x: np.ndarray, y: np.ndarray) -> float:
    """Centre, scale to norm 1, and the singular values of the cross-covariance."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return float(np.sqrt(2 - 2 * np.linalg.svd(x.T @ y, compute_uv=False).sum()))


def numpy_jaccard(x: np.ndarray, y: np.ndarray, k: int = 10) -> float:
    """Neighbour lists by cosine, compared as sets, input by input."""
    lists = []
    for values in (x, y):
        rows = values / np.linalg.norm(values, axis=1, keepdims=True)
        near = rows @ rows.T
        np.fill_diagonal(near, -np.inf)
        lists.append([set(order[:k]) for order in np.argsort(-near, axis=1)])
    return float(np.mean([len(a & b) / len(a | b) for a, b in zip(*lists, strict=True)]))


def numpy_distance_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Distances by scipy, centred on both sides, and their inner products."""
    a, b = (_doubly_centred(cdist(v, v)) for v in (x, y))
    return float(np.sqrt((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())))


def _doubly_centred(matrix: np.ndarray) -> np.ndarray:
    return matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean()


def _hsic1(k: np.ndarray, h: np.ndarray) -> float:
    n = len(k)
    r, s = k.sum(axis=0), h.sum(axis=0)
    total = np.vdot(k, h) + r.sum() * s.sum() / (n - 1) / (n - 2)
    return float(total - 2 / (n - 2) * (r @ s))


def torch_cka(x: np.ndarray, y: np.ndarray) -> float:
    from torch.utils.data import DataLoader, TensorDataset
    from torch_cka import CKA

    loaders = [DataLoader(TensorDataset(torch.from_numpy(v).float()), batch_size=len(v)) for v in (x, y)]
    identity = [torch.nn.Sequential(torch.nn.Identity()) for _ in loaders]
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = CKA(*identity, "x", "y", model1_layers=["0"], model2_layers=["0"])
        both.compare(*loaders)
    return float(both.export()["CKA"][0, 0])


def ckatorch(x: np.ndarray, y: np.ndarray, unbiased: bool = False) -> float:
    from ckatorch import cka_base

    return float(cka_base(torch.from_numpy(x), torch.from_numpy(y), unbiased=unbiased))


def pytorch_cka(x: np.ndarray, y: np.ndarray) -> float:
    from cka import cka_from_features

    return float(cka_from_features(torch.from_numpy(x), torch.from_numpy(y))[0, 0])


def netrep(x: np.ndarray, y: np.ndarray) -> float:
    from netrep.metrics import LinearMetric

    return float(LinearMetric(alpha=1.0, score_method="angular").fit_score(x, y))


def pot(x: np.ndarray, y: np.ndarray) -> float:
    """Neurons as points of equal weight, as the authors of soft matching compute it."""
    import ot

    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    weights = np.full(x.shape[1], 1 / x.shape[1])
    return float(np.sqrt(ot.emd2(weights, weights, ot.dist(x.T, y.T))))


def rsatoolbox(x: np.ndarray, y: np.ndarray) -> float:
    from rsatoolbox.data import Dataset
    from rsatoolbox.rdm import calc_rdm, compare

    first, second = (calc_rdm(Dataset(v), method="correlation") for v in (x, y))
    return float(compare(first, second, method="spearman")[0, 0])


PEERS: dict[str, dict[str, Score]] = {
    "cka": {"numpy": numpy_cka, "ckatorch": ckatorch},
    "cka-debiased": {
        "numpy": numpy_cka_debiased,
        "ckatorch": lambda x, y: ckatorch(x, y, unbiased=True),
        "pytorch-cka": pytorch_cka,
        "torch-cka": torch_cka,
    },
    "distance-correlation": {"numpy": numpy_distance_correlation},
    "rsa": {"numpy": numpy_rsa, "rsatoolbox": rsatoolbox},
    "procrustes": {"numpy": numpy_procrustes},
    "angular-shape": {"netrep": netrep},
    "soft-matching": {"pot": pot},
    "jaccard": {"numpy": numpy_jaccard},
}


def rows() -> Iterator[dict[str, Any]]:
    for n, d in SIZES:
        for kind in (np.float32, np.float64):
            x, y = (view.astype(kind) for view in networks(n, d).values())
            for name, others in PEERS.items():
                if n <= LARGE or name.startswith("cka"):
                    yield from _measured(name, others, x, y)


def _measured(name: str, others: dict[str, Score], x: np.ndarray, y: np.ndarray) -> Iterator[dict[str, Any]]:
    for peer, score in others.items():
        what = {"measure": name, "n": len(x), "d": x.shape[1], "dtype": x.dtype.name, "peer": peer}
        yield what | _beside(name, peer, score, x, y)


def _beside(name: str, peer: str, score: Score, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    release = _release(peer)
    if release is None:
        return {"note": f"{peer} is not installed"}
    scores: list[Score] = [lambda a, b: float(likewise.compare(a, b, name)), score]
    for score in scores:
        score(x[:50], y[:50])  # so that imports are not counted
    ours, theirs = costs([partial(score, x, y) for score in scores], repeats=40)
    return {
        "version": release,
        "value": ours.value,
        "peer_value": theirs.value,
        "milliseconds": 1e3 * ours.seconds,
        "peer_milliseconds": 1e3 * theirs.seconds,
        "median_milliseconds": 1e3 * ours.median,
        "share": ours.median / theirs.median,
        "peak_mb": ours.first_mb,
        "peer_peak_mb": theirs.first_mb,
    }


def _release(peer: str) -> str | None:
    try:
        return version(peer)
    except PackageNotFoundError:
        return None


def main() -> None:
    write("peers", rows())


if __name__ == "__main__":
    main()
