"""Hashes of texts, tensors, inputs, networks and functions, the same in every process.

Nothing of a hash is an address in memory, and what has no order is sorted. Two networks of one class may differ in a
function they hold, a number they keep, a constant in their code or a hook, none of which shows among the weights:
`Description` takes in attributes and hooks, and classes and functions of the user by their code with closures,
defaults, constants and the globals they name. The digests stand in names of files and keys of stores, so they must
not change from version to version.

What goes unnoticed: in classes of Python and of `LIBRARIES`, all methods but `forward`; in what such classes hold,
all that their `repr` leaves out; functions of installed packages that code of the user calls; names looked up at run
time (`getattr`, `eval`); compiled code; state elsewhere, as in files and environment variables.
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
from contextlib import suppress
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
_WRITTEN = 1 << 9  # the flag of classes that were made at run time, most of them written in Python
_STANDARD_LIBRARY = str(Path(os.__file__).parent) + os.sep


def digest(values: Iterable[str | bytes | Tensor]) -> str:
    """A hash of texts and tensors, one after another; 64 hexadecimal digits."""
    content = hashlib.sha256()
    for value in values:
        content.update(as_bytes(value))
    return content.hexdigest()


def as_bytes(value: str | bytes | Tensor) -> Any:
    """The bytes of a text or a tensor of any dtype; no copy is made of a tensor that lies in order on the CPU."""
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1)
        return flat.view(torch.uint8).numpy().data if len(flat) else b""
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
    # not the state dict: buffers that are left out of it (means to normalise by) count too
    weights = [*network.named_parameters(), *network.named_buffers()]
    return digest(chain([_without_addresses(repr(network)), description.hexdigest()], *weights))[:16]


class InputsHash:
    """A hash of inputs as they come, the same however they are cut into batches."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}

    def update(self, inputs: Any, key: str = "") -> None:
        """Take in one batch: a tensor, a list, a mapping of them, or an object of tensors."""
        if isinstance(inputs, Tensor):
            self._hash(f"{key}{inputs.dtype}{tuple(inputs.shape[1:])}").update(as_bytes(inputs))
        elif isinstance(inputs, Mapping):
            for name in sorted(inputs):
                self.update(inputs[name], f"{key}/{name}")
        elif isinstance(inputs, (list, tuple)):
            for entry in inputs:
                self._entry(entry, key)
        elif hasattr(inputs, "to_dict"):  # a graph
            self.update(inputs.to_dict(), key)
        else:
            self._hash(key).update(repr(inputs).encode())

    def _entry(self, entry: Any, key: str) -> None:
        """One input of a list: an array by all its numbers, of which its text would leave out most."""
        if isinstance(entry, (Tensor, np.ndarray)):
            values = torch.as_tensor(entry)
            self._hash(f"{key}[]").update(f"{values.dtype}{tuple(values.shape)}".encode())
            self._hash(f"{key}[]").update(as_bytes(values))
        else:
            self._hash(key).update(repr(entry).encode())

    def hexdigest(self) -> str:
        """The hash of what came so far."""
        return facts_digest({key: content.hexdigest() for key, content in self._hashes.items()})[:16]

    def _hash(self, key: str) -> Any:
        return self._hashes.setdefault(key, hashlib.sha256())


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
        self._seen: dict[int, Any] = {}  # held, so that no other takes the address of one in memory
        self._open: set[int] = set()  # containers that are being looked into, which may hold themselves

    def hexdigest(self) -> str:
        """The hash so far, 16 hex digits."""
        return self._content.hexdigest()[:16]

    def network(self, network: nn.Module) -> None:
        """Everything of a network but its parameters and buffers."""
        modules = dict(network.named_modules())
        self._seen |= {id(module): module for module in modules.values()}
        for kind in dict.fromkeys(type(module) for module in modules.values()):
            self._class(kind)
        for name, module in modules.items():
            attributes = {k: v for k, v in vars(module).items() if k not in _OF_TORCH}
            if attributes:
                self._words("module", name)
                self.add(attributes)
            for registry in _HOOKS:
                for hook in vars(module).get(registry, {}).values():
                    self._words(registry, name)
                    self._hook(hook)

    def add(self, value: Any) -> None:
        """Take in a value: plain ones as they are, functions by their code, objects by what they show and hold."""
        if isinstance(value, _PLAIN):
            self._words(type(value).__name__, repr(value))
        elif id(value) in self._seen or id(value) in self._open:
            self._words("seen", type(value).__qualname__)
        elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
            # Python may keep equal tuples as one: whether two are the same object says nothing
            self._open.add(id(value))
            self._container(value)
            self._open.discard(id(value))
        elif isinstance(value, type):
            self._class(value)
        else:
            self._seen[id(value)] = value
            self._compound(value)

    def _container(self, value: Any) -> None:
        if isinstance(value, Mapping):
            self._words("mapping", str(len(value)))
            for key, entry in value.items():
                self._words(str(key))
                self.add(entry)
        elif isinstance(value, (set, frozenset)):
            self._all("set", sorted(value, key=repr))
        else:
            self._all(type(value).__name__, value)

    def _hook(self, hook: Any) -> None:
        """A hook by its code; the list it may collect into is no part of what the network gives."""
        for value in _closure(hook) if inspect.isfunction(hook) else ():
            if isinstance(value, (list, dict, set)):
                self._seen[id(value)] = value
        self.add(hook)

    def _compound(self, value: Any) -> None:
        if isinstance(value, (Tensor, np.ndarray)):
            self._array(value)
        elif isinstance(value, nn.Module):
            self.network(value)
            self.add(dict(value.named_parameters()) | dict(value.named_buffers()))
        elif isinstance(value, functools.partial):
            self._all("partial", [value.func, value.args, value.keywords])
        elif isinstance(value, property):
            self._all("property", [value.fget, value.fset])
        elif inspect.ismethod(value):
            self._all("method", [value.__func__, value.__self__])
        elif inspect.isfunction(value):
            self._function(value)
        elif inspect.isfunction(getattr(value, "__wrapped__", None)):  # static, cached, jitted
            self._all(type(value).__qualname__, [value.__wrapped__])
        else:
            self._object(value)

    def _object(self, value: Any) -> None:
        kind = type(value)
        self._words("object", kind.__qualname__)
        if "__repr__" in {name for base in kind.__mro__[:-1] for name in vars(base)}:
            self._words(_without_addresses(repr(value)))
        if not _is_library(kind):
            self._class(kind)
            self.add(_attributes(value))

    def _class(self, kind: type) -> None:
        """A class: of a library by its name and how it is called, any other by all its methods."""
        if id(kind) in self._seen:
            return
        self._seen[id(kind)] = kind
        for base in kind.__mro__:
            if _is_library(base):
                self._words("class", base.__module__, base.__qualname__)
                code = getattr(vars(base).get("forward"), "__code__", None)
                if code is not None:  # compiled forwards have none
                    self._code(code)
                return
            self._words("class", base.__qualname__)
            self.add({k: v for k, v in vars(base).items() if not k.startswith("__") or k in ("__init__", "__call__")})

    def _function(self, function: Any) -> None:
        self._words("function", function.__qualname__)
        if _is_library(function):
            self._words(str(function.__module__))
            return
        self._code(function.__code__)
        self._all("held", [function.__defaults__, function.__kwdefaults__, _closure(function)])
        for name, value in _used(function.__code__, function.__globals__):
            self._words(name)
            self.add(value)

    def _code(self, code: CodeType) -> None:
        self._content.update(code.co_code)
        self._words(*code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            else:  # Python makes sets of constants, whose order is another in every process
                self._words(*(sorted(map(repr, constant)) if isinstance(constant, frozenset) else [repr(constant)]))

    def _all(self, kind: str, values: Iterable[Any]) -> None:
        self._words(kind)
        for value in values:
            self.add(value)

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


def _home(item: Any) -> tuple[str, str]:
    """The module of a class or function and its file; "" where there is none."""
    if inspect.isfunction(item):
        names: Mapping[str, Any] = item.__globals__
    else:
        module = item if inspect.ismodule(item) else sys.modules.get(getattr(item, "__module__", None) or "builtins")
        names = {} if module is None else vars(module)
    return names.get("__name__") or "", names.get("__file__") or ""


def _is_library(item: Any) -> bool:
    """Whether a class or function is Python's or of `LIBRARIES`, not only called as if it were."""
    name, file = _home(item)
    if name.partition(".")[0] in LIBRARIES:
        return True
    if isinstance(item, type) and item.__flags__ & _WRITTEN:  # its module is a name: does that hold it?
        outermost, inner, _ = item.__qualname__.partition(".")
        holder = vars(sys.modules.get(name, builtins)).get(outermost)
        if holder is None or not (inner or holder is item):
            return False
    if not file and name in sys.builtin_module_names:
        return True
    return file.startswith(_STANDARD_LIBRARY) and "-packages" not in file


def _is_installed(item: Any) -> bool:
    """Whether a class or function comes from a package, which changes with its version, not with the user."""
    return "-packages" in _home(item)[1] or _is_library(item)


def _used(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What code of the user's takes from its module, and from other modules of the user's."""
    mentioned = sorted(_names(code))
    for name in mentioned:
        value = names.get(name)
        if inspect.ismodule(value):
            inside = {} if _is_installed(value) else vars(value)
            yield from ((f"{name}.{inner}", inside[inner]) for inner in mentioned if _decides(inside.get(inner)))
        elif _decides(value):
            yield name, value


def _decides(value: Any) -> bool:
    """Whether a global counts: values, and what the user wrote. A library counts by its name."""
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray, Tensor, functools.partial, *_PLAIN)):
        return value is not None
    if isinstance(value, type) or inspect.isroutine(value):
        return not _is_installed(value)
    return value is not None and not inspect.ismodule(value) and not _is_installed(type(value))


def _closure(function: Any) -> list[Any]:
    """What the cells of a function hold, without names that were never given a value."""
    values = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            values.append(cell.cell_contents)
    return values


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in slots or in its dictionary, without what was computed from the rest and cached."""
    kind = type(value)
    slots = [name for base in kind.__mro__ for name in vars(base).get("__slots__", ())]
    attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    cached = functools.cached_property
    return {k: v for k, v in attributes.items() if not isinstance(inspect.getattr_static(kind, k, None), cached)}


def _without_addresses(text: str) -> str:
    """A text without addresses in memory, which are others each time."""
    return re.sub(r"0x[0-9a-f]+", "", text)


def _names(code: CodeType) -> set[str]:
    inside = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inside)
