"""Which networks to put into an ensemble, or to choose for being unlike: with the evidence, and what it is worth.

The error of an ensemble is predicted from two things, its members' errors and how alike they are: pairs say how much
the error reduction falls with similarity, and q members reduce what their pairs do, 2 (q - 1) / q as much (as far as
errors average like independent noise around a shared error). Where similarity predicts nothing, accuracy decides. The
subset with the least error itself would overfit the inputs it is searched on; `regrets` compares all such choices.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise._base.arrays import Array
from likewise._base.names import visible
from likewise._base.progress import Progress
from likewise.analysis.ensembles import LEVEL, Ensembles, drawn_again, ends, pair_reductions, subsets_of, with_ends
from likewise.analysis.families import symmetric_scores
from likewise.analysis.family_evidence import pairs
from likewise.errors import InputError, UndefinedError, check_seed
from likewise.matrices.shares import wilson
from likewise.matrices.similarity import SimilarityMatrix
from likewise.matrices.uncertainty import Interval

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers

EXHAUSTIVE, RANDOM = 5000, 1000  # subsets that are all tried; that stand for a random choice
FLOOR = 0.01  # of the mean similarity, below which none counts, so that no network is certain to be drawn
Rule = Literal["inverse", "similar", "random"]
_WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "inverse": lambda alike: 1 / alike,
    "similar": lambda alike: alike,
    "random": np.ones_like,
}


@dataclass(frozen=True)
class Trial:
    """How choices of members do on inputs that none of them was made on, by the name of the choice.

    "pick" is the one that was made, "accuracy" as many of the most accurate networks, "ensemble" the subset with the
    least error on the inputs the choice was made on, and "random" the mean of random subsets. Intervals hold 95 % over
    inputs; where only accuracies are known, there are none.

    Attributes:
        inputs: How many held-out inputs, 0 where only accuracies are known.
        errors: The error of each choice.
        regrets: Its error above that of `best`.
        gains: By how much the pick errs less.
        best: The best subset for these very inputs, which nobody can know beforehand.
    """

    inputs: int
    errors: Mapping[str, Interval]
    regrets: Mapping[str, Interval]
    gains: Mapping[str, Interval]
    best: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per choice."""
        import pandas as pd

        columns = {"error": self.errors, "regret": self.regrets, "gain": self.gains}
        rows: dict[str, dict[str, float]] = {}
        for choice in self.errors:
            rows[choice] = {}
            for name, intervals in columns.items():
                interval = intervals[choice]
                rows[choice] |= with_ends(name, float(interval.value), float(interval.low), float(interval.high))
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("choice")

    def record(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        rows = json.loads(self.to_frame().reset_index().to_json(orient="records", double_precision=15))
        return {"inputs": self.inputs, "best": list(self.best), "choices": rows}

    def __str__(self) -> str:
        import pandas as pd

        columns = {"error": self.errors, "regret": self.regrets, "pick errs less by": self.gains}
        text = {name: [_percent(interval) for interval in intervals.values()] for name, intervals in columns.items()}
        table = pd.DataFrame(text, index=list(self.errors)).to_string()
        heading = f"on {self.inputs} held-out inputs, with 95 % intervals" if self.inputs else "by the accuracies given"
        return f"{heading}, in percent:\n{table}" + (f"\n{self.verdict}" if self.inputs else "")

    @property
    def verdict(self) -> str:
        """Whether the pick errs less than a random choice, as far as these inputs can tell, in a sentence."""
        gain = self.gains["random"]
        if gain.low > 0 or gain.high < 0:
            return f"The pick errs {'less' if gain.low > 0 else 'more'} than random choices."
        return f"{self.inputs} inputs are too few to tell whether the pick errs less than random choices."


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
    trial = _held_out_trial(choosing, held, members, seed)
    return Pick(tuple(answers.names[i] for i in members), "predicted error", *evidence.of(members), trial)


def pick_diverse(
    matrix: SimilarityMatrix, k: int, rule: Rule = "inverse", *, seed: int = 0, answers: Answers | None = None
) -> Pick:
    """Draw diverse networks one after another, each in inverse proportion to how alike it is to those drawn before.

    As in k-means++, the most alike of those drawn before counts. A distance counts as the inverse of a similarity.

    Args:
        matrix: How alike the networks are, by any measure.
        k: How many to draw.
        rule: "inverse"; "similar" draws in proportion to the similarity, "random" regardless of it.
        seed: Draws the networks.
        answers: What they answer to labelled inputs, to try them as an ensemble on held-out inputs.
    """
    if rule not in _WEIGHTS:
        raise InputError(f"no rule named {rule!r}. Choose {', '.join(map(repr, _WEIGHTS))}.")
    alike = _positive(matrix)
    check_size(k, len(alike))
    check_seed(seed)
    draw = np.random.default_rng(seed)
    members = [int(draw.integers(len(alike)))]
    while len(members) < k:
        weights = _WEIGHTS[rule](alike[members].max(axis=0))
        weights[members] = 0
        members.append(int(draw.choice(len(alike), p=weights / weights.sum())))
    numbers, words = _similarity(matrix, np.array(members))
    trial = None
    if answers is not None:
        trial = _held_out_trial(*matched(matrix, answers).split(0.5, seed), np.array(members), seed)
    return Pick(tuple(matrix.names[i] for i in members), rule, numbers, (words,), trial)


def regrets(
    matrix: SimilarityMatrix,
    answers: Answers,
    size: int,
    *,
    zoos: int = 100,
    zoo_size: int = 15,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """Compute the mean regret of `pick_ensemble` and of other choices, over zoos drawn from a larger one.

    In each zoo a choice is made on a random half of the inputs and compared with the best subset for the other half.

    Args:
        matrix: How alike the networks are, by any measure.
        answers: What they answer to labelled inputs.
        size: How many members.
        zoos: How many zoos are drawn.
        zoo_size: How many networks each has.
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
    draw = np.random.default_rng(seed)
    errors: list[dict[str, float]] = []
    with Progress(zoos, "choosing ensembles", show=progress) as bar:
        for _ in range(zoos):
            names = [matrix.names[i] for i in draw.choice(len(answers), zoo_size, replace=False)]
            split_seed = int(draw.integers(2**31))
            choosing, held = answers.subset(names).split(0.5, split_seed)
            members = PickEvidence(matrix.reordered(names), choosing).choose(size)
            wrong, _ = _wrong_by_choice(choosing, held, members, np.random.default_rng(split_seed))
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
        similarity, words = _similarity(self.matrix, members)
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


def best_subset(value: Callable[[Array], Array], networks: int, size: int) -> Array:
    """The subset of least value: of all where they are few; else members are added, then swapped while that helps."""
    if math.comb(networks, size) <= EXHAUSTIVE:
        every = np.array(list(combinations(range(networks), size)))
        return np.asarray(every[value(every).argmin()])
    members: list[int] = []
    while len(members) < size:
        tried = np.array([[*members, other] for other in range(networks) if other not in members])
        members = tried[value(tried).argmin()].tolist()
    least = float(value(np.array([members]))[0])
    while True:
        others = [other for other in range(networks) if other not in members]
        tried = np.array([[*members[:i], other, *members[i + 1 :]] for i in range(size) for other in others])
        values = value(tried)
        if values.min() >= least - 1e-12:
            return np.sort(members)
        members, least = tried[values.argmin()].tolist(), float(values.min())


def _held_out_trial(choosing: Answers, held: Answers, members: Array, seed: int) -> Trial:
    draw = np.random.default_rng(seed)
    wrong, best = _wrong_by_choice(choosing, held, members, draw)
    return make_trial(wrong, tuple(held.names[i] for i in best), draw)


def _wrong_by_choice(
    choosing: Answers, held: Answers, members: Array, draw: np.random.Generator
) -> tuple[dict[str, Array], Array]:
    """How far each choice is wrong on each held-out input, and the best subset for these inputs."""
    ensembles, size = Ensembles(held), len(members)
    best = best_subset(ensembles.errors, len(held), size)
    accurate = np.argsort(-choosing.accuracies, kind="stable")[:size]
    searched = best_subset(Ensembles(choosing).errors, len(choosing), size)
    subsets = {"pick": members, "accuracy": accurate, "ensemble": searched, "best": best}
    wrong = {name: ensembles.wrong(subset)[0].astype(float) for name, subset in subsets.items()}
    wrong["random"] = ensembles.wrong(subsets_of(len(held), size, RANDOM, draw)).mean(axis=0)
    return wrong, best


def make_trial(wrong: Mapping[str, Array], best: tuple[str, ...], draw: np.random.Generator) -> Trial:
    """The trial of choices, from how far each is wrong on each held-out input, or on average where there is one."""
    above = {name: row - wrong["best"] for name, row in wrong.items()}
    less = {name: row - wrong["pick"] for name, row in wrong.items()}
    inputs = len(wrong["best"])
    weights = drawn_again(inputs, draw) if inputs > 1 else np.array([[1.0, np.nan]])
    regrets, gains = ({name: _interval(row @ weights) for name, row in rows.items()} for rows in (above, less))
    errors = {name: _error(float(row.mean()), inputs) for name, row in wrong.items()}
    return Trial(inputs if inputs > 1 else 0, errors, regrets, gains, best)


def _interval(values: Array) -> Interval:
    low, high = ends(values[1:])
    return Interval("error", float(values[0]), low, high, LEVEL, method="bootstrap over inputs")


def _error(share: float, inputs: int) -> Interval:
    """The share of inputs that are wrong: none of few may still be some of others."""
    low, high = wilson(share, inputs) if inputs > 1 else (math.nan, math.nan)
    return Interval("error", share, low, high, LEVEL, method="Wilson")


def _percent(interval: Interval) -> str:
    text = f"{100 * interval.value:.2f}"
    if math.isnan(interval.low):
        return text
    return f"{text} [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"


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


def _positive(matrix: SimilarityMatrix) -> Array:
    values = symmetric_scores(matrix)
    above = pairs(values)[pairs(values) > 0]
    values = np.maximum(values, FLOOR * float(above.mean()) if len(above) else 1.0)
    return values if matrix.larger_is == "more alike" else 1 / values


def _similarity(matrix: SimilarityMatrix, members: Array) -> tuple[dict[str, float], str]:
    values = symmetric_scores(matrix)
    inner, outer = (float(pairs(scores).mean()) for scores in (values[np.ix_(members, members)], values))
    name = matrix.measure or "similarity"
    words = f"{name}: {inner:.3g} on average between members, {outer:.3g} between all (larger is {matrix.larger_is})"
    return {"similarity": inner, "similarity_of_all": outer}, words
