"""Which measure tells best how much pairs of one's own networks gain as ensembles.

A measure is judged by other inputs than those it was computed on where it is computed here, from what the networks
answer: on the inputs themselves, disagreement and the gain of a pair are nearly the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.analysis.ensembles import pair_reductions
from likewise.analysis.matrix_agreement import Agreement, agreement
from likewise.analysis.picks.ensemble import matched
from likewise.errors import InputError, UndefinedError
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.registry import get

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers

OF_ANSWERS = ("disagreement", "jsd", "error-consistency", "same-mistake")  # what answers alone give
_LABELLED = ("error-consistency", "same-mistake")


@dataclass(frozen=True)
class GainPredictors:
    """How well measures predict the gain of pairs: their rank correlation with it, the best first.

    Attributes:
        correlations: By measure, the correlation with its interval over networks and p; 1 says that the more alike a
            pair is, the less it gains.
        inputs: How many inputs the gain was counted on.
        left_out: Why other measures have none, by name.
    """

    correlations: Mapping[str, Agreement]
    inputs: int
    left_out: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """Which measure predicts best, as far as these networks can tell, in a sentence."""
        (best, first), *others = self.correlations.items()
        if first.low <= 0:
            return "No measure surely predicts which pairs of these networks gain: accuracy is what to choose by."
        near = [name for name, other in others if other.high >= first.low]
        text = f"{best} predicts best which pairs of these networks gain ({first.correlation:.2f})"
        return f"{text}; {', '.join(near)} may do as well." if near else f"{text}."

    def to_frame(self) -> pd.DataFrame:
        """One row per measure: `correlation`, the `low` and `high` end of its interval, and `p`."""
        import pandas as pd

        rows = {
            name: {"correlation": one.correlation, "low": one.low, "high": one.high, "p": one.p}
            for name, one in self.correlations.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("measure")

    def record(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        rows = [{"measure": name, **row} for name, row in self.to_frame().to_dict("index").items()]
        return {"inputs": self.inputs, "measures": rows, "left_out": dict(self.left_out), "verdict": self.verdict}

    def __str__(self) -> str:
        heading = f"rank correlation of similarity with how little pairs gain, on {self.inputs} other inputs:"
        rows = [
            f"  {name:<20} {one.correlation:+.2f} [{one.low:+.2f}, {one.high:+.2f}]"
            for name, one in self.correlations.items()
        ]
        return "\n".join([heading, *rows, self.verdict])


def gain_predictors(
    matrices: SimilarityMatrix | Iterable[SimilarityMatrix], answers: Answers, *, seed: int = 0
) -> GainPredictors:
    """Compare measures by how well they predict which pairs of networks gain as ensembles.

    The gain is the error reduction of pairs on one half of the inputs. The given matrices are taken as they are; those
    of disagreement, Jensen-Shannon divergence, error consistency and same mistakes are computed on the other half.

    Args:
        matrices: How alike the networks are, by one measure or several.
        answers: What they answer to labelled inputs.
        seed: Draws the halves, and resamples networks.

    Returns:
        The rank correlation of each measure, the best first.

    Raises:
        InputError: Matrices and answers are of different networks, or of fewer than four.
        UndefinedError: A pair has no error to reduce.
    """
    given = [matrices] if isinstance(matrices, SimilarityMatrix) else list(matrices)
    for one in given:
        answers = matched(one, answers)
    if len(answers) < 4:
        raise InputError(f"{len(answers)} networks have too few pairs to compare measures by. Give four or more.")
    known, others = answers.split(0.5, seed)
    gains = pair_reductions(others)
    if undefined := [pair for pair in gains.reasons if pair[0] != pair[1]]:
        a, b = undefined[0]
        raise UndefinedError(
            f"neither {a!r} nor {b!r} errs on the {others.n} inputs that gains are counted on, so there is nothing to "
            "predict. Show them more inputs, or harder ones."
        )
    named = {one.measure or "similarity": one for one in given}
    for name in OF_ANSWERS:
        named.setdefault(name, _of_answers(name, known))
    correlations, left_out = {}, {}
    for name, matrix in named.items():
        try:
            correlations[name] = agreement(matrix, gains, how="spearman", permutations=999, resamples=400, seed=seed)
        except InputError as error:  # a pair has no score, or all have the same
            left_out[name] = str(error)
    if not correlations:
        raise UndefinedError(f"no measure can be compared with the gain: {next(iter(left_out.values()))}")
    order = sorted(correlations, key=lambda name: -correlations[name].correlation)
    return GainPredictors({name: correlations[name] for name in order}, others.n, left_out)


def _of_answers(name: str, answers: Answers) -> SimilarityMatrix:
    measure, logits = get(name), torch.from_numpy(answers.logits).double()
    options = {"labels": answers.labels} if name in _LABELLED else {}
    values = np.full((len(answers),) * 2, np.nan)
    np.fill_diagonal(values, 0)  # which nothing reads
    for i, j in combinations(range(len(answers)), 2):
        try:
            values[i, j] = values[j, i] = float(measure(logits[i], logits[j], **options))
        except UndefinedError:
            continue
    info = measure.info
    return SimilarityMatrix(answers.names, values, measure=info.name, larger_is=info.larger_is, bounds=info.bounds)
