"""Where do the views disagree? How well measures agree on ranks, and the pairs that views rank most differently."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.matrix_agreement import agreement
from likewise.errors import LikewiseError
from likewise.matrices.score import LEVEL
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.grids import ScoreGrid, ViewRanks, comparable_scores
from likewise.report.panels.panel import Finding, Material, Panel, counted, pack, rounded
from likewise.report.words import full_name, with_full_name

PERMUTATIONS, RESAMPLES, MANY = 1999, 200, 30  # half of both from so many pairs of measures on
FEW = 4  # rank agreement needs so many networks
LISTED = 50  # gaps in the page


@dataclass(frozen=True)
class Gap:
    """A pair on which two views disagree: its ranks in both, and whether their intervals lie apart."""

    a: str
    b: str
    more: str
    less: str
    high: float
    low: float
    significant: bool

    @property
    def sentence(self) -> str:
        """In words."""
        return self._sentence(self.more, self.less)

    @property
    def spelled_out(self) -> str:
        """In words, with what short names of measures stand for."""
        return self._sentence(with_full_name(self.more), with_full_name(self.less))

    def _sentence(self, more: str, less: str) -> str:
        return (
            f"by {more}, {self.a} and {self.b} are among the {_share(1 - self.high)} most alike pairs; by {less}, "
            f"among the {_share(self.low)} least."
        )


def _share(share: float) -> str:
    """A share of pairs, rounded up to a twentieth."""
    return f"{5 * max(1, int(np.ceil(20 * share - 1e-9)))} %"


def panel(material: Material) -> Panel | None:
    """Rank agreement and gaps."""
    scores, views, names = material.scores, material.views, material.networks.names
    if len(scores) < 2 or len(names) < 3:
        return None
    far = np.array([name in material.networks.outside for name in names])
    correlations, gaps = rank_agreement(scores, far), _gaps(views, names, material.networks.outside)
    answer = f"{counted(len(views), 'view')}: {', '.join(view.name for view in views)}."
    if correlations is not None:
        q = correlations["q"][np.triu_indices(len(scores), 1)]
        count, sure = int(np.isfinite(q).sum()), int((q <= LEVEL).sum())
        answer += f" Of {count} pairs of measures, {sure} rank the networks alike beyond chance (q ≤ 0.05)."
    else:
        answer += f" Not enough data to say whether measures rank pairs alike (n = {len(names)} networks)."
    return Panel(
        "disagreement",
        "Where do the views disagree?",
        answer,
        "Every measure ranks the pairs of networks by similarity. The matrix says how well two measures agree on the "
        "ranks: Spearman's correlation, with a 95 % interval over networks, and Mantel's test, which permutes "
        "networks, since pairs share them. Below it are the pairs that views rank most differently; those marked ● "
        "remain apart when scores move within their intervals, widened for the number of pairs.",
        {
            "agreement": None if correlations is None else {name: pack(grid) for name, grid in correlations.items()},
            "labels": [score.label for score in scores],
            "kinds": [score.view for score in scores],
            "stands_for": [f"{score.label}: {words}" for score in scores if (words := full_name(score.label))],
            "views": [{"name": view.name, "ranks": pack(view.ranks)} for view in views],
            "gaps": [
                {
                    "a": names.index(gap.a),
                    "b": names.index(gap.b),
                    "spread": rounded(gap.high - gap.low),
                    "significant": gap.significant,
                    "text": gap.sentence[0].upper() + gap.sentence[1:],
                }
                for gap in gaps[:LISTED]
            ],
        },
        (),
        ("agreement", "gaps"),
        _findings(gaps, len(names)),
        tuple(_advice(gaps)),
    )


def _gaps(views: Sequence[ViewRanks], names: Sequence[str], outside: Collection[str] = ()) -> list[Gap]:
    """The pairs on which views disagree, the widest first; of networks `outside` nothing else is to be expected."""
    gaps = []
    for i, j in combinations([i for i, name in enumerate(names) if name not in outside], 2):
        ranks = sorted((float(view.ranks[i, j]), k) for k, view in enumerate(views) if np.isfinite(view.ranks[i, j]))
        if len(ranks) < 2:
            continue
        (low, less), (high, more) = ranks[0], ranks[-1]
        apart = bool(views[more].low[i, j] > views[less].high[i, j])
        gaps.append(Gap(names[i], names[j], views[more].label, views[less].label, high, low, apart))
    return sorted(gaps, key=lambda gap: gap.low - gap.high)[:200]


def _findings(gaps: Sequence[Gap], networks: int) -> tuple[Finding, ...]:
    if not gaps:
        return ()
    gap = next((gap for gap in gaps if gap.significant), gaps[0])
    ranks = f"Ranks {gap.high:.2f} and {gap.low:.2f} of 1; their intervals"
    if gap.significant:
        text = f"The views disagree most on {gap.a} and {gap.b}: {gap.spelled_out}"
        evidence = f"{ranks}, widened for the number of pairs, lie apart."
    else:
        text = f"Not enough data to say whether the views disagree on any pair. The widest gap: {gap.spelled_out}"
        evidence = f"{ranks} overlap, or there are none (n = {networks} networks)."
    return (Finding(text, evidence, "disagreement", gap.significant),)


def _advice(gaps: Sequence[Gap]) -> Iterator[Finding]:
    """The pair to look at first, where views surely disagree on it."""
    gap = next((gap for gap in gaps if gap.significant), None)
    if gap is not None:
        evidence = "The intervals of its ranks, widened for the number of pairs, lie apart."
        yield Finding(f"Look at {gap.a} and {gap.b} first: {gap.spelled_out}", evidence, "disagreement")


def rank_agreement(scores: Sequence[ScoreGrid], far: Array | None = None, *, seed: int = 0) -> dict[str, Array] | None:
    """Spearman's correlation of ranks between all measures, intervals over networks, p and q by Mantel's test.

    Attacks say nothing of networks whose accuracy is `far` from the others'.
    """
    from scipy.stats import false_discovery_control

    if far is not None:
        scores = [replace(score, values=comparable_scores(score.values, score.view, far)) for score in scores]

    count = len(scores)
    grids = {name: np.full((count, count), np.nan) for name in ("rho", "low", "high", "p", "q", "networks")}
    for i, j in combinations(range(count), 2):
        numbers = _agreement(scores[i], scores[j], seed, half=count * (count - 1) // 2 >= MANY)
        for name, value in (numbers or {}).items():
            grids[name][i, j] = grids[name][j, i] = value
    upper = np.triu_indices(count, 1)
    rows, columns = (index[np.isfinite(grids["p"][upper])] for index in upper)
    if not len(rows):
        return None
    grids["q"][rows, columns] = grids["q"][columns, rows] = false_discovery_control(grids["p"][rows, columns])
    np.fill_diagonal(grids["rho"], 1.0)
    return grids


def _agreement(one: ScoreGrid, two: ScoreGrid, seed: int, *, half: bool) -> dict[str, Any] | None:
    """How well two measures agree on ranks, over the networks that have a score with all others in both."""
    both = np.isfinite(one.alike) & np.isfinite(two.alike)
    rows = list(range(len(both)))
    while rows and (missing := (~both[np.ix_(rows, rows)]).sum(axis=1) - 1).max() > 0:
        rows.pop(int(missing.argmax()))
    if len(rows) < FEW:
        return None
    names = [str(row) for row in rows]
    pair = [SimilarityMatrix(names, np.nan_to_num(score.alike[np.ix_(rows, rows)])) for score in (one, two)]
    draws: dict[str, Any] = {"permutations": PERMUTATIONS // (1 + half), "resamples": RESAMPLES // (1 + half)}
    try:
        result = agreement(*pair, how="spearman", seed=seed, **draws)
    except LikewiseError:  # all pairs of one are equally alike
        return None
    return {"rho": result.correlation, **{name: getattr(result, name) for name in ("low", "high", "p", "networks")}}
