"""Which networks to put into an ensemble: with the evidence, and what it is worth.

The error of an ensemble is predicted from two things, its members' errors and how alike they are: pairs say how much
the error reduction falls with similarity, and q members reduce what their pairs do, 2 (q - 1) / q as much (as far as
errors average like independent noise around a shared error). Where similarity predicts nothing, accuracy decides. The
subset with the least error itself would overfit the inputs it is searched on; `regrets` compares all such choices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.names import visible
from likewise._base.progress import Progress
from likewise.analysis.ensembles import drawn_again, ends, pair_reductions, with_ends
from likewise.analysis.families import symmetric_scores
from likewise.analysis.family_evidence import pairs
from likewise.analysis.picks.trials import Trial, best_subset, held_out_trial, wrong_by_choice
from likewise.errors import InputError, UndefinedError
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers


@dataclass(frozen=True)
class Pick:
    """Networks that were chosen, and why.

    Attributes:
        members: Their names.
        rule: How they were chosen.
        evidence: The evidence in numbers.
        reasons: The evidence in words.
        held_out: How the choice does on held-out inputs.
    """

    members: tuple[str, ...]
    rule: str
    evidence: Mapping[str, float] = field(repr=False)
    reasons: tuple[str, ...] = field(repr=False)
    held_out: Trial | None = field(default=None, repr=False)

    def __str__(self) -> str:
        lines = [visible(line) for line in (", ".join(self.members), *(f"- {reason}" for reason in self.reasons))]
        return "\n".join(lines if self.held_out is None else [*lines, str(self.held_out)])

    def record(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {
            "members": list(self.members),
            "rule": self.rule,
            "evidence": dict(self.evidence),
            "reasons": list(self.reasons),
            "held_out": None if self.held_out is None else self.held_out.record(),
        }


def pick_ensemble(matrix: SimilarityMatrix, answers: Answers, size: int, *, seed: int = 0) -> Pick:
    """Choose the members of an ensemble by how accurate the networks are and how alike.

    The choice is made on one half of the inputs and tried on the other. The matrix is taken as it is; if it was made
    on the same inputs, it has seen the held-out half too, though none of its ensembles.

    Args:
        matrix: How alike the networks are, by any measure.
        answers: What they answer to labelled inputs.
        size: How many members.
        seed: Draws the half of the inputs that the choice is made on.

    Raises:
        InputError: Matrix and answers are of different networks, or there is no such choice.
        UndefinedError: No network errs.
    """
    answers = matched(matrix, answers)
    check_size(size, len(answers))
    choosing, held = answers.split(0.5, seed)
    evidence = PickEvidence(matrix, choosing)
    members = evidence.choose(size)
    trial = held_out_trial(choosing, held, members, seed)
    return Pick(tuple(answers.names[i] for i in members), "predicted error", *evidence.of(members), trial)


def regrets(
    matrix: SimilarityMatrix,
    answers: Answers,
    size: int,
    *,
    zoos: int = 100,
    zoo_size: int = 15,
    labelled: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """Compute the mean regret of `pick_ensemble` and of other choices, over zoos drawn from a larger one.

    In each zoo a choice is made on a random half of the inputs, or on `labelled` of them, and compared with the best
    subset for the rest.

    Args:
        matrix: How alike the networks are, by any measure.
        answers: What they answer to labelled inputs.
        size: How many members.
        zoos: How many zoos are drawn.
        zoo_size: How many networks each has.
        labelled: How many inputs a choice is made on; by default half of them.
        seed: Draws zoos and inputs.
        progress: Whether to show a progress bar.

    Returns:
        One row per choice (see `Trial`): its mean `error` and `regret`, and `gain`, by how much the pick errs less.
        Ends hold 95 % over zoos drawn like these from these networks and inputs, not for other networks.
    """
    import pandas as pd

    answers = matched(matrix, answers)
    if not 3 <= zoo_size <= len(answers):
        raise InputError(f"{len(answers)} networks make no zoo of {zoo_size}. Choose from 3 to {len(answers)}.")
    check_size(size, zoo_size)
    if zoos < 2:
        raise InputError(f"zoos is {zoos}. Give at least 2.")
    if labelled is not None and not 0 < labelled < answers.n:
        raise InputError(
            f"labelled is {labelled} of {answers.n} inputs. Leave some to judge the choice by, and take one."
        )
    share = 0.5 if labelled is None else labelled / answers.n
    draw = np.random.default_rng(seed)
    errors: list[dict[str, float]] = []
    with Progress(zoos, "choosing ensembles", show=progress) as bar:
        for _ in range(zoos):
            names = [matrix.names[i] for i in draw.choice(len(answers), zoo_size, replace=False)]
            split_seed = int(draw.integers(2**31))
            choosing, held = answers.subset(names).split(share, split_seed)
            members = PickEvidence(matrix.reordered(names), choosing).choose(size)
            wrong, _ = wrong_by_choice(choosing, held, members, np.random.default_rng(split_seed))
            errors.append({name: float(row.mean()) for name, row in wrong.items()})
            bar.advance()
    frame, weights = pd.DataFrame(errors), drawn_again(zoos, draw)
    rows: dict[str, dict[str, float]] = {}
    for choice in errors[0]:
        columns = {"error": frame[choice], "regret": frame[choice] - frame["best"]}
        columns["gain"] = frame[choice] - frame["pick"]
        rows[choice] = {}
        for name, values in columns.items():
            mean, *again = values.to_numpy() @ weights
            rows[choice] |= with_ends(name, mean, *ends(again))
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("choice")


class PickEvidence:
    """What is known of networks before an ensemble is chosen: their errors, and how reductions depend on similarity."""

    def __init__(self, matrix: SimilarityMatrix, answers: Answers) -> None:
        self.matrix, self.answers, self.errors = matrix, answers, 1 - answers.accuracies
        sign = 1 if matrix.larger_is == "more alike" else -1
        alike = sign * symmetric_scores(matrix)
        reductions = pairs(pair_reductions(answers).values)
        defined = ~np.isnan(reductions)
        if not defined.any():
            raise UndefinedError(
                f"no network errs on the {answers.n} inputs that the choice is made on, so there is no error to "
                "reduce. Show them more inputs, or harder ones."
            )
        x, y = pairs(alike)[defined], reductions[defined]
        spread = float(((x - x.mean()) ** 2).sum())
        slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread) if spread > 0 else 0.0
        self.slope = sign * slope  # in the units of the matrix
        self.correlation = sign * slope * math.sqrt(spread / ((y - y.mean()) ** 2).sum()) if np.ptp(y) > 0 else 0.0
        self.telling = slope < 0
        predicted = y.mean() + min(slope, 0.0) * (alike - x.mean())
        self.reductions = np.where(np.eye(len(alike), dtype=bool), 0.0, np.minimum(predicted, 0.5))

    def predicted(self, subsets: Array) -> Array:
        """The predicted error of each subset: mean error x (1 - 2 (q - 1) / q x mean reduction of its pairs)."""
        among = self.reductions[subsets[:, :, None], subsets[:, None, :]].sum(axis=(1, 2))
        return np.asarray(self.errors[subsets].mean(axis=1) * (1 - 2 * among / subsets.shape[1] ** 2))

    def choose(self, size: int) -> Array:
        """The subset with the least predicted error."""
        return best_subset(self.predicted, len(self.errors), size)

    def of(self, members: Array) -> tuple[dict[str, float], tuple[str, ...]]:
        """The evidence for these members, in numbers and in words."""
        right, count = 1 - self.errors, len(pairs(self.reductions))
        similarity, words = similarity_among(self.matrix, members)
        numbers = {"accuracy": float(right[members].mean()), "accuracy_of_all": float(right.mean()), **similarity}
        numbers |= {"slope": self.slope, "correlation": self.correlation}
        numbers |= {"predicted_error": float(self.predicted(members[None])[0])}
        slope = f"changes by {self.slope:+.3g} per unit of it (correlation {self.correlation:+.2f})"
        return numbers, (
            f"accuracy: {numbers['accuracy']:.2%} on average on {self.answers.n} inputs, all {len(right)} networks "
            f"{numbers['accuracy_of_all']:.2%}",
            words,
            f"over {count} pairs, the error reduction {slope}"
            + ("" if self.telling else ": alike pairs do not gain less, so that accuracy alone decides"),
            f"predicted error {numbers['predicted_error']:.2%}",
        )


def matched(matrix: SimilarityMatrix, answers: Answers) -> Answers:
    """The answers in the order of the matrix, which has to be of the same networks."""
    odd = sorted(set(matrix.names) ^ set(answers.names))
    if odd:
        where, other = ("matrix", "answers") if odd[0] in matrix.names else ("answers", "matrix")
        raise InputError(
            f"{odd[0]!r} is in the {where} and not in the {other}. Give both the same networks: "
            "matrix.reordered([...]), answers.subset([...])."
        )
    return answers.subset(matrix.names)


def check_size(size: Any, networks: int) -> None:
    """Refuse what is no number of members."""
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or not 2 <= size <= networks:
        raise InputError(f"{networks} networks have no choice of {size}. Choose from 2 to {networks}.")


def similarity_among(matrix: SimilarityMatrix, members: Array) -> tuple[dict[str, float], str]:
    """How alike members are on average, and all networks, in numbers and in words."""
    values = symmetric_scores(matrix)
    inner, outer = (float(pairs(scores).mean()) for scores in (values[np.ix_(members, members)], values))
    name = matrix.measure or "similarity"
    words = f"{name}: {inner:.3g} on average between members, {outer:.3g} between all (larger is {matrix.larger_is})"
    return {"similarity": inner, "similarity_of_all": outer}, words
