"""What a network does besides its weights: a hash of code, attributes and hooks.

Two networks of one class may differ in a function they were given, a number they keep, a constant
in their code or a hook, none of which shows among the weights. The hash is the same in every
process: nothing of it is a place in memory, and what has no order is sorted.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LIBRARIES = {"torch", "timm", "torchvision", "transformers", "torch_geometric"}
_OF_TORCH = set(vars(nn.Module())) - {"forward"}  # among them training: views are taken at rest
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_PLAIN = (str, bytes, bool, int, float, complex, type(None), type(Ellipsis), torch.dtype)
_DEEPEST = 8


def described(value: Any) -> str:
    """A hash of a value, for functions of what they compute.

    >>> described(lambda x: 2 * x) == described(lambda x: 3 * x)
    False
    """
    content = Description()
    content.add(value)
    return content.hexdigest()


class Description:
    """A hash that grows by values of any kind; each object is looked into once."""

    def __init__(self) -> None:
        self._content = hashlib.sha256()
        self._seen: dict[int, Any] = {}  # held, so that no other takes the place of one in memory

    def hexdigest(self) -> str:
        return self._content.hexdigest()[:16]

    def network(self, network: nn.Module) -> None:
        """Everything of a network but its parameters and buffers."""
        parts = dict(network.named_modules())
        self._seen |= {id(part): part for part in parts.values()}
        for kind in dict.fromkeys(type(part) for part in parts.values()):
            self._class(kind)
        for name, part in parts.items():
            own = {k: v for k, v in vars(part).items() if k not in _OF_TORCH}
            if own:
                self._words("module", name)
                self._mapping(own, 0)
            for where in _HOOKS:
                for hook in vars(part).get(where, {}).values():
                    self._words(where, name)
                    self._hook(hook)

    def add(self, value: Any, depth: int = 0) -> None:
        """Take in a value: plain ones as they are, functions by their code, objects by what they hold."""
        if isinstance(value, _PLAIN):
            self._words(type(value).__name__, repr(value))
        elif id(value) in self._seen or depth > _DEEPEST:
            self._words("seen", type(value).__qualname__)
        # Python may keep equal tuples as one: whether two are the same object says nothing
        elif isinstance(value, Mapping):
            self._mapping(value, depth)
        elif isinstance(value, (list, tuple)):
            self._all(type(value).__name__, value, depth)
        elif isinstance(value, (set, frozenset)):
            self._all("set", sorted(value, key=repr), depth)
        else:
            self._seen[id(value)] = value
            self._compound(value, depth)

    def _hook(self, hook: Any) -> None:
        """A hook by its code; the list it may collect into is no part of what the network gives."""
        if inspect.isfunction(hook):
            for cell in filter(_is_filled, hook.__closure__ or ()):
                if isinstance(cell.cell_contents, (list, dict, set)):
                    self._seen[id(cell.cell_contents)] = cell.cell_contents
        self.add(hook)

    def _compound(self, value: Any, depth: int) -> None:
        if isinstance(value, (Tensor, np.ndarray)):
            self._array(value)
        elif isinstance(value, nn.Module):
            self.network(value)
            self._mapping(dict(value.named_parameters()) | dict(value.named_buffers()), depth)
        elif isinstance(value, type):
            del self._seen[id(value)]
            self._class(value)
        elif isinstance(value, functools.partial):
            self._all("partial", [value.func, value.args, value.keywords], depth)
        elif isinstance(value, property):
            self._all("property", [value.fget, value.fset], depth)
        elif inspect.ismethod(value):
            self._all("method", [value.__func__, value.__self__], depth)
        elif inspect.isfunction(value):
            self._function(value, depth)
        elif inspect.isfunction(getattr(value, "__wrapped__", None)):  # static, cached, jitted
            self._all(type(value).__qualname__, [value.__wrapped__], depth)
        else:
            self._object(value, depth)

    def _object(self, value: Any, depth: int) -> None:
        kind = type(value)
        self._words("object", kind.__qualname__)
        if "__repr__" in {name for base in kind.__mro__[:-1] for name in vars(base)}:
            self._words(re.sub(r"0x[0-9a-f]+", "", repr(value)))
        if not _of_library(kind.__module__):
            self._class(kind)
            self._mapping(_attributes(value), depth)

    def _class(self, kind: type) -> None:
        """A class: of a library by its name and how it is called, any other by all its methods."""
        if id(kind) in self._seen:
            return
        self._seen[id(kind)] = kind
        for base in kind.__mro__:
            if _of_library(base.__module__):
                self._words("class", base.__module__, base.__qualname__)
                code = getattr(vars(base).get("forward"), "__code__", None)
                if code is not None:  # compiled forwards have none
                    self._code(code)
                return
            self._words("class", base.__qualname__)
            self._mapping({k: v for k, v in vars(base).items() if not _is_machinery(k)}, 1)

    def _function(self, function: Any, depth: int) -> None:
        self._words("function", function.__qualname__)
        if _of_library(function.__module__):
            self._words(function.__module__)
            return
        code = function.__code__
        self._code(code)
        held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        self._all("held", [function.__defaults__, function.__kwdefaults__, held], depth + 1)
        for name, value in _used(code, function.__globals__):
            self._words(name)
            self.add(value, depth + 1)

    def _code(self, code: CodeType) -> None:
        self._content.update(code.co_code)
        self._words(*code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            else:
                self._constant(constant)

    def _constant(self, constant: Any) -> None:
        # Python makes sets of constants, whose order is another in every process
        parts = sorted(map(repr, constant)) if isinstance(constant, frozenset) else [repr(constant)]
        self._words(*parts)

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> None:
        self._words("mapping", str(len(value)))
        for key, part in value.items():
            self._words(str(key))
            self.add(part, depth + 1)

    def _all(self, kind: str, values: Iterable[Any], depth: int) -> None:
        self._words(kind)
        for value in values:
            self.add(value, depth + 1)

    def _array(self, value: Any) -> None:
        tensor = value.detach().cpu() if isinstance(value, Tensor) else None
        self._words("array", str(value.dtype), str(tuple(value.shape)))
        if tensor is not None and not tensor.is_sparse:
            self._content.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
        elif tensor is None and value.dtype != object:
            self._content.update(np.ascontiguousarray(value).tobytes())

    def _words(self, *words: str) -> None:
        for word in words:
            self._content.update(word.encode(errors="replace") + b"\0")


def _of_library(module: str | None) -> bool:
    top = (module or "builtins").partition(".")[0]
    return top in LIBRARIES or top in sys.stdlib_module_names


def _is_installed(module: str | None) -> bool:
    """Whether a module comes from a package, which changes with its version, not with the user."""
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return _of_library(module) or "site-packages" in file or "dist-packages" in file


def _used(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What code of the user's takes from its module, and from other modules of the user's."""
    mentioned = sorted(_names(code))
    for name in mentioned:
        value = names.get(name)
        if inspect.ismodule(value):
            inside = {} if _is_installed(value.__name__) else vars(value)
            held = {f"{name}.{part}": inside.get(part) for part in mentioned}
            yield from ((part, value) for part, value in held.items() if _decides(value))
        elif _decides(value):
            yield name, value


def _decides(value: Any) -> bool:
    """Whether a global counts: values, and what the user wrote. A library counts by its name."""
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray, Tensor, *_PLAIN)):
        return value is not None
    if isinstance(value, (type, functools.partial)) or inspect.isroutine(value):
        return not _is_installed(getattr(value, "__module__", None))
    return value is not None and not inspect.ismodule(value) and not _is_installed(type(value).__module__)


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in its dictionary or in slots."""
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    # what was computed from the rest stands there only once it was asked for
    return {name: part for name, part in held.items() if not _is_cached(type(value), name)}


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)


def _is_machinery(name: str) -> bool:
    """What Python keeps in every class."""
    return name.startswith("__") and name not in ("__init__", "__call__")


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that was never given a value
        return False


def _names(code: CodeType) -> set[str]:
    inside = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inside)
