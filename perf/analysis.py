"""What follows from a matrix of 70 networks: families, map and picks, which together are to take less than 5 s.

The answers are of 5,000 inputs and ten classes, made so that networks of one family err alike; nothing is shared
between the jobs but what one gives the next. The subsets are those of the table by number of families.

    python -m perf.analysis
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise import SimilarityMatrix, analysis
from likewise.transfer import Answers
from perf.common import cpu_seconds, wall_seconds, write

NETWORKS, INPUTS, CLASSES, FAMILIES = 70, 5000, 10, 7
TARGET = 5.0


def zoo() -> tuple[SimilarityMatrix, Answers]:
    """A matrix and answers of networks that err alike within families."""
    draw = np.random.default_rng(0)
    family, labels = draw.integers(0, FAMILIES, NETWORKS), draw.integers(0, CLASSES, INPUTS)
    shared = draw.normal(size=(FAMILIES, INPUTS, CLASSES))[family]
    noise = 0.8 * shared + 0.6 * draw.normal(size=(NETWORKS, INPUTS, CLASSES))
    alike = 2 + (family[:, None] == family) + draw.normal(0, 0.25, (NETWORKS, NETWORKS))
    names = [f"network-{i}" for i in range(NETWORKS)]
    matrix = SimilarityMatrix(names, (alike + alike.T) / 2, measure="sat", larger_is="more alike")
    return matrix, Answers(names, 2.3 * np.eye(CLASSES)[labels] + noise, labels)


def main() -> None:
    """Time every job, then families, map and picks together."""
    matrix, answers = zoo()
    families = analysis.clusters(matrix)  # also loads what is loaded on first use
    jobs: dict[str, Callable[[], Any]] = {
        "families": lambda: analysis.clusters(matrix),
        "map": lambda: analysis.embed(matrix),
        "pick_ensemble": lambda: analysis.pick_ensemble(matrix, answers, 5),
        "pick_diverse": lambda: analysis.pick_diverse(matrix, 5),
        "pick_teacher": lambda: analysis.pick_teacher(matrix.names[0], matrix, families=families, answers=answers),
    }
    rows = [_row(name, work) for name, work in jobs.items()]
    rows.append(_row("families, map and picks", lambda: [work() for work in jobs.values()], TARGET))
    rows.append(_row("pair_reductions", lambda: analysis.pair_reductions(answers)))
    rows.append(_row("errors_by_clusters", lambda: analysis.errors_by_clusters(answers, families)))
    write("analysis", rows)


def _row(job: str, work: Callable[[], Any], target: float | None = None) -> dict[str, Any]:
    taken: list[float] = []
    wall = wall_seconds(lambda: taken.append(cpu_seconds(work, repeats=1)), repeats=1)[0]
    cpu = taken[0]
    met = None if target is None else cpu <= target
    return {"job": job, "networks": NETWORKS, "cpu_seconds": cpu, "seconds": wall, "target": target, "met": met}


if __name__ == "__main__":
    main()
