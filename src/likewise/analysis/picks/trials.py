"""How choices of members do on inputs that none of them was made on, and the choices that others would make.

Beside the pick stand as many of the most accurate networks, the subset that errs least on the inputs the choice is made
on, and Caruana's greedy selection: the network after which the ensemble errs least is added, again and again, and one
that was added before may be added once more, so that it weighs more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.ensembles import LEVEL, Ensembles, drawn_again, ends, subsets_of, with_ends
from likewise.errors import check_count
from likewise.matrices.shares import wilson
from likewise.matrices.uncertainty import Interval

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers

EXHAUSTIVE, RANDOM = 5000, 1000  # subsets that are all tried; that stand for a random choice


@dataclass(frozen=True)
class Trial:
    """How choices of members do on inputs that none of them was made on, by the name of the choice.

    "pick" is the one that was made, "accuracy" as many of the most accurate networks, "ensemble" the subset with the
    least error on the inputs the choice was made on, "greedy" what Caruana's selection adds in as many steps, and
    "random" the mean of random subsets. Intervals hold 95 % over inputs; where only accuracies are known, there are
    none.

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


def greedy_members(answers: Answers, size: int) -> list[str]:
    """Choose members as Caruana et al. (2004) do: greedily, with replacement.

    The network after which the ensemble errs least is added, `size` times; of equals, the one that errs least alone.

    Args:
        answers: What networks answer to labelled inputs.
        size: How many are added; one that is added twice weighs twice.

    Returns:
        Names in the order they were added.

    Example:
        >>> from likewise.transfer import Answers
        >>> two = Answers(["a", "b"], [[[2, 0], [1, 0]], [[0, 1], [0, 3]]], [0, 1])
        >>> greedy_members(two, 3)  # either errs once, and both together on none
        ['a', 'b', 'a']
    """
    check_count("size", size)
    return [answers.names[i] for i in greedy(Ensembles(answers), 1 - answers.accuracies, size)]


def greedy(ensembles: Ensembles, alone: Array, size: int) -> list[int]:
    """The members that greedy selection adds; `alone` are the errors of the networks."""
    members: list[int] = []
    for _ in range(size):
        errors = ensembles.errors(np.array([[*members, other] for other in range(len(alone))]))
        members.append(int(np.lexsort((alone, np.round(errors, 12)))[0]))
    return members


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


def held_out_trial(choosing: Answers, held: Answers, members: Array, seed: int) -> Trial:
    """How a choice that was made on some inputs does on others."""
    draw = np.random.default_rng(seed)
    wrong, best = wrong_by_choice(choosing, held, members, draw)
    return make_trial(wrong, tuple(held.names[i] for i in best), draw)


def wrong_by_choice(
    choosing: Answers, held: Answers, members: Array, draw: np.random.Generator
) -> tuple[dict[str, Array], Array]:
    """How far each choice is wrong on each held-out input, and the best subset for these inputs."""
    ensembles, size = Ensembles(held), len(members)
    best = best_subset(ensembles.errors, len(held), size)
    accurate = np.argsort(-choosing.accuracies, kind="stable")[:size]
    known = Ensembles(choosing)
    searched = best_subset(known.errors, len(choosing), size)
    added = np.array(greedy(known, 1 - choosing.accuracies, size))
    subsets = {"pick": members, "accuracy": accurate, "ensemble": searched, "greedy": added, "best": best}
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
