"""The page of the study of Raw Zero-Shot, of what is there: `python -m studies.zeroshot_page`.

Tables and sentences are computed from what `python -m studies.zeroshot` left, so that a study that was cut short gives
a page too, and one that went on gives another.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from likewise.zeroshot import (
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
from studies.zeroshot import ARCHITECTURES, FEW, RUNS, THRESHOLDS, attacked, trained

DOCS = Path(os.environ.get("LIKEWISE_DOCS", Path(__file__).parent.parent / "docs"))
PICTURES = DOCS / "zeroshot-study"
PAGE = Page(DOCS / "zeroshot-study.md", RUNS / "page.json", "Raw Zero-Shot: does robustness follow?")
AGAINST = ("attacks", "rate", "accuracy", "depth")
METRICS = ("DBI", "DBI normalised", "AM", "AM normalised")


@cache
def results() -> tuple[ZeroShot, ...]:
    """What was found on Fashion-MNIST, under plain names."""
    found = [(one.name, trained(one.name)) for one in ARCHITECTURES]
    return tuple(_named(result, name) for name, result in found if result is not None)


def _named(result: ZeroShot, name: str) -> ZeroShot:
    from dataclasses import replace

    return replace(result, network=name)


@cache
def attacks(generations: int) -> tuple[tuple[int, ...], dict[str, pd.DataFrame]]:
    """The thresholds at which all networks were attacked, and the tables by network."""
    names = [one.network for one in results()]
    done = tuple(t for t in THRESHOLDS if all(attacked(name, generations, t) is not None for name in names))
    tables = {name: [attacked(name, generations, t) for t in done] for name in names}
    return done, {name: pd.concat(found) for name, found in tables.items()} if done else {}


@cache
def table(generations: int) -> pd.DataFrame:
    """The architectures with their attacks, those of fewest successes first."""
    _, tried = attacks(generations)
    found = architectures(results(), tried or None)
    return found.sort_values("attacks") if tried else found


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
            own |= {"L0": int(row["L0"]), "Linf": int(row["Linf"]), "attacks": int(row["attacks"])}
            own |= {"of right ones": float(row["rate"])}
        theirs = paper.loc[name] if name in paper.index else None
        own |= {"paper: DBI": "–" if theirs is None else f"{theirs['DBI']:.3f} ± {theirs['DBI ±']:.3f}"}
        own |= {"paper: AM": "–" if theirs is None else f"{theirs['AM']:.1f} ± {theirs['AM ±']:.1f}"}
        own |= {"paper: attacks of 800": "–" if theirs is None else str(int(theirs["attacks"]))}
        rows.append(own)
    of = int(found["attacks of"].iloc[0]) if done else 0
    text = (
        f"Attacks by CMA-ES, one generation of 400 candidates, thresholds {_list(done)}, 100 images: successes of "
        f"{of}, as the paper counts them, and the share of correctly classified images that attacks change. ± is over "
        "classes."
        if done
        else "± is over classes; no attack was made on all networks yet."
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
        for name, row in found.iterrows()
    ]
    images = int(next(iter(tried.values()))["images"].iloc[0])
    text = f"100 generations of {FEW} candidates, threshold {_list(done)}, {images} images; one generation has 400."
    _put("40", "A hundred generations", pd.DataFrame(rows), text)


def _rate(tables: object) -> float:
    whole = pd.concat([one for one in tables if one is not None])  # type: ignore[attr-defined]
    return float((whole["fooled"] - whole["wrong_before"]).sum() / (whole["images"] - whole["wrong_before"]).sum())


def correlations() -> None:
    """Rank correlations with robustness, accuracy and depth, and the paper's own."""
    if not attacks(1)[0] or len(results()) < 4:
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
        f"Spearman over {len(table(1))} networks with 95 % intervals. The paper claims a positive one with attacks: a "
        "better representation (lower DBI, lower AM) is fooled less often."
    )
    _put("50", "Does robustness follow?", rows, text)


def _shown(row: object) -> str:
    return f"{row.correlation:.2f} [{row.low:.2f}, {row.high:.2f}]"  # type: ignore[attr-defined]


def scale() -> None:
    """What scale does to DBI of capsules, and the number of samples to AM."""
    capsules = next((one for one in results() if one.network == "CapsNet"), None)
    if capsules is not None:
        total = np.mean([part.sum(axis=1).mean() for part in capsules.held_out[0]])
        raw, even = capsules.dbi(), capsules.dbi(normalise_both=True)
        others = [float(row) for name, row in means(results())["DBI"].items() if name != "CapsNet"]
        rows = [
            {"soft labels of CapsNet": "lengths, as published", "sum": float(total), "DBI": raw.mean},
            {"soft labels of CapsNet": "scaled to sum 1", "sum": 1.0, "DBI": even.mean},
        ]
        place = [1 + sum(other < value for other in others) for value in (raw.mean, even.mean)]
        text = (
            f"Among {len(others) + 1} networks CapsNet has place {place[0]} by DBI as published, and place {place[1]} "
            "once its soft labels sum to one as those of all others do."
        )
        _put("60", "Scale enters CapsNet's DBI", pd.DataFrame(rows), text, 3)
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
        _put("70", "Sample size enters AM", pd.DataFrame(rows), text, 3)


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


def pictures() -> None:
    """Figures 2 to 6."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    plot_maps(results(), PICTURES / "isomap.png", samples=100)
    plot_maps(results(), PICTURES / "tsne.png", how="tsne", samples=100)
    plot_histograms(results(), PICTURES / "histograms.png")
    plot_histograms(results(), PICTURES / "gaps.png", difference=True)
    plot_differences(results(), PICTURES / "differences.png")
    shown = {
        "isomap": "Isomap of soft labels (figure 2), one scale: CapsNet's cloud is small since its lengths are",
        "tsne": "t-SNE of the same (figure 5)",
        "differences": "Distance of the histograms of both networks, by class (figure 3)",
        "histograms": "Histograms h and h' (figure 4)",
        "gaps": "Their differences (figure 6)",
    }
    lines = [f"![{words}](zeroshot-study/{name}.png)\n\n*{words}.*" for name, words in shown.items()]
    PAGE.put("90", "## Pictures\n\n" + "\n\n".join(lines))


def _list(numbers: tuple[int, ...]) -> str:
    *rest, last = map(str, numbers)
    return f"{', '.join(rest)} and {last}" if rest else last


def _put(key: str, title: str, frame: pd.DataFrame, text: str, digits: int = 2) -> None:
    PAGE.put(key, f"## {title}\n\n{text}\n\n{markdown(frame, digits)}")
    sys.stdout.write(f"{title}\n{frame.to_string()}\n\n")


def main() -> int:
    """The page of all that is there."""
    for part in (networks, metrics, longer, correlations, scale, cifar, pictures):
        part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
