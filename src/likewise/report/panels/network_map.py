"""Where do the networks lie? Maps by every measure that has a score for all pairs, and families."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.families import embed
from likewise.errors import LikewiseError
from likewise.report.families import Families, ReportNetworks
from likewise.report.grids import ScoreGrid
from likewise.report.panels.panel import Finding, Material, Panel, counted, pack, rounded


def panel(material: Material) -> Panel | None:
    """The maps."""
    networks, families = material.networks, material.networks.families
    maps = [{"label": score.label, **xy} for score in material.scores if (xy := _maps(score, networks))]
    if not maps:
        return None
    stress = maps[0]["mds"]["stress"]
    answer = f"By {maps[0]['label']}, distances on the map differ from the true ones by {100 * stress:.0f} % (stress)."
    if families is not None:
        alone = sum(len(group) == 1 for group in families.clusters.groups())
        count = f"{families.clusters.k - alone} families" if families.clusters.k - alone > 1 else "One family"
        count += f" and {counted(alone, 'network')} alone" if alone else ""
        answer = f"{count} by {families.clusters.matrix.measure}."
    return Panel(
        "map",
        "Where do the networks lie?",
        answer,
        "Alike networks are near each other. Multidimensional scaling (MDS) keeps distances as well as two dimensions "
        "can; stress says how badly: below 10 % the map can be trusted, above 20 % look at the matrix instead. "
        "Families are found in the matrix, not on a map. Colours and marks are families, everywhere in this report.",
        {"maps": maps},
        () if stress < 0.2 else (f"Two dimensions fit these distances badly (stress {100 * stress:.0f} %).",),
        ("map",),
        () if families is None else (_finding(families),),
    )


def _maps(score: ScoreGrid, networks: ReportNetworks) -> dict[str, Any]:
    if len(score.matrix) < 3 or set(score.matrix.names) != set(networks.names):
        return {}
    matrix = score.matrix.reordered(networks.names)
    try:
        maps = {method: embed(matrix, method) for method in ("mds", "spectral")}
    except LikewiseError:  # pairs without a score
        return {}
    distances = matrix.distances()
    maps["mds"] = _majorized(distances, maps["mds"])
    return {method: {"xy": pack(xy), "stress": rounded(_stress(distances, xy))} for method, xy in maps.items()}


def _majorized(distances: Array, xy: Array, rounds: int = 300) -> Array:
    """The map whose distances differ least in sum of squares, from a start: stress majorization (SMACOF).

    No step makes it worse (de Leeuw 1977). Classical scaling, the start, projects, and lays upon each other what
    differs in a third direction only.
    """
    apart = (distances + distances.T) / 2
    drawn_at = xy + 1e-3 * apart.max() * np.random.default_rng(0).normal(size=xy.shape)  # points on one spot never part
    for _ in range(rounds):
        drawn = np.linalg.norm(drawn_at[:, None] - drawn_at[None], axis=-1)
        pull = np.divide(apart, drawn, out=np.zeros_like(apart), where=drawn > 0)
        moved = (pull.sum(axis=1)[:, None] * drawn_at - pull @ drawn_at) / len(apart)
        done = np.abs(moved - drawn_at).max() < 1e-5 * apart.max()
        drawn_at = moved
        if done:
            break
    return np.asarray(drawn_at)


def _stress(distances: Array, xy: Array) -> float:
    """How far distances on a map are from the true ones, after the best common factor: 0 is exact."""
    upper = np.triu_indices(len(distances), 1)
    drawn = np.linalg.norm(xy[:, None] - xy[None], axis=-1)[upper]
    true = distances[upper]
    factor = (drawn @ true) / max(float(drawn @ drawn), 1e-300)
    return float(np.sqrt(((factor * drawn - true) ** 2).sum() / max(float((true**2).sum()), 1e-300)))


def _finding(families: Families) -> Finding:
    clusters = families.clusters
    groups, measure = clusters.groups(), clusters.matrix.measure
    several, alone = [group for group in groups if len(group) > 1], [group[0] for group in groups if len(group) == 1]
    members = "; ".join(map(_members, several[:4]))
    if len(several) > 4:
        members += f"; and {len(several) - 4} more famil{'y' if len(several) == 5 else 'ies'}"
    count = f"There are {len(several)} families" if len(several) > 1 else "There is one family"
    text = f"{count} by {measure}: {members}." + (f" Alone: {_members(alone)}." if alone else "")
    if clusters.k == 1:
        text = f"Not enough data to say that the {len(clusters.names)} networks are of several families by {measure}."
    shares = {"networks left out": clusters.stability, "inputs drawn anew": clusters.input_stability}
    stable = [f"{share:.2f} with {change}" for change, share in shares.items() if share == share]
    agree = f"; families agree to {', '.join(stable)} (adjusted Rand index, chance 0)" if stable else ""
    evidence = f"p = {clusters.p:.2g} compared with scores of networks without families{agree}."
    return Finding(text, evidence, "map", clusters.k > 1)


def _members(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
