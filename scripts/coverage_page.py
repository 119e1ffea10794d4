"""Write docs/coverage.md from the results of runs that ship with the package.

python scripts/coverage_page.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from likewise.benchmark.results.advice import our_results
from likewise.benchmark.results.claims import check_claims
from likewise.benchmark.results.coverage import coverage

PAGE = Path(__file__).parent.parent / "docs" / "coverage.md"
TESTS = ("accuracy", "outputs", "labels", "shortcut", "augmentation", "layers")
TEXT = """\
# What of the paper was run

## In five lines

- This page lists every cell of the ReSi paper, and whether it was run, run small, or not run.
- Cora was run with the paper's settings, three times; the other data need a GPU or a download.
- SST-2 was run small; images were run on other data, which says nothing of the paper's cells.
- The paper's claims are judged by the cells that were run with its settings.
- What is left can be run: `likewise benchmark run --preset paper`, and `--plan` says what it costs.

Made by `python scripts/coverage_page.py` from the results that ship with the package. A cell is a network on a data set
under one test of *ReSi* (Klabunde et al., arXiv:2408.00531).

- **paper ×3**: run with the paper's settings, three repetitions; †: some or all of them have groups that are not valid.
- **small**: run on the same data with other networks or fewer inputs, which are named.
- –: not run. The settings are there: `likewise benchmark run --preset paper`, and `--plan` says what it costs.

{cells}

{counts}

Small runs on other data, which say nothing of these cells: {others}, and
[Tiny-ImageNet-100](tiny-imagenet.md).

## The paper's claims

A claim is judged by cells that were run with the paper's settings, among the paper's 23 measures in their published
form. The last column takes all our runs, of which most have other networks, data and sizes: it says how far a finding
carries, not whether the paper is right.

{claims}
"""


def cell(row: pd.Series) -> str:
    """One cell in a word or two."""
    mark = "" if row["valid"] == row["repetitions"] else " †"
    if row["status"] == "paper":
        return f"paper ×{row['repetitions']}{mark}"
    return f"small ({row['networks']}){mark}" if row["status"] == "small" else "–"


def table(rows: list[list[str]]) -> str:
    """Rows as Markdown, the first being the head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def page() -> str:
    """The page."""
    results = our_results()
    covered = coverage(results)
    rows = [["data", "network", *TESTS]]
    for (data, network), of_network in covered.groupby(["data", "network"], sort=False):
        by_test = of_network.set_index("grounding")
        rows.append([str(data), str(network), *(cell(by_test.loc[test]) for test in TESTS)])
    paper, few, none = (int((covered["status"] == status).sum()) for status in ("paper", "small", "not run"))
    counts = f"Of {len(covered)} cells {paper} were run with the paper's settings, {few} small, and {none} not."
    small = results.frame[results.frame["domain"] == "vision"].drop_duplicates(["data", "network"])
    others = "; ".join(
        f"{data} ({', '.join(rows_of_data['network'])})" for data, rows_of_data in small.groupby("data", sort=False)
    )
    settled = check_claims(results, variant="published")
    anywhere = check_claims(results, variant="published", settings="any")
    claims = [["claim", "paper's settings", "behind it", "all our runs"]]
    claims += [[one.says, one.verdict, one.figures, two.verdict] for one, two in zip(settled, anywhere, strict=True)]
    return TEXT.format(cells=table(rows), counts=counts, others=others, claims=table(claims))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
