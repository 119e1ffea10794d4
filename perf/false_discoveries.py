"""How often a pair with q <= .05 is unrelated: `python -m perf.false_discoveries`.

Zoos of twelve networks on 100 inputs: 4 to 128 neurons wide, linear or relu, of 1 to 30 causes, so that the nulls of
their pairs differ in shape. Networks that share causes are related, all others are independent. Scores and nulls of
every zoo are kept in a folder, and the command resumes; q is that of `likewise.compare(..., calibrate=True)`. A last
table has a twin among 20 networks, by number of shuffles.

unrelated  no two are related
pairs      three pairs are
families   two families of four, and four networks alone: the nulls of pairs across the families move together
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

import likewise
from likewise.comparison.null import Shuffles
from likewise.comparison.pairs import Base, representations
from likewise.comparison.significance import calibration_grids
from likewise.comparison.units import Units
from likewise.measures import get
from likewise.views import Activations, Outputs
from perf.common import write_table
from perf.parts import Arrays, load_parts, run_parts

MEASURES = ("cka-debiased", "cka", "procrustes", "rsa", "jaccard", "mutual-knn", "disagreement", "linear-regression")
DESIGNS = {
    "unrelated": range(12),
    "pairs": (0, 0, 2, 2, 4, 4, *range(6, 12)),
    "families": (*[0] * 4, *[4] * 4, *range(8, 12)),
}
N, CLASSES, SHUFFLES = 100, 5, 200
RANKS = (1, 2, 6, 30)


def zoo(design: str, number: int) -> list[Activations]:
    """The networks; those of one family see the same causes."""
    rng = np.random.default_rng([number, list(DESIGNS).index(design)])
    causes = [rng.normal(size=(N, rng.choice(RANKS))) for _ in DESIGNS[design]]
    readouts = [rng.normal(size=(hidden.shape[1], CLASSES)) for hidden in causes]
    labels, views = rng.integers(0, CLASSES, size=N), []
    for i, family in enumerate(DESIGNS[design]):
        hidden, d = causes[family], int(2 ** rng.uniform(2, 7))
        seen = hidden @ rng.normal(size=(hidden.shape[1], d)) / np.sqrt(hidden.shape[1])
        seen += rng.uniform(0.3, 2) * rng.normal(size=(N, d))
        logits = hidden @ readouts[family] + rng.uniform(0.5, 2) * rng.normal(size=(N, CLASSES))
        logits[:, 0] += 2 * (i % 3 == 0)  # one answer is more frequent
        views.append(Activations(np.maximum(seen, 0) if i % 2 else seen, outputs=Outputs(logits, labels)))
    return views


def trials(design: str, numbers: range) -> Arrays:
    """Scores and nulls of every measure, (zoos, 1 + shuffles, networks, networks)."""
    kept: dict[str, list[np.ndarray]] = {}
    for number in numbers:
        views = zoo(design, number)
        for name in MEASURES:
            base = Base(representations(views, 10**9), get(name))
            nulls = Shuffles(Units.single(N), SHUFFLES, number).tables(base, range(SHUFFLES))
            kept.setdefault(name, []).append(np.array([base.values, *nulls], dtype=np.float32))
    return {name: np.stack(arrays) for name, arrays in kept.items()}


def discoveries(kept: np.ndarray, name: str, families: np.ndarray) -> dict[str, float]:
    """Of one zoo: the share of false ones among those with q <= .05, and of the related that are found."""
    measure = get(name)
    grids = calibration_grids(kept[0].astype(float), kept[1:].astype(float), measure)
    pairs = (
        np.triu_indices(len(families), 1) if measure.info.symmetric else np.nonzero(~np.eye(len(families), dtype=bool))
    )
    p, q = grids["p"][pairs], grids["q"][pairs]
    related, declared = (families[:, None] == families)[pairs], q <= 0.05
    return {
        "false_discovery_rate": (declared & ~related).sum() / max(1, declared.sum()),
        "detected": declared[related].mean() if related.any() else np.nan,
        "p <= .05": (p[~related] <= 0.05).mean(),
        "p <= .01": (p[~related] <= 0.01).mean(),
        "p <= .001": (p[~related] <= 0.001).mean(),
    }


def table(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for design, families in DESIGNS.items():
        for name, zoos in load_parts(folder, design).items():
            shares = [discoveries(kept, name, np.array(families)) for kept in zoos]
            means = {key: f"{np.mean([share[key] for share in shares]):.4f}" for key in shares[0]}
            rows.append({"measure": name, "zoos": design, "count": len(zoos), **means})
    return rows


def twin(shuffles: int, name: str) -> dict[str, object]:
    """q of a noisy, rotated copy among 20 networks, and the smallest of the other pairs."""
    rng = np.random.default_rng(0)
    zoo = [
        Activations(v, outputs=Outputs(v[:, :CLASSES], np.arange(N) % CLASSES)) for v in rng.normal(size=(20, N, 16))
    ]
    rotation = np.linalg.qr(rng.normal(size=(16, 16)))[0] if get(name).info.on != "outputs" else np.eye(16)
    copy = zoo[0].values @ rotation + 0.1 * rng.normal(size=(N, 16))
    zoo[1] = Activations(copy, outputs=Outputs(copy[:, :CLASSES], np.arange(N) % CLASSES))
    q = likewise.compare(zoo, name, calibrate=shuffles, progress=False).extra["q"]
    others = np.delete(q[np.triu_indices(20, 1)], 0)
    return {"measure": name, "shuffles": shuffles, "q": f"{q[0, 1]:.4g}", "smallest_other_q": f"{others.min():.3g}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--zoos", type=int, default=200)
    parser.add_argument("--designs", nargs="*", choices=list(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "likewise-discoveries")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for design in options.designs:
        run_parts(options.folder, design, options.zoos, lambda numbers, design=design: trials(design, numbers))
    write_table("false_discoveries", table(options.folder))
    write_table("twin_among_20", [twin(shuffles, name) for name in MEASURES for shuffles in (99, 200)])


if __name__ == "__main__":
    main()
