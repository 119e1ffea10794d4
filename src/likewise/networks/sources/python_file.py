"""`models.py:build`: a function of a Python file that returns a network.

The file is run, so a person has to type its address: no header of a weights file may name it.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar

from torch import nn

from likewise._base.hashing import digest
from likewise.errors import InputError, MissingDataError, OptionError, UnknownNameError, did_you_mean
from likewise.networks.sources.base import PYTHON_FILE, Loaded, Request, Source, source


@source(PYTHON_FILE)
class PythonFile(Source):
    """Functions of Python files; the prefix of the address is the path of the file."""

    guarded: ClassVar[bool] = False  # it is the user's own code: built once, and its errors are shown as they are

    def build(self, request: Request) -> Loaded:
        path = request.prefix
        module = _import(Path(path).expanduser())
        build = getattr(module, request.name, None)
        if not callable(build):
            functions = [name for name, value in vars(module).items() if inspect.isfunction(value)]
            hint = did_you_mean(request.name, functions)
            raise UnknownNameError(
                f"{path} has no function {request.name!r}.{hint} It should return a torch.nn.Module."
            )
        net = _call(build, request)
        if not isinstance(net, nn.Module):
            raise InputError(
                f"{request.name} of {path} returned {type(net).__name__}. It should return a torch.nn.Module."
            )
        return Loaded(net, address=f"{Path(path).expanduser().resolve()}:{request.name}")


def _call(build: Callable[..., Any], request: Request) -> Any:
    try:
        inspect.signature(build).bind(**request.options)
    except TypeError as error:
        raise OptionError(
            f"{request.name} of {request.prefix} cannot be called so: {error}. "
            f"Its options are {inspect.signature(build)}."
        ) from error
    with _importable(Path(request.prefix).expanduser().resolve().parent):
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
        with _importable(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name) if before is None else sys.modules.update({name: before})
        raise
    return module


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
