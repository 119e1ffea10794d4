"""Write docs/which-measure.md from the tables that ship with the package.

python scripts/which_measure.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.advice import OURS, POWER, Recommendation, advise, our_results, power_at
from likewise.benchmark.results.claims import check_claims
from likewise.benchmark.results.frame import label
from likewise.benchmark.results.paper import paper_results
from likewise.benchmark.results.ranks import ALL, OVERALL, gains, ranks
from likewise.measures.registry import MEASURES

PAGE = Path(__file__).parent.parent / "docs" / "which-measure.md"
DOMAINS = ("graph", "language", "vision")
QUESTIONS = ("accuracy", "outputs", "labels", "shortcut", "augmentation", "layers")
TOP = 5


def cell(rows: tuple[Recommendation, ...]) -> str:
    """The first measures with their mean value, and over how many cells."""
    return ", ".join(f"{row.label} ({row.value:.2f}, {len(row.evidence)})" for row in rows)


def by_question() -> str:
    """One row per question, one column per domain."""
    lines = ["| question | " + " | ".join(DOMAINS) + " |", "|---" * (len(DOMAINS) + 1) + "|"]
    for question in QUESTIONS:
        cells = [cell(advise(domain, question, top=TOP).rows) for domain in DOMAINS]
        lines.append(f"| {GROUNDINGS.get(question).title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def overall() -> str:
    """Median ranks per domain, the best by all first."""
    summary = ranks(paper_results(), variant="resi").summary()
    wide = summary.pivot(index="label", columns="domain", values="median")[[*DOMAINS, OVERALL]]
    order = summary[summary["domain"] == OVERALL]["label"].tolist()
    lines = ["| measure | " + " | ".join(wide.columns) + " |", "|---|" + "---:|" * wide.shape[1]]
    lines += [f"| {name} | " + " | ".join(f"{value:g}" for value in wide.loc[name]) + " |" for name in order]
    return "\n".join(lines)


def beyond() -> str:
    """The measures beyond the paper's 23 that do best in each grounding of our own runs, beside the best of the 23."""
    import pandas as pd

    rows = gains(our_results())
    by_outputs = rows["measure"].map(lambda name: MEASURES.get(name).info.on == "outputs")
    cells = ["domain", "grounding"]
    answers = rows[by_outputs].groupby(cells, sort=False).first()
    lines = [
        "| domain | question | places | best of the 23 | of the others | gain, 95 % interval | beats it | of outputs |",
        "|---|---|---:|---|---|---|---|---|",
    ]
    for row in rows[~by_outputs].groupby(cells, sort=False).head(1).to_dict("records"):
        has_interval, gain = not pd.isna(row["low"]), _gain(row)
        verdict = (
            "cannot tell" if not has_interval or row["low"] <= 0 <= row["high"] else "yes" if row["beats"] else "no"
        )
        verdict = "equal" if has_interval and max(abs(row["low"]), abs(row["high"])) < 5e-3 else verdict
        best, other = (f"{row['best of the 23']} {row['its value']:.2f}", f"{label(row['measure'])} {row['value']:.2f}")
        title, key = GROUNDINGS.get(row["grounding"]).title, (row["domain"], row["grounding"])
        answer = f"{answers.loc[key, 'measure']} {answers.loc[key, 'value']:.2f}" if key in answers.index else ""
        start = f"| {row['domain']} | {title} | {row['places']} | {best} | {other} "
        lines.append(f"{start}| {gain} | {verdict} | {answer} |")
    return "\n".join(lines)


def every_other() -> str:
    """All measures beyond the paper's 23 over the places of all domains: their gain over the best of the 23."""
    table = gains(our_results())
    table = table[table["domain"] == ALL]
    questions = list(dict.fromkeys(table["grounding"]))
    head = [GROUNDINGS.get(question).title for question in questions]
    lines = [f"| measure | {' | '.join(head)} |", "|---|" + "---:|" * len(questions)]
    for name, rows in sorted(table.groupby("measure"), key=lambda item: -item[1]["gain"].mean()):
        by = {row["grounding"]: row for row in rows.to_dict("records")}
        cells = [f"{_gain(by[q])}, {by[q]['places']}" if q in by else "–" for q in questions]
        lines.append(f"| {label(str(name))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def winners() -> str:
    """Which measures beat the best of the 23 beyond their interval, and where."""
    table = gains(our_results())
    won = table[table["beats"].eq(True) & (table["gain"] >= 5e-3)]
    if not len(won):
        return "None beats the best of the 23 by more than its interval, in any question of any domain."
    said = [
        f"{label(row.measure)} by {GROUNDINGS.get(row.grounding).title} "
        + ("over all domains" if row.domain == ALL else f"in {row.domain}")
        for row in won.itertuples()
    ]
    return f"By more than their interval, these beat the best of the 23: {', '.join(said)}."


def _gain(row: dict[str, Any]) -> str:
    """A gain with its interval."""
    return f"{row['gain']:+.2f}" + ("" if np.isnan(row["low"]) else f" [{row['low']:+.2f}, {row['high']:+.2f}]")


def places() -> str:
    """Where our runs were made: data sets with their networks."""
    by_data = our_results().frame.groupby("data", sort=False)["network"].unique()
    return "; ".join(f"{data} with {', '.join(networks)}" for data, networks in by_data.items())


def blind() -> str:
    """The measures that see too little at fewer inputs than neurons, by the simulation."""
    import pandas as pd

    names = dict.fromkeys(pd.read_csv(POWER)["measure"])
    low = [label(name) for name in names if (power_at(name, 100) or 0) < 0.5 <= (power_at(name, 400) or 0)]
    never = [label(name) for name in names if (power_at(name, 400) or 0) < 0.5]
    return (
        f"With 100 inputs and 128 neurons {', '.join(low)} do not tell networks that share a sixth of their variance "
        f"from unrelated ones; with 400 inputs they do. {', '.join(never)} do not at either size: most of these look "
        "at what holds of all inputs together, so they never see whether two networks agree on single inputs."
    )


def claims() -> str:
    """The paper's claims on its own figures."""
    lines = ["| claim | on its figures | behind it |", "|---|---|---|"]
    lines += [f"| {v.says} | {v.verdict} | {v.figures} |" for v in check_claims(paper_results())]
    return "\n".join(lines)


def beyond_section() -> str:
    """The section on measures beyond the paper's."""
    return f"""## Beyond the paper's 23

In our own runs ([the study](benchmark-study.md): {places()}), the best of the measures
that the paper does not have, beside the best of its 23. A place is a data set with a network; the interval is over
places, and one place has none. The best of either side was chosen on the same places, so "yes" needs a second look on
yours: `likewise.benchmark.gains`. Cells whose groups are not valid are left out. RTD looked at 100 inputs, where its
default is 500. The last column is the best measure of outputs (disagreement, JSD, ...), which are evaluated on groups
only: outputs alone tell most of these groups apart.

{beyond()}

{winners()}

All of them, over all domains: the gain over the best of the 23 on the same places, its interval, and the
number of places. A measure that is undefined somewhere is judged on fewer.

{every_other()}

"""


def page() -> str:
    """The whole page."""
    ours = ", and results of our own runs" if OURS.exists() else ""
    return f"""# Which measure should I use?

None is best everywhere. This page ranks measures by what is known of them: the figures printed in Klabunde et al.,
"ReSi: A Comprehensive Benchmark for Representational Similarity Measures" (tables 7 to 19){ours}.
It is made by `scripts/which_measure.py`. For your case, with power, cost and the rows behind it:

```
likewise advise --domain vision --question shortcut --n 500 --budget 10s
```

## By question and domain

The first {TOP} measures, with their mean over data and networks (AUPRC for labels, shortcut and augmentation, else a
rank correlation) and the number of cells it is taken over. They are ordered by the share of other measures they beat in
each cell, where few cells count for less; what is undefined beats nothing.

{by_question()}

Correlations with accuracy and outputs are over 45 pairs of 10 networks: most lie within what chance gives, so their
order says little.

## Over all questions

Median rank among the 23 measures of the paper over all cells. 1 is best; what is undefined shares the last rank.

{overall()}

{beyond_section() if OURS.exists() else ""}## How many inputs

{blind()}

## The paper's claims

Each is compared with the paper's own figures; "cannot tell" means that resampled cells decide it now one way, now the
other. `likewise benchmark compare-with-paper RUN...` does the same for runs of yours. The claims on
neighbour and on angle-based measures are judged for each group as a whole, a rule chosen after judging their members
one by one had left them at "cannot tell".

{claims()}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
