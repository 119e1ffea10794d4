"""Every error a caller can cause, each also the built-in error they would expect.

A message is a sentence: what is wrong, what was given, what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from difflib import get_close_matches
from numbers import Integral
from typing import Any

__all__ = [
    "DamagedStoreWarning",
    "FailedMeasureWarning",
    "ForwardError",
    "InputError",
    "LikewiseError",
    "MeasureError",
    "MissingDataError",
    "MissingDependencyError",
    "NoClassifierError",
    "OptionError",
    "StoreError",
    "UndefinedError",
    "UnknownNameError",
    "WorkerError",
]  # more is for our own use


LARGEST_SEED = 2**32 - 1  # what every generator of numpy, torch and scikit-learn takes


class LikewiseError(Exception):
    """The parent of everything `likewise` raises on purpose."""


class InputError(LikewiseError, ValueError):
    """Something handed in cannot be used as it is."""


class NoClassifierError(InputError):
    """A network in which no classifier could be found; `reason` says why."""

    reason: str = ""


class OptionError(LikewiseError, TypeError):
    """A measure or a command was given an option it does not have."""


class UnknownNameError(LikewiseError, KeyError):
    """A name that no registry holds."""

    def __str__(self) -> str:  # KeyError would show the sentence in quotes
        return str(self.args[0])


class UndefinedError(LikewiseError, ArithmeticError):
    """The measure has no value for these inputs; in a batch run it becomes NaN with this reason."""


class MeasureError(LikewiseError, RuntimeError):
    """A function of the user's failed; in a batch run the pair becomes NaN with this reason."""


class WorkerError(LikewiseError, RuntimeError):
    """Processes that work is sent to cannot start, or were lost."""


class MissingDependencyError(LikewiseError, ImportError):
    """An optional part is not installed."""


class MissingDataError(LikewiseError, FileNotFoundError):
    """Data or weights are not where they were looked for."""


class ForwardError(LikewiseError, RuntimeError):
    """A network failed while it was shown inputs."""


class StoreError(LikewiseError, OSError):
    """A store cannot be read or written."""


class FileError(InputError, StoreError):
    """A file cannot be read as it is; whoever catches one of the two that it is catches it."""


class FailedMeasureWarning(UserWarning):
    """A measure failed on some pairs of a run, which went on without them."""


class DamagedStoreWarning(UserWarning):
    """Part of a store did not match its checksum and is computed anew."""


def brief(value: object) -> str:
    """What was given, in a few words: an array by its shape, anything long by its type.

    >>> brief([1, 2]), brief(list(range(100)))
    ('[1, 2]', 'a list of 100')
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape ({', '.join(map(str, shape))})"
    text = repr(value)
    if len(text) <= 60 and "\n" not in text:
        return text
    size = f" of {len(value)}" if isinstance(value, Sized) else ""
    return f"a {type(value).__name__}{size}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' for the nearest known name, or an empty string.

    >>> did_you_mean("ckaa", ["cka", "rsa"])
    " Did you mean 'cka'?"
    """
    close = get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


def first_line(error: BaseException) -> str:
    """The first line of an error's message without its full stop; its class where there is no message.

    >>> first_line(ValueError("no such file.\\nLook elsewhere.")), first_line(EOFError())
    ('no such file', 'EOFError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")


def quoted_list(names: Sequence[str]) -> str:
    """One to three names in quotes, and how many more.

    >>> quoted_list(["cat", "dog", "fish", "newt"])
    "'cat', 'dog', 'fish' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def check_seed(seed: Any) -> None:
    """Refuse a seed that not every generator takes."""
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= int(seed) <= LARGEST_SEED:
        raise InputError(f"seed is {brief(seed)}. Give a whole number from 0 to {LARGEST_SEED}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is no whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {brief(value)}.")


def __dir__() -> list[str]:
    return __all__
