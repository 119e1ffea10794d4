"""What Raw Zero-Shot found of one network: its answers to classes it never saw, and the metrics of them."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise import __version__
from likewise._base import sealed
from likewise._base.arrays import Array
from likewise._base.files import is_folder, reading, write_whole
from likewise._base.folders import claim, file_at, file_of, read_bytes
from likewise._base.formats.array_files import read_npy
from likewise._base.formats.records import check, parse
from likewise.errors import InputError, StoreError, brief, did_you_mean
from likewise.matrices.tables import fit_width
from likewise.networks.anatomy.outputs import OutputKind, check_output_kind
from likewise.zeroshot.metrics import Metric, amalgam, dbi, stacked
from likewise.zeroshot.soft_labels import soft_labels

if TYPE_CHECKING:
    import pandas as pd

BothArrays = tuple[tuple[Array, ...], ...]
FACTS = "zeroshot.json"  # of a folder of arrays
_FACTS = {
    "network": str,
    "classes": list[str],
    "answers": str,
    "split": str,
    "about": dict[str, Any],
    "seeds": int,
}
_FULL = re.compile(r"full-(0|[1-9][0-9]*)\.npy")  # others may lie beside them


@dataclass(frozen=True, eq=False, repr=False)
class ZeroShot:
    """One architecture under Raw Zero-Shot, trained with one seed or several.

    Attributes:
        network: The name of the architecture.
        classes: The classes in the order of the outputs.
        full: What the network of all classes answers to the samples of each class: per seed and class one array
            (samples, n).
        held_out: What the network without the class answers to them, (samples, n - 1).
        answers: What these are: "logits", "probabilities" or "lengths".
        split: The split the samples are of.
        accuracy: Of the network of all classes on held-out data, per seed; NaN where it is not known.
        accuracies: Of the networks without each class on the other classes, (seeds, classes).
        about: What else is known of the trainings.

    Raises:
        InputError: The arrays do not fit each other or the classes.
    """

    network: str
    classes: tuple[str, ...]
    full: BothArrays
    held_out: BothArrays
    answers: OutputKind = "probabilities"
    split: str = "train"
    accuracy: Array = field(default_factory=lambda: np.array([np.nan]))
    accuracies: Array | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_output_kind(self.answers)
        check_classes(self.network, self.classes)
        for of_seed in (*self.full, *self.held_out):
            if len(of_seed) != len(self.classes):
                raise InputError(
                    f"{self.network!r} has answers to {len(of_seed)} classes and names of {len(self.classes)}. Give "
                    "one array per class."
                )
        self.amalgam()  # refuses arrays that do not belong together

    def __repr__(self) -> str:
        seeds = f", {self.seeds} seeds" if self.seeds > 1 else ""
        return f"ZeroShot({self.network!r}, {len(self.classes)} classes{seeds})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.table()}"

    @property
    def seeds(self) -> int:
        """How many trainings there were."""
        return len(self.full)

    def dbi(self, **options: Any) -> Metric:
        """How far soft labels of unseen classes lie apart.

        Args:
            **options: Those of `likewise.zeroshot.dbi`.
        """
        options = {"answers": self.answers} | options
        return stacked([dbi(self._by_class(of_seed), **options) for of_seed in self.held_out])

    def amalgam(self, **options: Any) -> Metric:
        """How far unseen classes are described otherwise.

        Args:
            **options: Those of `likewise.zeroshot.amalgam`.
        """
        options = {"answers": self.answers} | options
        pairs = zip(self.full, self.held_out, strict=True)
        return stacked([amalgam(self._by_class(full), self._by_class(rest), **options) for full, rest in pairs])

    def _by_class(self, arrays: Sequence[Array]) -> dict[str, Array]:
        return dict(zip(self.classes, arrays, strict=True))

    def soft_labels(self, name: str, seed: int = 0, *, normalise_both: bool = False) -> Array:
        """The soft labels e of a class by the network that never saw it, (samples, n - 1).

        Args:
            name: The class.
            seed: Which training, counted from 0.
            normalise_both: Scale lengths to sum to one.
        """
        if name not in self.classes:
            raise InputError(f"{self.network!r} has no class {name!r}.{did_you_mean(str(name), self.classes)}")
        if not 0 <= seed < self.seeds:
            raise InputError(f"seed is {seed}, and there are {self.seeds} trainings. Count them from 0.")
        rows = np.asarray(self.held_out[seed][self.classes.index(name)], dtype=np.float64)
        return soft_labels(rows, self.answers, scaled=normalise_both or self.answers != "lengths")

    def histograms(self, seed: int = 0, *, normalise_both: bool = False) -> tuple[Array, Array]:
        """The sums h' and h of soft labels by both networks, (classes, classes); NaN for the class itself.

        Args:
            seed: Which training, counted from 0.
            normalise_both: Scale lengths to sum to one.
        """
        n = len(self.classes)
        both = np.full((2, n, n), np.nan)
        samples = self.amalgam(normalise_both=normalise_both).samples[seed]
        for i, pair in enumerate(samples):
            both[:, i, np.arange(n) != i] = pair.sum(axis=0)
        return both[0], both[1]

    def to_frame(self, *, normalise_both: bool = False) -> pd.DataFrame:
        """One row per class: both metrics as published and in [0, 1], the accuracy without it, and its samples.

        Args:
            normalise_both: Scale lengths to sum to one.
        """
        import pandas as pd

        spread, gap = self.dbi(normalise_both=normalise_both), self.amalgam(normalise_both=normalise_both)
        columns = {
            "DBI": spread.values.mean(axis=0),
            "DBI normalised": spread.normalised.mean(axis=0),
            "AM": gap.values.mean(axis=0),
            "AM normalised": gap.normalised.mean(axis=0),
            "accuracy": np.full(len(self.classes), np.nan) if self.accuracies is None else self.accuracies.mean(axis=0),
            "samples": [len(rows) for rows in self.held_out[0]],
        }
        return pd.DataFrame(columns, index=pd.Index(self.classes, name="class"))

    def table(self, *, normalise_both: bool = False) -> str:
        """The frame as text, with mean and deviation over classes below.

        Args:
            normalise_both: Scale lengths to sum to one.
        """
        import pandas as pd

        frame = self.to_frame(normalise_both=normalise_both)
        below = pd.DataFrame({"mean": frame.mean(), "std": frame.std(ddof=0)}).T
        return fit_width(pd.concat([frame, below]).rename_axis(index=None).map("{:.4g}".format))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to one safetensors file. Returns its path.

        Args:
            path: Where to write it.
        """
        tensors = {"accuracy": torch.from_numpy(np.array(self.accuracy, dtype=np.float64, order="C"))}
        if self.accuracies is not None:
            tensors["accuracies"] = torch.from_numpy(np.array(self.accuracies, dtype=np.float64, order="C"))
        for kind in ("full", "held_out"):
            for seed, of_seed in enumerate(getattr(self, kind)):
                tensors |= {
                    f"{kind} {seed} {i}": torch.from_numpy(np.array(rows, order="C")) for i, rows in enumerate(of_seed)
                }
        facts = {name: getattr(self, name) for name in _FACTS}
        return sealed.write(path, tensors, {"facts": json.dumps(facts), "version": __version__})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ZeroShot:
        """Read what `save` wrote.

        Args:
            path: The file.
        """
        sentence = f"{path} holds no result of Raw Zero-Shot, or it is damaged. Give a file that ZeroShot.save wrote."
        with reading(path, sentence, StoreError):
            tensors, header = sealed.read(file_at(path))
            facts = parse(header["facts"])
            check(facts, _FACTS)
            facts = {name: facts[name] for name in _FACTS}
            arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
            seeds, classes = range(facts.pop("seeds")), tuple(facts.pop("classes"))
            both: dict[str, Any] = {
                kind: tuple(tuple(arrays[f"{kind} {seed} {i}"] for i in range(len(classes))) for seed in seeds)
                for kind in ("full", "held_out")
            }
            return cls(
                classes=classes, accuracy=arrays["accuracy"], accuracies=arrays.get("accuracies"), **both, **facts
            )

    def to_folder(self, folder: str | os.PathLike[str], seed: int = 0) -> Path:
        """Write the answers of one seed as `from_folder` reads them. Returns the folder.

        Args:
            folder: A new or an empty folder, or one that likewise wrote.
            seed: Which training, counted from 0.
        """
        target = Path(folder)
        claim(target)
        facts = {"network": self.network, "classes": self.classes, "answers": self.answers, "split": self.split}
        for kind, arrays in (("full", self.full[seed]), ("held-out", self.held_out[seed])):
            for i, rows in enumerate(arrays):
                write_whole(target / f"{kind}-{i}.npy", _npy(rows))
        write_whole(target / FACTS, json.dumps(facts | {"accuracy": float(self.accuracy[seed])}).encode())
        return target


def check_classes(name: str, classes: Sequence[str]) -> None:
    """Refuse one or two classes, and two of one name."""
    if len(classes) < 3:
        raise InputError(
            f"Raw Zero-Shot leaves out one of three classes or more, and {name!r} has {len(classes)}. Give data of "
            "more classes: two have to be left."
        )
    twice = [one for number, one in enumerate(classes) if one in classes[:number]]
    if twice:
        raise InputError(f"{name!r} has two classes named {twice[0]!r}. Give each another name.")


def from_folder(folder: str | os.PathLike[str]) -> ZeroShot:
    """Read soft labels of your own trainings from a folder of arrays.

    For every class number i from 0 on, in the order of the outputs: `full-i.npy`, what the network of all n classes
    answers to samples of class i (samples, n), and `held-out-i.npy`, what the network that never saw class i answers to
    the same samples (samples, n - 1). `zeroshot.json` is optional: {"classes": [names], "answers": "logits",
    "network": name, "split": "test", "accuracy": 0.9}. Without it, arrays are probabilities.

    Args:
        folder: The folder.

    Raises:
        InputError: There is no such folder, or an array or a fact is missing or malformed.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise InputError(f"the folder is {brief(folder)}. Give a path.")
    source = Path(folder)
    if not is_folder(source):
        raise InputError(f"there is no folder {source}. Give one with full-0.npy, held-out-0.npy and so on.")
    facts = _facts(source)
    count = sum(1 for path in source.iterdir() if _FULL.fullmatch(path.name))
    classes = tuple(map(str, facts.get("classes", range(count))))
    if not count or count != len(classes):
        raise InputError(
            f"{source} holds {count} arrays full-0.npy, full-1.npy, ... of {len(classes)} classes. Give one per class."
        )
    both = [[_array(source, f"{kind}-{i}.npy") for i in range(count)] for kind in ("full", "held-out")]
    return ZeroShot(
        str(facts.get("network", source.name)),
        classes,
        (tuple(both[0]),),
        (tuple(both[1]),),
        check_output_kind(facts.get("answers", "probabilities")),
        str(facts.get("split", "")),
        np.array([float(facts.get("accuracy", np.nan))]),
    )


def _facts(folder: Path) -> dict[str, Any]:
    """The facts beside the arrays; null is unknown."""
    path = folder / FACTS
    if not os.path.lexists(path):
        return {}
    with reading(path, f"{path} is no JSON of facts by name ({{reason}}). Repair or remove it."):
        content = parse(read_bytes(folder, FACTS))
    facts = {name: value for name, value in content.items() if value is not None}
    kinds: dict[str, tuple[tuple[type, ...], str]] = {
        "classes": ((list,), "a list of names"),
        "accuracy": ((int, float), "a number"),
        "answers": ((str,), "a word"),
    }
    for name, (allowed, words) in kinds.items():
        if name in facts and not isinstance(facts[name], allowed):
            raise InputError(f"in {path}, {name} is {brief(facts[name])}. Give {words}.")
    return facts


def _array(folder: Path, name: str) -> Array:
    path = folder / name
    with reading(path, f"{path} is no array of numbers ({{reason}}). Save it with numpy.save."):
        return read_npy(file_of(folder, name))


def _npy(rows: Array) -> bytes:
    content = io.BytesIO()
    np.save(content, np.asarray(rows))
    return content.getvalue()


Results = ZeroShot | Sequence[ZeroShot] | Mapping[str, ZeroShot]


def as_list(results: Results, purpose: str = "no table") -> list[ZeroShot]:
    """One result or several as a list."""
    if isinstance(results, ZeroShot):
        return [results]
    if not results:
        raise InputError(f"no result is given, so there is {purpose}. Give at least one.")
    return list(results.values() if isinstance(results, Mapping) else results)


def means(results: Results, **options: Any) -> pd.DataFrame:
    """One row per architecture: both metrics with their deviation over classes, in [0, 1] too, accuracy and size.

    `DBI sum 1` is DBI of soft labels that sum to one, which differs for networks that answer with lengths. Deviations
    behind ± are over classes, as in the paper; those over seeds are NaN for one.

    Args:
        results: One result, or several in a list or a mapping.
        **options: Options of both metrics.
    """
    import pandas as pd

    rows = []
    for one in as_list(results):
        spread, gap, scaled = one.dbi(**options), one.amalgam(**options), one.dbi(normalise_both=True)
        about = {name: one.about.get(name, np.nan) for name in ("depth", "parameters")}
        rows.append(
            {
                "network": one.network,
                **_columns("DBI", spread),
                "DBI sum 1": scaled.mean,
                **_columns("AM", gap),
                "accuracy": float(np.mean(one.accuracy)),
                **about,
            }
        )
    return pd.DataFrame(rows).set_index("network")


def _columns(name: str, metric: Metric) -> dict[str, float]:
    return {
        name: metric.mean,
        f"{name} ±": metric.std(),
        f"{name} over seeds": metric.seed_std(),
        f"{name} normalised": metric.normalised_mean,
        f"{name} normalised ±": metric.normalised_std(),
    }
