"""Which network to learn from: the advice of one study, how weak its evidence is, and its regret where it was tried.

25 teachers of one student (DeiT-Ti, hard distillation, ImageNet) are all the evidence there is for the advice: a
teacher of another family, and of these the least alike. Within the student's own family, alike teachers did better. The
accuracy of teachers, all within three points, predicted nothing; nothing is known of teachers further apart, so those
that are surely far below the best are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.names import visible
from likewise.analysis.families import Clusters, clusters, family_labels
from likewise.analysis.matrix_agreement import p_value
from likewise.analysis.picks import Trial, make_trial, matched
from likewise.errors import InputError
from likewise.matrices.labelled import position
from likewise.matrices.shares import far_below
from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer.matrix import CLOSE, share_text

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers

PERMUTATIONS = 9999
PUBLISHED = {  # correlation with the student's accuracy, and its p
    "all": (-0.32, 0.12),
    "same family": (0.70, 0.078),
    "other families": (-0.51, 0.030),
    "accuracy of the teacher": (0.049, 0.82),
}
WEAK = (
    "weak evidence: over 25 teachers of one student, its accuracy correlated -0.51 with similarity for teachers of "
    "other families (p 0.03), +0.70 within its family (p 0.08), -0.32 over all (p 0.12)"
)
UNTRIED = "untried here: the accuracies of students that learned from these (outcomes=) would give its regret"


@dataclass(frozen=True)
class TeacherPick:
    """A teacher for a student, and why.

    Attributes:
        teacher: The teacher.
        student: The student.
        rule: How it was chosen.
        reasons: The evidence in words.
        candidates: All candidates in the order of the advice, one row per network: its similarity to the student,
            whether it is of the same family, its accuracy where that is known, and whether it was considered.
        held_out: How the choice does among teachers whose students' accuracies are known, beside the most accurate
            teacher and a random one.
    """

    teacher: str
    student: str
    rule: str
    reasons: tuple[str, ...] = field(repr=False)
    candidates: pd.DataFrame = field(repr=False, compare=False)
    held_out: Trial | None = field(default=None, repr=False)

    def __str__(self) -> str:
        sentences = [f"{self.teacher} for {self.student}", *(f"- {reason}" for reason in self.reasons)]
        lines = [visible(line) for line in sentences]
        return "\n".join(lines if self.held_out is None else [*lines, str(self.held_out)])

    def record(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        facts = {"teacher": self.teacher, "student": self.student, "rule": self.rule, "reasons": list(self.reasons)}
        rows = json.loads(self.candidates.reset_index().to_json(orient="records", double_precision=15))
        return facts | {"candidates": rows, "held_out": None if self.held_out is None else self.held_out.record()}


def pick_teacher(
    student: str,
    matrix: SimilarityMatrix,
    *,
    teachers: Sequence[str] | None = None,
    families: Clusters | Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    outcomes: Answers | Mapping[str, float] | None = None,
    seed: int = 0,
) -> TeacherPick:
    """Choose a teacher for a student: of another family, and of these the least alike.

    Args:
        student: The network of the matrix that stands for the student.
        matrix: How alike networks are, by any measure.
        teachers: The networks to choose from, by default all others.
        families: The family of each network by name (the base architecture is what the advice was found with), by
            default those found in the matrix.
        answers: What networks answer, so that teachers surely more than 4 points less accurate than the best, by 95 %
            intervals, are left out.
        outcomes: The accuracies of students by the name of their teacher, or their answers.
        seed: Draws the null of the families.
    """
    table = _candidates(student, matrix, teachers, families, answers, seed)
    first = table.iloc[0]
    rule = "most alike of its own family" if first["same_family"] else "least alike of another family"
    rule = rule if table.attrs["families"] else "least alike"
    reasons = [*_reasons(student, matrix, table), WEAK]
    if outcomes is None:
        return TeacherPick(str(table.index[0]), student, rule, (*reasons, UNTRIED), table)
    tried, right = _tried(student, matrix, table, outcomes)
    trial = _outcome_trial(tried, right, seed)
    return TeacherPick(str(table.index[0]), student, rule, tuple(reasons), table, trial)


def teacher_correlations(
    student: str,
    matrix: SimilarityMatrix,
    outcomes: Answers | Mapping[str, float],
    *,
    families: Clusters | Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlate the accuracy of students with how alike their teachers are, beside the published figures.

    Args:
        student: The network of the matrix that stands for the students.
        matrix: How alike networks are, by any measure.
        outcomes: The accuracies of students by the name of their teacher, or their answers.
        families: The family of each network by name, by default those found in the matrix.
        answers: What networks answer, for the accuracies of teachers.
        seed: Draws permutations and the null of the families.

    Returns:
        One row for all teachers, those of the student's family, those of others, and for the teachers' accuracy: the
        correlation, above 0 where alike (or accurate) teachers are better, its p by permuting the teachers, and how
        many there are.
    """
    import pandas as pd

    table, right = _tried(student, matrix, _candidates(student, matrix, None, families, answers, seed), outcomes)
    right = right.mean(axis=1)
    sign = 1 if matrix.larger_is == "more alike" else -1
    alike, same = sign * table["similarity"].to_numpy(), table["same_family"].to_numpy(dtype=bool)
    every = np.ones(len(table), dtype=bool)
    groups = {"all": (alike, every), "same family": (alike, same), "other families": (alike, ~same)}
    groups |= {"accuracy of the teacher": (table["accuracy"].to_numpy(), every)}
    rows = {}
    for name, (x, where) in groups.items():
        correlation, p = _correlation(x[where], right[where], np.random.default_rng(seed))
        published = dict(zip(("published", "published_p"), PUBLISHED[name], strict=True))
        rows[name] = {"correlation": correlation, "p": p, "teachers": int(where.sum()), **published}
    return pd.DataFrame.from_dict(rows, orient="index")


def _candidates(
    student: str,
    matrix: SimilarityMatrix,
    teachers: Sequence[str] | None,
    families: Clusters | Mapping[str, Any] | None,
    answers: Answers | None,
    seed: int,
) -> pd.DataFrame:
    """All teachers in the order of the advice."""
    import pandas as pd

    index, names = position(matrix.names, student, "network"), _teachers(student, matrix, teachers)
    rows = [position(matrix.names, name, "network") for name in names]
    alike = _row(matrix, index, rows)
    families = clusters(matrix, seed=seed) if families is None else families
    origin = "families as given"
    if isinstance(families, Clusters):
        several, measure = families.k > 1, families.matrix.measure or "similarity"
        origin = f"families as found by {measure}" if several else ""
        families = families if several else {name: name for name in families.names}  # without any, all are others
    labels = family_labels(families, [student, *names])
    accuracy, below = np.full(len(names), np.nan), np.zeros(len(names), dtype=bool)
    if answers is not None:
        answers = matched(matrix, answers)
        _check_others(student, names, answers)
        accuracy = answers.accuracies[rows]
        below = far_below(accuracy.max(), accuracy, answers.n, CLOSE)
    columns = {"similarity": alike, "same_family": labels[1:] == labels[0], "accuracy": accuracy}
    table = pd.DataFrame(columns, index=pd.Index(names, name="teacher"))
    table["considered"] = ~below
    table.attrs |= {"inputs": 0 if answers is None else answers.n, "families": origin}
    sign = 1 if matrix.larger_is == "more alike" else -1
    preference = np.where(table["same_family"], -sign * alike, sign * alike)
    order = np.lexsort([preference, table["same_family"].to_numpy(), ~table["considered"].to_numpy()])
    return table.iloc[order]


def _teachers(student: str, matrix: SimilarityMatrix, teachers: Sequence[str] | None) -> list[str]:
    if teachers is None:
        names = [name for name in matrix.names if name != student]
        if not names:
            raise InputError(
                f"{student!r} is the only network, and it cannot be its own teacher. Give a matrix with other networks."
            )
        return names
    names = list(dict.fromkeys([teachers] if isinstance(teachers, str) else teachers))
    if student in names:
        raise InputError(f"{student!r} cannot be its own teacher. Leave it out of the teachers.")
    if not names:
        raise InputError("there is no teacher to choose from. Give at least one.")
    return names


def _row(matrix: SimilarityMatrix, student: int, rows: Sequence[int]) -> Array:
    """The scores of the student with its teachers, both directions averaged."""
    row = (np.asarray(matrix.values)[student] + np.asarray(matrix.values)[:, student])[rows] / 2
    if np.isnan(row).any():
        other = matrix.names[rows[int(np.isnan(row).argmax())]]
        raise InputError(
            f"{matrix!r} has no score for {matrix.names[student]!r} and {other!r}. Leave the latter out: "
            "matrix.reordered([...]) with the names to keep."
        )
    return np.asarray(row)


def _check_others(student: str, names: Sequence[str], answers: Answers) -> None:
    """Refuse the student under another name."""
    logits = answers.logits[position(answers.names, student, "network")]
    for name in names:
        if np.array_equal(answers.logits[position(answers.names, name, "network")], logits):
            raise InputError(
                f"{name!r} answers exactly as {student!r} does, and a student cannot be its own teacher. Leave it out."
            )


def _reasons(student: str, matrix: SimilarityMatrix, table: pd.DataFrame) -> list[str]:
    families, inputs = table.attrs["families"], table.attrs["inputs"]
    first, measure = table.iloc[0], matrix.measure or "similarity"
    kin = table[table["considered"] & (table["same_family"] == first["same_family"])]
    if first["same_family"]:
        whose, order = f"of the family of {student!r}, as all candidates are", "most"
    else:
        whose, order = f"of another family than {student!r}", "least"
    whose += f", and the {order} alike of {len(kin)} candidates" if len(kin) > 1 else ", and the only candidate"
    whose = whose if families else whose.partition(", and ")[2]
    spread = f", from {kin['similarity'].min():.3g} to {kin['similarity'].max():.3g}" if len(kin) > 1 else ""
    words = f"{whose}: {measure} {first['similarity']:.3g}{spread} (larger is {matrix.larger_is})"
    source = families or "no families were found, so that all candidates count as of other families"
    if np.isnan(first["accuracy"]):
        return [words, source, "accuracies are not known: a teacher that is much worse would not be noticed (answers=)"]
    out = int((~table["considered"]).sum())
    left = f"; {out} surely more than {100 * CLOSE:.0f} points below it left out" if out else ""
    own, best = (share_text(accuracy, inputs) for accuracy in (first["accuracy"], table["accuracy"].max()))
    return [words, source, f"accuracy {own} on {inputs} inputs, the best teacher has {best}{left}"]


def _tried(
    student: str, matrix: SimilarityMatrix, table: pd.DataFrame, outcomes: Answers | Mapping[str, float]
) -> tuple[pd.DataFrame, Array]:
    """The teachers whose outcomes are known, and which inputs their students get right, or just the accuracies."""
    named = list(outcomes) if isinstance(outcomes, Mapping) else list(outcomes.names)
    for name in named:
        position(matrix.names, name, "network")
    if student in named:
        raise InputError(f"{student!r} cannot be its own teacher. Leave it out of the outcomes.")
    tried = table[table.index.isin(named)]
    if len(tried) < 2:
        raise InputError(f"{len(tried)} of the outcomes are of teachers to choose from. Give two or more.")
    if not isinstance(outcomes, Mapping):
        return tried, np.asarray(outcomes.subset(list(tried.index)).right, dtype=float)
    accuracies = np.array([[outcomes[name]] for name in tried.index], dtype=float)
    if not ((accuracies >= 0) & (accuracies <= 1)).all():
        raise InputError("an outcome is not between 0 and 1. Give the share of inputs that a student gets right.")
    return tried, accuracies


def _outcome_trial(table: pd.DataFrame, right: Array, seed: int) -> Trial:
    wrong = 1 - right
    best = int(wrong.mean(axis=1).argmin())
    rows = {"pick": wrong[0]}
    if not table["accuracy"].isna().any():
        rows["accuracy"] = wrong[int(table["accuracy"].to_numpy().argmax())]
    rows |= {"best": wrong[best], "random": wrong.mean(axis=0)}
    return make_trial(rows, (str(table.index[best]),), np.random.default_rng(seed))


def _correlation(x: Array, y: Array, draw: np.random.Generator) -> tuple[float, float]:
    """Pearson's, with the share of permutations that are as far from 0; NaN where there is not enough data."""
    if len(x) < 3 or not np.ptp(x) > 0 or not np.ptp(y) > 0:
        return math.nan, math.nan
    x, y = ((v - v.mean()) / np.linalg.norm(v - v.mean()) for v in (x, y))
    observed = float(x @ y)
    return observed, p_value(observed, draw.permuted(np.tile(y, (PERMUTATIONS, 1)), axis=1) @ x)
