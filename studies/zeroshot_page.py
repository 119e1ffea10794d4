"""The page of the study of Raw Zero-Shot, of what is there: `python -m studies.zeroshot_page`.

Tables and sentences are computed from what `python -m studies.zeroshot` left, so that a study that was cut short gives
a page too, and one that went on gives another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from likewise.zeroshot import (
    Metric,
    ZeroShot,
    architectures,
    means,
    paper_table,
    plot_differences,
    plot_histograms,
    plot_maps,
    rank_correlations,
)
from studies.tables import Page, markdown
from studies.zeroshot import (
    ARCHITECTURES,
    BUDGET,
    BUDGET_EPOCHS,
    FEW,
    RUNS,
    THRESHOLDS,
    attacked,
    budgeted,
    trained,
)

DOCS = Path(os.environ.get("LIKEWISE_DOCS", Path(__file__).parent.parent / "docs"))
PICTURES = DOCS / "zeroshot-study"
SUMMARY = """## In five lines

- Seven architectures on Fashion-MNIST at half its size, trained with and without each class; LeNet on CIFAR-10.
- AM goes against the paper: networks of a lower AM are fooled more often, not less.
- DBI shows nothing either way, and neither do the paper's own tables: their intervals contain 0.
- CapsNet is fooled least often, as in the paper; its DBI and AM depend on the scale of its lengths.
- A small network trained on DBI or AM becomes less robust, if it changes at all. All is smaller than in the paper:
compare orders, not levels."""
PAGE = Page(DOCS / "zeroshot-study.md", RUNS / "page.json", "Raw Zero-Shot: does robustness follow?")
AGAINST = ("attacks", "rate", "accuracy", "depth")
ENOUGH = 4  # networks of which a rank correlation has an interval
METRICS = ("DBI", "DBI normalised", "AM", "AM normalised")


@cache
def results() -> tuple[ZeroShot, ...]:
    """What was found on Fashion-MNIST, under plain names."""
    found = [(one.name, trained(one.name)) for one in ARCHITECTURES]
    return tuple(_named(result, name) for name, result in found if result is not None)


def _named(result: ZeroShot, name: str) -> ZeroShot:
    return replace(result, network=name)


@cache
def attacks(generations: int) -> tuple[tuple[int, ...], dict[str, pd.DataFrame]]:
    """The thresholds at which enough networks were attacked, and the tables of those that were at all of them."""
    names = [one.network for one in results()]
    made = {t: [name for name in names if attacked(name, generations, t) is not None] for t in THRESHOLDS}
    done = tuple(t for t, some in made.items() if len(some) >= ENOUGH)
    both = [name for name in names if done and all(name in made[t] for t in done)]
    return done, {name: pd.concat([attacked(name, generations, t) for t in done]) for name in both}


@cache
def table(generations: int) -> pd.DataFrame:
    """The architectures with their attacks, those of fewest successes first."""
    _, tried = attacks(generations)
    found = architectures(results())
    if not tried:
        return found
    counted = architectures([one for one in results() if one.network in tried], tried)
    return found.join(counted[[name for name in counted if name not in found]]).sort_values("attacks")


def state() -> None:
    """What the study is, and what of it there is."""
    wanted, there = [one.name for one in ARCHITECTURES], [one.network for one in results()]
    missing = [name for name in wanted if name not in there]
    left = [f"the trainings of {_list(missing)}"] if missing else []
    for generations, words in ((1, "one generation"), (100, "a hundred generations")):
        done, tried = attacks(generations)
        rest = [t for t in THRESHOLDS if t not in done]
        short = [name for name in there if name not in tried]
        left += [f"attacks of {words} at threshold {_list(rest)}"] if rest else []
        left += [f"attacks of {words} on {_list(short)}"] if short and done else []
    left += [] if trained("LeNet-cifar") is not None else ["LeNet on CIFAR-10"]
    text = (
        "`python -m studies.zeroshot` trains seven architectures without each class of Fashion-MNIST in turn and once "
        "with all, and LeNet on all of CIFAR-10; it attacks the networks of all classes, and "
        "`python -m studies.zeroshot_page` writes this page from the results. Two cores were "
        "too few for the paper's widths, epochs and images: networks are narrower, images smaller, trainings short. "
        "Compare orders with the paper's, not levels."
    )
    cut = f"\n\n**Cut short.** Missing: {'; '.join(left)}. Rerun both to resume." if left else ""
    PAGE.put("05", SUMMARY)
    PAGE.put("10", text + cut)


def findings() -> None:
    """What agrees with the paper and what does not, by the tables below."""
    lines = []
    if len(attacks(1)[1]) >= ENOUGH:
        found, (done, tried) = rank_correlations(table(1)), attacks(1)
        held = ["contains 0" if row.low < 0 < row.high else "does not contain 0" for row in found.itertuples()]
        rates = rank_correlations(table(1), METRICS, ["rate"])
        lines += [
            f"**{'Contradicts' if row.high < 0 else 'Agrees with'} the paper:** over {row.networks} networks the rank "
            f"correlation of {row.of} with the share of correctly classified images that attacks change is "
            f"{_shown(row)}, where the paper claims one above 0."
            for row in rates.itertuples()
            if row.high < 0 or row.low > 0
        ]
        lines.append(
            f"Over {len(tried)} networks attacked at threshold {_list(done)}, the rank correlation with attacks is "
            f"{_shown(found.loc[0])} for DBI, which {held[0]}, and {_shown(found.loc[1])} for AM, which {held[1]}. The "
            "paper's tables give 0.00 and 0.50, and their intervals contain 0 too: neither shows that robustness "
            "follows."
        )
        lines.append(f"Fooled least often: {table(1).index[0]}; in the paper CapsNet.")
    if any(one.network == "CapsNet" for one in results()):
        lines.append("The results of CapsNet depend on the scale of its lengths; see below.")
    lines.append(
        "AM is a sum over samples: 100 per class here and 5,000 in the paper, so only the form in [0, 1] compares."
    )
    PAGE.put("15", "## What follows\n\n" + "\n".join(f"- {line}" for line in lines))


def networks() -> None:
    """What was trained, and how well."""
    rows = []
    for one in ARCHITECTURES:
        found = trained(one.name)
        if found is not None:
            rows.append(
                {
                    "network": one.name,
                    "beside the paper's or the zoo's": one.differs,
                    "parameters": f"{found.about['parameters']:,}",
                    "layers": found.about["depth"],
                    "epochs": one.epochs,
                    "accuracy, all classes": float(found.accuracy[0]),
                    "accuracy, one left out": float(np.mean(found.accuracies)),
                }
            )
    text = (
        "Fashion-MNIST at half its size (14 × 14), the first 1,000 training images; accuracy on 500 test images. "
        "Eleven trainings per network, AdamW, batches of 32, one seed."
    )
    _put("20", "The networks", pd.DataFrame(rows), text)


def metrics() -> None:
    """DBI, AM and attacks beside the paper's."""
    done, _ = attacks(1)
    found, paper = table(1), paper_table()
    rows = []
    for name, row in found.iterrows():
        own = {
            "network": name,
            "DBI": f"{row['DBI']:.3f} ± {row['DBI ±']:.3f}",
            "of sum 1, in [0, 1]": float(row["DBI normalised"]),
            "AM": f"{row['AM']:.2f} ± {row['AM ±']:.2f}",
            "in [0, 1]": float(row["AM normalised"]),
        }
        if done:
            own |= {name: "–" if np.isnan(row[name]) else str(int(row[name])) for name in ("L0", "Linf", "attacks")}
            own |= {"of right ones": float(row["rate"])}
        theirs = paper.loc[name] if name in paper.index else None
        own |= {"paper: DBI": "–" if theirs is None else f"{theirs['DBI']:.3f} ± {theirs['DBI ±']:.3f}"}
        own |= {"paper: AM": "–" if theirs is None else f"{theirs['AM']:.1f} ± {theirs['AM ±']:.1f}"}
        own |= {"paper: attacks of 800": "–" if theirs is None else str(int(theirs["attacks"]))}
        rows.append(own)
    of = int(found["attacks of"].max()) if done else 0
    text = (
        f"Attacks by CMA-ES, one generation of 400 candidates, thresholds {_list(done)}, 100 images: successes of "
        f"{of}, as the paper counts them, and the share of correctly classified images that attacks change. ± is over "
        "classes."
        if done
        else "± is over classes; too few networks were attacked so far."
    )
    _put("30", "DBI, AM and attacks, beside tables 1 to 3 of the paper", pd.DataFrame(rows), text, 3)


def longer() -> None:
    """A hundred generations beside one."""
    done, tried = attacks(100)
    if not done:
        return
    found = table(100)
    rows = [
        {
            "network": name,
            "L0": int(row["L0"]),
            "Linf": int(row["Linf"]),
            "attacks": int(row["attacks"]),
            "of": int(row["attacks of"]),
            "of right ones": float(row["rate"]),
            "one generation, of right ones": _rate(attacked(str(name), 1, t) for t in done),
        }
        for name, row in found.dropna(subset=["attacks"]).iterrows()
    ]
    images = int(next(iter(tried.values()))["images"].iloc[0])
    text = f"100 generations of {FEW} candidates, threshold {_list(done)}, {images} images; one generation has 400."
    _put("40", "A hundred generations", pd.DataFrame(rows), text)


def _rate(tables: object) -> float:
    whole = pd.concat([one for one in tables if one is not None])  # type: ignore[attr-defined]
    return float((whole["fooled"] - whole["wrong_before"]).sum() / (whole["images"] - whole["wrong_before"]).sum())


def correlations() -> None:
    """Rank correlations with robustness, accuracy and depth, and the paper's own."""
    if len(attacks(1)[1]) < ENOUGH:
        return
    found = rank_correlations(table(1), METRICS, AGAINST)
    columns = {metric: [_shown(row) for row in found[found["of"] == metric].itertuples()] for metric in METRICS}
    rows = pd.DataFrame({"rank correlation with": list(AGAINST), **columns})
    if attacks(100)[0]:
        long = rank_correlations(table(100), METRICS)
        rows.loc[len(rows)] = ["attacks, 100 generations", *(_shown(row) for row in long.itertuples())]
    paper = rank_correlations(paper_table())
    rows.loc[len(rows)] = ["attacks, the paper's five", _shown(paper.loc[0]), "–", _shown(paper.loc[1]), "–"]
    text = (
        f"Spearman over networks ({len(attacks(1)[1])} with attacks) with 95 % intervals. The paper claims a positive "
        "one with attacks: a better representation (lower DBI, lower AM) is fooled less often."
    )
    _put("50", "Does robustness follow?", rows, text)


def _shown(row: object) -> str:
    return f"{row.correlation:.2f} [{row.low:.2f}, {row.high:.2f}]"  # type: ignore[attr-defined]


def _placed(spread: Metric, gap: Metric) -> dict[str, str]:
    """Both metrics of CapsNet, each with its place among all networks."""
    others = means([one for one in results() if one.network != "CapsNet"])
    values = {"DBI": spread.mean, "AM": gap.mean}
    return {name: f"{value:.3f} ({1 + int((others[name] < value).sum())})" for name, value in values.items()}


def scale() -> None:
    """What scale does to DBI of capsules, and the number of samples to AM."""
    capsules = next((one for one in results() if one.network == "CapsNet"), None)
    if capsules is not None:
        total = np.mean([part.sum(axis=1).mean() for part in capsules.held_out[0]])
        raw, even = capsules.dbi(), capsules.dbi(normalise_both=True)
        gaps = capsules.amalgam(), capsules.amalgam(normalise_both=True)
        rows = [
            {"soft labels": "lengths, as published", "sum": float(total), **_placed(raw, gaps[0])},
            {"soft labels": "scaled to sum 1", "sum": 1.0, **_placed(even, gaps[1])},
        ]
        text = (
            "Lengths need not sum to one, so DBI and AM of CapsNet as published are of another scale than those of all "
            f"other networks: larger by the sum in DBI, and AM holds sums of {total:.2f} per sample against sums of 1 "
            f"of the full network. In brackets, its place among {len(results())} networks, 1 for the lowest."
        )
        _put("60", "The results of CapsNet depend on scale", pd.DataFrame(rows), text, 3)
    lenet = trained("LeNet-cifar")
    if lenet is not None:
        rows = []
        for count in (50, 500, 1000, 5000):
            few = [
                tuple(tuple(part[:count] for part in seed) for seed in kind) for kind in (lenet.full, lenet.held_out)
            ]
            gap = ZeroShot("few", lenet.classes, few[0], few[1], lenet.answers).amalgam()
            row = {"samples per class": count, "AM": gap.mean, "in [0, 1]": gap.normalised_mean}
            rows.append(row | {"AM / samples": gap.mean / count})
        text = "LeNet on CIFAR-10, the first so many samples of each class: AM is a sum over samples."
        _put("70", "AM depends on the number of samples", pd.DataFrame(rows), text, 3)


def cifar() -> None:
    """LeNet on all of CIFAR-10."""
    lenet = trained("LeNet-cifar")
    if lenet is None:
        return
    paper = paper_table().loc["LeNet"]
    rows = []
    for name, metric in (("DBI", lenet.dbi()), ("AM", lenet.amalgam())):
        seeds = metric.values.mean(axis=1)
        rows.append(
            {
                "": name,
                "mean ± over classes": f"{metric.mean:.3f} ± {metric.std():.3f}",
                "by seed": ", ".join(f"{value:.3f}" for value in seeds),
                "± over seeds": metric.seed_std(),
                "in [0, 1]": metric.normalised_mean,
                "paper": f"{paper[name]:.3f} ± {paper[f'{name} ±']:.3f}",
            }
        )
    tried = [attacked("LeNet-cifar", 1, t) for t in THRESHOLDS]
    done = [one for one in tried if one is not None]
    fooled, of = sum(int(one["fooled"].sum()) for one in done), sum(int(one["images"].sum()) for one in done)
    counted = f" Attacks, one generation: {fooled} of {of} succeed (paper: 677 of 800)." if done else ""
    text = (
        f"50,000 images, {lenet.about['settings']['epochs']} epoch, {lenet.seeds} seeds, 22 trainings; accuracy "
        f"{', '.join(f'{value:.3f}' for value in lenet.accuracy)} on the 10,000 test images.{counted}"
    )
    _put("80", "LeNet on all of CIFAR-10", pd.DataFrame(rows), text, 3)


def whole_budget() -> None:
    """LeNet by the recipe in fewer epochs, under the paper's whole budget."""
    tables = {kind: [budgeted(kind, t) for t in THRESHOLDS] for kind in ("pixel", "threshold")}
    rows = []
    for kind, name in (("pixel", "L0"), ("threshold", "Linf")):
        for threshold, found in zip(THRESHOLDS, tables[kind], strict=True):
            if found is None:
                continue
            one, hundred = (found.loc[found["generations"] == count].iloc[0] for count in (1, BUDGET[0]))
            rate = f"{hundred['rate']:.2f} [{hundred['low']:.2f}, {hundred['high']:.2f}]"
            row = {"attack": name, "threshold": threshold, "images": int(one["images"])}
            row |= {"wrong before": int(one["wrong_before"])}
            rows.append(
                row | {"1 generation": int(one["fooled"]), "100": int(hundred["fooled"]), "of right ones": rate}
            )
    if not rows:
        return
    text = (
        f"{BUDGET[0]} generations of {BUDGET[1]} candidates on the first test images of CIFAR-10, LeNet of all classes "
        f"by the recipe in {BUDGET_EPOCHS} epochs of its 200. Images that are wrong, as the paper counts them, and the "
        "share of those right before that 100 generations change, with 95 %."
    )
    _put("85", "LeNet under the paper's whole budget", pd.DataFrame(rows), text)


def pictures() -> None:
    """Figures 2 to 6."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    plot_maps(results(), PICTURES / "isomap.png", samples=100)
    plot_maps(results(), PICTURES / "tsne.png", how="tsne", samples=100)
    plot_histograms(results(), PICTURES / "histograms.png")
    plot_histograms(results(), PICTURES / "gaps.png", difference=True)
    plot_differences(results(), PICTURES / "differences.png")
    shown = {
        "isomap": "Isomap of soft labels (figure 2), one scale",
        "tsne": "t-SNE of the same (figure 5)",
        "differences": "Distance of the histograms of both networks, by class (figure 3)",
        "histograms": "Histograms h and h' (figure 4)",
        "gaps": "Their differences (figure 6)",
    }
    lines = [f"![{words}](zeroshot-study/{name}.png)\n\n*{words}.*" for name, words in shown.items()]
    PAGE.put("90", "## Pictures\n\n" + "\n\n".join(lines))


def _list(numbers: Sequence[object]) -> str:
    *rest, last = map(str, numbers)
    return f"{', '.join(rest)} and {last}" if rest else last


def _put(key: str, title: str, frame: pd.DataFrame, text: str, digits: int = 2) -> None:
    PAGE.put(key, f"## {title}\n\n{text}\n\n{markdown(frame, digits)}")
    sys.stdout.write(f"{title}\n{frame.to_string()}\n\n")


def main() -> int:
    """The page of all that is there."""
    for part in (state, findings, networks, metrics, longer, correlations, scale, cifar, whole_budget, pictures):
        part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
