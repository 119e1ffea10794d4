"""Two evaluations of one benchmark, question by question: the paired test that averages cannot give.

lm-evaluation-harness writes one line per question with `--log_samples`: a file `samples_TASK_DATE.jsonl` per task. Both
networks answer the same questions, so the difference of their averages is surer than two separate errors say. Right or
wrong is tested by McNemar's exact test, any other metric by the signs of differences drawn at random; the false
discovery rate over all tasks and metrics is held at 5 %.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.files import reading
from likewise._base.folders import file_of, read_at
from likewise._base.formats.records import parse
from likewise.errors import InputError, quoted_list

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 10_000
LEVEL = 0.05
_NAME = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.:-]+)?\.jsonl")
_LONGEST = 2**30  # bytes of a file
Key = tuple[str, str]  # a question and the filter its answer went through


@dataclass(frozen=True)
class TaskChange:
    """One metric of one task.

    Attributes:
        task: The task.
        metric: The metric, with its filter where there is one.
        n: Questions that both answered.
        before: The mean of the first.
        after: The mean of the second.
        low: The lower end of a 95 % interval of the difference over questions.
        high: The upper end.
        changed: Questions whose value differs.
        p: How likely so large a difference is by chance.
        q: The same over all tasks and metrics.
    """

    task: str
    metric: str
    n: int
    before: float
    after: float
    low: float
    high: float
    changed: int
    p: float
    q: float = math.nan

    @property
    def sure(self) -> bool:
        """Whether the difference is more than chance, over all that were tested."""
        return self.q <= LEVEL


@dataclass(frozen=True)
class SamplesChange:
    """What changed from one evaluation to another, one entry per task and metric.

    Attributes:
        tasks: The changes, the surest first.
        left_out: Tasks that only one of the two answered.
    """

    tasks: tuple[TaskChange, ...]
    left_out: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per task and metric."""
        import pandas as pd

        names = ("task", "metric", "n", "before", "after", "low", "high", "changed", "p", "q")
        return pd.DataFrame([{name: getattr(task, name) for name in names} for task in self.tasks])

    def __str__(self) -> str:
        rows = [["task", "metric", "n", "before", "after", "difference [95 %]", "changed", "p", "q"]]
        for task in self.tasks:
            difference = f"{task.after - task.before:+.4f} [{task.low:+.4f}, {task.high:+.4f}]"
            numbers = [f"{task.before:.4f}", f"{task.after:.4f}", difference, str(task.changed)]
            rows.append([task.task, task.metric, str(task.n), *numbers, f"{task.p:.2g}", f"{task.q:.2g}"])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        sure = [f"{task.task} ({task.metric})" for task in self.tasks if task.sure]
        lines.append(f"More than chance: {', '.join(sure)}." if sure else "Nothing changed by more than chance.")
        if self.left_out:
            lines.append(f"Left out, of one evaluation only: {', '.join(self.left_out)}.")
        return "\n".join(lines)


def paired_samples(a: str | os.PathLike[str], b: str | os.PathLike[str], *, seed: int = 0) -> SamplesChange:
    """Compare two evaluations of lm-evaluation-harness question by question.

    Args:
        a: A file that `--log_samples` wrote, or a folder of them; folders are searched.
        b: That of the other network.
        seed: Draws the signs of differences that are not right or wrong.

    Returns:
        Every task and metric of both, with a test and an interval.

    Raises:
        InputError: The two have no task, or a task no question in common.
    """
    from scipy.stats import false_discovery_control

    first, second = _evaluation(a), _evaluation(b)
    both = [task for task in first if task in second]
    if not both:
        raise InputError(
            f"{a} and {b} have no task in common: {quoted_list(list(first))} and {quoted_list(list(second))}. Evaluate "
            "both on the same tasks."
        )
    changes = [change for task in both for change in _changes(task, first[task], second[task], seed)]
    corrected = false_discovery_control([change.p for change in changes])
    tested = [replace(change, q=float(q)) for change, q in zip(changes, corrected, strict=True)]
    left = sorted(first.keys() ^ second.keys())
    return SamplesChange(tuple(sorted(tested, key=lambda change: (change.q, change.p, change.task))), tuple(left))


def _evaluation(path: str | os.PathLike[str]) -> dict[str, dict[str, dict[Key, float]]]:
    """By task and metric, the value of every question."""
    place = Path(path).expanduser()
    if place.is_dir():
        names = sorted(str(file.relative_to(place)) for file in place.rglob("samples_*.jsonl"))
        files = {_task(name): file_of(place, name, limit=_LONGEST) for name in names}  # of several dates, the last
    else:
        files = {_task(place.name): place}
    if not files:
        raise InputError(f"{place} holds no samples_TASK.jsonl. Run lm_eval with --log_samples --output_path.")
    return {task: _values(file) for task, file in files.items()}


def _task(name: str) -> str:
    match = _NAME.fullmatch(Path(name).name)
    return Path(name).stem if match is None else match["task"]


def _values(path: Path) -> dict[str, dict[Key, float]]:
    values: dict[str, dict[Key, float]] = {}
    with reading(path, f"{path} is no file of --log_samples: {{reason}}. Run the evaluation again."):
        for line in read_at(path, limit=_LONGEST).split(b"\n"):
            if line.strip():
                _add(values, parse(line))
        if not values:
            raise ValueError("it holds no question with a metric")
    return values


def _add(values: dict[str, dict[Key, float]], record: Mapping[str, Any]) -> None:
    """The metrics of one question."""
    question = str(record.get("doc_hash") or record.get("doc_id", ""))
    names = record.get("metrics")
    if not question or not isinstance(names, list):
        raise ValueError("a line has no 'doc_id' or no 'metrics'")
    passed = str(record.get("filter", "none"))
    for name in names:
        value = record.get(str(name))
        if isinstance(value, (int, float)) and math.isfinite(value):  # lists belong to metrics of whole sets
            metric = str(name) if passed == "none" else f"{name}, {passed}"
            values.setdefault(metric, {})[question, str(record.get("doc_id", ""))] = float(value)


def _changes(
    task: str, first: Mapping[str, Mapping[Key, float]], second: Mapping[str, Mapping[Key, float]], seed: int
) -> Iterator[TaskChange]:
    for metric in [name for name in first if name in second]:
        questions = [key for key in first[metric] if key in second[metric]]
        if not questions:
            raise InputError(
                f"the two evaluations of {task} have no question in common. Evaluate both on the same ones."
            )
        before, after = (np.array([side[metric][key] for key in questions]) for side in (first, second))
        gaps = after - before
        half = 1.96 * float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
        mean, changed = float(gaps.mean()), int((gaps != 0).sum())
        numbers = float(before.mean()), float(after.mean()), mean - half, mean + half
        yield TaskChange(task, metric, len(gaps), *numbers, changed, _chance(before, after, seed))


def _chance(before: Array, after: Array, seed: int) -> float:
    """How likely so large a difference is where both directions are equally likely."""
    from scipy.stats import binomtest

    gaps = after - before
    if not gaps.any():
        return 1.0
    if np.isin(np.concatenate([before, after]), (0.0, 1.0)).all():
        lost, gained = int((gaps < 0).sum()), int((gaps > 0).sum())
        return float(binomtest(lost, lost + gained, 0.5).pvalue)
    moved = gaps[gaps != 0]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, len(moved))) if len(moved) < 5_000 else None
    if signs is None:  # the sum of so many is normal
        from scipy.stats import norm

        return float(2 * norm.sf(abs(moved.sum()) / math.sqrt(float(np.square(moved).sum()))))
    return float((1 + (np.abs(signs @ moved) >= abs(moved.sum()) - 1e-12).sum()) / (DRAWS + 1))
