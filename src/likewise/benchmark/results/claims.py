"""The paper's claims as small checks on any results: agrees, does not, or cannot tell, with the figures behind it.

"Stands out" means the top third by median rank, as in figure 2. Cells are few and ranks vary, so cells are resampled
with replacement (seeded): a claim on ranks holds if it holds in at least 90 % of the draws, fails if in at most 10 %,
and there is not enough data in between, nor where results lack what a claim is about. Judged are cells that were run
with the paper's settings, by the paper's measures: other networks, data or sizes say how far a finding carries, not
whether it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.benchmark.results.coverage import with_papers_settings
from likewise.benchmark.results.frame import Results, label
from likewise.benchmark.results.paper import figures, plain
from likewise.benchmark.results.ranks import OVERALL, Ranks, ranks
from likewise.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Judgement = Literal["agrees", "does not", "cannot tell"]
CheckResult = tuple[bool | None, str]  # whether a claim holds, None where that cannot be told, and the figures
DRAWS, SURE, FEWEST = 400, 0.9, 5
DOMAINS = ("graph", "language", "vision")
NEIGHBOURS = ("second-order-cosine", "jaccard", "rank-similarity")
ANGLES = ("aligned-cosine", "angular-shape")
BY_PREDICTION = (
    "(grounding == 'accuracy' and metric == 'spearman') or (grounding == 'outputs' and metric == 'spearman_jsd')"
)


@dataclass(frozen=True)
class Verdict:
    """What results say of one claim of the paper, and the figures behind that."""

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

    def lacks(self, domain: str, *measures: str) -> str:
        """Why ranks of a domain say nothing, or an empty string."""
        unranked = [name for name in measures if name not in set(self.ranks.frame["measure"])]
        if unranked:
            return f"{label(unranked[0])} is not ranked."
        if domain not in self.ranks.domains:
            return f"There are no results of {'several domains' if domain == OVERALL else domain}."
        cells = self.ranks.of(domain).shape[1]
        return f"There are {cells} cells only." if cells < FEWEST else ""

    def top_third(self, measures: Sequence[str], domain: str) -> tuple[float, str]:
        """In which share of draws measures are in the top third, by the mean of their medians; and the figures."""
        table = self.ranks.of(domain)
        drawn = np.random.default_rng(0).integers(table.shape[1], size=(DRAWS, table.shape[1]))
        medians = np.median(table.to_numpy()[:, drawn], axis=2)  # measures by draws
        mean = medians[[table.index.tolist().index(label(measure)) for measure in measures]].mean(axis=0)
        positions = 1 + (medians < mean - 1e-9).sum(axis=0)
        share = float((positions <= len(table) / 3).mean())
        ordered: Iterable[Any] = self.summary(domain).reset_index(drop=True).itertuples()
        rows = [row for row in ordered if row.measure in measures]
        words = ", ".join(f"{row.label} place {row.Index + 1} (median rank {row.median:g})" for row in rows)
        return share, f"{domain}: {words} of {len(table)}, in the top third in {share:.0%} of draws"

    def summary(self, domain: str) -> pd.DataFrame:
        """The summary of ranks of one domain."""
        return self.ranks.summary().query("domain == @domain")

    def by_measure(self, grounding: str, metric: str, **only: str) -> pd.Series:
        """The mean value of each measure over the cells of a grounding, in one domain or of one network."""
        rows = self.values.query("grounding == @grounding and metric == @metric")
        if "network" in only:
            rows = rows[rows["network"].map(plain).eq(plain(only["network"]))]
        rows = rows[rows["domain"] == only["domain"]] if "domain" in only else rows
        return rows.groupby("measure")["value"].mean().dropna()


def _stand_out(measures: Sequence[str], domains: Sequence[str], expected: bool, findings: Findings) -> CheckResult:
    """Whether measures together are, or as expected are not, in the top third of each of the domains."""
    reasons = {domain: findings.lacks(domain, *measures) for domain in domains}
    placed = [findings.top_third(measures, domain) for domain, reason in reasons.items() if not reason]
    missing = [reason.rstrip(".") for reason in reasons.values() if reason]
    shares = [share if expected else 1 - share for share, _ in placed]
    holds = None
    if any(share <= 1 - SURE for share in shares):
        holds = False
    elif shares and not missing and all(share >= SURE for share in shares):
        holds = True
    return holds, "; ".join([*(text for _, text in placed), *missing]) + "."


def _no_winner(findings: Findings) -> CheckResult:
    domains = [domain for domain in findings.ranks.domains if domain != OVERALL and not findings.lacks(domain)]
    if len(domains) < 2:
        return None, "There are results of one domain only."
    best = {domain: findings.summary(domain).iloc[0] for domain in domains}
    figures = ", ".join(f"{row['label']} in {domain} (median {row['median']:g})" for domain, row in best.items())
    return len({row["label"] for row in best.values()}) > 1, f"Best by median rank: {figures}."


def _ranks_vary(findings: Findings) -> CheckResult:
    domain = findings.ranks.domains[-1]
    if reason := findings.lacks(domain):
        return None, reason
    rows = findings.summary(domain)
    wide = float((rows["q3"] - rows["q1"] >= len(rows) / 4).mean())
    text = f"The middle half of the ranks spans a quarter of all places or more for {wide:.0%} of measures ({domain})."
    return wide > 0.5, text


def _layers_not_shortcuts(findings: Findings) -> CheckResult:
    layers = findings.by_measure("layers", "spearman", network="GraphSAGE")
    shortcut = findings.by_measure("shortcut", "auprc", network="GraphSAGE")
    pair = ["eos", "gulp"]
    if not all(name in values for name in pair for values in (layers, shortcut)):
        return None, "There is no GraphSAGE with both groundings."
    middle = shortcut.median()
    words = [
        f"{label(name)}: layers {layers[name]:.2f}, shortcut {shortcut[name]:.2f} (median {middle:.2f})"
        for name in pair
    ]
    return bool((layers[pair] >= 0.95).all() and (shortcut[pair] < middle).all()), "; ".join(words) + "."


def _svcca_on_bert(findings: Findings) -> CheckResult:
    rows = findings.values.query(f"measure == 'svcca' and ({BY_PREDICTION})")
    by_metric = rows.groupby(["domain", "metric"], sort=False)["value"].mean().unstack()
    by_domain = by_metric.reindex(columns=["spearman", "spearman_jsd"]).mean(axis=1, skipna=False).dropna()
    by_domain = by_domain.reindex([d for d in dict.fromkeys(findings.values["domain"]) if d in by_domain.index])
    if "language" not in by_domain.index or len(by_domain) < 2:
        return None, "There are no predictions of language networks beside those of another domain."
    figures = ", ".join(f"{value:.2f} in {domain}" for domain, value in by_domain.items())
    return by_domain.idxmax() == "language", f"SVCCA's mean correlation with accuracy and JSD: {figures}."


def _uniformity_on_augmented_text(findings: Findings) -> CheckResult:
    values = findings.by_measure("augmentation", "auprc", domain="language")
    if "uniformity-difference" not in values.index:
        return None, "There is no augmentation of language networks."
    value = values["uniformity-difference"]
    position = 1 + int((values > value).sum())
    return position <= len(values) / 3, f"UnifDiff: AUPRC {value:.2f}, place {position} of {len(values)}."


def _pwcca_fails(findings: Findings) -> CheckResult:
    rows = findings.values.query("measure == 'pwcca'")
    if not len(rows):
        return None, "PWCCA was not run."
    share = float(rows["undefined"].mean())
    return share >= 0.1, f"PWCCA is undefined in {share:.0%} of {len(rows)} cells."


FIGURE, TABLE = "section 4, figure 2", "section 4, table 3"
TOP_THIRD: dict[str, tuple[str, tuple[Sequence[str], Sequence[str], bool]]] = {  # measures, domains, there or not
    "neighbours-on-graphs": (
        "The neighbour measures 2nd-Cos, Jaccard and RankSim do well on graphs.",
        (NEIGHBOURS, ["graph"], True),
    ),
    "angles-on-language": (
        "Angle-based measures (AlignCos, AngShape) do well on language.",
        (ANGLES, ["language"], True),
    ),
    "cka-on-vision": ("CKA does particularly well on vision.", (["cka"], ["vision"], True)),
    "procrustes-overall": ("OrthProc ranks consistently in the top third.", (["procrustes"], DOMAINS, True)),
    "rsa-ordinary": ("RSA does not stand out in general.", (["rsa"], [OVERALL], False)),
    "svcca-ordinary": ("SVCCA does not stand out in general.", (["svcca"], [OVERALL], False)),
}
CLAIMS: tuple[tuple[str, str, str, Callable[[Findings], CheckResult]], ...] = (
    ("no-winner", "No measure outperforms the others across the domains.", FIGURE, _no_winner),
    ("ranks-vary", "Most measures have high variance in their rankings.", FIGURE, _ranks_vary),
    *((name, says, FIGURE, partial(_stand_out, *which)) for name, (says, which) in TOP_THIRD.items()),
    (
        "eos-gulp-graphsage",
        "EOS and GULP order the layers of GraphSAGE and do not see its shortcuts.",
        TABLE,
        _layers_not_shortcuts,
    ),
    ("svcca-on-bert", "SVCCA follows predictions best on BERT.", TABLE, _svcca_on_bert),
    (
        "uniformity-augmentation",
        "UnifDiff tells how much language networks were augmented.",
        TABLE,
        _uniformity_on_augmented_text,
    ),
    ("pwcca-fails", "PWCCA often does not return values.", "table 3", _pwcca_fails),
)


def check_claims(
    results: Results,
    *,
    variant: str = "resi",
    measure_variant: str | None = None,
    settings: Literal["paper", "any"] = "paper",
) -> list[Verdict]:
    """Check the paper's claims: one verdict per claim, with the figures behind it.

    Args:
        results: Results of one or more runs.
        variant: The form of the evaluation, "published" or "resi".
        measure_variant: The form of the measures, needed only where results hold both forms of a measure.
        settings: "paper" judges cells of the paper that were run with its settings, by its measures; "any" takes all
            results, and says how far a finding carries to other networks and data.

    Raises:
        InputError: The settings are neither.
    """
    if settings not in ("paper", "any"):
        raise InputError(f"settings is {settings!r}. Give 'paper' or 'any'.")
    if settings == "paper":
        results = with_papers_settings(results)
        results = Results(results.frame[results.frame["measure"].isin(set(figures()["measure"]))])
        if not len(results.frame):
            nothing = "No cell of the paper was run with its settings."
            return [Verdict(name, says, source, "cannot tell", nothing) for name, says, source, _ in CLAIMS]
    means = results.form(variant).main().valid().means()
    findings = Findings(ranks(results, variant=variant, measure_variant=measure_variant), means)
    words: dict[bool | None, Judgement] = {True: "agrees", False: "does not", None: "cannot tell"}
    verdicts = []
    for name, says, source, check in CLAIMS:
        holds, text = check(findings)
        verdicts.append(Verdict(name, says, source, words[holds], text))
    return verdicts
