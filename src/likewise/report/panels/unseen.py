"""The panels of unseen classes and of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.benchmark.groundings import FORMS
from likewise.benchmark.results.frame import Results, label
from likewise.benchmark.results.paper import paper_results
from likewise.benchmark.results.ranks import Ranks, ranks
from likewise.errors import LikewiseError
from likewise.report.panels.matrix import Panel
from likewise.report.panels.packing import number, packed
from likewise.zeroshot.result import ZeroShot

POINTS = 60  # soft labels per class in the picture


def unseen_panel(results: Sequence[ZeroShot]) -> Panel | None:
    """What networks make of classes that they never saw."""
    if not results:
        return None
    found = [_network(one) for one in results]
    first = results[0].to_frame()
    most = str(first["AM normalised"].idxmax())
    least = str(first["AM normalised"].idxmin())
    return Panel(
        "unseen",
        "What does a network make of a class it never saw?",
        f"{results[0].network} describes {most} most otherwise when it never saw it (Amalgam "
        f"{first['AM normalised'].max():.2f} "
        f"of 1), {least} least ({first['AM normalised'].min():.2f}); DBI is {first['DBI'].mean():.2f} on average.",
        "A network is trained without each class in turn and then shown it. DBI (Davies-Bouldin, smaller is better) "
        "says how "
        "compactly the soft labels of the unseen class lie together against those of other unseen classes; Amalgam "
        "(AM, "
        "smaller is better) how far they are from those of a network that saw it. Normalised values lie in [0, 1]. "
        "The map "
        "shows the soft labels of unseen classes by their two main directions: classes that stay apart are told apart "
        "unseen.",
        {"networks": found},
        (),
        ("unseen", "soft"),
    )


def _network(one: ZeroShot) -> dict[str, Any]:
    frame = one.to_frame()
    columns = ["DBI", "DBI normalised", "AM", "AM normalised", "accuracy", "samples"]
    points, owners = _soft_labels(one)
    return {
        "name": one.network,
        "classes": list(one.classes),
        "columns": columns,
        "rows": [[number(value) for value in frame.loc[name, columns]] for name in one.classes],
        "points": packed(points),
        "owners": owners,
    }


def _soft_labels(one: ZeroShot) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Soft labels of unseen classes on the two main directions, the unseen class itself at 0."""
    n, draw = len(one.classes), np.random.default_rng(0)
    parts, owners = [], []
    for i, name in enumerate(one.classes):
        soft = one.soft_labels(name)
        some = soft[draw.permutation(len(soft))[:POINTS]]
        whole = np.zeros((len(some), n))
        whole[:, np.arange(n) != i] = some
        parts.append(whole)
        owners += [i] * len(some)
    rows = np.concatenate(parts)
    rows = rows - rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows, full_matrices=False)
    return rows @ directions[:2].T, owners


def benchmark_panel(results: Results | None) -> Panel | None:
    """Which measures may be trusted, with ranks per grounding beside the paper's."""
    if results is None:
        return None
    variant, own = _ranks(results)
    if own is None:
        return None
    domain = own.domains[0]
    mean, published = _means(own, domain), _paper(domain)
    frame = results.form(variant).main().frame
    values = frame.pivot_table("value", "measure", "grounding", aggfunc="mean", sort=False)
    order = sorted((str(name) for name in values.index), key=lambda name: mean.get(name, np.inf))
    groundings = [str(name) for name in values.columns]
    return Panel(
        "benchmark",
        "Which measure may be trusted?",
        f"{len(order)} measures on {len(groundings)} grounding{'s' * (len(groundings) != 1)} of {domain}; "
        f"{label(order[0])} has the best mean rank.",
        "Networks were trained so that their likeness is known. A cell is how well a measure follows that grounding "
        "(1 is "
        "perfect); ranks are over all cells of the benchmark, 1 is best. Beside them stand the ranks of the ReSi "
        "paper for the "
        "same domain, where it has the measure.",
        {
            "groundings": groundings,
            "measures": [label(name) for name in order],
            "values": packed(values.loc[order].to_numpy(dtype=float)),
            "ranks": [number(mean.get(name, np.nan)) for name in order],
            "paper": [number(published.get(name, np.nan)) for name in order],
        },
        tuple(own.notes),
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


def _means(found: Ranks, domain: str) -> dict[str, float]:
    """The mean rank of every measure in a domain."""
    rows = found.summary()
    rows = rows[rows["domain"] == domain]
    return dict(zip(rows["measure"].astype(str), rows["mean"].astype(float), strict=True))


def _paper(domain: str) -> dict[str, float]:
    """The mean ranks of the paper in a domain."""
    try:
        return _means(ranks(paper_results(), variant="resi"), domain)
    except LikewiseError:
        return {}
