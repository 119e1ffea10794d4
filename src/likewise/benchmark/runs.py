"""`likewise.benchmark.run`: train what is missing, look at it, compare, evaluate; nothing is done twice.

A run is a folder. `networks/` holds one folder per trained network, `store/` their views and all scores, `rows/` the
results of each grounding, `results.csv`, `networks.csv` and `run.json` what came out. Started again after a kill, it
finds all of these and goes on where it was.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise import __version__
from likewise._base.files import make_folder, reading, write_whole
from likewise.benchmark.domains import Domain, Spec
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.planning import Design
from likewise.benchmark.results.frame import NETWORKS, RESULTS, read_table
from likewise.benchmark.training import CHECKS, Record, Task, check_folder, make_all, stack_of, view_of
from likewise.benchmark.trials import Bench, Trial, check, evaluate, usable, with_settings
from likewise.benchmark.validity import VALID, Behaviour, Validity, judge
from likewise.work.engines import Local, engine_of

if TYPE_CHECKING:
    import pandas as pd

_LAYERS = {"layers": 3}  # how many there are shows when networks are looked at
RUN = "run.json"


@dataclass(frozen=True, eq=False)
class BenchmarkRun:
    """A run: its settings, one row per network, and one row per grounding, metric, form and measure.

    `validity` says of each grounding whether its groups are what they are meant to be, and why not.
    """

    out: Path
    settings: Mapping[str, Any]
    results: pd.DataFrame
    networks: pd.DataFrame
    validity: Mapping[str, Validity]

    def __repr__(self) -> str:
        given = " ".join(str(self.settings[name]) for name in ("domain", "data", "network", "preset"))
        return f"BenchmarkRun({given!r}, networks={len(self.networks)}, results={len(self.results)})"

    @classmethod
    def load(cls, out: str | Path) -> BenchmarkRun:
        """A run from its folder."""
        folder = Path(out)
        with reading(folder / RUN, f"{folder / RUN} is no record of a run: {{reason}}. Name the folder of a run."):
            record = json.loads((folder / RUN).read_text(encoding="utf-8"))
            validity = {name: Validity(**facts) for name, facts in record["validity"].items()}
            settings = record["settings"]
        return cls(folder, settings, _table(folder / RESULTS), _table(folder / NETWORKS), validity)

    def design(self, groundings: Iterable[str] | None = None) -> Design:
        """Which networks each grounding has, all of them or some."""
        with reading(self.out / RUN, f"{self.out / RUN} is no record of a run: {{reason}}."):
            record = json.loads((self.out / RUN).read_text(encoding="utf-8"))
        settings = record["settings"]
        preset = {"base": settings["preset"].removesuffix(", changed"), **settings["sizes"]}
        wanted = [name for name in record["groundings"] if groundings is None or name in groundings]
        domain, data, network = (settings[name] for name in ("domain", "data", "network"))
        return Design.of(domain, data, network, wanted, "cka", preset, settings["seed"])

    def trials(self, groundings: Iterable[str] | None = None) -> list[Trial]:
        """The views of every grounding again, from the store: to evaluate other measures costs no training."""
        design = self.design(groundings)
        return _trials(design, design.tasks(self.out), self.validity)


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
    progress: bool = True,
) -> BenchmarkRun:
    """Hold measures against networks whose likeness is known: which of them may be trusted?

    domain      graph, language, vision, or one of your own
    data        an address of that domain, like cora
    network     a name of that domain, like gcn, or an address
    groundings  all that the domain can make, or some: accuracy, outputs, labels, shortcut, augmentation, layers, family
    measures    a name, a set like "resi" or "all", a function, or a list of them
    preset      "paper", "small", or a mapping: {"base": "small", "seeds": 4, "training": {"epochs": 3}}
    seed        shifts the seeds of all networks: another seed is another repetition
    engine      where networks are trained and compared: None for one after another in this process, "processes" for
                one per core, Dask, Ray or an executor
    out         the folder of the run; rerun with it to resume
    """
    folder = Path(out)
    design = Design.of(domain, data, network, groundings, measures, preset, seed)
    settings = design.settings()
    for grounding, specs in design.networks.items():
        rule = GROUNDINGS.get(grounding)
        usable(rule, design.measures)
        check(rule, len(specs), [_group(design, grounding, spec) for spec in specs], _LAYERS.get(rule.kind))
    make_folder(folder)
    check_folder(folder, settings)
    _write_run(folder, design, {})
    place = engine_of(engine)
    threads = 1 if not isinstance(place, Local) else torch.get_num_threads()
    tasks = design.tasks(folder, threads)
    records = make_all(tasks, place, progress)
    validity = _validity(design, records)
    networks = _networks(design, tasks, records)
    write_whole(folder / NETWORKS, networks.to_csv(index=False).encode())
    _write_run(folder, design, validity)
    bench = Bench(design.measures, folder / "store", place, folder / "rows", progress)

    def write(rows: pd.DataFrame) -> pd.DataFrame:
        whole = with_settings(rows, settings)
        write_whole(folder / RESULTS, whole.to_csv(index=False).encode())
        return whole

    write(evaluate(_trials(design, tasks, validity), bench, write))
    return BenchmarkRun.load(folder)


def _trials(design: Design, tasks: Iterable[Task], validity: Mapping[str, Validity]) -> list[Trial]:
    by_key = {task.spec.key: task for task in tasks}
    views: dict[str, Any] = {}
    found = []
    for grounding, specs in design.networks.items():
        judged = validity.get(grounding, VALID)
        if GROUNDINGS.get(grounding).kind == "layers":
            stacks = [stack_of(by_key[spec.key]) for spec in specs]
            found.append(Trial(grounding, stacks=stacks, validity=judged))
            continue
        for spec in specs:
            if spec.key not in views:
                views[spec.key] = view_of(by_key[spec.key])
        groups = tuple(_group(design, grounding, spec) for spec in specs)
        named = {spec.name: views[spec.key] for spec in specs}
        found.append(Trial(grounding, named, groups, validity=judged))
    return found


def _group(design: Design, grounding: str, spec: Spec) -> str:
    return design.domain.family(spec) if grounding == "family" else spec.group


def _validity(design: Design, records: Mapping[str, Record]) -> dict[str, Validity]:
    """What the answers of the networks say of each grounding."""
    found = {}
    for grounding, specs in design.networks.items():
        networks = [
            Behaviour(
                _group(design, grounding, spec),
                records[spec.key]["accuracy"],
                {name: records[spec.key].get(name, math.nan) for name in CHECKS},
                records[spec.key]["chance"],
                records[spec.key]["fit_chance"],
            )
            for spec in specs
        ]
        kind = GROUNDINGS.get(grounding).kind
        found[grounding] = judge(grounding if kind == "groups" else kind, networks)
    return found


def _networks(design: Design, tasks: Iterable[Task], records: Mapping[str, Record]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for task in tasks:
        spec, record = task.spec, records[task.spec.key]
        about: dict[str, Any] = {
            "name": spec.name,
            "group": spec.group,
            "groundings": " ".join(design.groundings_of(spec)),
        }
        about |= {"seed": spec.seed, "accuracy": record["accuracy"]}
        about |= {name: record.get(name, math.nan) for name in CHECKS}
        rows.append(about | {"seconds": round(record["cpu"], 2), "folder": f"networks/{spec.folder}"})
    return pd.DataFrame(rows)


def _write_run(folder: Path, design: Design, validity: Mapping[str, Validity]) -> None:
    versions = {"likewise": __version__, "torch": torch.__version__, "numpy": np.__version__}
    record = {
        "settings": design.settings(),
        "groundings": list(design.networks),
        "measures": [measure.key for measure in design.measures],
        "versions": versions | {"python": platform.python_version()},
        "validity": {name: {"valid": v.valid, "reason": v.reason} for name, v in validity.items()},
    }
    write_whole(folder / RUN, json.dumps(record, indent=1).encode())


def _table(path: Path) -> pd.DataFrame:
    return read_table(path, f"{path} is no table: {{reason}}. Run the benchmark again with this folder.")
