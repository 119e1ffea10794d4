"""What goes by name: one small registry for measures, data, architectures and all others, and options behind a name.

Names are lower-case kebab; look-up forgives case and underscores and knows aliases, so `OrthProc`,
`orth_proc` and `procrustes` may all mean one thing. Entries are declared by decorators in modules that the
registry imports when a name is looked up, one after another until the name is there: a path is a string, so
an entry may live in a room that this one does not import. Third parties add entries through an entry-point group.

Options stand behind names in addresses and commands, `name=value,name=value`: numbers, truth values and words.
"""

from __future__ import annotations

import ast
import fnmatch
import pkgutil
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from threading import RLock
from typing import Any, Generic, TypeVar

from likewise.errors import InputError, UnknownNameError, did_you_mean, quoted_list

T = TypeVar("T")
_FRACTION = re.compile(r"(\d+\.?\d*)/(\d*[1-9]\d*)")


def normal(name: str) -> str:
    """The form names are compared in: `RSMDiff`, `rsmdiff`; `cka_debiased`, `cka-debiased`."""
    return name.lower().replace("_", "-")


def module_of(function: Callable[..., Any]) -> str:
    """The module a function, a class or what a partial calls was written in."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__module__", ""))


class Registry(Generic[T]):
    """Entries of one kind by name and alias, declared in `modules` and by plug-ins of the entry-point `group`.

    A path that ends in `.*` stands for every module of a package. Entries are listed in the order of the
    modules, whichever was imported first, and those of others after them.
    """

    def __init__(self, kind: str, *, group: str, modules: tuple[str, ...] = ()) -> None:
        self.kind, self.group, self.modules = kind, group, modules
        self._entries: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._order: dict[str, tuple[int, str]] = {}  # by module
        self._lock = RLock()
        self._waiting: deque[Callable[[], object]] = deque(partial(_import, path) for path in modules)
        self._waiting.append(self._plug_ins)

    def add(self, name: str, entry: T, aliases: tuple[str, ...] = (), *, module: str) -> T:
        """Declare an entry; `module` is where it is written (see `module_of`)."""
        index = next((i for i, path in enumerate(self.modules) if fnmatch.fnmatchcase(module, path)), None)
        if index is None:  # of others: our own names come first
            self._load()
        for key in {normal(word) for word in (name, *aliases)}:
            if key in self._aliases:
                raise InputError(
                    f"the {self.kind} name {key!r} is taken by {self._aliases[key]!r}. Choose another name."
                )
        self._entries[name] = entry
        self._order[name] = (len(self.modules), "") if index is None else (index, module)
        self._aliases |= {normal(word): name for word in (name, *aliases)}
        return entry

    def remove(self, name: str) -> None:
        """Forget an entry and its aliases."""
        del self._entries[name], self._order[name]
        self._aliases = {alias: owner for alias, owner in self._aliases.items() if owner != name}

    def get(self, name: str) -> T:
        """The entry of that name or alias."""
        key = normal(name)
        self._load(until=key)
        if key not in self._aliases:
            remedy = did_you_mean(key, self._aliases) or f" Choose from {quoted_list(self.names())}."
            raise UnknownNameError(f"no {self.kind} named {name!r}.{remedy}")
        return self._entries[self._aliases[key]]

    def names(self, pattern: str = "*") -> list[str]:
        """The names of all entries, or of those that match a pattern as in `resnet*`."""
        self._load()
        return [name for name in sorted(self._entries, key=self._order.__getitem__) if fnmatch.fnmatch(name, pattern)]

    def __contains__(self, name: str) -> bool:
        key = normal(name)
        self._load(until=key)
        return key in self._aliases

    def __iter__(self) -> Iterator[T]:
        return iter([self._entries[name] for name in self.names()])

    def _load(self, until: str | None = None) -> None:
        """Import modules until one declares the name; without a name all of them, and the plug-ins."""
        if until in self._aliases:
            return
        with self._lock:
            while self._waiting and until not in self._aliases:
                load = self._waiting.popleft()  # first, since a plug-in looks names up itself
                try:
                    load()
                except BaseException:
                    self._waiting.appendleft(load)
                    raise

    def _plug_ins(self) -> None:
        for point in entry_points(group=self.group):
            point.load()


def _import(path: str) -> None:
    package = import_module(path.removesuffix(".*"))
    if path.endswith(".*"):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def parse_value(text: str) -> Any:
    """What a value in an address means; what is no number, truth value or quoted text is a word.

    >>> parse_value("224"), parse_value("0.5"), parse_value("false"), parse_value("bicubic")
    (224, 0.5, False, 'bicubic')
    """
    lowered = {"true": True, "false": False, "none": None}
    if text.lower() in lowered:
        return lowered[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last: ((((((…
        return text


def parse_options(text: str, label: str) -> dict[str, Any]:
    """The options in a text, fractions as numbers; `label` says in an error what they are options of.

    >>> parse_options("attack=pgd,eps=8/255", "adversarial")
    {'attack': 'pgd', 'eps': 0.03137254901960784}
    """
    options: dict[str, Any] = {}
    for word in text.split(","):
        name, equals, value = (side.strip() for side in word.partition("="))
        if not (name and equals and value):
            raise InputError(f"{label} is {text!r}, in which {word!r} is no option. Write name=value,name=value.")
        if name in options:
            raise InputError(f"{label} is {text!r}, which gives {name} twice. Give it once.")
        fraction = _FRACTION.fullmatch(value)
        options[name] = float(fraction[1]) / float(fraction[2]) if fraction else parse_value(value)
    return options
