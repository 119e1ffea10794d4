"""The registry of attacks: a function of a network and a batch, with its facts beside it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from torch import Tensor, nn

from likewise._base.registry import Registry, module_of
from likewise.errors import InputError, OptionError, brief, did_you_mean

_SHARED = {  # what the arguments are that attacks call alike
    "net": "The classifier that is attacked.",
    "images": "Images in [0, 1], `(n, channels, height, width)`.",
    "labels": "Their classes; by default what the network answers.",
    "eps": "How far an image may move, in the norm.",
    "iterations": "How many steps.",
    "targets": "How many wrong classes, the likeliest first.",
    "queries": "How often a changed image may be shown to the network.",
    "decay": "What an older slope counts, by step.",
    "norm": '"Linf" or "L2".',
    "random_start": "Start at a random point within `eps`.",
    "targeted": "Lead to the labels instead of away from them.",
    "search": '"cma-es" or "differential-evolution".',
    "generations": "How many rounds of the search.",
    "population": "Candidates per round.",
    "seed": "Of what is drawn.",
    "exact": "Attack the network itself instead of a copy with its answers that is faster.",
}
_TYPES = {float: "a number", int: "a whole number", bool: "true or false", str: "a word"}


class Adversarial(NamedTuple):
    """What an attack made of a batch.

    Attributes:
        images: The changed images.
        labels: The classes it led away from, or towards.
        stalled: Per image, the number of steps at which the loss had no gradient.
    """

    images: Tensor
    labels: Tensor
    stalled: Tensor


@dataclass(frozen=True, repr=False)
class Attack:
    """One attack, called as `attack(net, images, labels, **options)`.

    Attributes:
        name: Its name.
        run: The function `(net, images, labels, **options)` that runs it.
        norm: What keeps the change small: "Linf", "L2", "L0" or "patch".
        source: The paper.
        summary: The first line of its docstring.
        trains: Whether it makes examples to train a network on.
    """

    name: str
    run: Callable[..., Adversarial]
    norm: str
    source: str
    summary: str
    trains: bool = True

    def __post_init__(self) -> None:
        vars(self).update(__doc__=_docstring(self.run), __signature__=inspect.signature(self.run))

    def __repr__(self) -> str:
        return f"<attack {self.name!r}, {self.norm}: {self.summary}>"

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults, read from the signature."""
        parameters = inspect.signature(self.run).parameters.values()
        return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that it does not have, and values of another type than theirs.

        Args:
            options: The options of a call, by name.

        Raises:
            OptionError: It has no such option.
            InputError: A value is of another type.
        """
        names, hints = self.options, get_type_hints(self.run)
        for name, value in options.items():
            if name not in names:
                has = f"Its options are {', '.join(names)}." if names else "It has none."
                raise OptionError(f"{self.name} has no option {name!r}.{did_you_mean(str(name), names)} {has}")
            allowed = _alternatives(hints.get(name, Any))
            if not any(_is_a(value, hint) for hint in allowed):
                words = [_TYPES[hint] if hint in _TYPES else repr(hint) for hint in allowed if hint is not type(None)]
                raise InputError(f"{self.name}: {name} is {brief(value)}. Give {' or '.join(words)}.")

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor | None = None, **options: Any) -> Adversarial:
        """Attack a batch of images.

        Args:
            net: The network.
            images: Images as floats in [0, 1], one per row.
            labels: Their classes; by default what the network answers.
            **options: Options of the attack, as `options` lists them.

        Returns:
            The changed images, the labels, and how often there was no gradient.

        Raises:
            OptionError: It has no such option.
            InputError: The images, the labels or a value cannot be used.
        """
        self.check(options)
        return self.run(net, images, labels, **options)


ATTACKS: Registry[Attack] = Registry(
    "attack", group="likewise.attacks", modules=("likewise.attacks.*", "likewise.attacks.auto.*")
)


def attack(
    *, name: str, norm: str, source: str, aliases: tuple[str, ...] = (), trains: bool = True
) -> Callable[[Callable[..., Adversarial]], Attack]:
    """Declare an attack `f(net, images, labels=None, *, ...) -> Adversarial`.

    Its docstring describes options under "Options", but for those that other attacks have too.

    Args:
        name: Its name, lower-case kebab.
        norm: What keeps the change small.
        source: The paper.
        aliases: Other names.
        trains: Whether it makes examples to train a network on.

    Returns:
        A decorator; the decorated name is the attack.
    """

    def declare(run: Callable[..., Adversarial]) -> Attack:
        summary = (run.__doc__ or "").split("\n")[0]
        return ATTACKS.add(name, Attack(name, run, norm, source, summary, trains), aliases, module=module_of(run))

    return declare


def _docstring(run: Callable[..., Adversarial]) -> str:
    """The function's own words, and what its arguments are: those under "Options", and those that attacks share."""
    text, _, options = inspect.cleandoc(run.__doc__ or "").partition("\n\nOptions:\n")
    if "\nArgs:\n" in text:
        return text
    words = _SHARED | dict(re.findall(r"^ {4}(\w+): (.*)", options, re.M))
    lines = [f"    {name}: {words[name]}" for name in inspect.signature(run).parameters if name in words]
    returns = "    The changed images, with the classes they were led away from or towards."
    return "\n".join([text, "", "Args:", *lines, "", "Returns:", returns])


def _alternatives(hint: Any) -> list[Any]:
    """The types a value may have, and the values of a `Literal`."""
    if get_origin(hint) in (Union, UnionType):
        return [type_ for one in get_args(hint) for type_ in _alternatives(one)]
    return list(get_args(hint)) if get_origin(hint) is Literal else [hint]


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a plain type; of any other type, the attack judges itself."""
    if hint in (int, float):  # also those of numpy
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if hint in (bool, str, type(None)):
        return isinstance(value, hint)
    return value == hint if isinstance(hint, str) else True
