"""Everything there is to see of one inspection: curves, joint panels, matrices, mistakes, templates, a film.

Matrices, mistakes and templates are those of a few epochs, which are shown the data once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import write_whole
from likewise._base.names import csv_text
from likewise.classes.confusion import Templates, templates
from likewise.classes.pictures.curves import joint
from likewise.classes.pictures.film import animate
from likewise.classes.pictures.still import TITLES, histogram, matrices, mistakes
from likewise.data import Data
from likewise.errors import InputError, brief
from likewise.views.activations import Outputs

if TYPE_CHECKING:
    from likewise.classes.inspector import Inspector
    from likewise.views.activations import Activations

SHOWN = 4  # epochs that are shown by default
DRAWN = TITLES | {"confusion_adversarial": "mistakes under attack (CCSM)"}


def epochs_shown(numbers: Sequence[int], asked: Sequence[int] | None = None) -> list[int]:
    """The epochs to show: those asked for, or four from the first to the last, each about as many times the one before.

    >>> epochs_shown(range(31))
    [1, 3, 10, 30]
    """
    if asked is not None:
        if not isinstance(asked, Iterable):
            raise InputError(f"shown is {brief(asked)}. Give a list of epochs.")
        for number in asked:
            if number not in numbers:
                raise InputError(
                    f"epoch {number} cannot be shown. There are: {', '.join(map(str, numbers)) or 'none'}."
                )
        return sorted(set(asked))
    trained = [number for number in numbers if number > 0] or list(numbers)
    steps = np.geomspace(trained[0], trained[-1], SHOWN) if trained[0] > 0 else np.array(trained[:1])
    return sorted({min(trained, key=lambda number: abs(number - step)) for step in steps})


def draw(
    inspector: Inspector,
    folder: Path,
    shown: Sequence[int],
    splits: Mapping[str, Data],
    view: Callable[[int, Data], Activations],
) -> None:
    """Write all pictures of an inspection.

    Args:
        inspector: What inspected the training.
        folder: Its folder.
        shown: The epochs whose matrices, mistakes and templates are drawn.
        splits: The data by split.
        view: What the network of an epoch gives on data, at the input of its classifier.
    """
    frame, chance = inspector.curves(), inspector.chance()
    inspector.plot(folder / "curves.png")
    joint(frame, folder / "joint.png", chance=chance)
    epochs = {number: inspector.matrices(number) for number in shown}
    for kind, title in DRAWN.items():
        present = {f"{title}, epoch {n}": found[kind] for n, found in epochs.items() if kind in found}
        if present:
            reference = {} if inspector.reference is None else {"meaning (WordNet)": inspector.reference}
            matrices(present | reference, folder / f"matrices-{kind}.png")
    animate(inspector, folder / "film.html")
    if splits["test"].domain == "graph":  # whose nodes are all shown, whatever is asked for
        return
    cosines: dict[tuple[str, int], Templates] = {}
    for number in shown:
        for split, data in splits.items():
            seen = view(number, data)
            assert seen.outputs is not None
            assert seen.outputs.labels is not None
            if f"features{'' if split == 'test' else '_train'}" in epochs[number]:
                cosines[split, number] = templates(seen.values, seen.outputs.labels, seen.outputs.predictions)
            if split == "test":
                _mistakes(inspector, folder / f"mistakes-{number:04d}.png", data, epochs[number], seen.outputs)
    if cosines:
        _templates(folder, cosines)


def _mistakes(inspector: Inspector, path: Path, data: Data, epoch: Mapping[str, Any], outputs: Outputs) -> None:
    """The images with the most and the least reasonable mistakes, by meaning, else by the network itself."""
    judge = inspector.reference or epoch.get("weights")
    answers, labels = np.asarray(outputs.predictions), np.asarray(outputs.labels)
    if data.domain == "image" and judge is not None and (answers != labels).any():
        mistakes(data, answers, judge, path)


def _templates(folder: Path, cosines: Mapping[tuple[str, int], Templates]) -> None:
    """The table of appendix H, and the histograms of misclassified test inputs."""
    import pandas as pd

    index = pd.Index(sorted({number for _, number in cosines}), name="epoch")
    table = pd.DataFrame(index=index)
    for split in sorted({split for split, _ in cosines}):
        for name in ("right", "wrong", "mistakes"):
            values = [getattr(cosines[split, n], name) if (split, n) in cosines else np.nan for n in index]
            table[f"{split}_{name}"] = values
    write_whole(folder / "templates.csv", csv_text(table).encode())
    wrong = {f"epoch {n}": found for (split, n), found in cosines.items() if split == "test" and found.mistakes}
    if wrong:
        histogram(wrong, folder / "templates.png")
