"""Which layers and weights of two networks are the same ones under names that wrappers changed.

Compilation, parallel copies and saved modules of PEFT put a step into names (`_orig_mod.`, `module.`); a training
class, a language model or another network around a network puts one before them all (`model.`, `transformer.`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

_STEPS = re.compile(
    r"(^|(?<=\.))(_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module|modules_to_save\.[^.]+)(\.|$)"
)
_DEEPEST = 3  # steps that what is around a network puts before its names


def counterparts(left: Collection[str], right: Collection[str]) -> dict[str, str]:
    """From names of the second network to those of the first that mean the same.

    >>> counterparts(["conv", "fc"], ["model.conv", "model._orig_mod.fc", "loss"])
    {'model.conv': 'conv', 'model._orig_mod.fc': 'fc'}
    """
    names: dict[str, str] = {}
    for name in left:
        names.setdefault(_plain(name), name)
    others: dict[str, str] = {}
    for name in right:
        others.setdefault(_plain(name), name)
    before = [("", ""), *((prefix, "") for prefix in _prefixes(names)), *(("", prefix) for prefix in _prefixes(others))]
    best = max((_matched(names, others, *pair) for pair in before), key=len)
    return {others[other]: names[name] for name, other in best.items()}


def _plain(name: str) -> str:
    """A name without the steps that wrappers put into it.

    >>> _plain("encoder._orig_mod.layer.0"), _plain("classifier.modules_to_save.default")
    ('encoder.layer.0', 'classifier')
    """
    return _STEPS.sub("", name).strip(".")


def _prefixes(names: Collection[str]) -> list[str]:
    """What most of the names begin with, step by step."""
    steps = [name.split(".") for name in names]
    counts = Counter(".".join(step[:depth]) for step in steps for depth in range(1, min(_DEEPEST, len(step) - 1) + 1))
    return [f"{prefix}." for prefix, count in counts.items() if 2 * count > len(names)]


def _matched(names: Collection[str], others: Collection[str], before: str, before_others: str) -> dict[str, str]:
    """The names of the first that are in the second, with what stands before either left out."""
    stripped = {other.removeprefix(before_others): other for other in others if other.startswith(before_others)}
    inside = {name: name.removeprefix(before) for name in names if name.startswith(before)}
    return {name: stripped[plain] for name, plain in inside.items() if plain in stripped}
