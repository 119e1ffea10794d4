"""Attacks: small changes of inputs that change what a network answers.

Each is a function under `@attack`, one file per kind; `get("pgd")` looks one up, `names()` lists them, and
`likewise.attacks.pgd` is the same by name. The room imports `_base` and `networks`.
"""

from __future__ import annotations

from likewise.attacks.generators import ImageGenerator, train_generator
from likewise.attacks.registry import ATTACKS, Attack, attack
from likewise.errors import UnknownNameError

__all__ = ["ATTACKS", "Attack", "ImageGenerator", "attack", "get", "names", "train_generator"]


def get(name: str) -> Attack:
    """Look an attack up.

    Args:
        name: Its name or an alias; case and underscores do not matter.

    Raises:
        UnknownNameError: There is no such attack.

    Example:
        >>> get("PGD")
        <attack 'pgd', Linf: Projected gradient descent: steps along the sign of the gradient, kept near the images.>
    """
    return ATTACKS.get(name)


def names(pattern: str = "*") -> list[str]:
    """The names of all attacks, or of those that match a pattern.

    Args:
        pattern: A glob, such as "apgd*".

    Example:
        >>> names("pg*")
        ['pgd']
    """
    return ATTACKS.names(pattern)


def __getattr__(name: str) -> Attack:
    if name.startswith("_"):
        raise AttributeError(f"module 'likewise.attacks' has no attribute {name!r}")
    try:
        return ATTACKS.get(name)
    except UnknownNameError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    return sorted([*__all__, *(name.replace("-", "_") for name in ATTACKS.names())])
