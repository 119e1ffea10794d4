"""Write docs/measures.md, the table of all measures with their recipes, from the facts beside their code.

python scripts/measures_table.py
"""

from __future__ import annotations

from pathlib import Path

from likewise import measures
from likewise.measures.registry import FAMILIES

PAGE = Path(__file__).parent.parent / "docs" / "measures.md"
COLUMNS = ("direction", "range", "symmetric", "ignores", "looks at", "also called")
ELSEWHERE = {  # what other tools return under the same name, where both were run on the same arrays
    "cka": "rsatoolbox (`cosine_cov` of euclidean RDMs) and ckatorch return the same; netrep's `LinearCKA` returns an "
    "angle, and torch-cka the debiased value.",
    "cka-debiased": "platonic-rep's `unbiased_cka` and torch-cka return the same, to 4·10⁻⁶ in single precision; "
    "ckatorch 1.0.3 ignores `unbiased=True` where `method='hsic'`, and returns the biased value.",
    "rsa": "rsatoolbox returns the same for correlation RDMs and Spearman; its other RDMs are other measures.",
    "angular-shape": "netrep's `LinearMetric(alpha=1, score_method='angular')` returns the same.",
    "distance-correlation": "dcor returns the same.",
    "soft-matching": "POT returns the same.",
    "mean-cca": "google/svcca returns the same coefficients; its mean stops at the share 0.98 of their sum.",
    "pwcca": "google/svcca weighs without whitening and centring, and returns another number; anatome weighs by "
    "coefficients instead of canonical variates.",
    "mutual-knn": "platonic-rep returns the same.",
    "pnka": "the authors' code returns the same.",
    "imd": "the authors' code with exact eigenvalues returns the same; its stochastic trace is biased by noise.",
    "rtd": "the authors' matrix with ripser returns the same.",
    "rsm-difference": 'ReSi takes the spectral norm of the square matrix, which is `variant="resi"`.',
}


def page() -> str:
    """The whole page."""
    known = [measures.get(name) for name in measures.names()]
    parts = [
        "# All measures",
        "Written by `scripts/measures_table.py` from the facts beside the code; a test holds the page to them. "
        "`likewise measures NAME` prints one recipe. Every declared fact is tested to hold, and to fail where "
        "it is not claimed. "
        "[Which one to use](which-measure.md).",
    ]
    for family in FAMILIES:
        found = [measure for measure in known if measure.info.family == family]
        if found:
            parts += [f"## {family}", _table(found), *map(_recipe, found)]
    return "\n\n".join(parts) + "\n"


def _table(found: list[measures.Measure]) -> str:
    lines = [f"| measure | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for measure in found:
        known = measure.facts()
        lines.append(
            f"| [`{measure.name}`](#{measure.name}) | " + " | ".join(_cell(known[name]) for name in COLUMNS) + " |"
        )
    return "\n".join(lines)


def _recipe(measure: measures.Measure) -> str:
    info, known = measure.info, measure.facts()
    lines = [f"### {measure.name}", _plain(info.summary)]
    lines += [_plain(info.recipe)] if info.recipe else []
    lines += [f"Source: {info.source}. Cost: {known['cost']}. With itself: {known['with itself']}."]
    lines += [f'`variant="{name}"`: {_plain(other.info.deviation)}' for name, other in measure.variants.items()]
    lines += [f"Elsewhere: {ELSEWHERE[measure.name]}"] if measure.name in ELSEWHERE else []
    return "\n\n".join(lines)


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Text in which no sign is markup: stars and underscores stand in formulas."""
    return " ".join(text.split()).replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
