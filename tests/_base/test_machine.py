"""What counts as too little memory."""

from __future__ import annotations

import pytest
import torch

from likewise._base import machine
from likewise.errors import ForwardError


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (MemoryError("Unable to allocate 8.00 TiB for an array with shape (1000000, 1000000)"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9.00 GB)"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: 9 bytes"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (ForwardError("Net does not fit, it ran out of memory."), False),
    ],
)
def test_too_little_memory_is_told_from_other_errors(error: Exception, is_one: bool) -> None:
    assert machine.is_out_of_memory(error) is is_one
