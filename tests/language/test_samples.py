"""The paired test of two evaluations: against scipy and by hand, on files as the harness writes them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from likewise.errors import InputError
from likewise.language import paired_samples


def write(folder: Path, task: str, values: dict[str, list[float]], *, date: str = "2026-01-02T03-04-05.6") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_{date}.jsonl"
    count = len(next(iter(values.values())))
    lines = []
    for i in range(count):
        facts = {
            "doc_id": i,
            "doc": {"q": f"question {i}"},
            "target": "0",
            "resps": [[["-1.0", "True"]]],
            "filter": "none",
        }
        facts |= {
            "doc_hash": f"{task}{i}",
            "metrics": list(values),
            **{name: column[i] for name, column in values.items()},
        }
        lines.append(json.dumps(facts))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_right_and_wrong_are_tested_by_mcnemar(tmp_path: Path) -> None:
    before, after = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0, 1]
    a, b = write(tmp_path / "a", "arc", {"acc": before}), write(tmp_path / "b", "arc", {"acc": after})
    (change,) = paired_samples(a, b).tasks
    assert (change.task, change.metric, change.n, change.changed) == ("arc", "acc", 10, 8)
    assert (change.before, change.after) == (0.8, 0.2)
    assert change.p == change.q == pytest.approx(binomtest(7, 8, 0.5).pvalue)
    spread = np.std(np.array(after) - np.array(before), ddof=1) / math.sqrt(10)
    assert change.low == pytest.approx(-0.6 - 1.96 * spread)


def test_other_metrics_are_tested_by_signs_drawn_at_random(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    before = draw.random(12)
    after = before + draw.normal(0.05, 0.1, size=12)
    values = [before.tolist(), after.tolist()]
    a, b = (write(tmp_path / name, "sum", {"rouge": v}) for name, v in zip("ab", values, strict=True))
    gaps = after - before
    signs = np.array(np.meshgrid(*[[-1, 1]] * 12)).reshape(12, -1)  # all of them
    exact = float((np.abs(gaps @ signs) >= abs(gaps.sum()) - 1e-12).mean())
    assert paired_samples(a, b).tasks[0].p == pytest.approx(exact, abs=0.015)


def test_no_difference_is_not_called_one_more_often_than_asked(tmp_path: Path) -> None:
    alarms = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        for name in "ab":
            for task in ("t1", "t2", "t3"):
                write(tmp_path / name, task, {"acc": draw.integers(0, 2, size=40).tolist()})
        alarms += any(task.sure for task in paired_samples(tmp_path / "a", tmp_path / "b").tasks)
    assert alarms <= 8  # 3 expected


def test_folders_are_matched_by_task_and_what_one_lacks_is_named(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name / "model", "arc", {"acc": [1, 0, 1]})
    write(tmp_path / "a" / "model", "hellaswag", {"acc": [1, 0, 1]})
    change = paired_samples(tmp_path / "a", tmp_path / "b")
    assert [task.task for task in change.tasks] == ["arc"]
    assert change.left_out == ("hellaswag",)
    assert "Nothing changed by more than chance." in str(change)
    assert change.to_frame().loc[0, "n"] == 3


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    a = write(tmp_path / "a", "arc", {"acc": [1, 0]})
    other = write(tmp_path / "b", "mmlu", {"acc": [1, 0]})
    with pytest.raises(InputError) as error:
        paired_samples(a, other)
    assert str(error.value) == (
        f"{a} and {other} have no task in common: 'arc' and 'mmlu'. Evaluate both on the same tasks."
    )
    text = tmp_path / "samples_arc.jsonl"
    text.write_text('{"doc_id": 1}\n')
    with pytest.raises(InputError) as error:
        paired_samples(a, text)
    assert str(error.value) == (
        f"{text} is no file of --log_samples: a line has no 'doc_id' or no 'metrics'. Run the evaluation again."
    )
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        paired_samples(tmp_path / "empty", a)
    assert str(error.value) == (
        f"{tmp_path / 'empty'} holds no samples_TASK.jsonl. Run lm_eval with --log_samples --output_path."
    )
