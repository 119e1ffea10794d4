"""The registry of attacks: a function of a network and a batch, with its facts beside it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from torch import Tensor, nn

from likewise._base.registry import Registry, module_of
from likewise.errors import InputError, OptionError, brief, did_you_mean

_KINDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a word"}


class Adversarial(NamedTuple):
    """What an attack made of a batch: the changed images, the labels it led away from (or towards).

    `stalled` counts, per image, the steps at which the loss had no gradient.
    """

    images: Tensor
    labels: Tensor
    stalled: Tensor


@dataclass(frozen=True)
class Attack:
    """One attack: `run(net, images, labels, **options)` gives an `Adversarial`.

    `norm` is what keeps the change small; the first line of the docstring is the summary. One that does not `train`
    makes no examples to train a network on.
    """

    name: str
    run: Callable[..., Adversarial]
    norm: str
    source: str
    summary: str
    trains: bool = True

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults, read from the signature."""
        parameters = inspect.signature(self.run).parameters.values()
        return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that it does not have, and values of another kind than theirs."""
        own, kinds = self.options, get_type_hints(self.run)
        for name, value in options.items():
            if name not in own:
                has = f"Its options are {', '.join(own)}." if own else "It has none."
                raise OptionError(f"{self.name} has no option {name!r}.{did_you_mean(str(name), own)} {has}")
            allowed = _alternatives(kinds.get(name, Any))
            if not any(_is_a(value, kind) for kind in allowed):
                words = [_KINDS[kind] if kind in _KINDS else repr(kind) for kind in allowed if kind is not type(None)]
                raise InputError(f"{self.name}: {name} is {brief(value)}. Give {' or '.join(words)}.")

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor | None = None, **options: Any) -> Adversarial:
        self.check(options)
        return self.run(net, images, labels, **options)


ATTACKS: Registry[Attack] = Registry("attack", group="likewise.attacks", modules=("likewise.attacks.*",))


def attack(
    *, name: str, norm: str, source: str, aliases: tuple[str, ...] = (), trains: bool = True
) -> Callable[[Callable[..., Adversarial]], Attack]:
    """Declare an attack `f(net, images, labels=None, *, ...) -> Adversarial`."""

    def declare(run: Callable[..., Adversarial]) -> Attack:
        summary = (run.__doc__ or "").split("\n")[0]
        return ATTACKS.add(name, Attack(name, run, norm, source, summary, trains), aliases, module=module_of(run))

    return declare


def _alternatives(hint: Any) -> list[Any]:
    """The types a value may have, and the values of a `Literal`."""
    if get_origin(hint) in (Union, UnionType):
        return [kind for one in get_args(hint) for kind in _alternatives(one)]
    return list(get_args(hint)) if get_origin(hint) is Literal else [hint]


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value is of a plain type; of any other type, the attack judges itself."""
    if kind in (int, float):  # also those of numpy
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind in (bool, str, type(None)):
        return isinstance(value, kind)
    return value == kind if isinstance(kind, str) else True
