"""`likewise.benchmark.run`: train what is missing, look at it, compare, evaluate; nothing is done twice.

A run is a folder. `networks/` holds one folder per trained network, `store/` their views and all scores, `rows/` the
results of each grounding, `results.csv`, `networks.csv` and `run.json` what came out. Run again with the same folder,
it finds all of these and resumes. `across` compares the standard networks of several runs, each run a family.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise import __version__
from likewise._base.files import reading, write_whole
from likewise._base.folders import claim, read_bytes
from likewise._base.formats.records import check, parse
from likewise._base.names import csv_text
from likewise._base.progress import warn
from likewise.benchmark.domains import Domain
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.planning import Plan
from likewise.benchmark.results.frame import NETWORKS, RESULTS, read_table
from likewise.benchmark.training import CHECKS, RECORD, Record, Task, make_all, make_layer_views, make_view
from likewise.benchmark.trials import Evaluator, Trial, select_measures, with_settings
from likewise.benchmark.validity import VALID, Behaviour, Validity, judge
from likewise.data.address import is_built_in
from likewise.errors import DamagedStoreWarning, FileError, InputError
from likewise.views import Activations
from likewise.work.engines import Local, engine_of

if TYPE_CHECKING:
    import pandas as pd

RUN = "run.json"
# what runs of earlier versions hold beside weights and a store
OLDER = (RUN, RESULTS, NETWORKS, "rows/*.csv", f"networks/*/{RECORD}", "command.txt")
_SETTINGS = {**dict.fromkeys(("domain", "data", "network", "preset"), str), "seed": int, "sizes": dict[str, Any]}
_SIZES = {
    **dict.fromkeys(("seeds", "group", "layered"), int),
    **dict.fromkeys(("train", "probe"), int | None),
    **dict.fromkeys(("options", "training"), dict[str, Any]),
}
_MOST = 10_000  # networks of one group


@dataclass(frozen=True, eq=False)
class BenchmarkRun:
    """A run: its settings, its networks and its results.

    Attributes:
        out: The folder of the run.
        settings: The arguments of the run as plain values.
        results: One row per grounding, metric, form and measure.
        networks: One row per network.
        validity: Of each grounding whether its groups are what they are meant to be, and why not.
        data: The address of its data as you typed it; None where only the folder says what it is.
    """

    out: Path
    settings: Mapping[str, Any]
    results: pd.DataFrame
    networks: pd.DataFrame
    validity: Mapping[str, Validity]
    data: str | None = None

    def __repr__(self) -> str:
        names = " ".join(str(self.settings[name]) for name in ("domain", "data", "network", "preset"))
        return f"BenchmarkRun({names!r}, networks={len(self.networks)}, results={len(self.results)})"

    @classmethod
    def load(cls, out: str | Path, *, data: str | None = None) -> BenchmarkRun:
        """Load a run.

        Args:
            out: The folder of the run.
            data: The address of its data, where they are to be read and are not built in: the folder may have been sent
                by anybody, and may not choose what is read or fetched.

        Raises:
            InputError: The folder holds no run, or a file of it is damaged.
        """
        record = _record(folder := Path(out), "Name the folder of a run.")
        validity = {name: Validity(facts["valid"], facts["reason"]) for name, facts in record["validity"].items()}
        return cls(folder, record["settings"], _table(folder, RESULTS), _table(folder, NETWORKS), validity, data)

    def plan(self, groundings: Iterable[str] | None = None) -> Plan:
        """The networks each grounding has.

        Args:
            groundings: Some groundings only.

        Raises:
            InputError: Its data are not built in, and were not named when it was loaded.
        """
        record = _record(self.out, "Name the folder of a run.")
        settings = record["settings"]
        preset = {"base": settings["preset"].removesuffix(", changed"), **settings["sizes"]}
        names = [name for name in record["groundings"] if groundings is None or name in groundings]
        domain, network, data = settings["domain"], settings["network"], self.data or settings["data"]
        if self.data is None and not is_built_in(data):
            raise InputError(
                f"{self.out} says that it was run on {data!r}, and a folder may not choose what is read or fetched. "
                f"Where you trust it, name the data: --data {data}, in Python data={data!r}."
            )
        return Plan.make(domain, data, network, names, "cka", preset, settings["seed"])

    def trials(self, groundings: Iterable[str] | None = None) -> list[Trial]:
        """Read the views of every grounding from the store: to evaluate other measures costs no training.

        Args:
            groundings: Some groundings only.
        """
        plan = self.plan(groundings)
        return _trials(plan, plan.tasks(self.out), self.validity)


def run(
    domain: str | Domain,
    data: str,
    network: str,
    *,
    out: str | Path,
    groundings: Iterable[str] | str | None = None,
    measures: Any = "resi",
    preset: str | Mapping[str, Any] = "small",
    seed: int = 0,
    engine: Any = None,
    workers: int | None = None,
    engine_options: Mapping[str, Any] | str | None = None,
    device: Any = None,
    progress: bool = True,
) -> BenchmarkRun:
    """Evaluate measures on networks whose similarity is known: which of them may be trusted?

    Args:
        domain: "graph", "language", "vision", or one of your own.
        data: An address of that domain, like cora.
        network: A name of that domain, like gcn, or an address.
        out: The folder of the run, a new or an empty one; rerun with it to resume.
        groundings: Some groundings only: accuracy, outputs, labels, shortcut, augmentation, layers, family; by default
            all that the domain can make.
        measures: A name, a set like "resi" or "all", a function, or a list of them.
        preset: "paper", "small", with changes as in "small,seeds=4,epochs=3", or a mapping: {"base": "small",
            "seeds": 4, "training": {"epochs": 3}}.
        seed: Shifts the seeds of all networks: another seed is another repetition.
        engine: Where networks are trained and compared: None for one after another in this process, "processes" for
            one per core, Dask, Ray, Slurm or an executor. Its workers see the folder of the run.
        workers: How many networks are trained at a time, where the engine leaves it open.
        engine_options: What the engine's library takes for every task, such as `{"num_gpus": 1}`.
        device: Where networks are trained and shown inputs, by default the accelerator if there is one.
        progress: Whether progress is shown.

    Returns:
        The run, with one row per grounding, metric, form and measure.

    Raises:
        InputError: The folder holds another run, or a grounding cannot be evaluated with these networks and measures.
        WorkerError: Networks were lost with the processes that trained them.
    """
    import pandas as pd

    folder = Path(out)
    plan = Plan.make(domain, data, network, groundings, measures, preset, seed)
    plan.check()
    engine = engine_of(engine, workers=workers, options=engine_options)
    claim(folder, older=OLDER)
    _check_folder(folder, plan.settings())
    _write_run(folder, plan, {})
    tasks = plan.tasks(folder, 1 if not isinstance(engine, Local) else torch.get_num_threads(), device)
    records = make_all(tasks, engine, progress)
    validity = _validity(plan, records)
    write_whole(folder / NETWORKS, csv_text(_networks(plan, tasks, records), index=False).encode())
    _write_run(folder, plan, validity)
    done: dict[str, pd.DataFrame] = {}
    evaluator = Evaluator(plan.measures, folder / "store", engine, folder / "rows", progress)
    for grounding, rows in evaluator.evaluate_each(_trials(plan, tasks, validity)):
        done[grounding] = rows
        ordered = pd.concat([done[name] for name in plan.networks if name in done], ignore_index=True)
        write_whole(folder / RESULTS, csv_text(with_settings(ordered, plan.settings()), index=False).encode())
    return BenchmarkRun.load(folder, data=data)


def across(
    runs: Sequence[BenchmarkRun | str | Path],
    measures: Any = "resi",
    *,
    store: str | Path | None = None,
    data: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Do measures tell the architectures of several runs apart? Nothing is trained for it.

    The grounding `family` of one run tells kinds of training apart. Here every run is a family: its standard networks,
    which differ by their seed alone.

    Args:
        runs: Two or more runs, or their folders, that differ in their network alone.
        measures: A name, a set like "resi" or "all", a function, or a list of them.
        store: A folder where scores are kept.
        data: The address of their data, where it is not built in and runs are given by their folders.
        progress: Whether progress is shown.

    Returns:
        Rows of the grounding `family`, one group per run.

    Raises:
        InputError: There is one run, they differ in more than their network, or one has no standard networks.
    """
    loaded = [run if isinstance(run, BenchmarkRun) else BenchmarkRun.load(run, data=data) for run in runs]
    if len(loaded) < 2:
        raise InputError(f"families of architectures need two runs or more, and there are {len(loaded)}. Give more.")
    first = loaded[0]
    views: dict[str, Activations] = {}
    groups: list[str] = []
    for run in loaded:
        for name in ("domain", "data", "preset"):
            if run.settings[name] != first.settings[name]:
                raise InputError(
                    f"{run.out} is a run with another {name} than {first.out} ({run.settings[name]!r} and "
                    f"{first.settings[name]!r}). Give runs that differ in their network alone."
                )
        trials = run.trials(["accuracy", "outputs"])
        if not trials:
            raise InputError(
                f"{run.out} has no networks that differ by their seed alone. Run its grounding 'accuracy'."
            )
        network = str(run.settings["network"])
        views |= {f"{network} {name}": view for name, view in trials[0].views.items()}
        groups += [network] * len(trials[0].views)
    evaluator = Evaluator(select_measures(measures), None if store is None else Path(store), progress=progress)
    rows = evaluator.evaluate([Trial("family", views, tuple(groups))])
    return with_settings(rows, {**first.settings, "network": "+".join(dict.fromkeys(groups))})


def _check_folder(out: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a folder that holds another run."""
    if not os.path.lexists(out / RUN):
        return
    try:
        there = _record(out, "Name another folder.")["settings"]
    except FileError:  # networks and rows are named by their settings, so nothing else depends on it
        warn(f"{out / RUN} does not match its checksum; it is written anew.", DamagedStoreWarning)
        return
    for name in settings:
        if there.get(name) != settings[name]:
            raise InputError(
                f"{out} holds a run with another {name} ({there.get(name)!r} there, {settings[name]!r} here). Name "
                "another folder."
            )


def _trials(plan: Plan, tasks: Iterable[Task], validity: Mapping[str, Validity]) -> list[Trial]:
    by_key = {task.spec.key: task for task in tasks}
    views: dict[str, Activations] = {}
    trials = []
    for grounding, specs in plan.networks.items():
        judged = validity.get(grounding, VALID)
        if GROUNDINGS.get(grounding).kind == "layers":
            layers = [make_layer_views(by_key[spec.key]) for spec in specs]
            trials.append(Trial(grounding, layers=layers, validity=judged))
            continue
        for spec in specs:
            if spec.key not in views:
                views[spec.key] = make_view(by_key[spec.key])
        by_name = {spec.name: views[spec.key] for spec in specs}
        trials.append(Trial(grounding, by_name, plan.groups(grounding), validity=judged))
    return trials


def _validity(plan: Plan, records: Mapping[str, Record]) -> dict[str, Validity]:
    """What the outputs of the networks say of each grounding."""
    validity = {}
    for grounding, specs in plan.networks.items():
        networks = []
        for group, spec in zip(plan.groups(grounding), specs, strict=True):
            record = records[spec.key]
            checks = {name: record.get(name, math.nan) for name in CHECKS}
            networks.append(Behaviour(group, record["accuracy"], checks, record["chance"], record["fit_chance"]))
        kind = GROUNDINGS.get(grounding).kind
        validity[grounding] = judge(grounding if kind == "groups" else kind, networks)
    return validity


def _networks(plan: Plan, tasks: Iterable[Task], records: Mapping[str, Record]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for task in tasks:
        spec, record = task.spec, records[task.spec.key]
        row: dict[str, Any] = {"name": spec.name, "group": spec.group, "groundings": " ".join(plan.groundings_of(spec))}
        row |= {"seed": spec.seed, "accuracy": record["accuracy"]}
        row |= {name: record.get(name, math.nan) for name in CHECKS}
        rows.append(row | {"seconds": round(record["cpu"], 2), "folder": f"networks/{spec.folder}"})
    return pd.DataFrame(rows)


def _write_run(folder: Path, plan: Plan, validity: Mapping[str, Validity]) -> None:
    versions = {"likewise": __version__, "torch": torch.__version__, "numpy": np.__version__}
    record = {
        "settings": plan.settings(),
        "groundings": list(plan.networks),
        "measures": [measure.key for measure in plan.measures],
        "versions": versions | {"python": platform.python_version()},
        "validity": {name: {"valid": v.valid, "reason": v.reason} for name, v in validity.items()},
    }
    write_whole(folder / RUN, json.dumps(record, indent=1).encode())


def _record(folder: Path, remedy: str) -> dict[str, Any]:
    """What `_write_run` wrote, of the types it has."""
    path = folder / RUN
    with reading(path, f"{path} is no record of a run: {{reason}}. {remedy}"):
        record = parse(read_bytes(folder, RUN, required=True))
        check(record, {"settings": dict[str, Any], "groundings": list[str], "validity": dict[str, dict[str, Any]]})
        for judged in record["validity"].values():
            check(judged, {"valid": bool | None, "reason": str})
        check(record["settings"], _SETTINGS)
        sizes = record["settings"]["sizes"]
        check(sizes, _SIZES)
        if max(sizes["seeds"], sizes["group"], sizes["layered"]) > _MOST:
            raise ValueError(f"it is of more than {_MOST:,} networks")
    return record


def _table(folder: Path, name: str) -> pd.DataFrame:
    refusal = f"{folder / name} is no table: {{reason}}. Run the benchmark again with this folder."
    return read_table(folder, name, refusal)
