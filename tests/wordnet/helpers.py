"""What tests of WordNet share: its own files, a module by path, ancestors by a plain search."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from likewise.errors import LikewiseError
from likewise.wordnet import find


def dict_dir() -> Path:
    for place in (os.environ.get("WNSEARCHDIR", ""), "/usr/share/wordnet"):
        if place and (Path(place) / "data.noun").exists():
            return Path(place)
    pytest.skip("the dict files of WordNet 3.0 are not here: install wordnet-base, set WNSEARCHDIR")


def from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(error: type[LikewiseError], act: Any, *given: Any) -> str:
    with pytest.raises(error) as caught:
        act(*given)
    return str(caught.value)


@cache
def steps_up(name: str) -> dict[str, int]:
    """Every ancestor of a synset and the fewest steps to it, by a plain search."""
    found, queue = {name: 0}, [name]
    for at in queue:
        for parent in find(at).parents:
            if parent not in found:
                found[parent] = found[at] + 1
                queue.append(parent)
    return found
