"""Hashes of texts, tensors, inputs, networks and functions, the same in every process.

Nothing of a hash is a place in memory, and what has no order is sorted. Two networks of one class may differ in a
function they were given, a number they keep, a constant in their code or a hook, none of which shows among the
weights: `Description` takes all of that in. The digests stand in names of files and keys of stores, so they must
not change from version to version.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import inspect
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LIBRARIES = {"torch", "timm", "torchvision", "transformers", "torch_geometric"}
NOTES = "_likewise_notes"  # the attribute of a network for what is known of it beside what it computes
# what torch keeps in every module, among it training (views are taken at rest), and what we note there
_OF_TORCH = set(vars(nn.Module())) - {"forward"} | {NOTES}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_PLAIN = (str, bytes, bool, int, float, complex, type(None), type(Ellipsis), torch.dtype)
_DEEPEST = 8
_STANDARD_LIBRARY = str(Path(os.__file__).parent) + os.sep
_WRITTEN = 1 << 9  # the flag of classes that were made at run time, most of them written in Python


def digest(parts: Iterable[str | bytes | Tensor]) -> str:
    """A hash of texts and tensors, one after another; 64 hexadecimal digits."""
    content = hashlib.sha256()
    for part in parts:
        content.update(as_bytes(part))
    return content.hexdigest()


def as_bytes(value: str | bytes | Tensor) -> Any:
    """The bytes of a text or a tensor of any dtype; no copy is made of a tensor that lies in order on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return value.encode() if isinstance(value, str) else value


def facts_digest(facts: Mapping[str, Any]) -> str:
    """A hash of named facts, whatever their order; 24 hexadecimal digits."""
    return digest([json.dumps(facts, sort_keys=True)])[:24]


def weights_digest(network: nn.Module) -> str:
    """A hash of what a network's state dict holds."""
    state = network.state_dict().items()
    return digest(chain(*((f"{name} {value.dtype} {tuple(value.shape)}", value) for name, value in state)))[:16]


def fingerprint(network: nn.Module) -> str:
    """A hash of a network's structure, its weights, and all else that decides what it gives."""
    description = Description()
    description.network(network)
    # an activation given as a function shows where it lies in memory, another place each time
    shown = re.sub(r"0x[0-9a-f]+", "", repr(network))
    # not the state dict: buffers that are left out of it (means to normalise by) count too
    weights = [*network.named_parameters(), *network.named_buffers()]
    return digest(chain([shown, description.hexdigest()], *weights))[:16]


class InputsHash:
    """A hash of inputs as they come, the same however they are cut into batches."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}

    def update(self, inputs: Any, key: str = "") -> None:
        """Take in one batch: a tensor, a list, a mapping of them, or an object of tensors."""
        if isinstance(inputs, Tensor):
            self._part(f"{key}{inputs.dtype}{tuple(inputs.shape[1:])}").update(as_bytes(inputs))
        elif isinstance(inputs, Mapping):
            for name in sorted(inputs):
                self.update(inputs[name], f"{key}/{name}")
        elif isinstance(inputs, (list, tuple)):
            for entry in inputs:
                self._entry(entry, key)
        elif hasattr(inputs, "to_dict"):  # a graph
            self.update(inputs.to_dict(), key)
        else:
            self._part(key).update(repr(inputs).encode())

    def _entry(self, entry: Any, key: str) -> None:
        """One input of a list: an array by all its numbers, of which its text would leave out most."""
        if isinstance(entry, (Tensor, np.ndarray)):
            values = torch.as_tensor(entry)
            self._part(f"{key}[]").update(f"{values.dtype}{tuple(values.shape)}".encode())
            self._part(f"{key}[]").update(as_bytes(values))
        else:
            self._part(key).update(repr(entry).encode())

    def hexdigest(self) -> str:
        """The hash of what came so far."""
        return facts_digest({key: part.hexdigest() for key, part in self._parts.items()})[:16]

    def _part(self, key: str) -> Any:
        return self._parts.setdefault(key, hashlib.sha256())


def value_digest(value: Any) -> str:
    """A hash of a value, for functions of what they compute.

    >>> value_digest(lambda x: 2 * x) == value_digest(lambda x: 3 * x)
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
        """The hash so far, 16 hex digits."""
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
        if not _of_library(kind):
            self._class(kind)
            self._mapping(_attributes(value), depth)

    def _class(self, kind: type) -> None:
        """A class: of a library by its name and how it is called, any other by all its methods."""
        if id(kind) in self._seen:
            return
        self._seen[id(kind)] = kind
        for base in kind.__mro__:
            if _of_library(base):
                self._words("class", base.__module__, base.__qualname__)
                code = getattr(vars(base).get("forward"), "__code__", None)
                if code is not None:  # compiled forwards have none
                    self._code(code)
                return
            self._words("class", base.__qualname__)
            self._mapping({k: v for k, v in vars(base).items() if not _is_machinery(k)}, 1)

    def _function(self, function: Any, depth: int) -> None:
        self._words("function", function.__qualname__)
        if _of_library(function):
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
            self._content.update(as_bytes(tensor))
        elif tensor is None and value.dtype != object:
            self._content.update(np.ascontiguousarray(value).tobytes())

    def _words(self, *words: str) -> None:
        for word in words:
            self._content.update(word.encode(errors="replace") + b"\0")


def _of_library(item: Any) -> bool:
    """Whether a class or function is Python's or of `LIBRARIES`, not only called as if it were."""
    module = getattr(item, "__module__", None) or ("" if inspect.isfunction(item) else "builtins")
    if not _is_library(module) or module.partition(".")[0] in LIBRARIES:
        return _is_library(module)
    home = vars(sys.modules.get(module, builtins))
    if inspect.isfunction(item):
        return item.__globals__ is home
    if not isinstance(item, type) or not item.__flags__ & _WRITTEN:
        return True
    outermost, inner, _ = item.__qualname__.partition(".")
    found = home.get(outermost)
    return found is item or bool(inner and found is not None)


def _is_library(module: str) -> bool:
    top = module.partition(".")[0]
    return top in LIBRARIES or (top in sys.stdlib_module_names and not _shadows_python(top))


def _shadows_python(top: str) -> bool:
    """Whether a module named like one of Python's is the user's: a file `code.py`, a folder, a bare namespace."""
    origin = getattr(getattr(sys.modules.get(top), "__spec__", None), "origin", None)
    return origin is None or (origin.endswith(".py") and not origin.startswith(_STANDARD_LIBRARY))


def _is_installed(module: str) -> bool:
    """Whether a module comes from a package, which changes with its version, not with the user."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return _is_library(module) or "site-packages" in file or "dist-packages" in file


def _of_package(item: Any) -> bool:
    """Whether a class or function comes from a package."""
    module = getattr(item, "__module__", None) or ""
    return _of_library(item) or (_is_installed(module) and not _is_library(module))


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
        return not _of_package(value)
    return value is not None and not inspect.ismodule(value) and not _of_package(type(value))


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
