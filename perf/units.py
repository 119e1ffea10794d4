"""Intervals and nulls where inputs belong together or have heavy tails: `python -m perf.units`.

Coverage is the share of 95 % intervals of `likewise.bootstrap` that hold the mean score of fresh inputs of the same
kind. False positives are unrelated networks with p <= 0.05 by `likewise.calibrate`. Trials are kept in a folder and the
command resumes. Cells of real networks need LIKEWISE_DATA.

clips       frames of one clip share most of their activations; "unequal": 4, 8 or 12 frames per clip
series      autoregressive steps, by how many make one independent one
t3 t5 lognormal gauss  rows with a factor of a t distribution, exponentials, plain
cifar10     penultimate layers of published networks on test images; "positions": every position of a map is a row
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise
from likewise.errors import LikewiseError
from perf.common import write_table
from perf.parts import Arrays, load_parts, run_parts

HIDDEN, WIDTH, SHUFFLES = 6, 16, 19
FAST = ("cka", "cka-debiased", "procrustes", "linear-regression")
MEASURES = (*FAST, "soft-matching", "mutual-knn", "rsa")
Views = tuple[np.ndarray, np.ndarray]
Generator = np.random.Generator
STORE = Path(tempfile.gettempdir()) / "likewise-units-views"


@dataclass(frozen=True)
class Cell:
    """A design: causes of inputs from a generator, and how inputs belong together."""

    name: str
    draw: Callable[[Generator, bool], Views]  # whether the two networks see the same inputs
    options: dict[str, Any] = field(default_factory=dict)
    measures: tuple[str, ...] = MEASURES

    def inputs(self, seed: int, related: bool) -> Views:
        return self.draw(np.random.default_rng([seed, related]), related)


def networks(
    causes: Callable[[Generator], np.ndarray], noise: Callable[[Generator, tuple[int, int]], np.ndarray]
) -> Any:
    """Two networks with fixed weights, of the same causes or, unrelated, of causes of their own."""

    def draw(rng: Generator, related: bool) -> Views:
        weights = np.random.default_rng(5).normal(size=(2, HIDDEN, WIDTH))
        hidden = [causes(rng)] * 2 if related else [causes(rng), causes(rng)]
        x, y = (h @ w + 2 * noise(rng, (len(h), WIDTH)) for h, w in zip(hidden, weights, strict=True))
        return x, y

    return draw


def clips(labels: np.ndarray) -> Any:
    """Frames that share 80 % of the variance of causes and noise with their clip."""

    def frames(rng: Generator, width: int) -> np.ndarray:
        of_clip = rng.normal(size=(labels.max() + 1, width))
        return np.sqrt(0.8) * of_clip[labels] + np.sqrt(0.2) * rng.normal(size=(len(labels), width))

    return networks(lambda rng: frames(rng, HIDDEN), lambda rng, shape: frames(rng, shape[1]))


def series(n: int, memory: float) -> Any:
    from scipy.signal import lfilter

    def steps(rng: Generator, width: int) -> np.ndarray:
        shocks = (1 - memory**2) ** 0.5 * rng.normal(size=(n + 500, width))
        return np.asarray(lfilter([1.0], [1.0, -memory], shocks, axis=0)[500:])

    return networks(lambda rng: steps(rng, HIDDEN), lambda rng, shape: steps(rng, shape[1]))


def scaled(n: int, factor: Callable[[Generator, int], np.ndarray]) -> Any:
    plain = networks(lambda rng: rng.normal(size=(n, HIDDEN)), lambda rng, shape: rng.normal(size=shape))

    def draw(rng: Generator, related: bool) -> Views:
        x, y = plain(rng, related)
        sizes = factor(rng, n)[:, None]
        return x * sizes, y * (sizes if related else factor(rng, n)[:, None])

    return draw


def lognormal(n: int) -> Any:
    plain = scaled(n, lambda rng, n: np.ones(n))

    def draw(rng: Generator, related: bool) -> Views:
        x, y = plain(rng, related)
        return np.exp(x / 3), np.exp(y / 3)

    return draw


@cache
def real_views(layer: str, reduce: str | None, images: int) -> list[np.ndarray]:
    root = Path(os.environ["LIKEWISE_DATA"])
    stems = {
        "resnet20": "cifar10_resnets/resnet20",
        "resnet32": "cifar10_resnets/resnet32",
        "resnet20-b": "cifar10_models_extra/resnet20_chenyaofo",
    }
    views = [
        likewise.extract(
            f"zoo:{name}@{root / stem}.safetensors", f"cifar10:test[:{images}]", layer, reduce=reduce, store=STORE
        )
        for name, stem in stems.items()
    ]
    return [np.asarray(view.values).reshape(images, -1, view.d) for view in views]


def cifar10(n: int, other: int, layer: str = "penultimate", reduce: str | None = None, images: int = 4000) -> Any:
    """Random test images, others for the second network where they are unrelated."""

    def draw(rng: Generator, related: bool) -> Views:
        views = real_views(layer, reduce, images)
        first = rng.permutation(images)[:n]
        second = first if related else rng.permutation(images)[:n]
        x, y = views[0][first], views[other][second]
        return x.reshape(-1, x.shape[2]), y.reshape(-1, y.shape[2])

    return draw


def _cells() -> list[Cell]:
    even, uneven, many = (np.repeat(np.arange(k), sizes) for k, sizes in ((20, 10), (24, [4, 8, 12] * 8), (60, 5)))
    cells = [
        Cell("20 clips of 10 frames", clips(even), {"clusters": even}),
        Cell("24 clips, unequal", clips(uneven), {"clusters": uneven}),
        Cell("60 clips of 5 frames", clips(many), {"clusters": many}),
        Cell("series of 600, 9 make one", series(600, 0.8), {"series": True}),
        Cell("series of 1000, 39 make one", series(1000, 0.95), {"series": True}, FAST),
        Cell("series of 3000, 39 make one", series(3000, 0.95), {"series": True}, FAST),
        Cell("gauss, n = 200", scaled(200, lambda rng, n: np.ones(n))),
        Cell("t3 rows, n = 200", scaled(200, lambda rng, n: rng.standard_t(3, size=n))),
        Cell("t3 rows, n = 1000", scaled(1000, lambda rng, n: rng.standard_t(3, size=n)), {}, FAST),
        Cell("t5 rows, n = 200", scaled(200, lambda rng, n: rng.standard_t(5, size=n))),
        Cell("lognormal, n = 200", lognormal(200)),
    ]
    if "LIKEWISE_DATA" in os.environ:
        positions = np.repeat(np.arange(30), 64)
        cells += [
            Cell("CIFAR-10 ResNet-20 and 32, n = 200", cifar10(200, 1)),
            Cell("CIFAR-10 ResNet-20 and 20-B, n = 200", cifar10(200, 2)),
            Cell(
                "CIFAR-10 ResNet-20 and 32, 64 positions of 30 images",
                cifar10(30, 1, "layer3.0", "spatial", 1000),
                {"clusters": positions},
                FAST,
            ),
        ]
    return cells


def _intervals(cell: Cell, numbers: range) -> Arrays:
    """(trials, 2) of each measure: both ends, NaN where refused."""
    rows: dict[str, list[list[float]]] = {name: [] for name in cell.measures}
    for number in numbers:
        x, y = cell.inputs(number, True)
        for name in cell.measures:
            try:
                result = likewise.bootstrap(x, y, name, seed=number, progress=False, **cell.options)
                rows[name].append([result.low, result.high])
            except LikewiseError:
                rows[name].append([np.nan, np.nan])
    return {name: np.array(ends) for name, ends in rows.items()}


def _fresh(cell: Cell, numbers: range) -> Arrays:
    scores: dict[str, list[float]] = {name: [] for name in cell.measures}
    for number in numbers:
        x, y = cell.inputs(10**6 + number, True)
        for name in cell.measures:
            scores[name].append(float(likewise.compare(x, y, name)))
    return {name: np.array(values) for name, values in scores.items()}


def _unrelated(cell: Cell, numbers: range) -> Arrays:
    """p of every measure, NaN where refused."""
    ps: dict[str, list[float]] = {name: [] for name in cell.measures}
    for number in numbers:
        x, y = cell.inputs(number, False)
        for name in cell.measures:
            try:
                result = likewise.calibrate(
                    x, y, name, permutations=SHUFFLES, seed=number, progress=False, **cell.options
                )
                ps[name].append(float(result.p))
            except LikewiseError:
                ps[name].append(np.nan)
    return {name: np.array(values) for name, values in ps.items()}


def table(cells: list[Cell], folder: Path) -> list[dict[str, object]]:
    rows = []
    for cell in cells:
        fresh, trials, unrelated = (load_parts(folder, f"{slug(cell)}-{kind}") for kind in ("fresh", "trials", "null"))
        for name, ends in trials.items():
            truth, given = np.nanmean(fresh[name]), ~np.isnan(ends[:, 0])
            held = (ends[given, 0] <= truth) & (truth <= ends[given, 1])
            p = unrelated.get(name, np.empty(0))
            rows.append(
                {
                    "inputs": cell.name,
                    "measure": name,
                    "trials": len(ends),
                    "refused": int((~given).sum()),
                    "coverage": f"{held.mean():.3f}" if held.size else "",
                    "pairs": int((~np.isnan(p)).sum()),
                    "false_positives": f"{np.mean(p[~np.isnan(p)] <= 0.05):.3f}" if (~np.isnan(p)).any() else "",
                }
            )
    return rows


def slug(cell: Cell) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in cell.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--fresh", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "likewise-units")
    parser.add_argument("--cells", default="", help="those whose names begin so")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells = _cells()
    for cell in cells:
        name = slug(cell)
        if not cell.name.startswith(options.cells):
            continue
        run_parts(options.folder, f"{name}-null", options.pairs, lambda numbers, cell=cell: _unrelated(cell, numbers))
        run_parts(options.folder, f"{name}-fresh", options.fresh, lambda numbers, cell=cell: _fresh(cell, numbers))
        run_parts(
            options.folder, f"{name}-trials", options.trials, lambda numbers, cell=cell: _intervals(cell, numbers)
        )
        write_table("units", table(cells, options.folder))
        print(f"{cell.name}: done", flush=True)


if __name__ == "__main__":
    main()
