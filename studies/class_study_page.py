"""Tables and picture of `docs/class-study.md`: `python -m studies.class_study_page INSPECTED STEERED` prints them.

INSPECTED is the folder `inspected` of `studies.class_similarity_100`, STEERED the folder of `studies.class_steering`.
Intervals are Student's, 95 %, over seeds; differences are of the same seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from likewise import classes
from likewise.classes import Inspector, phases
from studies.class_similarity_100 import EPOCHS, NETWORKS, SEEDS
from studies.class_steering import NOISE, TERMS

PICTURE = Path(__file__).parent.parent / "docs" / "class-study" / "curves-100.png"
CURVES = ("accuracy", "wsi_mean", "wsi_max", "sai_ncsm_scsm", "sai_ncsm_ccsm", "sai_ccsm_scsm", "widm_errors")
PATIENCE = "patience of {} epochs on the held-out loss"
RULES = ("wsi_max", "wsi_min", "sai_ncsm_scsm", "sai_ncsm_ccsm_train", "sai_tncsm_scsm_train", "widm_errors_train")


def interval(values: Iterable[float], digits: int = 3, sign: str = "") -> str:
    """A mean with Student's interval."""
    numbers = np.asarray([v for v in values if v == v], dtype=float)
    if len(numbers) < 2:
        return "–" if not len(numbers) else f"{numbers[0]:{sign}.{digits}f}"
    half = stats.t.ppf(0.975, len(numbers) - 1) * numbers.std(ddof=1) / len(numbers) ** 0.5
    mean = numbers.mean()
    return f"{mean:{sign}.{digits}f} [{mean - half:{sign}.{digits}f}, {mean + half:{sign}.{digits}f}]"


def markdown(rows: Sequence[dict[str, object]]) -> str:
    """Rows as a table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines) + "\n"


# Which epoch a rule ends with.


def patience(values: pd.Series, wait: int, sign: int = 1) -> int:
    """The epoch at which a value has not risen (fallen: -1) for `wait` epochs; the last one where it never does."""
    best, since = -np.inf, 0
    for epoch, value in (sign * values.dropna()).items():
        best, since = (value, 0) if value > best else (best, since + 1)
        if since == wait:
            return int(epoch)
    return int(values.index[-1])


def rest(values: pd.Series) -> int:
    """The epoch at which `stop_after="rest"` stops; the last one where it does not."""
    known = values.dropna()
    for length in range(1, len(known) + 1):
        if phases(known.iloc[:length].tolist(), known.index[:length].tolist()).clear:
            return int(known.index[length - 1])
    return int(values.index[-1])


def runs(folder: Path, *names: object) -> dict[int, pd.DataFrame]:
    """The tables of a training by seed."""
    start = "_".join(map(str, names)) + "_"
    found = {int(path.stem[len(start) :]): path for path in folder.glob(f"{start}*.csv")}
    return {seed: pd.read_csv(found[seed], index_col="epoch") for seed in sorted(found)}


def stopping(folder: Path, network: str) -> str:
    """Accuracy and epochs of the ways to stop, by label noise."""
    rows: list[dict[str, object]] = []
    for noise in NOISE:
        part, whole = (runs(folder, network, noise, name) for name in ("held out", "all"))
        ways: dict[str, tuple[dict[int, pd.DataFrame], Callable[[pd.DataFrame], int]]] = {
            PATIENCE.format(wait): (part, partial(_patience_on_loss, wait=wait)) for wait in (5, 3, 10)
        }
        ways |= {
            f"rest of `{curve}`": (whole, partial(_rest_of, curve=curve)) for curve in ("sai_ncsm_scsm", "wsi_max")
        }
        ways["rest of `sai_ncsm_scsm`, without the 400 images"] = (part, partial(_rest_of, curve="sai_ncsm_scsm"))
        ways["none: all 50 epochs"] = (whole, lambda frame: int(frame.index[-1]))
        accuracies: dict[str, dict[int, float]] = {}
        for name, (frames, stop) in ways.items():
            ends = {seed: stop(frame) for seed, frame in frames.items()}
            accuracies[name] = {seed: frames[seed]["test_accuracy"].loc[end] for seed, end in ends.items()}
            usual = accuracies[PATIENCE.format(5)]
            gaps = [value - usual[seed] for seed, value in accuracies[name].items() if seed in usual]
            rows.append(
                {
                    "noise": noise,
                    "stop by": name,
                    "accuracy": interval(accuracies[name].values()),
                    "against patience of 5": "" if accuracies[name] is usual else interval(gaps, 3, "+"),
                    "epochs": interval(ends.values(), 1),
                    "stopped early": f"{sum(end < 50 for end in ends.values())} of {len(ends)}",
                }
            )
    return markdown(rows)


def _patience_on_loss(frame: pd.DataFrame, wait: int) -> int:
    return patience(frame["validation_loss"], wait, -1)


def _rest_of(frame: pd.DataFrame, curve: str) -> int:
    return rest(frame[curve])


def best_rule(folder: Path, network: str) -> str:
    """Patience on curves of class similarity that need no held-out labels: the best rule of some seeds, on others."""
    frames = {(noise, seed): frame for noise in NOISE for seed, frame in runs(folder, network, noise, "all").items()}
    held_out = {
        (noise, seed): frame for noise in NOISE for seed, frame in runs(folder, network, noise, "held out").items()
    }
    scores: dict[str, dict[tuple[float, int], float]] = {}
    ends: dict[str, dict[tuple[float, int], int]] = {}
    for curve in RULES:
        for sign in (1, -1):
            for wait in (3, 5, 10):
                name = f"`{curve}` not {'higher' if sign > 0 else 'lower'} for {wait} epochs"
                ends[name] = {key: patience(frame[curve], wait, sign) for key, frame in frames.items()}
                scores[name] = {key: frames[key]["test_accuracy"].loc[end] for key, end in ends[name].items()}
    rows: list[dict[str, object]] = []
    for part in (0, 1):
        chosen = max(scores, key=lambda name: np.mean([v for (_, s), v in scores[name].items() if s % 2 == part]))
        judged = [key for key in frames if key[1] % 2 != part and key in held_out]
        stops = {key: patience(held_out[key]["validation_loss"], 5, -1) for key in judged}
        against = [scores[chosen][key] - held_out[key]["test_accuracy"].loc[stops[key]] for key in judged]
        rows.append(
            {
                "chosen on": f"{'odd' if part else 'even'} seeds",
                "rule": chosen,
                "accuracy on the other seeds": interval(scores[chosen][key] for key in judged),
                "epochs": interval((ends[chosen][key] for key in judged), 1),
                "against patience of 5": interval(against, 3, "+"),
            }
        )
    return markdown(rows)


def rates(folder: Path) -> str:
    """Accuracy at the end, and the epoch at which it came within a point of it, by how the rate is lowered."""
    rows: list[dict[str, object]] = []
    for noise in NOISE:
        ways = {"not at all": runs(folder / "stop", "MLP", noise, "all")}
        ways |= {
            name: runs(folder / "rate", "MLP", noise, name) for name in ("after the surge", "at epoch 20", "cosine")
        }
        for name, frames in ways.items():
            last = {seed: float(frame["test_accuracy"].iloc[-1]) for seed, frame in frames.items()}
            plain = {seed: float(frame["test_accuracy"].iloc[-1]) for seed, frame in ways["not at all"].items()}
            seen = [int(f.index[f["lr"] < f["lr"].max() * 0.99][0]) for f in frames.values() if f["lr"].nunique() > 1]
            lowered = f"{len(seen)} of {len(frames)}" + (f", at epoch {np.median(seen):.0f}" if seen else "")
            gaps = [last[s] - plain[s] for s in last if s in plain]
            rows.append(
                {
                    "noise": noise,
                    "rate lowered": name,
                    "in how many": "every step" if name == "cosine" else lowered,
                    "accuracy after 50 epochs": interval(last.values()),
                    "against not at all": "" if name == "not at all" else interval(gaps, 3, "+"),
                }
            )
    return markdown(rows)


def terms(folder: Path) -> str:
    """Accuracy and how reasonable mistakes are, by the term beside cross-entropy."""
    plain = runs(folder, "cross-entropy")
    columns = {
        "test_accuracy": "accuracy",
        "widm_errors": "WIDM of mistakes",
        "nidm_errors": "NIDM of mistakes",
        "sai_ncsm_scsm_calibrated": "SAI(NCSM, SCSM), calibrated",
        "wsi_mean": "WSI mean",
    }
    rows: list[dict[str, object]] = []
    for term in TERMS:
        frames = runs(folder, term)
        row: dict[str, object] = {"beside cross-entropy": "nothing" if term == "cross-entropy" else term}
        for column, title in columns.items():
            values = {seed: float(frame[column].iloc[-1]) for seed, frame in frames.items()}
            gaps = [values[s] - float(plain[s][column].iloc[-1]) for s in values if s in plain]
            row[title] = interval(values.values()) if term == "cross-entropy" else interval(gaps, 3, "+")
        rows.append(row | {"seeds": len(frames)})
    return markdown(rows)


# A hundred classes.


def inspected(folder: Path) -> dict[str, list[pd.DataFrame]]:
    """The curves of every seed that is there, by network; all to the same epoch."""
    frames: dict[str, list[pd.DataFrame]] = {}
    for name in NETWORKS:
        for seed in SEEDS:
            path = folder / f"{name.replace(' ', '-')}-{seed}" / "curves.csv"
            if path.is_file():
                frames.setdefault(name, []).append(pd.read_csv(path, index_col="epoch").loc[:EPOCHS])
    return {name: seeds for name, seeds in frames.items() if all(frame.index[-1] == EPOCHS for frame in seeds)}


def hundred(frames: dict[str, list[pd.DataFrame]]) -> str:
    """Before training, after an epoch, top (epochs) and end of the main curves."""
    rows: list[dict[str, object]] = []
    for curve in CURVES:
        row: dict[str, object] = {"curve": f"`{curve}`"}
        for name, seeds in frames.items():
            tops, digits = [int(frame[curve].idxmax()) for frame in seeds], 4 if curve == "wsi_mean" else 3
            start, first, top = (
                np.mean([pick(frame[curve]) for frame in seeds])
                for pick in (lambda f: f.loc[0], lambda f: f.loc[1], pd.Series.max)
            )
            before = "–" if np.isnan(start) else f"{start:.{digits}f}"
            end = interval((frame[curve].iloc[-1] for frame in seeds), digits)
            row[name] = f"{before}, {first:.{digits}f}, {top:.{digits}f} ({min(tops)} to {max(tops)}), {end}"
        rows.append(row)
    return markdown(rows)


def permuted(folder: Path) -> str:
    """SAI with WordNet at the last epoch beside its chance levels: random weights, and permuted classes."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for path in sorted(folder.iterdir()):
        reference = classes.ClassSimilarity.load(path / "reference.safetensors")
        watch = Inspector(list(reference.classes), reference=reference, out=path)
        for kind in ("weights", "features", "confusion"):
            matrix = watch.matrices(EPOCHS)[kind]
            aligned, ranks = classes.alignment(matrix, reference), classes.alignment(matrix, reference, "spearman")
            order = np.random.default_rng(0)
            shuffles = [order.permutation(len(matrix)) for _ in range(200)]
            names = matrix.classes
            values = {"SAI": float(aligned), "Spearman": float(ranks), "z": aligned.z, "p": aligned.p}
            shuffled = [classes.ClassSimilarity(matrix.values[np.ix_(rows, rows)], names) for rows in shuffles]
            values["permuted"] = float(np.mean([classes.alignment(one, reference) for one in shuffled]))
            values["random"] = aligned.chance.random
            found.setdefault((path.name.rpartition("-")[0].replace("-", " "), matrix.short), []).append(values)
    rows: list[dict[str, object]] = []
    for (network, short), seeds in found.items():
        row: dict[str, object] = {"network": network, "matrix": short}
        row["SAI with WordNet"] = interval(seed["SAI"] for seed in seeds)
        row["classes permuted"] = f"{np.mean([seed['permuted'] for seed in seeds]):.3f}"
        row["random weights"] = f"{np.mean([seed['random'] for seed in seeds]):.3f}" if short != "CCSM-test" else "–"
        row["z, least"] = f"{min(seed['z'] for seed in seeds):.1f}"
        row["p, largest"] = f"{max(seed['p'] for seed in seeds):.3f}"
        row["Spearman"] = interval(seed["Spearman"] for seed in seeds)
        rows.append(row)
    return markdown(rows)


def main(inspections: str, steered: str) -> None:
    frames = inspected(Path(inspections))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    classes.curves(frames, PICTURE, columns=[*CURVES, "fooling_rate"])
    out = Path(steered)
    parts = {
        "100 classes": hundred(frames),
        "chance": permuted(Path(inspections)),
        "stopping, MLP": stopping(out / "stop", "MLP"),
        "best rule": best_rule(out / "stop", "MLP"),
        "rates": rates(out),
        "losses": terms(out / "losses"),
    }
    for title, table in parts.items():
        sys.stdout.write(f"## {title}\n\n{table}")


if __name__ == "__main__":
    main(*sys.argv[1:])
