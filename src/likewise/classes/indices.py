"""The indices of an epoch, each declared by one `@index`: its report, chance, curve and row in the docs follow.

`sai_A_B` is the published cosine alignment of two matrices, the paper's abbreviations in lower case
(ncsm: weights, ccsm: mistakes, tncsm: features, scsm: meaning); endings name another metric or
"calibrated". The order of the declarations is that of the curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from likewise.classes.agreement import DECIMALS, calibrated
from likewise.classes.confusion import idm
from likewise.classes.epoch_report import Reference, Snapshot, index
from likewise.classes.similarity import KINDS, ClassSimilarity, check_similarity
from likewise.errors import InputError, brief, did_you_mean

index(name="samples", reads="inputs counted", per_split=True)(lambda epoch: float(epoch.total))
index(name="errors", reads="inputs classified wrong", per_split=True, label="mistakes")(
    lambda epoch: float(epoch.errors)
)


@index(name="accuracy", per_split=True, label="accuracy", headline=True)
def accuracy(epoch: Snapshot) -> float:
    """share of inputs classified right"""
    return 1 - epoch.errors / epoch.total if epoch.total else np.nan


class Wsi(NamedTuple):
    """Weights similarity index: over all pairs, and over each class's most and least alike."""

    mean: float
    max: float
    min: float


def wsi(similarity: ClassSimilarity, quantile: float = 0.95) -> Wsi:
    """How close together the classes lie, overall and at both ends.

    mean: of the upper triangle. max: for each class, the mean of its similarities to others at or above their 0.95
    quantile, averaged over classes; min: at or below the 0.05 quantile. Of raw cosines, so 0 is orthogonal.

    Args:
        similarity: The class similarity of a network's weights.
        quantile: Which similarities count for max, and one minus it for min.

    Example:
        >>> wsi(ClassSimilarity([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])).mean.__round__(3)
        0.4
    """
    check_similarity(similarity)
    if not 0.5 <= quantile <= 1:
        raise InputError(f"quantile is {quantile}. Give one from 0.5 to 1.")
    rows = off_diagonal(similarity.values)
    low, high = np.quantile(rows, [1 - quantile, quantile], axis=1)
    near = 10.0**-DECIMALS  # 1 - 0.8 is not 0.2: an entry may miss its quantile by a digit
    most, least = rows >= high[:, None] - near, rows <= low[:, None] + near
    upper = similarity.values[np.triu_indices(len(rows), 1)].mean()
    return Wsi(float(upper), _mean_of(rows, most), _mean_of(rows, least))


def _mean_of(rows: np.ndarray, mask: np.ndarray) -> float:
    counts = mask.sum(axis=1)
    sums = np.where(mask, rows, 0.0).sum(axis=1)
    return float((sums / np.where(counts, counts, np.nan)).mean())


def off_diagonal(values: np.ndarray) -> np.ndarray:
    """All entries but the diagonal, `(c, c - 1)`."""
    c = len(values)
    return values.ravel()[1:].reshape(c - 1, c + 1)[:, :-1].reshape(c, c - 1)


def _wsi(epoch: Snapshot, end: str) -> float:
    return float(getattr(epoch.once(_weights_wsi), end))


def _weights_wsi(epoch: Snapshot) -> Wsi:
    return wsi(epoch.matrices["weights"])


_ENDS = {
    "mean": "mean cosine of the rows of the classifier",
    "max": "mean cosine of the row of each class with those most like it",
    "min": "mean cosine of the row of each class with those least like it",
}
for _end, _reads in _ENDS.items():
    _facts = {"needs": ("weights",), "chance": "about 0", "label": f"WSI {_end}", "headline": _end == "max"}
    index(name=f"wsi_{_end}", reads=_reads, **_facts)(partial(_wsi, end=_end))


METRIC_FACTS = {  # what an alignment by this metric reads, what chance gives, and its name on a curve
    "cosine": (
        "agreement of two matrices: off-diagonal entries scaled to [0, 1], then their cosine",
        "**high**: random weights score about 0.73 with CIFAR-100's WordNet matrix and 0.79 with "
        "ImageNet-1k's, a constant 0.759 and 0.812",
        "cosine",
    ),
    "ssim": ("structural similarity of the two, classes in the order of WordNet ids", "`inspector.chance()`", "SSIM"),
    "mse": ("mean squared distance of the two", "`inspector.chance()`", "MSE"),
    "mae": ("mean absolute distance of the two", "`inspector.chance()`", "MAE"),
    "pearson": ("agreement of the two by Pearson's correlation, without the offset", "0", "Pearson"),
    "spearman": ("agreement of the two by Spearman's rank correlation", "0", "Spearman"),
}


def declare_alignment(
    a: str,
    b: str,
    *,
    metrics: tuple[str, ...] = ("cosine", "pearson"),
    drawn: tuple[str, ...] = (),
    levels: tuple[str, ...] = (),
    headline: bool = False,
) -> None:
    """Declare the alignments of two matrices, one index per metric; with the reference a calibrated one too."""
    name, title = f"sai_{short(a)}_{short(b)}{ending(a) or ending(b)}", f"SAI({short(a)}, {short(b)})".upper()
    if (a, b) == ("features_train", "features"):
        name = "sai_tncsm_train_test"
    for metric in metrics:
        reads, chance, label = METRIC_FACTS[metric]
        level = partial(Reference.level, metric=metric) if chance != "0" else 0.0
        index(
            name=name if metric == "cosine" else f"{name}_{metric}",
            reads=reads,
            needs=(a, b),
            chance=chance,
            level=level if metric in levels else None,
            label=f"{title} {label}" if metric in drawn else "",
            headline=headline and metric == "cosine",
        )(partial(_aligned, a=a, b=b, metric=metric))
    if b == "reference":
        index(
            name=f"{name}_calibrated",
            reads="the cosine on a scale from random weights (0) to full agreement (1)",
            needs=(a, b),
            chance="0",
            headline=headline,
        )(partial(_calibrated, a=a))


def _aligned(epoch: Snapshot, a: str, b: str, metric: str) -> float:
    return epoch.aligned(a, b, metric)


def _calibrated(epoch: Snapshot, a: str) -> float:
    assert epoch.reference is not None
    return calibrated(epoch.aligned(a, "reference"), "cosine", epoch.reference.level("cosine"))


def short(name: str) -> str:
    """The paper's abbreviation, in lower case."""
    return "scsm" if name == "reference" else KINDS[name.partition("_")[0]].lower()


def ending(name: str) -> str:
    """The split a name ends with, with its underscore."""
    split = name.partition("_")[2]
    return f"_{split}" if split else ""


declare_alignment(
    "weights",
    "reference",
    metrics=tuple(METRIC_FACTS),
    drawn=("cosine", "ssim", "mse", "mae", "spearman"),
    levels=("cosine", "ssim", "mse", "mae", "pearson"),
    headline=True,
)
declare_alignment("weights", "confusion", drawn=("cosine",))
declare_alignment("confusion", "reference", drawn=("cosine",), levels=("pearson",))
declare_alignment("features", "reference", levels=("cosine",))
declare_alignment("weights", "features")
declare_alignment("weights", "confusion_train")
declare_alignment("weights", "features_train")
declare_alignment("features_train", "features")
declare_alignment("confusion_train", "reference")
declare_alignment("features_train", "reference")
declare_alignment("weights", "confusion_adversarial")
declare_alignment("confusion_adversarial", "reference")


def random_mistakes(reference: Reference) -> float:
    """IDM of mistakes at random."""
    c = len(reference)
    return (c - 2) / (2 * (c - 1))


RANDOM_MISTAKES = "(c - 2) / (2 (c - 1)): 0.444 for 10 classes, 0.495 for 100"


def declare_idm(name: str, needs: str, judge: str, shift: Callable[[Snapshot, str], float]) -> None:
    """Declare an index of mistakes by what judges them, over all inputs and over mistakes only."""
    index(
        name=name,
        reads=f"1 - mean rank of the answer among the classes sorted by similarity to the truth, by {judge}",
        needs=(needs,),
        per_split=True,
        chance="depends on the accuracy",
        label=f"{name.upper()}, all inputs",
    )(lambda epoch: float(1 - epoch.once(shift, epoch.split)))
    index(
        name=f"{name}_errors",
        reads="`nidm` and `widm` over mistakes only",
        needs=(needs,),
        per_split=True,
        chance=RANDOM_MISTAKES,
        level=random_mistakes,
        label=f"{name.upper()}, errors only",
        headline=name == "widm",
    )(partial(_of_errors, shift=shift))


def _of_errors(epoch: Snapshot, shift: Callable[[Snapshot, str], float]) -> float:
    value = epoch.once(shift, epoch.split)
    return float(1 - (value * epoch.total / epoch.errors if epoch.errors else np.nan))


def _own_shift(epoch: Snapshot, _split: str) -> float:
    return 1 - idm(epoch.matrices["weights"], epoch.table) if epoch.total else np.nan


def _wordnet_shift(epoch: Snapshot, _split: str) -> float:
    assert epoch.reference is not None
    ranks, table = epoch.reference.ranks, epoch.table  # the ranks are the same every epoch
    return float(np.vdot(table, ranks) / epoch.total / (len(table) - 1)) if epoch.total else np.nan


declare_idm("nidm", "weights", "the network itself", _own_shift)
declare_idm("widm", "reference", "WordNet", _wordnet_shift)


@index(
    name="overfitting",
    needs=("weights", "features", "features_train"),
    chance="about 0",
    label="SAI(NCSM, TNCSM): train - test",
)
def overfitting(epoch: Snapshot) -> float:
    """SAI(NCSM, TNCSM) on training data minus on test data"""
    return epoch.aligned("weights", "features_train") - epoch.aligned("weights", "features")


@index(name="fooling_rate", needs=("fooling_rate",), label="fooling rate (PGD)")
def fooling_rate(epoch: Snapshot) -> float:
    """answers changed by PGD (eps 0.05, step 0.001, 2 iterations from a random start), every k epochs"""
    return epoch.counted["fooling_rate"]


OF_TRAINING = {  # numbers a training has of its own, kept beside the indices where they are given
    "loss": "training loss",
    "validation_loss": "validation loss",
    "lr": "learning rate",
}


def of_training(numbers: Mapping[str, float]) -> dict[str, float]:
    """These numbers, which must be among them."""
    if not isinstance(numbers, Mapping):
        raise InputError(f"also is {brief(numbers)}. Give numbers by name, as in also={{'loss': 0.5}}.")
    for name in numbers:
        if name not in OF_TRAINING:
            hint = did_you_mean(name, OF_TRAINING)
            raise InputError(f"also has no number {name!r}.{hint} It takes {', '.join(OF_TRAINING)}.")
    try:
        return {name: float(value) for name, value in numbers.items()}
    except (TypeError, ValueError):
        raise InputError(f"also is {brief(dict(numbers))}. Give numbers, as in also={{'loss': 0.5}}.") from None


def _given(epoch: Snapshot, name: str) -> float:
    return epoch.counted[name]


for _name, _label in OF_TRAINING.items():
    index(name=_name, reads=f"{_label}, where the training tells it", needs=(_name,), label=_label)(
        partial(_given, name=_name)
    )


@index(name="left_out", needs=("left_out",))
def left_out(epoch: Snapshot) -> float:
    """inputs left out since the network answered NaN; reported if there are any"""
    return epoch.counted["left_out"]
