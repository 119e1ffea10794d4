"""Vary the options of a measure over the stored views of a run, which costs no training.

`jaccard[k=5,10,20]` stands for three measures, `gulp[resi, ridge=0,0.1]` for two; several options are combined. Results
come in the frame of every run, with the options in the name of the measure, so tables and ranks show them side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.benchmark.results.frame import REPETITION, Results
from likewise.benchmark.runs import BenchmarkRun
from likewise.benchmark.trials import Evaluator
from likewise.errors import InputError
from likewise.measures.function import Measure
from likewise.measures.registry import get

if TYPE_CHECKING:
    import pandas as pd

Evaluate = Callable[[Sequence[Measure]], "pd.DataFrame"]


def expand(spec: str) -> list[str]:
    """The measures that a text with several values per option stands for.

    >>> expand("jaccard[k=5,10,20]")
    ['jaccard[k=5]', 'jaccard[k=10]', 'jaccard[k=20]']
    >>> expand("gulp[resi, ridge=0,0.1]"), expand("cka")
    (['gulp[resi, ridge=0]', 'gulp[resi, ridge=0.1]'], ['cka'])
    """
    name, bracket, rest = spec.partition("[")
    if not bracket:
        return [spec]
    if not rest.endswith("]") or not name:
        raise InputError(f"{spec!r} cannot be read. Write options in brackets: 'jaccard[k=5,10,20]'.")
    options: list[tuple[str, list[str]]] = []
    for number, word in enumerate(word.strip() for word in rest[:-1].split(",")):
        option, equals, value = (piece.strip() for piece in word.partition("="))
        if equals and option and value:
            options.append((f"{option}=", [value]))
        elif not equals and word and number == 0:
            options.append(("", [word]))  # the variant
        elif not equals and word and options and options[-1][0]:
            options[-1][1].append(word)
        else:
            raise InputError(f"{spec!r} cannot be read at {word!r}. Write 'jaccard[k=5,10,20]'.")
    combinations = product(*([f"{option}{value}" for value in values] for option, values in options))
    return [f"{name}[{', '.join(words)}]" for words in combinations]


def sweep_with(evaluate: Evaluate, specs: str | Iterable[str]) -> pd.DataFrame:
    """The results of every measure that the specs stand for, by a function from measures to results.

    Each is evaluated alone, since results go by the name of a measure, and gets its options into that name.
    """
    import pandas as pd

    keys = dict.fromkeys(key for spec in ([specs] if isinstance(specs, str) else specs) for key in expand(spec))
    if not keys:
        raise InputError("no measure was given to vary. Name one with its options: 'jaccard[k=5,10,20]'.")
    bound = [get(key) for key in keys]  # a wrong option is refused before anything is computed
    return pd.concat([evaluate([measure]).assign(measure=_name(measure)) for measure in bound], ignore_index=True)


def _name(measure: Measure) -> str:
    """The name with all options that were given, defaults too: 'jaccard[k=10]' stands beside 'jaccard[k=5]'."""
    options = ", ".join(f"{name}={value}" for name, value in measure.options.items())
    return f"{measure.name}[{options}]" if options else measure.name


def sweep(
    run_folder: str | os.PathLike[str],
    specs: str | Iterable[str],
    *,
    data: str | None = None,
    progress: bool = True,
) -> Results:
    """Evaluate measures with varied options on the networks of a run; nothing is trained.

    Args:
        run_folder: The folder of a run, whose views and scores are used and added to.
        specs: One or more like 'jaccard[k=5,10,20]'.
        data: The address of its data, where it is not built in.
        progress: Whether progress is shown.

    Raises:
        InputError: A text cannot be read, or the folder holds no run.
    """
    folder = Path(run_folder)
    run = BenchmarkRun.load(folder, data=data)
    trials = run.trials()

    def evaluate(measures: Sequence[Measure]) -> pd.DataFrame:
        return Evaluator(measures, folder / "store", None, folder / "rows", progress).evaluate(trials)

    settings = {name: run.settings[name] for name in REPETITION}
    return Results.from_frame(sweep_with(evaluate, specs).assign(**settings), str(folder))
