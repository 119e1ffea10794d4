"""What a run needs: which networks for which groundings, which comparisons, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.benchmark.costs import GPU_TFLOPS, TrainingCost, estimate
from likewise.benchmark.domains import DOMAINS, Domain, Experiment, NetworkSpec
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.training import Task, read_record
from likewise.benchmark.trials import check, select_measures, usable
from likewise.errors import InputError
from likewise.measures.function import Measure

if TYPE_CHECKING:
    import pandas as pd

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

    def tasks(self, out: Path, threads: int = 1, device: Any = None) -> list[Task]:
        """Every network once, those that serve most groundings first."""
        tasks: dict[str, Task] = {}
        options: dict[str, Any] = {"threads": threads, "device": device}
        for grounding, specs in self.networks.items():
            for spec in specs:
                task = tasks.get(spec.key) or Task(self.domain, self.experiment, spec, out, **options)
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
    network: str | Sequence[str],
    *,
    groundings: Iterable[str] | str | None = None,
    measures: Any = "resi",
    preset: str | Mapping[str, Any] = "small",
    seed: int = 0,
    out: str | Path | None = None,
    gpu_tflops: float = GPU_TFLOPS,
) -> pd.DataFrame:
    """Say what a run would train, and what it would cost. Nothing is kept, and no published weights are fetched.

    Args:
        domain: "graph", "language", "vision", or one of your own.
        data: An address of that domain, like cora.
        network: A name of that domain, like gcn, an address, or several of either.
        groundings: Some groundings only; by default all that the domain can make.
        measures: A name, a set like "resi" or "all", a function, or a list of them.
        preset: "paper", "small", or a mapping as for `run`.
        seed: Shifts the seeds of all networks.
        out: The folder of a run, whose networks count as done; of several networks the folder that holds their runs,
            each in a folder of its name.
        gpu_tflops: Trillions of floating-point operations per second that a GPU sustains: an assumption.

    Returns:
        One row per network and group. `seconds` are CPU seconds of one training: as measured where networks of the
        group are in `out`, else from a few steps of the first network that is built the same. `left` are those of all
        trainings that are not done, `gpu_hours` the same on a GPU, by the operations of these steps, and `gigabytes`
        what the weights of all networks take on disk.

    Raises:
        InputError: No network is named, or the rate of a GPU is not above 0.
    """
    import pandas as pd

    names = [network] if isinstance(network, str) else list(network)
    if not names:
        raise InputError("a plan needs a network. Name one or more, as in gcn.")
    if not gpu_tflops > 0:
        raise InputError(f"gpu_tflops is {gpu_tflops:g}. Give what a GPU sustains, above 0, such as {GPU_TFLOPS:g}.")
    rows: list[dict[str, Any]] = []
    attrs: dict[Any, Any] = {"pairs": 0, "measures": 0, "gpu_tflops": gpu_tflops}
    for name in names:
        needed = Plan.make(domain, data, name, groundings, measures, preset, seed)
        folder = None if out is None else run_folder(out, name, len(names))
        rows += [{"network": name, **row} for row in _group_costs(needed, folder, gpu_tflops)]
        attrs |= {"pairs": attrs["pairs"] + needed.pairs(), "measures": len(needed.measures)}
    frame = pd.DataFrame(rows)
    frame.attrs = attrs
    return frame


def run_folder(out: str | Path, network: str, count: int) -> Path:
    """The folder of a run: `out` itself, or of several networks one in it."""
    name = "".join(letter if letter.isalnum() else "-" for letter in network)
    return Path(out) / name if count > 1 else Path(out)


def _group_costs(needed: Plan, out: Path | None, gpu_tflops: float) -> Iterator[dict[str, Any]]:
    """One row per group: its networks, how many are done, and what the others cost."""
    groups: dict[str, list[Task]] = {}
    for task in needed.tasks(Path("." if out is None else out)):
        groups.setdefault(task.spec.group, []).append(task)
    timed = dict[str, TrainingCost]()
    for group, tasks in groups.items():
        done = [record["cpu"] for record in (read_record(task.folder) for task in tasks) if record] if out else []
        built = str((tasks[0].spec.address, tasks[0].spec.options))
        cost = timed[built] if built in timed else timed.setdefault(built, estimate(tasks[0]))
        seconds, left = sum(done) / len(done) if done else cost.seconds, len(tasks) - len(done)
        serves = dict.fromkeys(name for task in tasks for name in needed.groundings_of(task.spec))
        yield {
            **{"group": group, "groundings": ", ".join(serves), "networks": len(tasks), "done": len(done)},
            **{"seconds": _rounded(seconds), "left": _rounded(seconds * left)},
            "gpu_hours": _rounded(cost.gpu_hours(gpu_tflops) * left),
            "gigabytes": _rounded(cost.size * len(tasks) / 1e9),
        }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
