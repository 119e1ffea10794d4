"""Which measure can be trusted? Ranks of measures per grounding, beside the paper's."""

from __future__ import annotations

import numpy as np

from likewise.benchmark.groundings import FORMS
from likewise.benchmark.results.frame import Results, label
from likewise.benchmark.results.paper import paper_results
from likewise.benchmark.results.ranks import Ranks, ranks
from likewise.errors import LikewiseError
from likewise.report.panels.panel import Material, Panel, counted, pack, rounded


def panel(material: Material) -> Panel | None:
    """How well measures follow known similarity."""
    results = material.runs.benchmark
    variant, measure_ranks = ("", None) if results is None else _ranks(results)
    if results is None or measure_ranks is None:
        return None
    domain = measure_ranks.domains[0]
    mean, published = _means(measure_ranks, domain), _paper(domain)
    frame = results.form(variant).main().frame
    values = frame.pivot_table("value", "measure", "grounding", aggfunc="mean", sort=False)
    order = sorted(map(str, values.index), key=lambda name: mean.get(name, np.inf))
    groundings = list(map(str, values.columns))
    return Panel(
        "benchmark",
        "Which measure can be trusted?",
        f"{len(order)} measures on {counted(len(groundings), 'grounding')} of {domain}; {label(order[0])} has the best "
        "mean rank.",
        "Networks were trained so that their similarity is known. A cell is how well a measure follows that grounding "
        "(1 is perfect); ranks are over all cells of the benchmark, 1 is best. Beside them are the ranks of the ReSi "
        "paper for the same domain, where it has the measure.",
        {
            "groundings": groundings,
            "measures": [label(name) for name in order],
            "values": pack(values.loc[order].to_numpy(dtype=float)),
            "ranks": [rounded(mean.get(name, np.nan)) for name in order],
            "paper": [rounded(published.get(name, np.nan)) for name in order],
        },
        tuple(measure_ranks.notes),
        ("benchmark",),
    )


def _ranks(results: Results) -> tuple[str, Ranks | None]:
    """The ranks of measures by the published form of the evaluation, else by that of the paper's code."""
    for variant in FORMS:
        for form in (None, "published", "resi"):  # of the measures, where results hold several
            try:
                return variant, ranks(results, variant=variant, measure_variant=form)
            except LikewiseError:
                continue
    return "", None


def _means(measure_ranks: Ranks, domain: str) -> dict[str, float]:
    """The mean rank of every measure in a domain."""
    rows = measure_ranks.summary()
    rows = rows[rows["domain"] == domain]
    return dict(zip(rows["measure"].astype(str), rows["mean"].astype(float), strict=True))


def _paper(domain: str) -> dict[str, float]:
    """The mean ranks of the paper in a domain."""
    try:
        return _means(ranks(paper_results(), variant="resi"), domain)
    except LikewiseError:
        return {}
