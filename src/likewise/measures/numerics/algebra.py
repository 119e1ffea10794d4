"""Matrix algebra that the quantities of a network are made of, with care for rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

LARGE = 1e8  # multiplications from which numpy's symmetric product pays for the threads that it wakes
CHUNK = 8192  # rows summed in single precision before the sum continues in double
ILL_CONDITIONED = 1e-9  # one over trace(S) trace(S^-1), which is above the condition of a covariance we trust


def tolerance(in_double: float, dtype: torch.dtype) -> float:
    """A tolerance made for double precision as another type has it: the same power of its rounding.

    >>> f"{tolerance(1e-12, torch.float32):.1e}", tolerance(1e-12, torch.float64)
    ('4.9e-06', 1e-12)
    """
    if dtype == torch.float64:
        return in_double
    power = math.log(in_double) / math.log(torch.finfo(torch.float64).eps)
    return float(torch.finfo(dtype).eps ** power)


def large(dtype: torch.dtype) -> float:
    """A number whose third power a type holds."""
    return float(torch.finfo(dtype).max ** (100 / 308))


def symmetric(rows: Tensor) -> Tensor:
    """R Rᵀ, symmetric to the last digit; of large matrices by numpy, which computes one half, in half the time."""
    if rows.is_cpu and rows.shape[0] * rows.numel() >= LARGE:
        values = rows.numpy()
        return torch.from_numpy(values @ values.T)
    product = rows @ rows.T
    return (product + product.T).mul_(0.5)


def svd(matrix: Tensor, *, repeated: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """U, singular values (the largest first) and Vᵀ; `repeated` says that many of the values are the same.

    Intel's library, which torch calls, may fail on such a matrix, and then also writes to the standard output.
    """
    if not (repeated and matrix.is_cpu):
        try:
            left, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
            return left, sizes, right
        except LinAlgError:
            if not bool(torch.isfinite(matrix).all()):
                raise
    left, sizes, right = (torch.from_numpy(factor).to(matrix) for factor in numpy_svd(matrix.cpu().numpy()))
    return left, sizes, right


def numpy_svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by numpy, whose `dgesdd` may fail where many singular values are equal; the older `dgesvd` does not."""
    try:
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        if not np.isfinite(matrix).all():
            raise
        left, sizes, right = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return left, sizes, right


def frobenius(matrix: Tensor) -> float:
    """The Frobenius norm."""
    return float(torch.linalg.vector_norm(matrix))


def float32_product_norm(a: Tensor, b: Tensor) -> float:
    """Frobenius norm of Aᵀ B for rows in single precision, long sums of which are made in double."""
    total = None
    for i in range(0, a.shape[0], CHUNK):
        left = a[i : i + CHUNK].T
        block = symmetric(left) if a is b else left @ b[i : i + CHUNK]
        total = block if total is None else total.double().add_(block)
    rows = torch.linalg.vector_norm(total, dim=1)
    return float(torch.linalg.vector_norm(rows.double()))


def whitening(moment: Tensor, rounding: float) -> Tensor:
    """An upper triangular W with Wᵀ moment W = I by Cholesky decomposition; empty if that would cost digits.

    Or if it might blow up what is only rounding: 1 / |W| is at most the smallest singular value.
    """
    triangle, failed = torch.linalg.cholesky_ex(moment)
    if not int(failed):
        identity = torch.eye(moment.shape[0], dtype=moment.dtype, device=moment.device)
        inverse = torch.linalg.solve_triangular(triangle, identity, upper=False)
        size = float(torch.linalg.vector_norm(inverse))
        if float(moment.trace()) * size**2 < 1 / tolerance(ILL_CONDITIONED, moment.dtype) and size * rounding < 1:
            return inverse.T.contiguous()  # products of two transposed matrices are slow
    return moment.new_empty(0)


def rank_of(sizes: Tensor, rounding: float, n: int, d: int) -> int:
    """How many singular values are more than rounding, of the values or of the decomposition."""
    floor = max(rounding, float(sizes[0]) * max(n, d) * torch.finfo(sizes.dtype).eps)
    return max(1, int((sizes > floor).sum()))


def recentre(centred: Tensor) -> Tensor:
    """Without what rounding of a large mean left of it, which would pass for a direction."""
    return centred - centred.mean(dim=0)


def inverse_of(values: Tensor) -> Tensor:
    """1 / value, and 0 for 0."""
    return torch.where(values > 0, values, torch.inf).reciprocal()


def lengths(vectors: Tensor, dim: int) -> Tensor:
    """Norms along an axis, also of vectors so small that their squares are lost."""
    norms = torch.linalg.vector_norm(vectors, dim=dim)
    tiny, eps = torch.finfo(norms.dtype).tiny, torch.finfo(norms.dtype).eps
    small = norms < tiny**0.5 / eps
    if bool(small.any()):
        index = small.nonzero()[:, 0]
        few = vectors.index_select(1 - dim, index)
        peaks = few.abs().amax(dim=dim, keepdim=True).clamp_(min=tiny)
        norms[index] = torch.linalg.vector_norm(few / peaks, dim=dim) * peaks.squeeze(dim)
    return norms


def hsic1(inner: Any, middle: Any, whole: Any, n: int) -> Any:
    """n (n - 3) times HSIC1 of two n x n matrices with zeros on their diagonals (Song et al. 2012, equation 5).

    `inner` is the sum of K_ij L_ji, `middle` the product of the column sums of K with the row sums of L, and
    `whole` the product of their sums.
    """
    return inner + whole / ((n - 1) * (n - 2)) - 2 / (n - 2) * middle


def ridge_factors(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Two matrices whose product is the ridge regression of centred targets on sources, which are centred here.

    The penalty is that of least generalised cross-validation error.
    """
    n = source.shape[0]
    basis, scales, rows = svd(source - source.mean(dim=0))
    projected, squares = basis.T @ target, scales.square()
    outside = float(torch.linalg.vector_norm(target)) ** 2 - float(torch.linalg.vector_norm(projected)) ** 2
    energy = projected.square().sum(dim=1)
    errors, best = math.inf, squares
    for penalty in torch.logspace(-6, 6, 25, dtype=squares.dtype) * float(squares.mean()):
        kept = squares / (squares + penalty)
        freedom = 1 - (float(kept.sum()) + 1) / n
        error = (outside + float((energy * (1 - kept).square()).sum())) / max(freedom, 1e-12) ** 2
        if error < errors:
            errors, best = error, squares + penalty
    return rows.T, (scales / best)[:, None] * projected
