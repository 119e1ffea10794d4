"""The contract of a measure, checked by trying: for ours in the test suite, for anybody's in theirs.

Every declared fact must hold, and every invariance that is not declared must be seen to fail: a measure that
claims too little misleads as much as one that claims too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from likewise._base.lazy import lazy
from likewise._base.progress import warn
from likewise.comparison.recordings.recording import is_new_baseline
from likewise.difference import diff, record
from likewise.errors import InputError, LikewiseError
from likewise.measures.facts import INVARIANCES, LINEAR, PERMUTATION, ROTATION, SCALE, SHIFT
from likewise.measures.function import Measure
from likewise.measures.registry import select
from likewise.views import Activations, Outputs

__all__ = ["AlarmError", "ContractError", "Report", "assert_alike", "check_measure"]
lazy(__name__)

N, D = 60, 8
TOLERANCE = 1e-6


class AlarmError(LikewiseError, AssertionError):
    """A network is not what its baseline says."""


def assert_alike(
    network: Any,
    baseline: Any,
    data: Any,
    *,
    fail_under: Mapping[str, float] | None = None,
    fail_over: Mapping[str, float] | None = None,
    **options: Any,
) -> Any:
    """Compare a network with a baseline in a test: a recording, or a network.

    The first run writes a recording that is not there yet, with a warning; commit it. Later runs fail where a threshold
    is missed; without thresholds, where the verdict is "changed" or "different".

    Args:
        network: An address or a module.
        baseline: The path of a recording, such as "tests/old.likewise"; or a recording, an address, a module.
        data: The probe: what the recording was made on.
        fail_under: `{measure: least value}`.
        fail_over: `{measure: largest value}`.
        **options: Those of `likewise.diff`.

    Returns:
        The difference; None where the baseline was written.

    Raises:
        AlarmError: The network is not alike.

    Example:
        >>> import copy, torch
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
        >>> assert_alike(copy.deepcopy(net), net, torch.rand(40, 4), progress=False).verdict
        'identical'
    """
    if is_new_baseline(baseline):
        written = record(network, data, **options).save(baseline)
        warn(f"{written} was not there: this network is recorded as the baseline. Commit the file.")
        return None
    change = diff(baseline, network, data, fail_under=fail_under, fail_over=fail_over, **options)
    alike = change.ok if change.checks else change.verdict not in ("changed", "different")
    if not alike:
        raise AlarmError("\n".join([*change.failures, str(change)]))
    return change


class ContractError(LikewiseError, AssertionError):
    """A measure does not do what is declared of it."""


@dataclass
class Report:
    """What was found of a measure by trying.

    Attributes:
        measure: Its key.
        symmetric: Whether swapping the networks changed nothing.
        identity: The score of a network with itself.
        invariant_to: Changes of one network that it did not notice.
        lowest: The smallest score seen.
        highest: The largest score seen.
        triangle: Whether the triangle inequality held.
        paired: Whether it looks at single inputs.
        wide: What it gives for networks with more neurons than inputs.
        saturated: Sizes (inputs, neurons, neurons) at which noise always had one score.
        lies: Declared facts that do not hold.
    """

    measure: str
    symmetric: bool = False
    identity: float = float("nan")
    invariant_to: set[str] = field(default_factory=set)
    lowest: float = float("inf")
    highest: float = float("-inf")
    triangle: bool = True
    paired: bool = False
    wide: str = ""
    saturated: list[tuple[int, int, int]] = field(default_factory=list)
    lies: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.measure}",
            f"  symmetric       {self.symmetric}",
            f"  with itself     {self.identity:.4g}",
            f"  ignores         {', '.join(sorted(self.invariant_to)) or 'nothing'}",
            f"  values seen     {self.lowest:.4g} … {self.highest:.4g}",
            f"  triangle        {'holds' if self.triangle else 'violated'}",
            f"  input by input  {self.paired}",
            f"  n < d           {self.wide}",
            f"  says nothing at {', '.join(map(str, self.saturated)) or 'no size tried'}",
        ]
        return "\n".join(lines + [f"  NOT TRUE: {lie}" for lie in self.lies])


def check_measure(measure: Any, *, seed: int = 0, strict: bool = True) -> Report:
    """Try every fact of a measure and compare it with what is declared.

    Args:
        measure: A name, a measure or a function.
        seed: Of the made-up networks.
        strict: Raise where a fact does not hold; else only report.

    Raises:
        ContractError: A declared fact does not hold, or one that is not declared does.

    Example:
        >>> print(check_measure("procrustes").invariant_to >= {"rotation", "scale", "shift"})
        True
    """
    bound = select(measure)[0]
    if bound.info.on == "networks":
        raise InputError(f"{bound.key} looks at networks, and check_measure makes up activations. Test it on networks.")
    trial = _Trial(bound, np.random.default_rng(seed))
    report = Report(bound.key)
    for check in (_symmetry, _identity, _invariances, _range, _triangle, _pairing, _direction, _wide, _saturation):
        check(trial, report)
    if strict and report.lies:
        raise ContractError(f"{bound.key} does not keep its contract: {'; '.join(report.lies)}.")
    return report


class _Trial:
    """Scores of a measure on made-up networks: related pairs, ordinary and tiny in scale."""

    def __init__(self, measure: Measure, rng: np.random.Generator) -> None:
        self.measure, self.rng = measure, rng
        self.seen: list[float] = []
        hidden = rng.normal(size=(N, D))
        self.labels = rng.integers(0, D, size=N)
        self.networks = [self._network(hidden) for _ in range(4)]
        self.strangers = [self._network(rng.normal(size=(N, D))) for _ in range(4)]

    def _network(self, hidden: np.ndarray) -> np.ndarray:
        noise = self.rng.normal(size=(N, D)) / 2
        if self.measure.info.on == "outputs":  # right about half of the time
            return np.asarray(hidden + noise + np.eye(D)[self.labels])
        mixed = hidden @ np.linalg.qr(self.rng.normal(size=(D, D)))[0] + noise
        return np.asarray(np.maximum(mixed + 0.3, 0) + 0.05 * mixed)

    @property
    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        x, y = self.networks[:2]
        yield x, y
        if self.measure.info.on == "representation":
            tiny = 0.8 / np.linalg.norm(x - x.mean(axis=0))
            yield tiny * x, tiny * y

    def score(self, x: np.ndarray, y: np.ndarray, order: np.ndarray | None = None) -> float:
        views = []
        for values, labels in ((x, self.labels), (y, self.labels if order is None else self.labels[order])):
            outputs = Outputs(values, labels) if self.measure.info.on == "outputs" else None
            views.append(Activations(values, outputs=outputs))
        value = self.measure(*views)
        self.seen.append(value)
        return value

    @property
    def changes(self) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
        rotation = np.linalg.qr(self.rng.normal(size=(D, D)))[0]
        shuffle = np.roll(np.arange(D), 3)
        shift = self.rng.normal(size=D)
        linear = rotation * np.linspace(0.5, 2.5, D) @ np.linalg.qr(self.rng.normal(size=(D, D)))[0]
        return {
            PERMUTATION: lambda v: v[:, shuffle],
            ROTATION: lambda v: v @ rotation,
            SCALE: lambda v: 2.7 * v,
            SHIFT: lambda v: v + shift * np.abs(v).mean(),
            LINEAR: lambda v: v @ linear,
        }


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def _symmetry(trial: _Trial, report: Report) -> None:
    pairs = [*trial.pairs, (trial.networks[2], trial.strangers[0])]
    report.symmetric = all(_same(trial.score(x, y), trial.score(y, x)) for x, y in pairs)
    if report.symmetric != trial.measure.info.symmetric:
        report.lies.append("it is declared " + ("asymmetric" if report.symmetric else "symmetric"))


def _identity(trial: _Trial, report: Report) -> None:
    declared = trial.measure.info.identity
    for x in trial.networks:
        report.identity = trial.score(x, x)
        size = max(1.0, float(np.linalg.norm(x)))
        if declared is not None and abs(report.identity - declared) > TOLERANCE * size:
            report.lies.append(f"a network with itself scores {report.identity:.6g}, not {declared:g}")
            return


def _invariances(trial: _Trial, report: Report) -> None:
    changes = trial.changes
    for name in INVARIANCES:
        change = changes[name]
        unnoticed = all(
            _same(trial.score(x, y), trial.score(*changed))
            for x, y in trial.pairs
            for changed in ((x, change(y)), (change(x), y))
        )
        if unnoticed:
            report.invariant_to.add(name)
        if unnoticed != (name in trial.measure.info.invariant_to):
            report.lies.append(f"it {'ignores' if unnoticed else 'notices'} a {name}")


def _range(trial: _Trial, report: Report) -> None:
    for x, y in zip(trial.networks, trial.strangers, strict=True):
        trial.score(x, y)
        if trial.measure.info.on == "representation":
            trial.score(x, -x)
    report.lowest, report.highest = min(trial.seen), max(trial.seen)
    low, high = trial.measure.info.bounds
    if low is not None and report.lowest < low - TOLERANCE:
        report.lies.append(f"{report.lowest:.6g} is below the declared {low:g}")
    if high is not None and report.highest > high + TOLERANCE:
        report.lies.append(f"{report.highest:.6g} is above the declared {high:g}")


def _triangle(trial: _Trial, report: Report) -> None:
    if trial.measure.info.similarity:
        report.triangle = False
    else:
        networks = [*trial.networks[:3], *trial.strangers[:2]]
        far = {(i, j): trial.score(networks[i], networks[j]) for i, j in permutations(range(5), 2)}
        report.triangle = all(far[i, k] <= far[i, j] + far[j, k] + TOLERANCE for i, j, k in permutations(range(5), 3))
    if trial.measure.info.metric and not report.triangle:
        report.lies.append("it violates the triangle inequality")


def _pairing(trial: _Trial, report: Report) -> None:
    x, y = trial.networks[:2]
    order = trial.rng.permutation(N)
    report.paired = not _same(trial.score(x, y), trial.score(x, y[order], order))
    if report.paired != trial.measure.info.paired:
        report.lies.append(f"it {'looks' if report.paired else 'does not look'} at single inputs")


def _direction(trial: _Trial, report: Report) -> None:
    """Related networks must be more alike than strangers, on average; only where inputs are paired."""
    if not trial.measure.info.paired or trial.measure.info.family == "custom":
        return
    near = [trial.score(x, y) for x, y in permutations(trial.networks, 2)]
    far = [trial.score(x, y) for x in trial.networks for y in trial.strangers]
    if (np.mean(near) > np.mean(far)) != trial.measure.info.similarity:
        report.lies.append(f"larger is not {trial.measure.info.larger_is}")


def _wide(trial: _Trial, report: Report) -> None:
    if trial.measure.info.on == "outputs":
        report.wide = "does not apply"
        return
    x, y = trial.rng.normal(size=(2, 30, 50))
    try:
        report.wide = f"{trial.measure(x, y):.4g} for noise"
    except LikewiseError as error:
        report.wide = str(error)


def _saturation(trial: _Trial, report: Report) -> None:
    """Sizes at which every draw of noise gets one score: those must be declared, and no others."""
    if trial.measure.info.on == "outputs":
        return
    found, n = trial.measure.saturation, max(24, trial.measure.rows)
    for a, b in ((n - 1, 5), (5, n - 1), (n - 1, n - 1), (2 * n, 5), (5, 2 * n), (2 * n, 2 * n)):
        scores = [_noise_score(trial, n, a, b) for _ in range(3)]
        if any(score is None for score in scores):
            continue
        numbers = [score for score in scores if score is not None]
        declared = found is not None and found.holds((n, a, b))
        if all(_same(number, numbers[0]) for number in numbers):
            report.saturated.append((n, a, b))
        if declared != ((n, a, b) in report.saturated):
            report.lies.append(
                f"noise {'has different scores' if declared else 'always scores the same'} at n = {n}, d = {a} and {b}"
            )
        elif declared and found is not None and not _same(numbers[0], found.gives((n, a, b))):
            report.lies.append(f"noise scores {numbers[0]:.6g} at n = {n}, d = {a} and {b}")


def _noise_score(trial: _Trial, n: int, a: int, b: int) -> float | None:
    x, y = (np.abs(trial.rng.normal(size=(n, d)) + 0.3) / d**0.5 for d in (a, b))
    try:
        return trial.measure(x, y)
    except (LikewiseError, ValueError, RuntimeError):  # not for these sizes
        return None
