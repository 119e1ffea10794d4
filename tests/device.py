"""A device written in Python, on which mistakes of code meant for GPUs show on a machine that has none.

Its tensors hold a CPU tensor inside. They refuse to mix with CPU tensors, but for single numbers, and have no memory
that numpy could read; without `DOUBLE` there is no float64, as on Apple's GPUs. `TRANSFERS` lists what goes to and fro.
"""

from collections.abc import Iterator

import pytest
import torch
from torch.utils import _pytree as tree

from likewise._base.machine import has_float64

NAME = "pretend"
DOUBLE = True
PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
TRANSFERS: list[tuple[str, int]] = []  # "to" or "from" the device, and how many numbers
COPIES = ("aten::_to_copy", "aten::copy_", "aten::_copy_from")


class Placed(torch.Tensor):
    """A tensor of the device."""

    @staticmethod
    def __new__(cls, inner):
        if inner.dtype == torch.float64 and not DOUBLE:
            raise TypeError("this device has no float64")
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=f"{NAME}:0",
        )

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self, **_):
        return f"Placed({self.inner!r})"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in PRODUCTS and args[0].ndim == 1 and args[1].ndim == 2:
            args = (args[1].T, args[0])  # torch would squeeze the product in place, which a wrapper does not notice
        if function is torch.Tensor.untyped_storage:
            return args[0].inner.untyped_storage()
        if function is torch.Tensor.tolist:
            TRANSFERS.append(("from", args[0].numel()))
            return args[0].inner.tolist()
        return torch._C._disabled_torch_function_impl(function, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


def _inside(value):
    if isinstance(value, Placed):
        return value.inner
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _run(operation, args, kwargs):
    name = operation._schema.name
    simpler = operation.decompose(*args, **kwargs)  # tensors of inference mode arrive before torch does that
    if simpler is not NotImplemented:
        return simpler
    if name == "aten::_local_scalar_dense":
        TRANSFERS.append(("from", 1))
    if name in COPIES:
        return _copy(name, args, kwargs)
    flat, structure = tree.tree_flatten((args, kwargs))
    for value in flat:
        if isinstance(value, torch.Tensor) and not isinstance(value, Placed) and value.ndim:
            raise RuntimeError(f"{name}: expected all tensors to be on the same device, but found {NAME} and cpu")
    inner_args, inner_kwargs = tree.tree_unflatten([_inside(value) for value in flat], structure)
    result = operation(*inner_args, **inner_kwargs)
    changed = {id(value.inner): value for value in flat if isinstance(value, Placed)}  # by operations in place

    def place(value):
        return changed[id(value)] if id(value) in changed else Placed(value)

    return tree.tree_map(lambda value: place(value) if isinstance(value, torch.Tensor) else value, result)


def _copy(name, args, kwargs):
    source = args[0]
    if name == "aten::_to_copy":
        inner = _inside(source)
        copied = inner.to(dtype=kwargs.get("dtype") or inner.dtype, copy=True)
        target = torch.device(kwargs.get("device") or source.device)
        _note(source, target.type != "cpu", inner.numel())
        return copied if target.type == "cpu" else Placed(copied)
    if name == "aten::_copy_from":
        args = (args[1], source)
    _note(args[1], isinstance(args[0], Placed), args[1].numel())
    _inside(args[0]).copy_(_inside(args[1]))
    return args[0]


def _note(source, placed: bool, numbers: int) -> None:
    if isinstance(source, Placed) != placed:
        TRANSFERS.append(("to" if placed else "from", numbers))


def _register() -> None:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(NAME)
    library = torch.library.Library("aten", "IMPL")
    library.impl(
        "empty.memory_format", lambda size, dtype=None, **_: Placed(torch.empty(size, dtype=dtype)), "PrivateUse1"
    )
    library.impl(
        "empty_strided",
        lambda size, stride, dtype=None, **_: Placed(torch.empty_strided(size, stride, dtype=dtype)),
        "PrivateUse1",
    )
    library.impl("_copy_from", lambda a, b, non_blocking=False: _copy("aten::_copy_from", (a, b), {}), "PrivateUse1")
    _register.library = library


def registered(*, double: bool) -> Iterator[str]:
    """The name of the device while a test runs; the test is skipped where torch cannot have such devices."""
    global DOUBLE
    if not hasattr(_register, "library"):
        try:
            _register()
        except (ImportError, RuntimeError, TypeError) as error:
            pytest.skip(f"this torch has no devices written in Python: {error}")
    DOUBLE = double
    has_float64.cache_clear()
    yield NAME
    DOUBLE = True
    has_float64.cache_clear()
