"""From the matrices of an epoch to one flat dictionary with stable names.

`sai_A_B` is the published cosine alignment of two matrices, the paper's abbreviations in lower case
(ncsm: weights, ccsm: mistakes, tncsm: features, scsm: meaning); endings name another metric or
"calibrated". A plain name is of the test split, "_train" and "_adversarial" of the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from likewise.classes.alignment import METRICS, Both, Scaled, calibrated, chance, semantic_order
from likewise.classes.indices import idm, ranks, wsi
from likewise.classes.similarity import KINDS, ClassSimilarity

ALL = ("cosine", "ssim", "mse", "mae", "pearson", "spearman")
PAIRS: dict[tuple[str, str], tuple[str, ...]] = {  # what is aligned with what, and how
    ("weights", "reference"): ALL,
    ("confusion", "reference"): ("cosine", "pearson"),
    ("features", "reference"): ("cosine", "pearson"),
    ("weights", "confusion"): ("cosine", "pearson"),
    ("weights", "features"): ("cosine", "pearson"),
    ("weights", "confusion_train"): ("cosine", "pearson"),
    ("weights", "features_train"): ("cosine", "pearson"),
    ("features_train", "features"): ("cosine", "pearson"),
    ("weights", "confusion_adversarial"): ("cosine", "pearson"),
    ("confusion_adversarial", "reference"): ("cosine", "pearson"),
}


class Reporter:
    """Knows the reference, and what of it stays the same from epoch to epoch."""

    def __init__(self, reference: ClassSimilarity | None) -> None:
        self.reference = reference
        self._scaled = None if reference is None else Scaled(reference.values)
        self._ordered: Scaled | None = None
        self._levels: dict[str, float] = {}
        self._ranks = None if reference is None else ranks(reference)
        if reference is not None:
            self._level("cosine")  # now rather than in the first epoch

    def report(self, found: Mapping[str, ClassSimilarity], tables: Mapping[str, np.ndarray]) -> dict[str, float]:
        """All indices of an epoch."""
        report: dict[str, float] = {}
        for split, table in tables.items():
            report |= self._mistakes(found, table, "" if split == "test" else f"_{split}")
        if "weights" in found:
            indices = wsi(found["weights"])
            report |= {f"wsi_{name}": value for name, value in indices._asdict().items()}
        scaled = {name: Scaled(matrix.values) for name, matrix in found.items()}
        if self._scaled is not None:
            scaled["reference"] = self._scaled
        for (a, b), metrics in PAIRS.items():
            if a in scaled and b in scaled:
                report |= self._aligned(a, b, metrics, scaled)
        if "sai_ncsm_tncsm_train" in report and "sai_ncsm_tncsm" in report:
            report["overfitting"] = report["sai_ncsm_tncsm_train"] - report["sai_ncsm_tncsm"]
        return report

    def _mistakes(self, found: Mapping[str, ClassSimilarity], table: np.ndarray, ending: str) -> dict[str, float]:
        total = int(table.sum())
        errors = total - int(table.trace())
        report = {
            f"samples{ending}": float(total),
            f"errors{ending}": float(errors),
            f"accuracy{ending}": 1 - errors / total if total else np.nan,
        }
        shifts: dict[str, float] = {}
        if "weights" in found:
            shifts["nidm"] = 1 - idm(found["weights"], table) if total else np.nan
        if self._ranks is not None:  # the same every epoch
            shifts["widm"] = np.vdot(table, self._ranks) / total / (len(table) - 1) if total else np.nan
        for name, shift in shifts.items():
            only = shift * total / errors if errors else np.nan
            report |= {
                f"{name}{ending}": float(1 - shift),
                f"{name}_errors{ending}": float(1 - only),
            }
        return report

    def _aligned(self, a: str, b: str, metrics: tuple[str, ...], scaled: Mapping[str, Scaled]) -> dict[str, float]:
        name = f"sai_{short(a)}_{short(b)}{ending(a) or ending(b)}"
        if (a, b) == ("features_train", "features"):
            name = "sai_tncsm_train_test"
        both = Both(scaled[a], scaled[b])
        report: dict[str, float] = {}
        for metric in metrics:
            pair = self._in_order(both) if metric == "ssim" else both
            key = name if metric == "cosine" else f"{name}_{metric}"
            report[key] = float(METRICS[metric](pair))
        if b == "reference":
            report[f"{name}_calibrated"] = calibrated(report[name], "cosine", self._level("cosine"))
        return report

    def _in_order(self, both: Both) -> Both:
        """A matrix and the reference with their classes sorted by WordNet id, the latter sorted once."""
        assert self.reference is not None
        order = semantic_order(self.reference, self.reference)
        if self._ordered is None:
            self._ordered = both.b.reordered(order)
        return Both(both.a.reordered(order), self._ordered)

    def _level(self, metric: str) -> float:
        if metric not in self._levels:
            assert self._scaled is not None
            both = Both(self._scaled, self._scaled)
            reference = self._in_order(both).b if metric == "ssim" else self._scaled
            self._levels[metric] = chance(reference, metric).random
        return self._levels[metric]

    def chance(self) -> dict[str, float]:
        """The levels of random weights and of random mistakes, by the names they are reported under."""
        if self.reference is None:
            return {}
        levels = {"sai_ncsm_scsm": self._level("cosine"), "sai_tncsm_scsm": self._level("cosine")}
        levels |= {f"sai_ncsm_scsm_{m}": self._level(m) for m in ("ssim", "mse", "mae")}
        levels |= {f"sai_{a}_{m}": 0.0 for a in ("ncsm_scsm", "ccsm_scsm") for m in ("pearson",)}
        c = len(self.reference)
        random = (c - 2) / (2 * (c - 1))
        return levels | {"nidm_errors": random, "widm_errors": random}


def short(name: str) -> str:
    """The paper's abbreviation, in lower case."""
    return "scsm" if name == "reference" else KINDS[name.partition("_")[0]].lower()


def ending(name: str) -> str:
    """The split a name ends with, with its underscore."""
    split = name.partition("_")[2]
    return f"_{split}" if split else ""
