"""Views of whole benchmark runs in one file, so that a new measure is evaluated without training anything.

Values are kept in half precision, each tensor divided by a power of two that brings its largest value below 2^14, and
are the same numbers on every machine; so is all that follows from them, up to the order of sums. The digest of the
content names it: rows of measures can be compared where it is the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise._base import sealed
from likewise._base.files import reading
from likewise._base.folders import check_replaceable, file_at
from likewise._base.formats.records import check, parse
from likewise._base.hashing import digest
from likewise.benchmark.domains import LayerViews
from likewise.benchmark.results.frame import REPETITION
from likewise.benchmark.runs import BenchmarkRun
from likewise.benchmark.trials import Trial
from likewise.benchmark.validity import Validity
from likewise.errors import InputError, MissingDataError, quoted_list
from likewise.views import Activations, Outputs

MOST_BYTES = 200_000_000
_FORMAT, _RECORD = 1, "benchmark views"
_LARGEST = 14  # values are brought below 2 to this power: half precision ends at 2^16
_FORMS = ("rows", "flat", "positions")
Names = list[tuple[str, str]]  # a network or layer, and the tensor of its values
_TRIAL = {
    "settings": dict[str, Any],
    "grounding": str,
    "groups": list[str],
    "valid": bool | None,
    "reason": str,
    "views": Names,
    "layers": list[dict[str, Names]],
}
_SETTINGS = dict.fromkeys(REPETITION[:-1], str) | {"seed": int}


@dataclass(frozen=True)
class CachedTrial:
    """One grounding of one run: its views, and where they are from."""

    settings: Mapping[str, Any]
    trial: Trial


@dataclass(frozen=True, eq=False)
class CachedViews:
    """The views of several runs.

    Attributes:
        record: Which networks each grounding has, and which tensor holds what.
        tensors: Values in half precision, and labels.
    """

    record: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def from_runs(
        cls,
        runs: Iterable[BenchmarkRun | str | os.PathLike[str]],
        *,
        data: Sequence[str] = (),
        inputs: int | None = None,
    ) -> CachedViews:
        """Take the views of runs from their stores, rounded to half precision.

        Args:
            runs: Runs of the benchmark, or their folders.
            data: The addresses of their data, where these are not built in: a folder may not choose what is read.
            inputs: How many inputs to keep of each run, the first; by default all.

        Raises:
            InputError: There are no runs, or their views take more than 200 MB.
        """
        trials: list[tuple[Mapping[str, Any], Trial]] = []
        opened = [one if isinstance(one, BenchmarkRun) else BenchmarkRun.load(Path(one)) for one in runs]
        used = sorted({str(run.settings["data"]) for run in opened})
        if opened and (unused := [address for address in data if address not in used]):
            raise InputError(f"data names {unused[0]!r}, and the runs were made on {quoted_list(used)}. Leave it out.")
        for run in opened:
            if run.data is None and run.settings["data"] in data:
                run = replace(run, data=run.settings["data"])
            settings = {name: run.settings[name] for name in REPETITION}
            trials += [(settings, trial) for trial in run.trials()]
        return cls.of(trials, inputs=inputs)

    @classmethod
    def of(cls, trials: Iterable[tuple[Mapping[str, Any], Trial]], *, inputs: int | None = None) -> CachedViews:
        """Take views from trials, rounded to half precision.

        Args:
            trials: Trials, each with its domain, data, network, preset and seed.
            inputs: How many inputs to keep of each, the first; by default all.

        Raises:
            InputError: There are none, or their views take more than 200 MB.
        """
        if inputs is not None and inputs < 2:
            raise InputError(f"inputs is {inputs}. Give 2 or more.")
        packer = _Packer(inputs)
        for settings, trial in trials:
            packer.add(settings, trial)
        if not packer.trials:
            raise InputError("no run was given. Give the folder of one or more: likewise benchmark run --out.")
        size = sum(tensor.numel() * tensor.element_size() for tensor in packer.tensors.values())
        if size > MOST_BYTES:
            raise InputError(
                f"the views of these runs take {size / 1e6:,.0f} MB, more than {MOST_BYTES / 1e6:,.0f}. Give fewer "
                "runs, or keep fewer inputs, as in --inputs 500."
            )
        return cls({"format": _FORMAT, "trials": packer.trials, "exponents": packer.exponents}, packer.tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CachedViews:
        """Load what `save` wrote.

        Args:
            path: The file.

        Raises:
            MissingDataError: There is no such file.
            InputError: It holds no cached views, or is damaged.
        """
        if not os.path.lexists(path):
            raise MissingDataError(
                f"there is no file {path}. Make cached views by `likewise benchmark views RUNS`, or name them by "
                "--views."
            )
        sentence = f"{path} holds no cached views ({{reason}}). Make them by `likewise benchmark views RUNS -o {path}`."
        with reading(path, sentence):
            tensors, metadata = sealed.read(file_at(path))
            record = parse(metadata.get(_RECORD, ""))
            check(record, {"format": int, "trials": list[dict[str, Any]], "exponents": dict[str, int]})
            if record["format"] != _FORMAT:
                raise ValueError(f"it is of format {record['format']}, and this version reads {_FORMAT}")
            for trial in record["trials"]:
                check(trial, _TRIAL)
                check(trial["settings"], _SETTINGS)
            views = cls(record, tensors)
            for cached in views.trials:
                cached.trial.check()
            return views

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one file with a checksum; returns its path, which ends in `.safetensors`.

        Args:
            path: The file.
        """
        self.check_place(path)
        return sealed.write(path, self.tensors, {_RECORD: json.dumps(self.record)})

    @staticmethod
    def check_place(path: str | os.PathLike[str]) -> None:
        """Refuse to write over a file that holds no cached views.

        Args:
            path: Where views are to be written.

        Raises:
            InputError: Something else is there.
        """
        check_replaceable(sealed.target_of(path), _RECORD.encode(), "file of cached views")

    @cached_property
    def digest(self) -> str:
        """What names the content: 24 hexadecimal digits."""
        facts = [json.dumps(self.record, sort_keys=True)]
        for name in sorted(self.tensors):
            tensor = self.tensors[name]
            facts += [f"{name} {tensor.dtype} {tuple(tensor.shape)}"]
        return digest([*facts, *(self.tensors[name].contiguous() for name in sorted(self.tensors))])[:24]

    @cached_property
    def trials(self) -> tuple[CachedTrial, ...]:
        """Every grounding of every run."""
        views: dict[str, Activations] = {}
        return tuple(CachedTrial(trial["settings"], self._trial(trial, views)) for trial in self.record["trials"])

    def _trial(self, record: Mapping[str, Any], views: dict[str, Activations]) -> Trial:
        layers = [
            LayerViews(*(self._named(layer.get(form, []), views) for form in _FORMS)) for layer in record["layers"]
        ]
        named, validity = self._named(record["views"], views), Validity(record["valid"], record["reason"])
        return Trial(record["grounding"], named, tuple(record["groups"]), layers, validity)

    def _named(self, names: Sequence[Sequence[str]], views: dict[str, Activations]) -> dict[str, Activations]:
        return {name: self._view(key, views).named(name) for name, key in names}

    def _view(self, key: str, views: dict[str, Activations]) -> Activations:
        if key not in views:
            outputs = None
            if f"{key} outputs" in self.tensors:
                outputs = Outputs(self._values(f"{key} outputs"), self.tensors.get(f"{key} labels"))
            views[key] = Activations(self._values(key), key, outputs=outputs, about={"dtype": "float16"})
        return views[key]

    def _values(self, key: str) -> Tensor:
        return torch.ldexp(self.tensors[key].float(), torch.tensor(self.record["exponents"][key]))

    def __repr__(self) -> str:
        runs = {json.dumps(trial["settings"], sort_keys=True) for trial in self.record["trials"]}
        return f"CachedViews({len(runs)} runs, {len(self.record['trials'])} groundings, {len(self.tensors)} tensors)"


class _Packer:
    """Collects the views of trials, each once."""

    def __init__(self, inputs: int | None) -> None:
        self._inputs = inputs
        self._share = Fraction(1)  # of the rows of the trial at hand
        self.trials: list[dict[str, Any]] = []
        self.tensors: dict[str, Tensor] = {}
        self.exponents: dict[str, int] = {}
        self._keys: dict[str, str] = {}

    def add(self, settings: Mapping[str, Any], trial: Trial) -> None:
        """Add one grounding."""
        count = trial.first_views[0].n
        self._share = Fraction(min(count, self._inputs or count), count)
        layers = [
            {form: self._names(getattr(layer, form)) for form in _FORMS if getattr(layer, form)}
            for layer in trial.layers
        ]
        self.trials.append(
            {
                **{"settings": dict(settings), "grounding": trial.grounding, "groups": list(trial.groups)},
                **{"valid": trial.validity.valid, "reason": trial.validity.reason},
                **{"views": self._names(trial.views), "layers": layers},
            }
        )

    def _names(self, views: Mapping[str, Activations]) -> list[list[str]]:
        return [[name, self._key(view)] for name, view in views.items()]

    def _key(self, view: Activations) -> str:
        """The tensor of a view, which is added where it is new."""
        if view.digest not in self._keys:
            key = self._keys[view.digest] = str(len(self._keys))
            kept = int(view.n * self._share)  # positions of an input are rows side by side
            self._add_values(key, view.values[:kept])
            if view.outputs is not None:
                self._add_values(f"{key} outputs", view.outputs.logits[:kept])
                if view.outputs.labels is not None:
                    self.tensors[f"{key} labels"] = view.outputs.labels[:kept].cpu().int()
        return self._keys[view.digest]

    def _add_values(self, key: str, values: Tensor) -> None:
        values = values.detach().cpu().double()
        largest = float(values.abs().max())
        exponent = int(torch.frexp(torch.tensor(largest, dtype=torch.float64)).exponent) - _LARGEST if largest else 0
        self.exponents[key] = exponent
        self.tensors[key] = torch.ldexp(values, torch.tensor(-exponent)).half().contiguous()
