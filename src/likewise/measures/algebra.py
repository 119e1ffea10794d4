"""Matrix algebra that the quantities of a network are made of, with an eye on rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from likewise._base.machine import processor
from likewise.measures.lapack import decompose

FEW, MANY = 4.2e5, 1e8  # multiplications up to which numpy wakes no threads, and from which threads pay
SHORT = 10_000  # entries up to which numpy's inner product wakes no threads
TILE = 128  # rows and columns copied together
RUN = 8192  # rows summed in single precision before the sum goes on in double
ILL_CONDITIONED = 1e9  # trace(S) trace(S^-1), above the condition of a covariance we trust


def large_empty(rows: int, columns: int, like: Tensor) -> Tensor:
    """Room for a large matrix; numpy's, since numpy asks the system for large pages and torch does not."""
    if like.device.type == "cpu" and like.dtype == torch.float64:
        return torch.from_numpy(np.empty((rows, columns)))
    return like.new_empty(rows, columns)


def symmetric(rows: Tensor) -> Tensor:
    """R Rᵀ, each inner product computed once: torch has no call for it, numpy has."""
    if _by_numpy(rows, rows):
        values = rows.numpy()
        return torch.from_numpy(values @ values.T)
    if rows.shape[0] > TILE:
        return mirror(_lower_half(rows, rows))
    whole = rows @ rows.T
    return (whole + whole.T).mul_(0.5)  # the two halves may differ by rounding


def product(a: Tensor, b: Tensor) -> Tensor:
    """A B, by numpy or torch, whichever is the faster one."""
    return torch.from_numpy(a.numpy() @ b.numpy()) if _by_numpy(a, b) else a @ b


def _by_numpy(a: Tensor, b: Tensor) -> bool:
    """Whether a product of matrices, of which the second may be transposed, or of one with itself is best by numpy."""
    work = a.shape[0] * b.numel()
    return a.is_cpu and (work <= FEW or (work >= MANY and (a is b or not prefers_torch())))


@cache
def prefers_torch() -> bool:
    """Whether torch is the faster library here: it calls Intel's MKL, which is at its best on Intel processors."""
    return torch.backends.mkl.is_available() and "GenuineIntel" in processor()  # type: ignore[no-untyped-call]


def _product_into(a: Tensor, b: Tensor) -> Callable[[Tensor, Tensor, Tensor], Any]:
    """What writes a product of parts of A and B to its third argument, by the library that is best for the whole."""
    if _by_numpy(a, b):
        return lambda left, right, out: np.matmul(left.numpy(), right.numpy(), out=out.numpy())
    return lambda left, right, out: torch.mm(left, right, out=out)


def lower_half(rows: Tensor, others: Tensor | None = None) -> Tensor:
    """`symmetric`, or R Sᵀ where that is symmetric, up to its diagonal; what stands above has no meaning.

    Enough for LAPACK, which reads one half. For large matrices numpy would also fill the other half.
    """
    if others is None and len(rows) <= 8 * TILE and _by_numpy(rows, rows):
        return symmetric(rows)
    return _lower_half(rows, rows if others is None else others)


def _lower_half(rows: Tensor, others: Tensor) -> Tensor:
    n = rows.shape[0]
    step = TILE * max(1, -(-n // (8 * TILE)))
    if n <= step:
        return product(rows, others.T)
    out, multiply = large_empty(n, n, rows), _product_into(rows, others)
    for i in range(0, n, step):
        j = min(i + step, n)
        multiply(rows[i:j], others[:j].T, out[i:j, :j])
    return out


def eigenvalues(matrix: Tensor) -> Tensor:
    """Eigenvalues of a symmetric matrix, of which the lower half is read, the smallest first."""
    if matrix.is_cpu and len(matrix) > TILE and not prefers_torch():
        return torch.from_numpy(np.linalg.eigvalsh(matrix.numpy()))
    return torch.linalg.eigvalsh(matrix)


def eigenvectors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """`eigenvalues` with their vectors, one column each."""
    if matrix.is_cpu and len(matrix) > TILE and not prefers_torch():
        values, vectors = np.linalg.eigh(matrix.numpy())
        return torch.from_numpy(values), torch.from_numpy(vectors)
    values, vectors = torch.linalg.eigh(matrix)
    return values, vectors


def svd(matrix: Tensor, *, repeated: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """U, singular values (the largest first) and Vᵀ; `repeated` says that many of the values are the same.

    Intel's library, which torch calls, may give up on such a matrix, and then also writes to the standard output.
    """
    if not (repeated and matrix.is_cpu):
        try:
            left, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
            return left, sizes, right
        except LinAlgError:
            if not bool(torch.isfinite(matrix).all()):
                raise
    left, sizes, right = (torch.from_numpy(part).to(matrix) for part in decompose(matrix.cpu().numpy()))
    return left, sizes, right


def mirror(matrix: Tensor) -> Tensor:
    """Copy the half below the diagonal over the one above, in place."""
    n = matrix.shape[0]
    for i in range(0, n, TILE):  # in tiles, since columns read one by one miss the cache
        square = matrix[i : i + TILE, i : i + TILE]
        square.copy_(square.tril() + square.tril(-1).T)
        for j in range(i + TILE, n, TILE):
            matrix[i : i + TILE, j : j + TILE] = matrix[j : j + TILE, i : i + TILE].T
    return matrix


def transposed_product(triangle: Tensor, matrix: Tensor) -> Tensor:
    """Wᵀ A for an upper triangular W, whose zeros are left out: torch has no call for it."""
    n = triangle.shape[0]
    if n <= TILE:
        return triangle.T @ matrix
    out, multiply = matrix.new_empty(n, matrix.shape[1]), _product_into(triangle, matrix)
    for i in range(0, n, TILE):
        j = min(i + TILE, n)
        multiply(triangle[:j, i:j].T, matrix[:j], out[i:j])
    return out


def triangular_product(matrix: Tensor, triangle: Tensor) -> Tensor:
    """A W for an upper triangular W, whose zeros are left out: torch has no call for it."""
    n = triangle.shape[0]
    if n <= TILE:
        return matrix @ triangle
    out, multiply = matrix.new_empty(matrix.shape[0], n), _product_into(matrix, triangle)
    for i in range(0, n, TILE):
        j = min(i + TILE, n)
        multiply(matrix[:, :j], triangle[:j, i:j], out[:, i:j])
    return out


def frobenius(matrix: Tensor) -> float:
    """The Frobenius norm; of small matrices by numpy, in a third of the time."""
    if matrix.is_cpu and matrix.numel() <= SHORT:
        values = matrix.numpy()
        return math.sqrt(np.vdot(values, values))
    return float(torch.linalg.vector_norm(matrix))


def row_squares(rows: Tensor) -> Tensor:
    """Squared norms of rows; of small matrices by numpy, which takes no root to square it again."""
    if rows.is_cpu and rows.numel() <= SHORT:
        values = rows.numpy()
        return torch.from_numpy(np.einsum("nd,nd->n", values, values))
    return torch.linalg.vector_norm(rows, dim=1).square_()


def single_product_norm(a: Tensor, b: Tensor) -> float:
    """Frobenius norm of Aᵀ B for rows in single precision, long sums of which are made in double."""
    total = None
    for i in range(0, a.shape[0], RUN):
        left = a[i : i + RUN].T
        block = symmetric(left) if a is b else product(left, b[i : i + RUN])
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
        if float(moment.trace()) * size**2 < ILL_CONDITIONED and size * rounding < 1:
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
    found = torch.linalg.vector_norm(vectors, dim=dim)
    small = found < torch.finfo(found.dtype).tiny ** 0.5 * 2.0**52
    if not bool(small.any()):
        return found
    index = small.nonzero()[:, 0]
    few = vectors.index_select(1 - dim, index)
    peaks = few.abs().amax(dim=dim, keepdim=True).clamp_(min=torch.finfo(found.dtype).tiny)
    found[index] = torch.linalg.vector_norm(few / peaks, dim=dim) * peaks.squeeze(dim)
    return found


def hsic1(inner: float, middle: float, whole: float, n: int) -> float:
    """n (n - 3) times HSIC1 of two n x n matrices with zeros on their diagonals (Song et al. 2012, equation 5).

    inner   the sum of K_ij L_ji
    middle  the product of the column sums of K with the row sums of L
    whole   the product of their sums
    """
    return inner + whole / ((n - 1) * (n - 2)) - 2 / (n - 2) * middle
