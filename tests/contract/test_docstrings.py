"""Every public function, method and class describes each of its parameters, in a section that tools can read."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, is_typeddict

import pytest

from likewise.attacks import ATTACKS
from likewise.measures.registry import MEASURES
from tests.contract.test_public_names import PUBLIC


def described(docstring: str | None) -> set[str]:
    """The names in the sections Args and Attributes of a docstring."""
    text = inspect.cleandoc(docstring or "")
    sections = re.findall(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?(?:\n|$))+)", text, re.M)
    return {name for section in sections for name in re.findall(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?: \S", section, re.M)}


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of what a function takes, without those that begin with an underscore."""
    names = list(inspect.signature(function).parameters)
    return [name for name in names if not name.startswith("_") and name not in ("self", "cls")]


def undescribed(label: str, thing: object) -> Iterator[str]:
    """One line per function or class in which a parameter has no description."""
    if inspect.isclass(thing):
        yield from _of_class(label, thing)
    elif callable(thing):
        names = described(thing.__doc__)
        if missing := [name for name in parameters(thing) if name not in names]:
            yield f"{label}: {', '.join(missing)}"


def _of_class(label: str, kind: type) -> Iterator[str]:
    ours = [base for base in kind.__mro__ if base.__module__.startswith("likewise")]
    if is_typeddict(kind):
        if missing := [name for name in kind.__annotations__ if name not in described(kind.__doc__)]:
            yield f"{label}: {', '.join(missing)}"
        return
    own_constructor = dataclasses.is_dataclass(kind) or any("__init__" in vars(base) for base in ours)
    if own_constructor and not issubclass(kind, enum.Enum):
        names = set().union(*(described(text) for base in ours for text in (base.__doc__, base.__init__.__doc__)))
        if missing := [name for name in parameters(kind) if name not in names]:
            yield f"{label}: {', '.join(missing)}"
    others = {name for base in kind.__mro__ if base not in ours for name in vars(base)}  # theirs is `forward`
    members = {name: base for base in reversed(ours) for name in vars(base) if name[0] != "_" and name not in others}
    for name, base in members.items():
        member = inspect.getattr_static(kind, name)
        if isinstance(member, property) or not callable(getattr(kind, name)) or inspect.isclass(member):
            continue
        function = getattr(member, "__func__", member)
        names = described(inspect.getdoc(getattr(kind, name)))
        if inspect.isfunction(function) and (missing := [word for word in parameters(function) if word not in names]):
            yield f"{base.__module__}.{base.__qualname__}.{name}: {', '.join(missing)}"


def undocumented(room: str) -> list[str]:
    """What has a parameter without a description, of the names that a room gives out."""
    module = importlib.import_module(room)
    things = {name: getattr(module, name) for name in module.__all__}
    lines = [
        line
        for name, thing in things.items()
        if not inspect.ismodule(thing) and getattr(thing, "__module__", "").startswith("likewise")
        for line in undescribed(f"{thing.__module__}.{name}", thing)
    ]
    return sorted(set(lines))


@pytest.mark.parametrize("room", PUBLIC)
def test_every_parameter_is_described(room: str) -> None:
    assert undocumented(room) == []


@pytest.mark.parametrize("entry", [*MEASURES, *ATTACKS], ids=lambda entry: entry.name)
def test_every_option_of_a_measure_and_an_attack_is_described(entry: Any) -> None:
    assert list(undescribed(entry.name, entry)) == []


class Planted:
    """A class.

    Args:
        x: Described,
            and more: of it.

    Returns:
        y: No parameter.
    """

    def __init__(self, x: int, y: int) -> None: ...

    def method(self, z: int) -> None:
        """What it does."""


def test_a_parameter_without_a_description_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Planted, "__module__", "likewise.planted")
    assert list(undescribed("Planted", Planted)) == ["Planted: y", "likewise.planted.Planted.method: z"]
    assert list(undescribed("planted", lambda x, *, k=1, **options: None)) == ["planted: x, k, options"]
