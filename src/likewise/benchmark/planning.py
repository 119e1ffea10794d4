"""What a run needs: which networks for which groundings, which comparisons, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.benchmark.domains import DOMAINS, Domain, Experiment, NetworkSpec
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.training import Task, read_record
from likewise.benchmark.trials import check, select_measures, usable
from likewise.errors import InputError
from likewise.measures.function import Measure
from likewise.networks import train

if TYPE_CHECKING:
    import pandas as pd

_TIMED = 3  # batches, or epochs over a graph, by which a training is timed
_LAYERS = {"layers": 3}  # how many there are shows when networks are looked at


@dataclass(frozen=True)
class Plan:
    """A run before it starts: the domain, what is asked of it, and the networks of every grounding."""

    domain: Domain
    experiment: Experiment
    measures: Sequence[Measure]
    networks: Mapping[str, Sequence[NetworkSpec]]

    @classmethod
    def make(
        cls,
        domain: str | Domain,
        data: str,
        network: str,
        groundings: Iterable[str] | str | None,
        measures: Any,
        preset: str | Mapping[str, Any],
        seed: int,
    ) -> Plan:
        """Check the arguments of a run, and list the networks it needs."""
        domain = DOMAINS.get(domain) if isinstance(domain, str) else domain
        experiment = domain.experiment(data, network, preset, seed)
        names = [groundings] if isinstance(groundings, str) else groundings
        names = None if names is None else [GROUNDINGS.get(name).name for name in names]
        networks = {
            name: domain.specs(name, experiment)
            for name in dict.fromkeys(GROUNDINGS.names() if names is None else names)
        }
        unknown = [name for name in networks if not networks[name]]
        if unknown and names is not None:
            raise InputError(
                f"the domain {domain.name!r} makes no networks for the grounding {unknown[0]!r}. Leave it out, or give "
                "representations of your own with likewise.benchmark.from_folder."
            )
        networks = {name: specs for name, specs in networks.items() if specs}
        return cls(domain, experiment, select_measures(measures), networks)

    def check(self) -> None:
        """Refuse groundings that have too few networks, or that no measure applies to."""
        for name, specs in self.networks.items():
            rule = GROUNDINGS.get(name)
            usable(rule, self.measures)
            check(rule, len(specs), self.groups(name), _LAYERS.get(rule.kind))

    def tasks(self, out: Path, threads: int = 1) -> list[Task]:
        """Every network once, those that serve most groundings first."""
        tasks: dict[str, Task] = {}
        for grounding, specs in self.networks.items():
            for spec in specs:
                task = tasks.get(spec.key) or Task(self.domain, self.experiment, spec, out, threads=threads)
                tasks[spec.key] = replace(task, layered=task.layered or grounding == "layers")
        return list(tasks.values())

    def groups(self, grounding: str) -> tuple[str, ...]:
        """The group of each network of a grounding."""
        family = grounding == "family"
        return tuple(self.domain.family(spec) if family else spec.group for spec in self.networks[grounding])

    def groundings_of(self, spec: NetworkSpec) -> list[str]:
        """The groundings that a network serves."""
        return [name for name, specs in self.networks.items() if spec.key in {other.key for other in specs}]

    def settings(self) -> dict[str, Any]:
        """The arguments of the run as plain values: a folder holds one such run."""
        experiment, preset = self.experiment, self.experiment.preset
        sizes = {name: getattr(preset, name) for name in ("seeds", "group", "layered", "train", "probe")}
        sizes |= {"options": dict(preset.options), "training": dict(preset.training)}
        names: dict[str, Any] = {"domain": self.domain.name, "data": experiment.data, "network": experiment.network}
        if self.domain.version > 1:  # runs from before there were versions have none
            names["version of the domain"] = self.domain.version
        return names | {"preset": experiment.preset_name, "seed": experiment.seed, "sizes": sizes}

    def pairs(self) -> int:
        """How many pairs of views are compared, each once."""
        pairs: set[tuple[str, str]] = set()
        layered = 0
        for grounding, specs in self.networks.items():
            if GROUNDINGS.get(grounding).kind == "layers":
                layered += len(specs)
                continue
            keys = sorted(spec.key for spec in specs)
            pairs |= {(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :]}
        return len(pairs) + 10 * layered


def plan(
    domain: str,
    data: str,
    network: str,
    *,
    groundings: Iterable[str] | str | None = None,
    measures: Any = "resi",
    preset: str | Mapping[str, Any] = "small",
    seed: int = 0,
    out: str | Path | None = None,
) -> pd.DataFrame:
    """Say what a run would train, and how long it would take. Nothing is kept.

    Args:
        domain: "graph", "language", "vision", or one of your own.
        data: An address of that domain, like cora.
        network: A name of that domain, like gcn, or an address.
        groundings: Some groundings only; by default all that the domain can make.
        measures: A name, a set like "resi" or "all", a function, or a list of them.
        preset: "paper", "small", or a mapping as for `run`.
        seed: Shifts the seeds of all networks.
        out: The folder of a run: networks that are done there count as done.

    Returns:
        One row per group of networks. `seconds` are CPU seconds of one training: as measured where networks of the
        group are in `out`, else from three steps of the first network that is built the same. `left` are those of all
        trainings that are not done.
    """
    import pandas as pd

    needed = Plan.make(domain, data, network, groundings, measures, preset, seed)
    groups: dict[str, list[Task]] = {}
    for task in needed.tasks(Path("." if out is None else out)):
        groups.setdefault(task.spec.group, []).append(task)
    rows, timed = [], dict[str, float]()
    for group, tasks in groups.items():
        done = [record["cpu"] for record in (read_record(task.folder) for task in tasks) if record] if out else []
        built = str((tasks[0].spec.address, tasks[0].spec.options))
        if not done and built not in timed:
            timed[built] = estimate(tasks[0])
        seconds = sum(done) / len(done) if done else timed[built]
        serves = dict.fromkeys(name for task in tasks for name in needed.groundings_of(task.spec))
        counts = {"networks": len(tasks), "done": len(done), "seconds": float(f"{seconds:.3g}")}
        left = float(f"{seconds * (len(tasks) - len(done)):.3g}")
        rows.append({"group": group, "groundings": ", ".join(serves), **counts, "left": left})
    frame = pd.DataFrame(rows)
    frame.attrs = {"pairs": needed.pairs(), "measures": len(needed.measures)}
    return frame


def estimate(task: Task) -> float:
    """CPU seconds of a training, from a few steps of it that leave nothing behind."""
    domain, spec = task.domain, task.spec
    settings, data = domain.settings(spec), domain.train_data(spec)
    net = domain.build(spec, data)
    whole = data.domain == "graph"
    few = data if whole else data[: _TIMED * settings.batch_size]
    short = replace(settings, epochs=1, evaluate_every=None, keep_best=False)
    train(net, few, short, progress=False)  # the first step of a process is slow
    start = time.process_time()
    train(net, few, replace(short, epochs=_TIMED if whole else 1), progress=False)
    once = (time.process_time() - start) / (_TIMED if whole else len(few))
    return once * settings.epochs * (1 if whole else len(data))
