"""The long jobs with a small example each: what runs it into a folder, and which functions it covers.

Inputs are made when a job first asks for them, and serve all jobs of the process.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import LikewiseError

WORKERS = "processes:2"


@dataclass(frozen=True)
class LongJob:
    """A job with a small example.

    Attributes:
        name: What the counts call it.
        run: Runs it into a folder, as a person would who repeats the same line.
        covers: The functions with `out`, `store` or `**show` that it runs, as `file.py:function`.
        on_workers: The same on an engine, where it takes one: a worker is killed under it.
        costly: Whether it takes more than two seconds: `make test` leaves it out.
    """

    name: str
    run: Callable[[Path], object]
    covers: tuple[str, ...]
    on_workers: Callable[[Path], object] | None = None
    costly: bool = False


class RefusedError(LikewiseError):
    """A command ended with one sentence."""


def command(line: str) -> Callable[[Path], None]:
    """A command as it is typed, with OUT for the folder and IN/NAME for an input."""

    def run(out: Path) -> None:
        from likewise.cli import main

        words = [re.sub("^IN/(.+)", lambda match: str(example(match[1])), word) for word in line.split()]
        words = [word.replace("OUT", str(out)) for word in words]
        errors = io.StringIO()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                main(words)
        except SystemExit as end:
            said = errors.getvalue().strip().splitlines()
            if end.code == 130:
                raise KeyboardInterrupt from end
            if end.code and not (said and said[-1].startswith("likewise: ")):
                raise AssertionError(f"exit {end.code}: {said[-3:]}") from end
            if end.code:
                raise RefusedError(said[-1]) from end

    return run


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="likewise-jobs-"))


@cache
def example(name: str) -> Path:
    """An input by its name: an array, a trained network, a comparison, representations, or a run of a benchmark."""
    path = _folder() / name
    if name.endswith(".npy"):
        np.save(path, _rows(name.removesuffix(".npy")))
    else:
        _EXAMPLES[name](path)
    return path


def _rows(name: str) -> np.ndarray:
    return np.random.default_rng(ord(name)).normal(size=(30, 4))


def _network(seed: int, out: Path) -> None:
    import likewise

    likewise.train("zoo:mlp", "digits:train[:100]", epochs=2, lr=0.1, seed=seed, out=out, keep_epochs=True)


def _animals(out: Path) -> None:
    import likewise
    from likewise.data.changes import without_class

    digits = likewise.dataset("digits:train[:100]")
    few = without_class(digits, *digits.classes[3:])
    named = likewise.data.Data("animals", few.domain, few.inputs, few.labels, ("cat", "dog", "horse"))
    likewise.train("zoo:mlp", named, epochs=1, out=out)


def _compared(out: Path) -> None:
    import likewise

    likewise.compare({name: _rows(name) for name in "abc"}, ["cka", "procrustes"]).save(out / "matrices")


def _vectors(out: Path) -> None:
    out.mkdir()
    for name in "abcd":
        np.save(out / f"{name}.npy", _rows(name))
    groups = {name: {"representation": f"{name}.npy", "group": "ab"[i // 2]} for i, name in enumerate("abcd")}
    (out / "manifest.json").write_text(json.dumps({"grounding": "labels", "networks": groups}))


PRESET = {"seeds": 3, "group": 2, "layered": 2, "probe": 30, "train": 60, "training": {"epochs": 1}}


def _benchmark_run(network: str, out: Path, engine: str | None = None) -> Any:
    from likewise import benchmark

    settings: dict[str, Any] = {"preset": PRESET, "groundings": ["accuracy"], "measures": "cka", "progress": False}
    return benchmark.run("vision", "digits", network, out=out, engine=engine, **settings)


_EXAMPLES: dict[str, Callable[[Path], object]] = {
    "net1": partial(_network, 1),
    "net2": partial(_network, 2),
    "animals": _animals,
    "compared": _compared,
    "vectors": _vectors,
    "mlp run": partial(_benchmark_run, "mlp"),
    "lenet run": partial(_benchmark_run, "lenet"),
}


def _beside(out: Path, name: str) -> Path:
    """A file for what a job returns, beside its folder."""
    return out.parent / f"{out.name}.{name}"


_SHOWN: dict[str, Any] = {"data": "digits:test[:40]", "mean": 0, "std": 1, "progress": False}


def _compare(out: Path, engine: str | None = None) -> None:
    import likewise

    arrays = {name: _rows(name) for name in "abcd"}
    comparison = likewise.compare(arrays, ["cka", "procrustes", "rsa"], store=out, engine=engine, progress=False)
    comparison.to_frame().to_csv(_beside(out, "scores.csv"))


def _extract(out: Path) -> None:
    import likewise

    view = likewise.extract(str(example("net1")), "digits:test[:40]", store=out, progress=False)
    np.save(_beside(out, "view.npy"), np.asarray(view))


def _statistics(out: Path) -> None:
    import likewise

    pair = [str(example(name)) for name in ("net1", "net2")]
    options = {**_SHOWN, "store": out}
    calibration = likewise.calibrate(*pair, permutations=19, **options)
    interval = likewise.bootstrap(*pair, **options)
    worst = likewise.influence(*pair, "cka", tried=5, **options)
    points = likewise.pointwise(*pair, **options)
    numbers = [calibration.value, calibration.p, interval.value, interval.low, interval.high]
    _beside(out, "statistics.json").write_text(json.dumps([numbers, worst.rows.tolist(), points.tolist()]))


def _class_similarity(out: Path) -> None:
    from likewise import classes

    for name in ("from_confusion", "from_features", "from_logits"):
        similarity = getattr(classes, name)(str(example("net1")), store=out, **_SHOWN)
        np.save(_beside(out, f"{name}.npy"), similarity.values)


def _attacks(out: Path) -> None:
    from likewise import transfer

    pair = [str(example(name)) for name in ("net1", "net2")]
    show = {**_SHOWN, "store": out}
    data = show.pop("data")
    attack: dict[str, Any] = {"attack": "fgsm", "eps": 0.1, **show}
    search: dict[str, Any] = {"attacks": ["pixel"], "thresholds": [1], "generations": [1], "population": 4}
    rates = transfer.robustness(pair[0], "digits:test[:10]", **search, **show)
    results = {
        "sat": transfer.sat(*pair, data, **attack).values.tolist(),
        "one_sided": transfer.one_sided(pair[0], pair[1:], data, **attack).scores,
        "during": transfer.during(pair[0], data, **attack)["sat"].tolist(),
        "success": transfer.success(pair[0], data, **attack).rate,
        "robustness": rates["rate"].tolist(),
        "answers": transfer.answers(*pair, data, **show).logits.tolist(),
    }
    _beside(out, "attacks.json").write_text(json.dumps(results))


def _zeroshot(out: Path, engine: str | None = None) -> None:
    import likewise
    from likewise import zeroshot
    from likewise._base.folders import claim
    from likewise.data.changes import without_class

    claim(out)
    digits = likewise.dataset("digits:train[:60]")
    data = without_class(digits, *digits.classes[4:])
    options: dict[str, Any] = {"preset": "small", "epochs": 1, "store": out / "store"}
    result = zeroshot.run("zoo:mlp", data, engine=engine, **options, progress=False)
    result.save(out / "0")
    search: dict[str, Any] = {"images": 20, "thresholds": [1], "population": 4, "store": out / "store"}
    zeroshot.attacked(result, data, **search, progress=False)
    zeroshot.unseen("zoo:mlp", data, digits.classes[:2], **options)


def _benchmark(out: Path, engine: str | None = None) -> None:
    run = _benchmark_run("mlp", out, engine)
    run.results.drop(columns="seconds").to_csv(_beside(out, "results.csv"))


def _across(out: Path) -> None:
    from likewise import benchmark

    runs = [example("mlp run"), example("lenet run")]
    rows = benchmark.across(runs, "cka", store=out, progress=False)
    rows.drop(columns="seconds").to_csv(_beside(out, "rows.csv"))


def _from_folder(out: Path) -> None:
    from likewise import benchmark

    rows = benchmark.from_folder(example("vectors"), measures="cka", store=out, progress=False)
    rows.drop(columns="seconds").to_csv(_beside(out, "rows.csv"))


def _demo(out: Path) -> None:
    from likewise.report import digits_demo

    changes = {
        "MEASURES": ("cka",),
        "INPUT_MEASURES": ("pnka",),
        "ATTACK": {"attack": "fgsm", "eps": 0.1},
        "SHUFFLES": 9,
    }
    before = {name: getattr(digits_demo, name) for name in changes}
    students = tuple(digits_demo.Student(f"mlp-{seed}", "zoo:mlp", seed, epochs=1) for seed in range(4))
    try:
        for name, value in changes.items():
            setattr(digits_demo, name, value)
        digits_demo.demo(out, say=lambda line: None, students=students)
    finally:
        for name, value in before.items():
            setattr(digits_demo, name, value)


_DATA = "--data digits:test[:40] --mean 0 --std 1"
JOBS = (
    LongJob(
        "compare",
        command("compare IN/a.npy IN/b.npy IN/c.npy --measure cka procrustes --out OUT"),
        ("cli/compare.py:compare",),
    ),
    LongJob("compare on a store", _compare, ("comparison/compare.py:compare",), partial(_compare, engine=WORKERS)),
    LongJob(
        "statistics",
        _statistics,
        (
            "comparison/significance.py:calibrate",
            "comparison/intervals.py:bootstrap",
            "comparison/influence.py:influence",
            "comparison/pointwise.py:pointwise",
        ),
    ),
    LongJob(
        "class similarity",
        _class_similarity,
        tuple(f"classes/from_sources.py:from_{name}" for name in ("confusion", "features", "logits")),
    ),
    LongJob(
        "attacks on a store",
        _attacks,
        (
            *(f"transfer/transferability.py:{name}" for name in ("sat", "one_sided", "during")),
            *(f"transfer/success_rates.py:{name}" for name in ("success", "robustness")),
            "transfer/logits.py:answers",
        ),
    ),
    LongJob("extract", _extract, ("views/extract.py:extract",)),
    LongJob(
        "layerwise",
        command(f"layerwise IN/net1 IN/net2 {_DATA} --measure cka --store OUT/store --out OUT"),
        ("cli/layerwise.py:layerwise", "comparison/layerwise.py:layerwise"),
    ),
    LongJob(
        "diff",
        command(f"diff IN/net1 IN/net2 {_DATA} --transfer 0 --store OUT/store --out OUT"),
        ("cli/diff.py:diff", "difference/networks.py:diff"),
    ),
    LongJob(
        "train",
        command("train zoo:mlp digits:train[:40] --epochs 3 --keep-epochs --out OUT"),
        ("cli/train.py:train", "networks/training/loop.py:train"),
    ),
    LongJob(
        "inspect",
        command("inspect IN/net1 --data digits:test[:40] --mean 0 --std 1 --out OUT"),
        ("cli/inspect.py:inspect", "classes/inspector.py:inspect", "classes/inspector.py:Inspector"),
    ),
    LongJob("attack", command(f"attack IN/net1 {_DATA} --attack fgsm,eps=0.1 --out OUT"), ("cli/attack.py:attack",)),
    LongJob(
        "transfer",
        command(f"transfer IN/net1 IN/net2 {_DATA} --attack fgsm,eps=0.1 --out OUT"),
        ("cli/transfer.py:transfer",),
    ),
    LongJob(
        "classes",
        command("classes IN/animals --out OUT"),
        ("cli/classes.py:classes",),
    ),
    LongJob(
        "report", command("report IN/compared --out OUT/report.html"), ("cli/report.py:report", "report/page.py:report")
    ),
    LongJob("report for a hub", command("report IN/compared --push OUT"), ("report/hub.py:hub_page",)),
    LongJob("benchmark folder", _from_folder, ("benchmark/folder.py:from_folder",)),
    LongJob("benchmark across", _across, ("benchmark/runs.py:across",), costly=True),
    LongJob(
        "zeroshot",
        _zeroshot,
        (
            "cli/zeroshot.py:zeroshot",
            "zeroshot/attacks.py:attacked",
            "zeroshot/protocol.py:run",
            "zeroshot/protocol.py:unseen",
        ),
        partial(_zeroshot, engine=WORKERS),
        costly=True,
    ),
    LongJob(
        "benchmark run",
        _benchmark,
        ("cli/benchmark/run.py:run", "benchmark/runs.py:run"),
        partial(_benchmark, engine=WORKERS),
        costly=True,
    ),
    LongJob("demo", _demo, ("report/digits_demo.py:demo", "cli/demo.py:demo"), costly=True),
)
