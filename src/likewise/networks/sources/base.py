"""Where networks come from: the zoo, timm, torchvision, transformers, a Python file.

Each source is a function of a name and options. It gives the network, and the mean and deviation
its images are normalised by where that is known.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise.errors import (
    InputError,
    MissingDataError,
    OptionError,
    UnknownNameError,
    did_you_mean,
)
from likewise.networks.zoo.registry import ZOO

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Built:
    """A network as its source made it."""

    net: nn.Module
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    renames: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Wish:
    """What is asked of a source: a name, options, its published weights or none, and what for.

    `typed` is False where a weights file named the network: nothing is downloaded then.
    """

    name: str
    options: dict[str, Any]
    pretrained: bool
    address: str
    typed: bool = True


def from_zoo(wish: Wish) -> Built:
    entry = ZOO.get(wish.name)
    return Built(entry.make(**wish.options), renames=entry.renames)


def from_timm(wish: Wish) -> Built:
    prepare_torchvision()
    require("torchvision", extra="vision", to=f"load {wish.address}")  # timm cannot do without it
    timm = require("timm", extra="vision", to=f"load {wish.address}")
    known = timm.list_models() + timm.list_pretrained()
    if ":" not in wish.name and wish.name not in known:
        raise UnknownNameError(f"timm has no network {wish.name!r}.{did_you_mean(wish.name, known)}")
    if wish.pretrained and ":" not in wish.name and not timm.is_model_pretrained(wish.name):
        raise _unweighted(wish, "timm")
    options = _spelled(wish.options, {"classes": "num_classes", "channels": "in_chans"})
    net = _fetched(lambda: timm.create_model(wish.name, pretrained=wish.pretrained, **options), wish)
    facts = timm.data.resolve_model_data_config(net)
    return _normalised(net, facts["mean"], facts["std"], options.get("in_chans", 3))


def from_torchvision(wish: Wish) -> Built:
    prepare_torchvision()
    models = require("torchvision.models", extra="vision", to=f"load {wish.address}")
    known = models.list_models(module=models)
    if wish.name not in known and wish.name in models.list_models():
        raise InputError(
            f"torchvision's {wish.name!r} is no classifier of images, and only those have an "
            "address. Build it and pass the module: "
            f"torchvision.models.get_model({wish.name!r}, weights='DEFAULT')."
        )
    if wish.name not in known:
        hint = did_you_mean(wish.name, known)
        raise UnknownNameError(f"torchvision has no network {wish.name!r}.{hint}")
    options = _spelled(wish.options, {"classes": "num_classes"})
    weights = models.get_model_weights(wish.name).DEFAULT if wish.pretrained else None
    net = _fetched(lambda: models.get_model(wish.name, weights=weights, **options), wish)
    preset = weights.transforms() if weights is not None else None
    mean, std = getattr(preset, "mean", IMAGENET_MEAN), getattr(preset, "std", IMAGENET_STD)
    return _normalised(net, mean, std, 3)


def from_file(path: str, wish: Wish) -> Built:
    module = _imported(Path(path).expanduser())
    build = getattr(module, wish.name, None)
    if not callable(build):
        known = [name for name, part in vars(module).items() if inspect.isfunction(part)]
        raise UnknownNameError(
            f"{path} has no function {wish.name!r}.{did_you_mean(wish.name, known)} It should return a torch.nn.Module."
        )
    net = _called(build, path, wish)
    if not isinstance(net, nn.Module):
        raise InputError(f"{wish.name} of {path} returned {type(net).__name__}. It should return a torch.nn.Module.")
    return Built(net)


def _called(build: Callable[..., Any], path: str, wish: Wish) -> Any:
    try:
        inspect.signature(build).bind(**wish.options)
    except TypeError as error:
        raise OptionError(
            f"{wish.name} of {path} cannot be called so: {error}. Its options are {inspect.signature(build)}."
        ) from error
    with _beside(Path(path).expanduser().resolve()):
        return build(**wish.options)


def accepted(prefix: str, name: str) -> list[str]:
    """Which of channels, size, classes and their like a source can build to measure."""
    if prefix == "zoo":
        return ZOO.get(name).options
    return {"timm": ["classes", "channels"], "torchvision": ["classes"], "hf": ["classes"]}.get(prefix, [])


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise MissingDataError(f"there is no Python file {path}. Give its path, as in models/mine.py:build.")
    path = path.resolve()
    # under a name of its own: two files of one name are two modules
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported. Give a Python file.")
    module = importlib.util.module_from_spec(spec)
    was = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        with _beside(path):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name) if was is None else sys.modules.update({name: was})
        raise
    return module


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """The folder of a file among the places that Python imports from, as where it is run itself.

    What is imported from there is forgotten afterwards: another folder may have a `helper.py` too.
    """
    folder, before = path.parent, set(sys.modules)
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


def _spelled(options: dict[str, Any], spelling: dict[str, str]) -> dict[str, Any]:
    return {spelling.get(name, name): value for name, value in options.items()}


@contextmanager
def weights_only() -> Iterator[None]:
    """Has torch read tensors alone, whatever the library that calls it asks for."""
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ[names[0]] = "1"
    try:
        yield
    finally:
        del os.environ[names[0]]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def _fetched(make: Callable[[], nn.Module], wish: Wish) -> nn.Module:
    """Make the network, or say what to do about weights that cannot be had."""
    try:
        with weights_only():
            return make()
    except OSError as error:
        raise MissingDataError(
            f"the weights of {wish.address} are not here and cannot be downloaded "
            f"({type(error).__name__}). Add '@weights.safetensors', or take it untrained: "
            f"'{wish.address},pretrained=false'."
        ) from error
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise OptionError(f"{wish.address} cannot be built so: {error}. Leave it out.") from error


def _unweighted(wish: Wish, library: str) -> InputError:
    return InputError(
        f"{library} has no published weights for {wish.name!r}. Add '@weights.safetensors', or "
        f"take it untrained: '{wish.address},pretrained=false'."
    )


def _normalised(net: nn.Module, mean: Sequence[float], std: Sequence[float], channels: int) -> Built:
    fits = len(mean) == len(std) == channels
    return Built(net, tuple(mean) if fits else None, tuple(std) if fits else None)
