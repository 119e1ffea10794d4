"""What a run needs: which networks for which groundings, which comparisons, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.benchmark.domains import DOMAINS, Case, Domain, Spec
from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.training import Task, read_record
from likewise.errors import InputError
from likewise.measures.function import Measure
from likewise.measures.registry import select
from likewise.networks import train

if TYPE_CHECKING:
    import pandas as pd

_TIMED = 3  # batches, or epochs over a graph, by which a training is timed


@dataclass(frozen=True)
class Design:
    """A run, settled: the domain, what is asked of it, and the networks of every grounding."""

    domain: Domain
    case: Case
    measures: Sequence[Measure]
    networks: Mapping[str, Sequence[Spec]]

    @classmethod
    def of(
        cls,
        domain: str | Domain,
        data: str,
        network: str,
        groundings: Iterable[str] | str | None,
        measures: Any,
        preset: str | Mapping[str, Any],
        seed: int,
    ) -> Design:
        """Check what was asked for, and settle which networks it needs."""
        place = DOMAINS.get(domain) if isinstance(domain, str) else domain
        case = place.case(data, network, preset, seed)
        names = [groundings] if isinstance(groundings, str) else groundings
        wanted = GROUNDINGS.names() if names is None else [GROUNDINGS.get(name).name for name in names]
        networks = {name: place.specs(name, case) for name in dict.fromkeys(wanted)}
        unknown = [name for name in networks if not networks[name]]
        if unknown and names is not None:
            raise InputError(
                f"the domain {place.name!r} makes no networks for the grounding {unknown[0]!r}. Leave it out, or give "
                "representations of your own with likewise.benchmark.from_folder."
            )
        return cls(place, case, chosen(measures), {name: specs for name, specs in networks.items() if specs})

    def tasks(self, out: Path, threads: int = 1) -> list[Task]:
        """Every network once, those that serve most groundings first."""
        found: dict[str, Task] = {}
        for grounding, specs in self.networks.items():
            for spec in specs:
                known = found.get(spec.key) or Task(self.domain, self.case, spec, out, threads=threads)
                found[spec.key] = replace(known, layered=known.layered or grounding == "layers")
        return list(found.values())

    def groundings_of(self, spec: Spec) -> list[str]:
        """The groundings that a network serves."""
        return [name for name, specs in self.networks.items() if spec.key in {other.key for other in specs}]

    def settings(self) -> dict[str, Any]:
        """What was asked for, as plain values: a folder holds one such run."""
        case, preset = self.case, self.case.preset
        shown = {name: getattr(preset, name) for name in ("seeds", "group", "layered", "train", "probe")}
        shown |= {"options": dict(preset.options), "training": dict(preset.training)}
        names: dict[str, Any] = {"domain": self.domain.name, "data": case.data, "network": case.network}
        if self.domain.version > 1:  # runs from before there were versions have none
            names["version of the domain"] = self.domain.version
        return names | {"preset": case.preset_name, "seed": case.seed, "sizes": shown}


def chosen(measures: Any) -> list[Measure]:
    """The measures that were asked for; of "all", those whose libraries are installed."""
    found = select(measures, on=("representation", "outputs"))
    blind = [m for m in found if m.info.on == "networks"]
    if blind:
        raise InputError(f"{blind[0].key} looks at networks, and a benchmark compares representations. Leave it out.")
    every = measures in ("all", ["all"])
    return [m for m in found if not (every and (m.missing((1000, 64, 64)) or m.info.on == "outputs"))]


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
    """What a run would train, and how long it would take: one row per group of networks.

    `seconds` are CPU seconds of one training: as measured where networks of the group are in `out`, else from three
    steps of the first network that is built the same. `left` are those of all trainings that are not done. Nothing is
    kept.
    """
    import pandas as pd

    design = Design.of(domain, data, network, groundings, measures, preset, seed)
    tasks = design.tasks(Path("." if out is None else out))
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.spec.group, []).append(task)
    rows, timed = [], dict[str, float]()
    for group, own in groups.items():
        done = [record["cpu"] for record in (read_record(task.folder) for task in own) if record] if out else []
        alike = str((own[0].spec.address, own[0].spec.options))
        if not done and alike not in timed:
            timed[alike] = estimate(own[0])
        seconds = sum(done) / len(done) if done else timed[alike]
        serves = dict.fromkeys(name for task in own for name in design.groundings_of(task.spec))
        counts = {"networks": len(own), "done": len(done), "seconds": float(f"{seconds:.3g}")}
        left = float(f"{seconds * (len(own) - len(done)):.3g}")
        rows.append({"group": group, "groundings": ", ".join(serves), **counts, "left": left})
    frame = pd.DataFrame(rows)
    frame.attrs = {"pairs": pairs_of(design), "measures": len(design.measures)}
    return frame


def pairs_of(design: Design) -> int:
    """How many pairs of views are compared, each once."""
    pairs: set[tuple[str, str]] = set()
    layered = 0
    for grounding, specs in design.networks.items():
        if GROUNDINGS.get(grounding).kind == "layers":
            layered += len(specs)
            continue
        keys = sorted(spec.key for spec in specs)
        pairs |= {(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :]}
    return len(pairs) + 10 * layered


def estimate(task: Task) -> float:
    """CPU seconds of a training, from a few steps of it that leave nothing behind."""
    domain, spec = task.domain, task.spec
    settings, data = domain.settings(spec), domain.train_data(spec)
    net = domain.build(spec, data)
    whole = data.domain == "graph"
    part = data if whole else data[: _TIMED * settings.batch_size]
    settings = replace(settings, epochs=1, evaluate_every=None, keep_best=False)
    train(net, part, settings, progress=False)  # the first step of a process is slow
    start = time.process_time()
    train(net, part, replace(settings, epochs=_TIMED if whole else 1), progress=False)
    once = (time.process_time() - start) / (_TIMED if whole else len(part))
    return once * domain.settings(spec).epochs * (1 if whole else len(data))
