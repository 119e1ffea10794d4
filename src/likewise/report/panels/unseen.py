"""What does a network make of a class it never saw?"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.report.panels.panel import Material, Panel, pack, rounded
from likewise.zeroshot.result import ZeroShot

POINTS = 60  # soft labels per class in the picture
COLUMNS = ["DBI", "DBI normalised", "AM", "AM normalised", "accuracy", "samples"]


def panel(material: Material) -> Panel | None:
    """Raw Zero-Shot results."""
    results = material.runs.zeroshot
    if not results:
        return None
    frame = results[0].to_frame()
    amalgam = frame["AM normalised"]
    return Panel(
        "unseen",
        "What does a network make of a class it never saw?",
        f"{results[0].network} describes {amalgam.idxmax()} most differently when it never saw it (Amalgam metric "
        f"{amalgam.max():.2f} of 1), {amalgam.idxmin()} least ({amalgam.min():.2f}); the "
        f"Davies-Bouldin index (DBI) is {frame['DBI'].mean():.2f} on average.",
        "A network is trained without each class in turn and then shown it. DBI (Davies-Bouldin, smaller is better) "
        "says how compact the soft labels of the unseen class are, compared with those of other unseen classes; "
        "Amalgam (AM, smaller is better) how far they are from those of a network that saw it. Normalised values lie "
        "in [0, 1]. The map shows the soft labels of unseen classes by their two main directions: classes that stay "
        "apart can be distinguished unseen.",
        {"networks": [_network(result) for result in results]},
        (),
        ("unseen", "soft"),
    )


def _network(result: ZeroShot) -> dict[str, Any]:
    frame = result.to_frame()
    points, owners = _soft_labels(result)
    return {
        "name": result.network,
        "classes": list(result.classes),
        "columns": COLUMNS,
        "rows": [[rounded(value) for value in frame.loc[name, COLUMNS]] for name in result.classes],
        "points": pack(points),
        "owners": owners,
    }


def _soft_labels(result: ZeroShot) -> tuple[Array, list[int]]:
    """Soft labels of unseen classes on the two main directions, the unseen class itself at 0."""
    draw = np.random.default_rng(0)
    samples, owners = [], []
    for i, name in enumerate(result.classes):
        soft = result.soft_labels(name)
        soft = soft[draw.permutation(len(soft))[:POINTS]]
        samples.append(np.insert(soft, i, 0.0, axis=1))
        owners += [i] * len(soft)
    rows = np.concatenate(samples)
    rows = rows - rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows, full_matrices=False)
    return rows @ directions[:2].T, owners
