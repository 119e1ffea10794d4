"""Which networks to put into an ensemble, or to choose for being unlike: with the evidence, and what it is worth.

The error of an ensemble is predicted from two things, its members' errors and how alike they are: pairs say how much
the error reduction falls with similarity, and q members reduce what their pairs do, 2 (q - 1) / q as much (as far as
errors average like independent noise around a shared part). Where similarity says nothing, accuracy decides. The subset
with the least error itself would fit the inputs it is looked for on; `regrets` holds all such choices against each
other.
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
from likewise.analysis.affinity import checked, pairs
from likewise.analysis.ensembles import LEVEL, Ensembles, drawn_again, ends, pair_reductions, subsets_of
from likewise.errors import InputError, UndefinedError
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
    """How choices do on inputs that none of them was made on, by the name of the choice.

    "pick" is the one that was made, "accuracy" as many of the most accurate networks, "ensemble" the subset with the
    least error on the inputs the choice was made on, and "random" the mean of random subsets. `regrets` are errors
    above that of `best`, the best subset for these very inputs, which nobody can know beforehand; `gains` are by how
    much the pick errs less than each. Ends hold 95 % over inputs; where only accuracies are known, and `inputs` is 0,
    there are none.
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
        rows = {}
        for choice in self.errors:
            found = [(name, intervals[choice]) for name, intervals in columns.items()]
            ends_of = {f"{name}_{end}": getattr(one, end) for name, one in found for end in ("value", "low", "high")}
            rows[choice] = {name.removesuffix("_value"): value for name, value in ends_of.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("choice")

    def record(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        rows = json.loads(self.to_frame().reset_index().to_json(orient="records", double_precision=15))
        return {"inputs": self.inputs, "best": list(self.best), "choices": rows}

    def __str__(self) -> str:
        import pandas as pd

        columns = {"error": self.errors, "regret": self.regrets, "pick errs less by": self.gains}
        text = {name: [_percent(each) for each in intervals.values()] for name, intervals in columns.items()}
        table = pd.DataFrame(text, index=list(self.errors)).to_string()
        heading = f"on {self.inputs} held-out inputs, with 95 % intervals" if self.inputs else "by the accuracies given"
        return f"{heading}, in percent:\n{table}"


@dataclass(frozen=True)
class Pick:
    """Networks that were chosen, the evidence in numbers and in words, and how the choice does on held-out inputs."""

    members: tuple[str, ...]
    rule: str
    evidence: Mapping[str, float] = field(repr=False)
    reasons: tuple[str, ...] = field(repr=False)
    held_out: Trial | None = field(default=None, repr=False)

    def __str__(self) -> str:
        lines = [", ".join(self.members), *(f"- {reason}" for reason in self.reasons)]
        return "\n".join(lines if self.held_out is None else [*lines, str(self.held_out)])

    def record(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        own = {"members": list(self.members), "rule": self.rule, "evidence": dict(self.evidence)}
        trial = None if self.held_out is None else self.held_out.record()
        return own | {"reasons": list(self.reasons), "held_out": trial}


def pick_ensemble(matrix: SimilarityMatrix, answers: Answers, size: int, *, seed: int = 0) -> Pick:
    """The members of an ensemble, from how accurate the networks are and how alike.

    The choice is made on one half of the inputs, drawn by the seed, and tried on the other. The matrix is taken as it
    is; if it was made on the same inputs, it has seen the held-out half too, though none of its ensembles.
    """
    answers = matched(matrix, answers)
    check_size(size, len(answers))
    choosing, held = answers.split(0.5, seed)
    evidence = Evidence(matrix, choosing)
    members = evidence.choose(size)
    trial = _trial(choosing, held, members, seed)
    return Pick(_names(answers, members), "predicted error", *evidence.of(members), trial)


def pick_diverse(
    matrix: SimilarityMatrix, k: int, rule: Rule = "inverse", *, seed: int = 0, answers: Answers | None = None
) -> Pick:
    """Networks drawn one after another, each in inverse proportion to how alike it is to those drawn before.

    As in k-means++, the most alike of those drawn before counts. The rule "similar" draws in proportion to it,
    "random" whatever it is. A distance counts as the inverse of a similarity. With answers, the networks are tried
    as an ensemble on held-out inputs.
    """
    if rule not in _WEIGHTS:
        raise InputError(f"no rule named {rule!r}. Choose {', '.join(map(repr, _WEIGHTS))}.")
    alike = _positive(matrix)
    check_size(k, len(alike))
    draw = np.random.default_rng(seed)
    members = [int(draw.integers(len(alike)))]
    while len(members) < k:
        weights = _WEIGHTS[rule](alike[members].max(axis=0))
        weights[members] = 0
        members.append(int(draw.choice(len(alike), p=weights / weights.sum())))
    numbers, words = _similarity(matrix, np.array(members))
    trial = None if answers is None else _trial(*matched(matrix, answers).split(0.5, seed), np.array(members), seed)
    return Pick(tuple(matrix.names[i] for i in members), rule, numbers, (words,), trial)


class Evidence:
    """What is known of networks before an ensemble is chosen: their errors, and how reductions go with similarity."""

    def __init__(self, matrix: SimilarityMatrix, answers: Answers) -> None:
        self.matrix, self.answers, self.errors = matrix, answers, 1 - answers.accuracies
        sign = 1 if matrix.larger_is == "more alike" else -1
        alike = sign * checked(matrix)
        reductions = pairs(pair_reductions(answers).values)
        known = ~np.isnan(reductions)
        if not known.any():
            raise UndefinedError(
                f"no network errs on the {answers.n} inputs that the choice is made on, so there is no error to "
                "reduce. Show them more inputs, or harder ones."
            )
        x, y = pairs(alike)[known], reductions[known]
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
        found: Array = self.errors[subsets].mean(axis=1) * (1 - 2 * among / subsets.shape[1] ** 2)
        return found

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
        moves = f"goes with it by {self.slope:+.3g} per unit (correlation {self.correlation:+.2f})"
        return numbers, (
            f"accuracy: {numbers['accuracy']:.2%} on average on {self.answers.n} inputs, all {len(right)} networks "
            f"{numbers['accuracy_of_all']:.2%}",
            words,
            f"over {count} pairs, the error reduction {moves}"
            + ("" if self.telling else ": alike pairs do not gain less, so that accuracy alone decides"),
            f"predicted error {numbers['predicted_error']:.2%}",
        )


def best_subset(value: Callable[[Array], Array], networks: int, size: int) -> Array:
    """The subset of least value: of all where they are few; else members are added, then swapped while that helps."""
    if math.comb(networks, size) <= EXHAUSTIVE:
        every = np.array(list(combinations(range(networks), size)))
        return np.asarray(every[value(every).argmin()])
    chosen: list[int] = []
    while len(chosen) < size:
        tried = np.array([[*chosen, other] for other in range(networks) if other not in chosen])
        chosen = tried[value(tried).argmin()].tolist()
    least = float(value(np.array([chosen]))[0])
    while True:
        others = [other for other in range(networks) if other not in chosen]
        tried = np.array([[*chosen[:i], other, *chosen[i + 1 :]] for i in range(size) for other in others])
        values = value(tried)
        if values.min() >= least - 1e-12:
            return np.sort(chosen)
        chosen, least = tried[values.argmin()].tolist(), float(values.min())


def choices(choosing: Answers, size: int) -> dict[str, Array]:
    """What would be chosen by accuracy alone, and by the error of the ensemble itself."""
    accurate = np.argsort(-choosing.accuracies, kind="stable")[:size]
    return {"accuracy": accurate, "ensemble": best_subset(Ensembles(choosing).errors, len(choosing), size)}


def _trial(choosing: Answers, held: Answers, members: Array, seed: int) -> Trial:
    draw, ensembles, size = np.random.default_rng(seed), Ensembles(held), len(members)
    best = best_subset(ensembles.errors, len(held), size)
    every = {"pick": members, **choices(choosing, size), "best": best}
    wrong = {name: ensembles.wrong(subset)[0].astype(float) for name, subset in every.items()}
    wrong["random"] = ensembles.wrong(subsets_of(len(held), size, RANDOM, draw)).mean(axis=0)
    return trial_of(wrong, _names(held, best), draw)


def trial_of(wrong: Mapping[str, Array], best: tuple[str, ...], draw: np.random.Generator) -> Trial:
    """The trial of choices, from how far each is wrong on each held-out input, or on average where there is one."""
    above = {name: row - wrong["best"] for name, row in wrong.items()}
    less = {name: row - wrong["pick"] for name, row in wrong.items()}
    inputs = len(wrong["best"])
    weights = drawn_again(inputs, draw) if inputs > 1 else np.array([[1.0, np.nan]])
    errors, regrets, gains = (
        {name: _interval(row @ weights) for name, row in rows.items()} for rows in (wrong, above, less)
    )
    return Trial(inputs if inputs > 1 else 0, errors, regrets, gains, best)


def _interval(values: Array) -> Interval:
    low, high = ends(values[1:])
    return Interval("error", float(values[0]), low, high, LEVEL, method="bootstrap over inputs")


def _percent(one: Interval) -> str:
    text = f"{100 * one.value:.2f}"
    return text if one.low != one.low else f"{text} [{100 * one.low:.2f}, {100 * one.high:.2f}]"


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
    values = checked(matrix)
    above = pairs(values)[pairs(values) > 0]
    values = np.maximum(values, FLOOR * float(above.mean()) if len(above) else 1.0)
    return values if matrix.larger_is == "more alike" else 1 / values


def _similarity(matrix: SimilarityMatrix, members: Array) -> tuple[dict[str, float], str]:
    values = checked(matrix)
    own, whole = (float(pairs(part).mean()) for part in (values[np.ix_(members, members)], values))
    name = matrix.measure or "similarity"
    words = f"{name}: {own:.3g} on average between members, {whole:.3g} between all (larger is {matrix.larger_is})"
    return {"similarity": own, "similarity_of_all": whole}, words


def _names(answers: Answers, members: Array) -> tuple[str, ...]:
    return tuple(answers.names[i] for i in members)
