"""From results to what the page shows: findings first, then one panel per question that has results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likewise.errors import InputError
from likewise.report.families import Zoo, zoo_of
from likewise.report.findings import Finding, Material, findings
from likewise.report.grids import scored
from likewise.report.panels import matrix as draw
from likewise.report.panels.attacks import attacks_panel
from likewise.report.panels.classes import classes_panel
from likewise.report.panels.disagreement import gaps, views_of
from likewise.report.panels.inputs import inputs_panel
from likewise.report.panels.matrix import Panel
from likewise.report.panels.unseen import benchmark_panel, unseen_panel
from likewise.report.runs import Runs


@dataclass(frozen=True)
class Contents:
    """Everything a page shows."""

    title: str
    zoo: Zoo
    findings: list[Finding]
    panels: list[Panel]

    def data(self) -> dict[str, Any]:
        """What the script of the page reads."""
        return {
            "networks": draw.networks(self.zoo),
            "families": draw.families(self.zoo),
            "panels": {panel.id: panel.data for panel in self.panels if panel.blocks},
        }


def contents(runs: Runs, *, seed: int = 0) -> Contents:
    """The findings and panels of results."""
    zoo = zoo_of(runs, seed=seed)
    scores = scored(runs, zoo)
    views = views_of(scores)
    wide = gaps(views, zoo)
    made: list[Panel | None] = []
    if scores:
        made += [draw.likeness(zoo, scores), draw.map_panel(zoo, scores), draw.views_panel(zoo, scores, views, wide)]
    attacks, of_attacks = attacks_panel(runs, zoo)
    classes, of_classes = classes_panel(runs, zoo)
    made += [draw.layers_panel(runs.layers), inputs_panel(runs.inputs, zoo), classes, attacks]
    made += [unseen_panel(runs.zeroshot), benchmark_panel(runs.benchmark)]
    shown = [panel for panel in made if panel is not None]
    if not shown:
        raise InputError("these results have nothing to show: one network alone, or none. Give a comparison of two.")
    shown.append(draw.provenance(runs, scores))
    found = findings(Material(runs, zoo, scores, views, wide, [*of_classes, *of_attacks]))
    return Contents(_title(zoo), zoo, found, shown)


def _title(zoo: Zoo) -> str:
    if len(zoo.names) == 2:
        return f"How alike are {zoo.names[0]} and {zoo.names[1]}?"
    return f"How alike are these {len(zoo.names)} networks?" if zoo.names else "What was found"
