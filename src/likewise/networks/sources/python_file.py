"""`models.py:build`: a function or class of a Python file that gives a network; or one that transforms images.

The file is run, so a person has to type its address: no header of a weights file may name it. Where it fails, a
sentence says why and in which line; `--debug`, or the error's cause, has the traceback.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar

from torch import nn

from likewise._base.hashing import digest
from likewise._base.optional import prepare_torchvision
from likewise.errors import (
    InputError,
    LikewiseError,
    MissingDataError,
    OptionError,
    UnknownNameError,
    did_you_mean,
    first_line,
)
from likewise.networks.sources.base import PYTHON_FILE, Loaded, Request, Source, source

_IMPORT_TORCHVISION = re.compile(  # all of these do, and what is named after them
    rb"torchvision|timm|transformers|lightning|torchmetrics|torch_geometric|peft|diffusers|open_clip"
)


@source(PYTHON_FILE)
class PythonFile(Source):
    """Functions of Python files; the prefix of the address is the path of the file."""

    guarded: ClassVar[bool] = False  # it is the user's own code: built once, and it says itself why it fails

    def build(self, request: Request) -> Loaded:
        path = request.prefix
        build = member(path, request.name, "It should return a torch.nn.Module.")
        net = _call(build, request)
        if not isinstance(net, nn.Module):
            raise InputError(
                f"{request.name} of {path} returned {type(net).__name__}. It should return a torch.nn.Module."
            )
        return Loaded(net, address=f"{Path(path).expanduser().resolve()}:{request.name}")


def load_function(transform: Any) -> Any:
    """The function that "FILE.py:function" names, for `transform=`; what is no text stays as it is."""
    if not isinstance(transform, str):
        return transform
    names = re.fullmatch(r"(.+\.py):(\w+)", transform)
    if names is None:
        raise InputError(
            f"transform is {transform!r}. Give a function of a PIL image that gives a tensor, or FILE.py:function."
        )
    return member(names[1], names[2], "It should turn a PIL image into a tensor.")


def member(path: str, name: str, remedy: str) -> Callable[..., Any]:
    """A function, class or other callable of a file."""
    module = _import(Path(path).expanduser())
    member = getattr(module, name, None)
    if not callable(member):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise UnknownNameError(f"{path} has no function {name!r}.{did_you_mean(name, own)} {remedy}")
    return member


def _call(build: Callable[..., Any], request: Request) -> Any:
    try:
        inspect.signature(build).bind(**request.options)
    except TypeError as error:
        raise OptionError(
            f"{request.name} of {request.prefix} cannot be called so: {error}. "
            f"Its options are {inspect.signature(build)}."
        ) from error
    path = Path(request.prefix).expanduser().resolve()
    with _importable(path.parent), _explained(f"{request.name} of {request.prefix} fails", path):
        return build(**request.options)


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise MissingDataError(f"there is no Python file {path}. Give its path, as in models/mine.py:build.")
    path = path.resolve()
    # under a name of its own: two files of one name are two modules
    name = f"{path.stem}_{digest([str(path)])[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported. Give a Python file.")
    if type(spec.loader) is SourceFileLoader:
        spec.loader = _FreshLoader(name, str(path))
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        if any(_IMPORT_TORCHVISION.search(file.read_bytes()) for file in path.parent.glob("*.py")):
            prepare_torchvision()
        with _importable(path.parent), _explained(f"{path} fails when it is imported", path):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name) if before is None else sys.modules.update({name: before})
        raise
    return module


@contextmanager
def _explained(what: str, path: Path) -> Iterator[None]:
    """Say in a sentence why code of a user's file fails, and in which of its lines."""
    try:
        yield
    except LikewiseError:
        raise
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = f", line {lines[-1]}" if lines else ""
        remedy = "Repair it, or move the network's class to a file of its own"
        if isinstance(error, ModuleNotFoundError):
            remedy = f"Install {error.name}, or move the network's class to a file that does without it"
        raise InputError(f"{what}{line}: {type(error).__name__}: {first_line(error)}. {remedy}.") from error


class _FreshLoader(SourceFileLoader):
    """Compiles a file as it is now: Python's bytecode is out of date for a file edited twice within a second."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """The folder of a file among the places that Python imports from, as where it is run itself.

    What is imported from there is forgotten afterwards: another folder may have a `helper.py` too.
    """
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the file may have taken it off itself
            sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            top = name.partition(".")[0]
            if file and (Path(file) == folder / f"{top}.py" or folder / top in Path(file).parents):
                del sys.modules[name]
