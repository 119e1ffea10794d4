"""What all parts of the study on Fashion-MNIST share: the networks that are compared, their matrix, and the page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer import Answers, TransferMatrix, answers, sat
from studies.fashion_networks import Trained, zoo
from studies.tables import Page, markdown

RUNS = Path(__file__).parent / "runs" / "transfer"
STORE = RUNS / "store"
DOCS = Path(__file__).parent.parent / "docs"
PAGE = Page(DOCS / "transfer-fashion.md", RUNS / "fashion.json", "Attack transfer on Fashion-MNIST: the tables")
IMAGES, HELD_OUT, LOOK = "fashion-mnist:test[:500]", "fashion-mnist:test[1000:6000]", "fashion-mnist:test[6000:7000]"
EPS = 8 / 255
EIGHT = ("resnet-0", "vit-0", "lenet-0", "mlp-0", "mixer-0", "efficientnet-0", "nfnet-0", "resnet-mixup")
POINTS = 0.04  # accuracies further apart than this are not compared
PARTS: list[Callable[[], None]] = []


def part(function: Callable[[], None]) -> Callable[[], None]:
    """A part of the study."""
    PARTS.append(function)
    return function


@cache
def trained() -> tuple[Trained, ...]:
    """The networks that are there."""
    return tuple(one for one in zoo() if Path(one.weights).is_file())


@cache
def held_out() -> Answers:
    """What all networks answer to images that no attack has seen."""
    return answers({one.name: one.weights for one in trained()}, HELD_OUT, store=STORE, progress=False)


@cache
def members() -> tuple[Trained, ...]:
    """The networks that may be compared: the most that lie within four points of accuracy."""
    accuracy = dict(zip(held_out().names, held_out().accuracies, strict=True))

    def near(low: float) -> tuple[Trained, ...]:
        return tuple(one for one in trained() if low <= accuracy[one.name] <= low + POINTS)

    return max((near(low) for low in accuracy.values()), key=len)


def addresses(names: Sequence[str] | None = None) -> dict[str, str]:
    """Names to weights: of all networks that may be compared, or of some."""
    return {one.name: one.weights for one in members() if names is None or one.name in names}


@cache
def transfer() -> TransferMatrix:
    """SAT of all networks by the paper's attack."""
    return sat(addresses(), IMAGES, eps=EPS, store=STORE, progress=False)


def known() -> Answers:
    """The held-out answers of the networks that are compared."""
    return held_out().subset([one.name for one in members()])


def put(key: str, title: str, table: pd.DataFrame, text: str = "", digits: int = 2) -> None:
    """A table of the page, with what the paper found."""
    PAGE.put(
        key,
        f"## {title}\n\n{text}\n\n{markdown(table, digits)}" if text else f"## {title}\n\n{markdown(table, digits)}",
    )
    sys.stdout.write(f"{title}\n{table.to_string()}\n")
    sys.stdout.flush()


def group_mean(matrix: SimilarityMatrix, names: Sequence[str], seed: int = 0) -> str:
    """The mean over the pairs of a group, with what it is for networks drawn anew."""
    values = matrix.reordered(names).values
    away = ~np.eye(len(names), dtype=bool)
    draw, means = np.random.default_rng(seed), []
    for _ in range(1000):
        rows = draw.integers(len(names), size=len(names))
        other = rows[:, None] != rows
        if other.any():
            means.append(values[np.ix_(rows, rows)][other].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values[away].mean():.2f} [{low:.2f}, {high:.2f}]"


def redrawn(value: Callable[[np.ndarray], float], count: int, draws: int = 400) -> str:
    """A value of the first `count` images or networks, with where 95 % of it lies if they are drawn anew."""
    draw = np.random.default_rng(0)
    again = [value(draw.integers(count, size=count)) for _ in range(draws)]
    low, high = np.nanquantile(again, [0.025, 0.975])
    return f"{value(np.arange(count)):.2f} [{low:.2f}, {high:.2f}]"
