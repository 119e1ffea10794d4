"""What can be read as an array, at the border: everything else is refused with one sentence.

Activations, logits, labels, images and confounders come as tensors, numpy arrays, data frames, lists or whatever
turns itself into an array. Behind this border there are only dense tensors with values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise._base.machine import on_precise_device
from likewise.errors import InputError, first_line

Array = np.ndarray[Any, Any]
NO_ARRAY = (type(None), str, bytes, bytearray, Mapping, Set, Iterator, FunctionType, type, nn.Module)


def as_tensor(values: Any, label: str) -> Tensor:
    """A floating tensor that shares memory where it can; on the CPU where its device has no double precision."""
    tensor = on_precise_device(plain_tensor(values, label))
    if tensor.is_complex():
        raise InputError(f"{label} holds complex entries. Pass its real part or its modulus.")
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor
    return tensor.float() if tensor.is_floating_point() else tensor.double()


def plain_tensor(values: Any, label: str) -> Tensor:
    """A dense tensor with values, of whatever type of numbers was given."""
    if isinstance(values, Tensor):
        return _dense(values, label)
    if isinstance(values, (list, tuple)) and values and isinstance(values[0], Tensor):
        return _stacked(values, label)
    return tensor_from_numpy(_numbers(values, label))


def as_array(values: Any, label: str) -> Array:
    """A float64 array on the CPU that shares memory where it can."""
    return as_tensor(values, label).double().cpu().numpy()


def check_labels(values: Any, n: int | None = None, classes: int | None = None, *, what: str = "labels") -> Tensor:
    """Class indices `(n,)` as whole numbers, on the device they are on, or one sentence on what is wrong.

    Without `n` there may be any number of them; without `classes` they have no upper limit.

    >>> check_labels([0, 2, 1], 3, 3)
    tensor([0, 2, 1])
    """
    labels = plain_tensor(values, f"the list of {what}")
    if fault := labels_fault(labels, n, classes, what):
        raise InputError(f"{fault}. Give one class index per input.")
    return labels.long()


def labels_fault(labels: Tensor, n: int | None, classes: int | None, what: str) -> str:
    """What is wrong with class indices, as a sentence without its end; empty where nothing is.

    >>> labels_fault(torch.tensor([0, 3]), 2, 3, "labels")
    'labels must be 2 whole numbers from 0 to 2, got numbers from 0 to 3'
    """
    count, limit = "" if n is None else f"{n} ", "" if classes is None else f" to {classes - 1}"
    expected = f"{what} must be {count}whole numbers from 0{limit}"
    whole = not labels.is_floating_point() and not labels.is_complex()
    if not whole or labels.ndim != 1 or (n is not None and len(labels) != n):
        return f"{expected}, got {str(labels.dtype).removeprefix('torch.')} of shape {tuple(labels.shape)}"
    low, high = (int(end) for end in labels.long().aminmax()) if len(labels) else (0, -1)
    inside = low >= 0 and (classes is None or high < classes)
    return "" if inside else f"{expected}, got numbers from {low} to {high}"


def check_images(images: Tensor, label: str) -> None:
    """Refuse what is not (n, channels, height, width), bytes or floats in [0, 1]."""
    shape = tuple(images.shape)
    if images.ndim != 4 or shape[1] not in (1, 3):
        hint = " Move the channels forward: images.permute(0, 3, 1, 2)."
        last = images.ndim == 4 and shape[3] in (1, 3)
        raise InputError(
            f"the images of {label} have shape {shape}, not (n, channels, height, width) with "
            f"1 or 3 channels.{hint if last else ' Give one image per row.'}"
        )
    if images.dtype == torch.uint8 or not images.numel():
        return
    if not images.is_floating_point():
        raise InputError(f"the images of {label} are {images.dtype}. Give bytes (uint8), or floats in [0, 1].")
    low, high = float(images.min()), float(images.max())
    if not (low >= 0 and high <= 1):
        raise InputError(
            f"the images of {label} run from {low:.4g} to {high:.4g}, not within [0, 1]. Divide "
            "bytes by 255, and leave normalisation to the network."
        )


def refuse_meta() -> None:
    """Refuse to work where torch makes new tensors on the device 'meta'."""
    if torch.empty(0).is_meta:
        raise InputError(
            "torch's default device is 'meta', where tensors have no values. Compare networks outside "
            "of torch.device('meta')."
        )


def _dense(tensor: Tensor, label: str) -> Tensor:
    if tensor.is_meta:
        raise InputError(f"{label} is on the device 'meta', where tensors have no values. Compute it on another.")
    if tensor.is_nested:
        raise InputError(f"{label} is a nested tensor. Pad its rows, or reduce them to one length.")
    if tensor.layout != torch.strided:
        kind = str(tensor.layout).removeprefix("torch.").removeprefix("_")
        raise InputError(f"{label} is a tensor of layout {kind}. Pass its to_dense().")
    if tensor.is_quantized:
        raise InputError(f"{label} is a quantised tensor. Pass its dequantize().")
    return tensor.detach().resolve_neg()


def _stacked(rows: list[Tensor] | tuple[Tensor, ...], label: str) -> Tensor:
    if not all(isinstance(row, Tensor) for row in rows):
        raise InputError(f"{label} mixes tensors with other things. Pass one tensor.")
    dense = [_dense(row, label) for row in rows]
    if len({(row.shape, row.dtype, row.device) for row in dense}) > 1:
        raise InputError(f"{label} lists tensors of different shapes or types. Pass one tensor.")
    return torch.stack(dense)


def tensor_from_numpy(array: Array) -> Tensor:
    """A tensor of a numeric array, whatever its precision, byte order, strides and flags."""
    if array.dtype == np.longdouble:
        with np.errstate(over="ignore"):  # what is too large is refused as infinite
            array = array.astype(np.float64)
    aligned = array.flags.aligned and min(array.strides, default=0) >= 0
    if array.dtype.byteorder not in "=|" or not aligned:
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    if not array.flags.writeable:  # torch would warn; nothing here writes into its input
        array = array.view()
        array = array.copy() if not _made_writeable(array) else array
    return torch.from_numpy(array)


def _numbers(values: Any, label: str) -> Array:
    """The array of whatever has one, if it holds numbers."""
    array = values if type(values) is np.ndarray else _read(values, label)
    if array.dtype.kind == "c":
        raise InputError(f"{label} holds complex entries. Pass its real part or its modulus.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{label} holds {array.dtype.name} entries, not numbers. Pass an array of one numeric type.")
    return array


def _read(values: Any, label: str) -> Array:
    """What is no plain array as one, or a refusal."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(
            f"{label} is a masked array, and what is masked has no value. Fill it, or leave those rows or columns out."
        )
    if hasattr(values, "toarray") and not hasattr(values, "__array__"):
        raise InputError(f"{label} is a sparse {type(values).__name__}. Pass its toarray().")
    if isinstance(values, NO_ARRAY):
        raise InputError(_no_array(values, label))
    try:
        array = np.asarray(values)
    except Exception as error:  # whatever a stranger's __array__ raises
        raise InputError(_unreadable(error, label)) from error
    if array.dtype.kind == "O" and hasattr(values, "dtypes"):
        array = _of_frame(values, label)
    if array.dtype.kind == "O" and not hasattr(values, "dtype") and not array.ndim:
        raise InputError(_no_array(values, label))
    return array


def _no_array(values: Any, label: str) -> str:
    return (
        f"{label} is of type {type(values).__name__}, not an array. Pass an array, a tensor, a data "
        "frame or a list of rows."
    )


def _unreadable(error: Exception, label: str) -> str:
    if "inhomogeneous" in str(error):
        return f"{label} has rows of different lengths. Pass one row per input, all of one length."
    return f"{label} cannot be read as an array ({first_line(error)}). Pass an array, a tensor or a data frame."


def _of_frame(frame: Any, label: str) -> Array:
    """A data frame's numbers, columns of several types in double precision."""
    kinds = dict(frame.dtypes) if frame.ndim == 2 else {frame.name: frame.dtype}
    odd = [name for name, kind in kinds.items() if getattr(kind, "kind", "O") not in "biuf"]
    if odd:
        raise InputError(
            f"{label} has no numbers in column {odd[0]!r}"
            + (f" and {len(odd) - 1} more" if odd[1:] else "")
            + ". Pass the columns that hold numbers."
        )
    return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


def _made_writeable(array: Array) -> bool:
    try:
        array.flags.writeable = True
    except ValueError:
        return False
    return True
