"""How well choices of ensembles do over many zoos, drawn from a larger one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise._base.progress import Progress
from likewise.analysis.ensembles import Ensembles, drawn_again, ends, subsets_of
from likewise.analysis.picks import RANDOM, Evidence, best_subset, check_size, choices, matched
from likewise.errors import InputError
from likewise.matrices.similarity import SimilarityMatrix

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers


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
    """The mean regret of `pick_ensemble` and of other choices, over zoos and halves of the inputs drawn at random.

    In each zoo a choice is made on one half of the inputs and held against the best subset for the other half. One
    row per choice (see `Trial`): its mean `error` and `regret`, and `gain`, by how much the pick errs less. Ends
    hold 95 % over zoos drawn like these from these networks and inputs; of other networks they say nothing.
    """
    import pandas as pd

    answers = matched(matrix, answers)
    if not 3 <= zoo_size <= len(answers):
        raise InputError(f"{len(answers)} networks make no zoo of {zoo_size}. Choose from 3 to {len(answers)}.")
    check_size(size, zoo_size)
    if zoos < 2:
        raise InputError(f"zoos is {zoos}. Give at least 2.")
    draw = np.random.default_rng(seed)
    found: list[dict[str, float]] = []
    with Progress(zoos, "choosing ensembles", shown=progress) as bar:
        for _ in range(zoos):
            names = [matrix.names[i] for i in draw.choice(len(answers), zoo_size, replace=False)]
            split_seed = int(draw.integers(2**31))
            found.append(_errors(matrix.reordered(names), answers.subset(names), size, split_seed))
            bar.advance()
    errors = pd.DataFrame(found)
    weights = drawn_again(zoos, draw)
    rows: dict[str, dict[str, float]] = {}
    for choice in found[0]:
        columns = {"error": errors[choice], "regret": errors[choice] - errors["best"]}
        columns["gain"] = errors[choice] - errors["pick"]
        rows[choice] = {}
        for name, values in columns.items():
            mean, *again = values.to_numpy() @ weights
            rows[choice] |= dict(zip((name, f"{name}_low", f"{name}_high"), (mean, *ends(again)), strict=True))
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("choice")


def _errors(matrix: SimilarityMatrix, answers: Answers, size: int, seed: int) -> dict[str, float]:
    """The error on held-out inputs of each choice."""
    choosing, held = answers.split(0.5, seed)
    ensembles = Ensembles(held)
    subsets = {"pick": Evidence(matrix, choosing).choose(size), **choices(choosing, size)}
    subsets["best"] = best_subset(ensembles.errors, len(held), size)
    found = dict(zip(subsets, ensembles.errors(np.array(list(subsets.values()))).tolist(), strict=True))
    every = subsets_of(len(held), size, RANDOM, np.random.default_rng(seed))
    return found | {"random": float(ensembles.errors(every).mean())}
