"""Groundings: what is known of networks that a measure of likeness should show.

By prediction: networks that answer differently should be unlike. By group: networks made alike should be more alike
than others. By layer: layers further apart should be less alike. A grounding of your own is a function of `Evidence`
with the decorator `@grounding`; `likewise.benchmark.evaluation` has the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from likewise._base.registry import Registry, module_of
from likewise.benchmark.evaluation import (
    TIES,
    Evidence,
    Quality,
    Variant,
    auprc,
    conformity,
    layer_conformity,
    layer_spearman,
    spearman,
)
from likewise.errors import InputError, brief, quoted_list

GroundingKind = Literal["predictions", "groups", "layers"]
FORMS: tuple[Variant, ...] = ("published", "resi")


@dataclass(frozen=True)
class Grounding:
    """One grounding: `evaluate(evidence)` says how well a measure follows it.

    Attributes:
        name: Its name.
        title: What tables call it.
        kind: What it needs of the networks: "predictions", "groups" or "layers".
        function: From evidence to the quality of a measure.
        truths: The differences of outputs it needs, by name.
        summary: The question it asks.
    """

    name: str
    title: str
    kind: GroundingKind
    function: Callable[[Evidence], list[Quality]]
    truths: tuple[str, ...] = ()
    summary: str = ""

    def evaluate(self, evidence: Evidence) -> list[Quality]:
        """How good a measure is, by each metric and in each form.

        Args:
            evidence: The values of the measure, and what is known of the networks.
        """
        self.check(evidence)
        return self.function(evidence)

    def check(self, evidence: Evidence) -> None:
        """Refuse evidence that lacks what the grounding needs.

        Args:
            evidence: The values of the measure, and what is known of the networks.
        """
        layers = self.kind == "layers"
        if evidence.values.ndim != 2 + layers:
            shape = "a square of layers per network" if layers else "one row and column per network"
            raise self._refusal(f"needs {shape}, and the values of {evidence.measure} are {brief(evidence.values)}.")
        _CHECKS[self.kind](self, evidence)

    def _refusal(self, why: str) -> InputError:
        return InputError(f"the grounding {self.name!r} {why}")


GROUNDINGS: Registry[Grounding] = Registry(
    "grounding", group="likewise.groundings", modules=("likewise.benchmark.groundings",)
)


def grounding(
    *, name: str, title: str, kind: GroundingKind, truths: tuple[str, ...] = (), aliases: tuple[str, ...] = ()
) -> Callable[[Callable[[Evidence], list[Quality]]], Grounding]:
    """Register a grounding `f(evidence) -> list[Quality]`; the first line of its docstring is the summary.

    Args:
        name: Its name.
        title: What tables call it.
        kind: What it needs of the networks: "predictions", "groups" or "layers".
        truths: The differences of outputs it needs: "accuracy", "jsd", "disagreement".
        aliases: Other names for it.

    Example:
        >>> from likewise.benchmark.evaluation import auprc
        >>> @grounding(name="same-seed", title="same seed", kind="groups")
        ... def same_seed(evidence):
        ...     '''Are networks of one seed more alike than others?'''
        ...     return [auprc(evidence)]
        >>> GROUNDINGS.get("same-seed").summary
        'Are networks of one seed more alike than others?'
        >>> GROUNDINGS.remove("same-seed")
    """
    if kind not in _CHECKS:
        raise InputError(f"the grounding {name!r} has the kind {brief(kind)}. Choose {quoted_list(list(_CHECKS))}.")

    def declare(function: Callable[[Evidence], list[Quality]]) -> Grounding:
        summary = (function.__doc__ or "").split("\n")[0]
        rule = Grounding(name, title, kind, function, truths, summary)
        return GROUNDINGS.add(name, rule, aliases, module=module_of(function))

    return declare


def _has_truths(grounding: Grounding, evidence: Evidence) -> None:
    missing = [name for name in grounding.truths if name not in evidence.truths]
    if missing:
        raise grounding._refusal(
            f"needs {missing[0]!r}, which is not known of these networks. Give their outputs and the labels of the "
            "inputs, or leave the grounding out."
        )
    if (count := len(evidence.values)) < 3:
        raise grounding._refusal(f"compares pairs of networks, and there are {count} networks. Give three or more.")


def _has_groups(grounding: Grounding, evidence: Evidence) -> None:
    sizes = Counter(evidence.groups)
    if not sizes:
        raise grounding._refusal("needs groups, and none are given. Name the group of each network.")
    if len(sizes) == 1:
        raise grounding._refusal(f"compares groups, and all networks are in {min(sizes)!r}. Give two groups or more.")
    alone = [name for name, size in sizes.items() if size == 1]
    if alone:
        raise InputError(
            f"the group {alone[0]!r} has one network, so none to be like. Give it two or more, or leave it out."
        )


def _has_layers(grounding: Grounding, evidence: Evidence) -> None:
    if (count := evidence.values.shape[-1]) < 3:
        raise grounding._refusal(
            f"compares distances between layers, and there are {count} layers. Give three or more."
        )


_CHECKS = {"predictions": _has_truths, "groups": _has_groups, "layers": _has_layers}


@grounding(name="accuracy", title="accuracy difference", kind="predictions", truths=("accuracy",))
def accuracy(evidence: Evidence) -> list[Quality]:
    """Are networks less alike the more their accuracies differ?"""
    return [spearman(evidence, "accuracy", variant=form) for form in FORMS]


@grounding(name="outputs", title="output difference", kind="predictions", truths=("jsd", "disagreement"))
def outputs(evidence: Evidence) -> list[Quality]:
    """Are networks less alike the more their answers to single inputs differ?"""
    return [
        replace(spearman(evidence, truth, variant=form), metric=f"spearman_{truth}")
        for truth in ("jsd", "disagreement")
        for form in FORMS
    ]


def by_ties(metric: Callable[..., Quality], evidence: Evidence) -> list[Quality]:
    """The published form for each thing a tie may count as, then the reference's."""
    return [*(metric(evidence, ties=ties) for ties in TIES), metric(evidence, variant="resi")]


def separation(evidence: Evidence) -> list[Quality]:
    """Are networks of one group more alike than those of different groups?"""
    return [*(auprc(evidence, variant=form) for form in FORMS), *by_ties(conformity, evidence)]


def _by_groups(name: str, title: str, summary: str) -> None:
    GROUNDINGS.add(name, Grounding(name, title, "groups", separation, summary=summary), module=__name__)


_by_groups("labels", "label randomisation", "Are networks more alike that were trained on equally many random labels?")
_by_groups("shortcut", "shortcut", "Are networks more alike that rely on a shortcut to the same degree?")
_by_groups("augmentation", "augmentation", "Are networks more alike that were trained with the same augmentation?")


@grounding(name="layers", title="layer monotonicity", kind="layers")
def layers(evidence: Evidence) -> list[Quality]:
    """Are layers of a network less alike the more layers lie between?"""
    return [*(layer_spearman(evidence, variant=form) for form in FORMS), *by_ties(layer_conformity, evidence)]


_by_groups("family", "family", "Are networks of one architecture, training regime or lineage more alike than others?")
