"""Singular value decompositions with a fallback, and left singular vectors without the right ones.

`dgesdd` may give up on a matrix with many equal singular values, as two column spaces that share directions have
them, be it in numpy's or in Intel's LAPACK (which torch calls, and which then also writes to the standard output). The
older `dgesvd` does not. For left vectors alone no library we use has a call: they are found by LAPACK's own steps,
those of `dgesdd`, so that vectors have the signs numpy gives them. The routines are the ones SciPy exports for Cython.
Called by their addresses they let other threads run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import cython_lapack

BLOCK = 64  # columns LAPACK works on together, at the most
PADDING = 8  # entries between columns: columns a power of two apart compete for the same cache lines


def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, singular values (the largest first) and Vᵀ."""
    try:
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        if not np.isfinite(matrix).all():
            raise
        left, sizes, right = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return left, sizes, right


def left_singular_vectors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The left singular vectors of a real matrix, one column each, and its singular values, the largest first."""
    n = len(matrix)
    step = n + PADDING
    if matrix.shape != (n, n) or n < 2 or not _routines():  # others take other steps
        return decompose(matrix)[:2]
    bidiagonalise, split, turn = _routines()
    reflectors, vectors, right = np.zeros((3, n, step)).transpose(0, 2, 1)[:, :n]
    reflectors[:] = matrix
    values, above, left_scales, right_scales = np.empty((4, n))
    room, whole_room = np.empty(BLOCK * (2 * n + BLOCK + 1)), np.empty(n * (3 * n + 4))
    info, unused = ctypes.c_int(), np.empty(1)
    bidiagonalise(n, n, reflectors, step, values, above, left_scales, right_scales, room, len(room), info)
    split(b"U", b"I", n, values, above, vectors, step, right, step, unused, unused, whole_room, np.empty(8 * n), info)
    if info.value:
        return decompose(matrix)[:2]
    turn(b"Q", b"L", b"N", n, n, n, reflectors, step, left_scales, vectors, step, room, len(room), info)
    return vectors, values


@cache
def _routines() -> tuple[Callable[..., None], ...]:
    """The three steps; none where SciPy was built with other integers than C's."""
    found = [_routine(name) for name in ("dgebrd", "dbdsdc", "dormbr")]
    return tuple(found) if all(found) else ()


def _routine(name: str) -> Any:
    """A routine of LAPACK: all of its arguments are addresses."""
    capsule = cython_lapack.__pyx_capi__[name]
    python = ctypes.pythonapi
    signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))(capsule)
    kinds = signature.decode().removeprefix("void (").removesuffix(")").split(", ")
    if any(not kind.endswith(("_d *", "char *")) and kind != "int *" for kind in kinds):
        return None
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(address(capsule, signature))
    return lambda *arguments: call(*map(_address, arguments))


def _address(value: Any) -> Any:
    """What stands for an argument: an array by its data, a number by where it is kept, letters as they are."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if isinstance(value, bytes):
        return value
    return ctypes.byref(ctypes.c_int(value) if isinstance(value, int) else value)
