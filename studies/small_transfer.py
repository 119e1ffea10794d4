"""SAT without attacks, and the choice of ensembles: `LIKEWISE_DATA=... python -m studies.small_transfer [PART ...]`.

The networks are those of `studies.small_networks`, trained first. Examples and answers stay in a store, so that a run
which was stopped is resumed; each part keeps its table at once. The page is `docs/transfer-small.md`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import likewise
from likewise.analysis import agreement, gain_predictors, regrets
from likewise.data import Data
from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer import Answers, TransferMatrix, answers, sat, sketch
from studies.small_networks import RUNS, SIZE, trained
from studies.tables import Page, correlation, markdown

STORE = RUNS.parent / "small-store"
DOCS = Path(__file__).parent.parent / "docs"
SUMMARY = """## In five lines

- Small networks of eleven architectures on Fashion-MNIST at 14 x 14 pixels, attacked with 50 steps at 8/255.
- One gradient per image (`sat-linear`) orders pairs as SAT does, nearly as well as SAT on other images would.
- It costs 3.9 % of SAT, a sketch 2.6 %; the fewer bytes a sketch has per image, the less it says.
- What networks answer says less of attack transfer, and what they compute (debiased CKA) says little.
- For ensembles, no similarity improves on accuracy alone; greedy selection does once, with 1,000 labelled inputs."""
PAGE = Page(DOCS / "transfer-small.md", RUNS.parent / "small.json", "Small networks: SAT without attacks, ensembles")
IMAGES, OTHERS = f"fashion-mnist:test[:500]{SIZE}", f"fashion-mnist:test[1000:6000]{SIZE}"
TOLD, ZOOS, ZOO = 500, 100, 12  # inputs whose answers give disagreement; zoos that are drawn, and of how many networks
TIMED = 200  # images on which costs are compared
PARTS: dict[str, Callable[[], None]] = {}


def part(function: Callable[[], None]) -> Callable[[], None]:
    """A part of the study."""
    PARTS[function.__name__] = function
    return function


@cache
def networks() -> dict[str, str]:
    """Names to weights."""
    return {one.name: one.weights for one in trained()}


@cache
def transfer() -> TransferMatrix:
    """SAT by the paper's attack."""
    return sat(networks(), IMAGES, batch_size=200, store=STORE, progress=False)


@cache
def linear() -> SimilarityMatrix:
    """SAT without attacks."""
    return likewise.compare(networks(), "sat-linear", data=IMAGES, progress=False)


@cache
def sketched(size: int) -> SimilarityMatrix:
    """The same from sketches."""
    return sketch(networks(), IMAGES, size=size, progress=False).matrix()


@cache
def other_answers() -> Answers:
    """What all networks answer to images that no attack has seen."""
    return answers(networks(), OTHERS, store=STORE, progress=False)


@cache
def disagreement() -> SimilarityMatrix:
    """How often two networks answer otherwise, on images that nothing else uses."""
    classes = other_answers().at(slice(TOLD)).predictions
    values = np.array([[float((a != b).mean()) for b in classes] for a in classes])
    return SimilarityMatrix(
        other_answers().names, values, measure="disagreement", larger_is="less alike", bounds=(0, 1)
    )


def halves(matrix: TransferMatrix) -> tuple[TransferMatrix, TransferMatrix]:
    """SAT on every second image, and on the others."""
    assert matrix.answers is not None
    one, two = (
        TransferMatrix.of(matrix.answers.at(slice(first, None, 2)), matrix.predictions[:, :, first::2])
        for first in (0, 1)
    )
    return one, two


def near() -> list[str]:
    """The most networks that lie within four points of accuracy on other images."""
    shares = dict(zip(other_answers().names, other_answers().accuracies.tolist(), strict=True))
    groups = ([name for name in shares if low <= shares[name] <= low + 0.04] for low in shares.values())
    return max(groups, key=len)


@part
def without_attacks() -> None:
    """Rank correlations with SAT of 50 steps."""
    whole, few = transfer(), near()
    rows = []
    for name, matrix in (
        ("`sat-linear`", linear()),
        ("sketch, 49 kB: every pixel", sketched(49_000)),
        ("sketch, 16 kB", sketched(16384)),
        ("sketch, 8 kB", sketched(8192)),
        ("sketch, 4 kB", sketched(4096)),
        ("disagreement", disagreement()),
        ("debiased CKA", likewise.compare(networks(), "cka-debiased", data=IMAGES, store=STORE, progress=False)),
    ):
        rows.append(
            {
                "": name,
                "Spearman": correlation(agreement(matrix, whole, how="spearman", permutations=99)),
                "Pearson": correlation(agreement(matrix, whole, permutations=99)),
                f"Spearman, {len(few)} within 4 points": correlation(
                    agreement(matrix.reordered(few), whole.reordered(few), how="spearman", permutations=99)
                ),
            }
        )
    one, two = halves(whole)
    half = agreement(one, two, how="spearman", permutations=99).correlation
    ends = other_answers().accuracies
    percent = whole.percent[np.triu_indices(len(whole), 1)]
    text = (
        f"{len(whole)} networks, {whole.about['n']} images, {len(percent)} pairs; accuracies {100 * ends.min():.1f} to "
        f"{100 * ends.max():.1f} %, transfer {percent.min():.1f} to {percent.max():.1f} %. SAT on half of the images "
        f"correlates {half:.2f} with SAT on the other half, so on all of them by {2 * half / (1 + half):.2f} with SAT "
        "on as many others (Spearman-Brown): no other number can be expected above its root, "
        f"{np.sqrt(2 * half / (1 + half)):.2f}."
    )
    PAGE.put("1", f"## SAT of 50 steps, by other numbers\n\n{text}\n\n{markdown(pd.DataFrame(rows))}")


@part
def cost() -> None:
    """Processor time of both, one after the other, on all networks and images in memory."""
    images = likewise.dataset(IMAGES)[:TIMED]
    data = Data(images.name, "image", images.inputs[:], images.labels, images.classes)
    nets = {name: likewise.network(address, data=data) for name, address in networks().items()}
    seconds: dict[str, float] = {}
    jobs: dict[str, Callable[[], Any]] = {
        "`sat`, 50 steps": lambda: sat(nets, data, batch_size=200, progress=False),
        "`sat-linear`": lambda: likewise.compare(nets, "sat-linear", data=data, progress=False),
        "sketches and their matrix": lambda: sketch(nets, data, progress=False).matrix(),
    }
    for name, job in jobs.items():
        start = time.process_time()
        job()
        seconds[name] = time.process_time() - start
    whole = seconds["`sat`, 50 steps"]
    rows = [{"": name, "seconds": spent, "share, %": 100 * spent / whole} for name, spent in seconds.items()]
    text = f"{len(nets)} networks, {TIMED} images in memory, processor time."
    PAGE.put("2", f"## What it costs\n\n{text}\n\n{markdown(pd.DataFrame(rows))}")


@part
def picture() -> None:
    """Every pair, by SAT and by its estimates."""
    import matplotlib.pyplot as plt

    upper = np.triu_indices(len(transfer()), 1)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    for axis, (name, matrix) in zip(axes, (("sat-linear", linear()), ("sketch, 8 kB", sketched(8192))), strict=True):
        axis.scatter(matrix.values[upper], transfer().values[upper], s=8, alpha=0.5, color="#2563eb", linewidths=0)
        axis.set_xlabel(name)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("SAT, 50 steps")
    (DOCS / "transfer-study").mkdir(exist_ok=True)
    figure.savefig(DOCS / "transfer-study" / "small-linear.png", dpi=110)


@part
def ensembles() -> None:
    """Choices of members by the number of labelled inputs."""
    judged = other_answers().at(slice(TOLD, None))
    compared = {"SAT": transfer(), "`sat-linear`": linear(), "disagreement": disagreement()}
    tables = []
    for names in (list(networks()), near()):
        rows = []
        for size, labelled in product((3, 5), (50, 200, 1000)):
            row: dict[str, Any] = {"members": size, "labelled": labelled}
            for name, matrix in compared.items():
                known = (matrix.reordered(names), judged.subset(names), size)
                found = regrets(*known, zoos=ZOOS, zoo_size=ZOO, labelled=labelled, seed=labelled, progress=False)
                if name == "SAT":
                    row |= {rule: _points(found, rule) for rule in ("random", "accuracy", "greedy", "ensemble")}
                row |= {f"pick by {name}": _points(found, "pick"), f"{name}: less than accuracy": _gain(found)}
            rows.append(row)
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
        tables.append(f"{len(names)} networks:\n\n{markdown(pd.DataFrame(rows))}")
    text = (
        f"Error above the best subset for the other inputs, in points; means over {ZOOS} zoos of {ZOO} of the "
        f"networks, with 95 % over zoos. {judged.n} inputs; the choice sees the labels of some of them and is judged "
        "by the others. First of all networks, then of those within four points of accuracy."
    )
    PAGE.put("3", "## Which members\n\n" + "\n\n".join([text, *tables]))


@part
def predictors() -> None:
    """Which measure predicts the gain of pairs."""
    given = [transfer(), linear(), disagreement()]
    found = gain_predictors(given, other_answers().at(slice(TOLD, None)))
    rows = [{"measure": name, "Spearman": correlation(one)} for name, one in found.correlations.items()]
    PAGE.put("4", f"## What predicts the gain of a pair\n\n{found.verdict}\n\n{markdown(pd.DataFrame(rows))}")


def _points(found: pd.DataFrame, rule: str) -> str:
    row = found.loc[rule]
    return f"{100 * row.regret:.2f} [{100 * row.regret_low:.2f}, {100 * row.regret_high:.2f}]"


def _gain(found: pd.DataFrame) -> str:
    row = found.loc["accuracy"]
    return f"{100 * row.gain:.2f} [{100 * row.gain_low:.2f}, {100 * row.gain_high:.2f}]"


def main(wanted: list[str]) -> int:
    """The parts asked for, or all."""
    torch.set_num_threads(1)
    PAGE.put("0", SUMMARY)
    for name, one in PARTS.items():
        if not wanted or name in wanted:
            one()
            sys.stdout.write(f"{name} done\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
