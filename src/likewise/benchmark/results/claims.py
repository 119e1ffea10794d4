"""The paper's claims as small checks on any results: agrees, does not, or cannot tell, with the figures behind it.

"Stands out" means the top third by median rank, as in figure 2. Cells are few and ranks vary, so cells are drawn anew
with replacement (seeded): a claim about a place holds if it holds in at least 90 % of the draws, fails if in at most
10 %, and cannot be told in between. What results do not hold cannot be told either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.benchmark.results.frame import Results, label
from likewise.benchmark.results.paper import plain
from likewise.benchmark.results.ranks import OVERALL, Ranks, ranks

if TYPE_CHECKING:
    import pandas as pd

Judgement = Literal["agrees", "does not", "cannot tell"]
DRAWS, SURE, FEWEST = 400, 0.9, 5
DOMAINS = ("graph", "language", "vision")
NEIGHBOURS = ("second-order-cosine", "jaccard", "rank-similarity")
ANGLES = ("aligned-cosine", "angular-shape")


@dataclass(frozen=True)
class Verdict:
    """What results say of one claim."""

    name: str
    says: str
    source: str
    verdict: Judgement
    figures: str

    def __str__(self) -> str:
        return f"{self.verdict:<11}  {self.says} ({self.source})\n             {self.figures}"


@dataclass(frozen=True, eq=False)
class Findings:
    """What checks look at: the ranks, and the mean over repetitions of every value."""

    ranks: Ranks
    values: pd.DataFrame

    def has(self, *measures: str, domain: str) -> str:
        """Why a place cannot be told, or an empty string."""
        missing = [name for name in measures if name not in set(self.ranks.frame["measure"])]
        if missing:
            return f"{label(missing[0])} is not ranked."
        if domain not in self.ranks.domains:
            return f"There are no results of {'several domains' if domain == OVERALL else domain}."
        cells = self.ranks.of(domain).shape[1]
        return f"There are {cells} cells only." if cells < FEWEST else ""

    def top_third(self, measures: Sequence[str], domain: str) -> tuple[float, str]:
        """In how many draws of cells measures are in the top third, several by the mean of their medians; and where."""
        table = self.ranks.of(domain)
        drawn = np.random.default_rng(0).integers(table.shape[1], size=(DRAWS, table.shape[1]))
        medians = np.median(table.to_numpy()[:, drawn], axis=2)  # measures by draws
        rows = [table.index.tolist().index(label(measure)) for measure in measures]
        places = 1 + (medians < medians[rows].mean(axis=0) - 1e-9).sum(axis=0)
        share = float((places <= len(table) / 3).mean())
        order = self.ranks.summary().query("domain == @domain").reset_index(drop=True)
        ordered: Iterable[Any] = order.itertuples()
        shown = [
            f"{row.label} place {row.Index + 1} (median rank {row.median:g})"
            for row in ordered
            if row.measure in measures
        ]
        return share, f"{domain}: {', '.join(shown)} of {len(table)}, in the top third in {share:.0%} of draws"

    def mean(self, measure: str, grounding: str, metric: str, *, network: str = "", domain: str = "") -> float:
        """The mean value of a measure over the cells named, NaN without one."""
        rows = self.values.query("measure == @measure and grounding == @grounding and metric == @metric")
        rows = rows[_named(rows, network)] if network else rows
        rows = rows[rows["domain"] == domain] if domain else rows
        return float(rows["value"].mean()) if len(rows) else float("nan")


Check = Callable[[Findings], tuple[Judgement, str]]


def _judged(shares: Sequence[float], holds: bool = True) -> Judgement:
    shares = shares if holds else [1 - share for share in shares]
    if all(share >= SURE for share in shares):
        return "agrees"
    return "does not" if any(share <= 1 - SURE for share in shares) else "cannot tell"


def _places(measures: Sequence[str], domains: Sequence[str], *, holds: bool = True) -> Check:
    """The check that measures together are, or are not, in the top third of each of the domains."""

    def check(found: Findings) -> tuple[Judgement, str]:
        reasons = {domain: found.has(*measures, domain=domain) for domain in domains}
        placed = [found.top_third(measures, domain) for domain, reason in reasons.items() if not reason]
        missing = [reason.rstrip(".") for reason in reasons.values() if reason]
        verdict = _judged([share for share, _ in placed], holds) if placed else "cannot tell"
        if missing and verdict == "agrees":
            verdict = "cannot tell"
        return verdict, "; ".join([*(text for _, text in placed), *missing]) + "."

    return check


def _no_winner(found: Findings) -> tuple[Judgement, str]:
    domains = [domain for domain in found.ranks.domains if domain != OVERALL and not found.has(domain=domain)]
    if len(domains) < 2:
        return "cannot tell", "There are results of one domain only."
    summary = found.ranks.summary()
    best = {domain: summary.query("domain == @domain").iloc[0] for domain in domains}
    figures = ", ".join(f"{row['label']} in {domain} (median {row['median']:g})" for domain, row in best.items())
    same = len({row["label"] for row in best.values()}) == 1
    return "does not" if same else "agrees", f"Best by median rank: {figures}."


def _vary(found: Findings) -> tuple[Judgement, str]:
    domain = found.ranks.domains[-1]
    if found.has(domain=domain):
        return "cannot tell", found.has(domain=domain)
    rows = found.ranks.summary().query("domain == @domain")
    wide = float((rows["q3"] - rows["q1"] >= len(rows) / 4).mean())
    figures = (
        f"The middle half of the ranks spans a quarter of all places or more for {wide:.0%} of measures ({domain})."
    )
    return "agrees" if wide > 0.5 else "does not", figures


def _layers_not_shortcuts(found: Findings) -> tuple[Judgement, str]:
    texts, held = [], []
    for measure in ("eos", "gulp"):
        layers = found.mean(measure, "layers", "spearman", network="GraphSAGE")
        shortcut = found.mean(measure, "shortcut", "auprc", network="GraphSAGE")
        rows = found.values.query("grounding == 'shortcut' and metric == 'auprc'")
        others = rows[_named(rows, "GraphSAGE")].groupby("measure")["value"].mean()
        if np.isnan(layers) or np.isnan(shortcut):
            return "cannot tell", "There is no GraphSAGE with both groundings."
        texts.append(f"{label(measure)}: layers {layers:.2f}, shortcut {shortcut:.2f} (median {others.median():.2f})")
        held.append(layers >= 0.95 and shortcut < others.median())
    return "agrees" if all(held) else "does not", "; ".join(texts) + "."


def _named(rows: pd.DataFrame, network: str) -> pd.Series:
    return rows["network"].map(plain).eq(plain(network))


def _svcca_on_bert(found: Findings) -> tuple[Judgement, str]:
    by_domain = {
        domain: float(np.mean([found.mean("svcca", g, m, domain=domain) for g, m in BY_PREDICTION]))
        for domain in dict.fromkeys(found.values["domain"])
    }
    known = {domain: value for domain, value in by_domain.items() if value == value}
    if "language" not in known or len(known) < 2:
        return "cannot tell", "There are no predictions of language networks beside those of another domain."
    figures = ", ".join(f"{value:.2f} in {domain}" for domain, value in known.items())
    best = max(known, key=lambda domain: known[domain]) == "language"
    return "agrees" if best else "does not", f"SVCCA's mean correlation with accuracy and JSD: {figures}."


def _uniformity_on_augmented_text(found: Findings) -> tuple[Judgement, str]:
    rows = found.values.query("domain == 'language' and grounding == 'augmentation' and metric == 'auprc'")
    by_measure = rows.groupby("measure")["value"].mean().dropna()
    if "uniformity-difference" not in by_measure.index:
        return "cannot tell", "There is no augmentation of language networks."
    place = 1 + int((by_measure > by_measure["uniformity-difference"]).sum())
    text = f"UnifDiff: AUPRC {by_measure['uniformity-difference']:.2f}, place {place} of {len(by_measure)}."
    return "agrees" if place <= len(by_measure) / 3 else "does not", text


def _pwcca_fails(found: Findings) -> tuple[Judgement, str]:
    rows = found.values.query("measure == 'pwcca'")
    if not len(rows):
        return "cannot tell", "PWCCA was not run."
    share = float(rows["undefined"].mean())
    return "agrees" if share >= 0.1 else "does not", f"PWCCA is undefined in {share:.0%} of {len(rows)} cells."


BY_PREDICTION = (("accuracy", "spearman"), ("outputs", "spearman_jsd"))
TEXT, FIGURE = "section 4", "section 4, figure 2"
CLAIMS: tuple[tuple[str, str, str, Check], ...] = (
    ("no-winner", "No measure outperforms the others across the domains.", FIGURE, _no_winner),
    ("ranks-vary", "Most measures have high variance in their rankings.", FIGURE, _vary),
    (
        "neighbours-on-graphs",
        "The neighbour measures 2nd-Cos, Jaccard and RankSim do well on graphs.",
        FIGURE,
        _places(NEIGHBOURS, ["graph"]),
    ),
    (
        "angles-on-language",
        "Angle-based measures (AlignCos, AngShape) do well on language.",
        FIGURE,
        _places(ANGLES, ["language"]),
    ),
    ("cka-on-vision", "CKA does particularly well on vision.", FIGURE, _places(["cka"], ["vision"])),
    (
        "procrustes-overall",
        "OrthProc ranks consistently in the top third.",
        FIGURE,
        _places(["procrustes"], DOMAINS),
    ),
    ("rsa-ordinary", "RSA does not stand out in general.", FIGURE, _places(["rsa"], [OVERALL], holds=False)),
    ("svcca-ordinary", "SVCCA does not stand out in general.", FIGURE, _places(["svcca"], [OVERALL], holds=False)),
    (
        "eos-gulp-graphsage",
        "EOS and GULP order the layers of GraphSAGE and do not see its shortcuts.",
        f"{TEXT}, table 3",
        _layers_not_shortcuts,
    ),
    ("svcca-on-bert", "SVCCA follows predictions best on BERT.", f"{TEXT}, table 3", _svcca_on_bert),
    (
        "uniformity-augmentation",
        "UnifDiff tells how much language networks were augmented.",
        f"{TEXT}, table 3",
        _uniformity_on_augmented_text,
    ),
    ("pwcca-fails", "PWCCA often does not return values.", "table 3", _pwcca_fails),
)


def check_claims(results: Results, *, variant: str = "resi", measure_variant: str | None = None) -> list[Verdict]:
    """The paper's claims, each held against these results.

    `variant` is the form of the evaluation and `measure_variant` that of the measures, needed only where results hold
    both forms of a measure.
    """
    found = Findings(ranks(results, variant=variant, measure_variant=measure_variant), _values(results, variant))
    verdicts = []
    for name, says, source, check in CLAIMS:
        verdict, figures = check(found)
        verdicts.append(Verdict(name, says, source, verdict, figures))
    return verdicts


def _values(results: Results, variant: str) -> Any:
    frame = results.form(variant).main().frame
    frame = frame[frame["valid"].ne(False)]
    frame = frame.assign(undefined=frame["value"].isna().astype(float))
    keys = ["domain", "data", "network", "preset", "grounding", "metric", "measure"]
    return frame.groupby(keys, sort=False)[["value", "undefined"]].mean().reset_index()
