"""Are the groups of a run what they are meant to be? Read off how the networks answer, never off a measure.

Random labels are learned where networks fit their training labels better than chance; a change is felt where the
networks of two groups answer differently well. As in the paper, groups that do not separate are reported: what a
measure says of them says little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

SEPARATE = 0.9  # the least share of pairs of networks, one of each group, in one order
BETTER = 1.1  # times chance, from which on something was learned


@dataclass(frozen=True)
class Validity:
    """Whether the networks of a grounding are as they should be, and why not."""

    valid: bool
    reason: str = ""


VALID = Validity(True)


@dataclass(frozen=True)
class Behaviour:
    """How one network of a group answers: on the probe, and on what shows its change (NaN where not known).

    `chance` and `fit_chance` are what the most frequent label gets on the probe and on the training data.
    """

    group: str
    accuracy: float
    checks: Mapping[str, float]
    chance: float
    fit_chance: float


def judge(kind: str, networks: Sequence[Behaviour]) -> Validity:
    """Whether networks are fit for groundings by prediction ("predictions"), by "layers" or by a change."""
    if kind in ("predictions", "layers"):
        return _trained(networks, spread=kind == "predictions")
    idle = [net for net in networks if kind == "labels" and net.checks.get("fit", np.nan) <= BETTER * net.fit_chance]
    if idle:
        counts = Counter(net.group for net in idle)
        named = " and ".join(f"{count} network{'s' * (count > 1)} of {name!r}" for name, count in counts.items())
        return Validity(False, f"{named} did not learn their labels")
    looks = {
        "labels": ("accuracy", "fit"),
        "shortcut": ("accuracy", "shortcut"),
        "augmentation": ("accuracy", "augmented"),
        "family": ("accuracy", "fit", "augmented"),
    }.get(kind, ("accuracy",))
    groups = list(dict.fromkeys(net.group for net in networks))
    for one, two in combinations(groups, 2):
        best = max(_separation(networks, one, two, look) for look in looks)
        if best < SEPARATE:
            return Validity(False, f"{one!r} and {two!r} answer alike ({best:.0%} of pairs in one order)")
    return VALID


def _trained(networks: Sequence[Behaviour], *, spread: bool) -> Validity:
    """Networks that learned anything; if differences of accuracy are asked for, there must be some."""
    lazy = [net for net in networks if net.accuracy <= BETTER * net.chance]
    if lazy:
        return Validity(False, f"{len(lazy)} of {len(networks)} networks are no better than chance")
    if spread and len({net.accuracy for net in networks}) == 1:
        return Validity(False, "all networks are equally accurate")
    return VALID


def _separation(networks: Sequence[Behaviour], one: str, two: str, look: str) -> float:
    """The share of pairs of networks, one of each group, in one order of what is looked at; ties count half."""
    scores = [(net.group, {**net.checks, "accuracy": net.accuracy}.get(look, np.nan)) for net in networks]
    values = [np.array([score for group, score in scores if group == name]) for name in (one, two)]
    if any(np.isnan(group).any() for group in values):
        return 0.0
    gaps = np.subtract.outer(*values)
    first = float(((gaps > 0) + 0.5 * (gaps == 0)).mean())
    return max(first, 1 - first)
