"""Folders of results as commands leave them, small: how each is written, and what reading it gives."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise._base.files import write_whole
from likewise._base.folders import claim
from likewise.analysis import read_matrix, read_table
from likewise.analysis.component_analysis import as_frame
from likewise.benchmark import Board, CachedViews, from_folder, plot_inputs, submit
from likewise.benchmark.board.submissions import load_rows
from likewise.benchmark.planning import Plan
from likewise.benchmark.results.frame import COLUMNS, Results
from likewise.benchmark.results.tables import table
from likewise.benchmark.runs import BenchmarkRun, _write_run
from likewise.benchmark.training import RECORD, make_view, read_record
from likewise.classes import ClassSimilarity, Inspector
from likewise.comparison.influence import Influence, influence
from likewise.errors import StoreError
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.networks import save
from likewise.report import digits_demo
from likewise.report.board_page import render_board
from likewise.report.page import contents, render
from likewise.report.runs import read_runs
from likewise.transfer.linear import Sketches, sketch
from likewise.transfer.logits import Answers
from likewise.transfer.matrix import TransferMatrix, load
from likewise.work.store import Artifacts, Store
from likewise.zeroshot import ZeroShot
from likewise.zeroshot.folds import read_answers
from likewise.zeroshot.result import from_folder as soft_labels
from tests.benchmark.board.made import cached
from tests.benchmark.frames import row
from tests.fuzz.file_kinds import FileKind
from tests.zeroshot.helpers import drawn

_NAMES = ("a", "b", "c")
_DRAW = np.random.default_rng(0).normal(size=(20, 6))
_VIEWS = {"a": _DRAW, "b": _DRAW[:, ::-1] ** 2, "c": np.abs(_DRAW)}


def _claimed(write: Callable[[Path], object]) -> Callable[[Path], None]:
    """A folder of ours, with the command that wrote it."""

    def write_into(folder: Path) -> None:
        claim(folder)
        write(folder)
        write_whole(folder / "command.txt", b"likewise compare a.npy b.npy c.npy --out run\n")

    return write_into


def _matrix(measure: str) -> SimilarityMatrix:
    values = np.corrcoef(_DRAW[:3]) + np.eye(3)
    grids = {"null_mean": values / 9, "q": np.full((3, 3), 0.01)}
    about = {
        "n": 20,
        "accuracies": {"a": 0.5, "b": 0.75},
        "commits": {"a": "abc"},
        "permutations": 60,
        "units": "inputs",
    }
    return SimilarityMatrix(_NAMES, values, measure, "more alike", {("a", "b"): "why"}, grids, about)


def _transfer() -> TransferMatrix:
    draw = np.random.default_rng(1)
    answers = Answers(_NAMES, draw.normal(size=(3, 30, 3)), draw.integers(0, 3, 30))
    return TransferMatrix.of(answers, draw.integers(0, 3, (3, 3, 30)), {"attack": "pgd", "accuracies": {"a": 0.5}})


def _write_inspection(folder: Path) -> None:
    inspector = Inspector(["cat", "dog", "ship"], reference=["cat.n.01", "dog.n.01", "ship.n.01"], out=folder)
    for _ in range(2):
        inspector.update(np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1]))
        inspector.report([[1.0, 0.2], [0.9, 0.3], [-1.0, 0.0]])


def _write_zeroshot(folder: Path) -> None:
    for number, name in enumerate(("one", "two")):
        drawn(name).save(folder / f"{number}.safetensors")
    write_whole(folder / "zeroshot.csv", b"network,DBI\none,1\ntwo,2\n")


def _write_benchmark(folder: Path) -> None:
    sizes = {"base": "small", "seeds": 2, "group": 2, "layered": 2, "train": 40, "probe": 30}
    plan = Plan.make("vision", "digits", "mlp", ["shortcut"], "cka", sizes, 0)
    _write_run(folder, plan, {})
    import pandas as pd

    setting = {"domain": "vision", "data": "digits", "network": "mlp", "preset": "small, changed"}
    rows = [
        row(**setting, grounding="shortcut", measure=name, value=0.5 + i / 10) for i, name in enumerate(("cka", "rsa"))
    ]
    Results.from_frame(pd.DataFrame(rows)[list(COLUMNS)]).save(folder)
    networks = {"name": ["s/0", "s/1"], "group": "s", "groundings": "shortcut", "seed": [0, 1], "accuracy": [0.5, 0.75]}
    write_whole(folder / "networks.csv", pd.DataFrame(networks).to_csv(index=False).encode())
    numbers = {"accuracy": 0.5, "cpu": 1.0, "wall": 1.0, "chance": 0.1, "fit_chance": 0.1, "fit": 0.9}
    write_whole(folder / "networks" / "s-0" / RECORD, json.dumps({"name": "s/0", "key": "k", **numbers}).encode())


def _write_manifest(folder: Path) -> None:
    networks: dict[str, Any] = {}
    for name, view in _VIEWS.items():
        for number in range(2):
            np.save(folder / f"{name}{number}.npy", view + number)
            networks[f"{name}{number}"] = {"representation": f"{name}{number}.npy", "group": name}
            networks[f"{name}{number}"] |= {"outputs": f"{name}{number}.npy", "layers": ["a0.npy", "b0.npy", "c0.npy"]}
    np.save(folder / "labels.npy", np.arange(20) % 6)
    (folder / "manifest.json").write_text(json.dumps({"labels": "labels.npy", "networks": networks}))


def _write_demo(folder: Path) -> None:
    claim(folder)
    _matrix("cka").save(folder / "compared" / "m")
    record = {"key": "k", "files": ["m.safetensors"]}
    write_whole(folder / "compared" / digits_demo.DONE, json.dumps(record).encode())


def _write_components(folder: Path) -> None:
    (folder / "components.csv").write_text("network,stem,depth\na,conv,3\nb,patch,4\nc,conv,5\n")
    Comparison({"cka": _matrix("cka")}).save(folder / "matrices")


def _write_unfinished(folder: Path) -> None:
    """A comparison that was stopped before what chance gives was known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["likewise.comparison.compare"], "calibrate_matrices", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            likewise.compare(_VIEWS, "cka", calibrate=5, store=folder / "store", progress=False)


def _interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def _page(folder: Path) -> str:
    return render(contents(read_runs(folder)))


def _demo(folder: Path) -> Any:
    record = digits_demo._record(folder / "compared")
    files = record.get("files")
    if files is None or not digits_demo._are_intact(folder / "compared", files):
        raise StoreError("the step is run again")
    return record


def _benchmark(folder: Path) -> Any:
    results = Results.load(folder)
    return str(table(results)), results.networks


def _run(folder: Path) -> Any:
    run = BenchmarkRun.load(folder)
    plan = run.plan()
    return run.settings, run.results, [spec.key for specs in plan.networks.values() for spec in specs]


def _write_trained(folder: Path) -> None:
    _write_benchmark(folder)
    (task, *_) = BenchmarkRun.load(folder).plan().tasks(folder)
    save(task.domain.build(task.spec, task.domain.train_data(task.spec)), task.folder / "weights.safetensors")


def _view(folder: Path) -> Any:
    (task, *_) = BenchmarkRun.load(folder).plan().tasks(folder)
    return np.asarray(make_view(task))


def _write_fold(folder: Path) -> None:
    Artifacts(folder).put("fold", {"test": torch.eye(3)}, {"facts": json.dumps({"accuracy": 0.5})})


def _fold(folder: Path) -> Any:
    tensors, facts = read_answers(folder / "fold.safetensors")
    return tensors["test"].numpy() if facts.get("accuracy") == 0.5 else None


def _pixels(folder: Path) -> Any:
    return [np.asarray(axis.images[0].get_array()) for axis in plot_inputs(folder).axes]


def _influence(folder: Path) -> Any:
    one = Influence.load(folder / "inputs.safetensors")
    return [getattr(one, name) for name in ("names", "measures", "rows", "values", "labels", "predictions", "texts")]


def _transferred(folder: Path) -> Any:
    matrix = load(folder)
    return matrix.values, matrix.notes(), str(matrix), matrix.answers.logits if matrix.answers else None


def _layers(folder: Path) -> None:
    likewise.LayerMatrix("a", "b", ["x", "y"], ["z"], [[0.5], [0.25]], "cka", {"probe": "p"}).write(folder)


def _influences(folder: Path) -> None:
    influence(_VIEWS, "cka", tried=5, most=3, progress=False).save(folder / "inputs.safetensors")
    _matrix("cka").save(folder / "matrices" / "m")


def _write_recordings(folder: Path) -> None:
    draw = torch.from_numpy(_DRAW).float()
    for seed, name in enumerate(("old", "new")):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
        likewise.record(net, draw, name=name, progress=False).save(folder / name)


def _recordings(folder: Path) -> Any:
    pair = [str(folder / f"{name}.likewise") for name in ("old", "new")]
    matrix = likewise.compare(dict(zip("ab", pair, strict=True)), progress=False)
    return str(likewise.diff(*pair)), matrix.values, likewise.layerwise(*pair).values


def _write_told(folder: Path) -> None:
    from tests.language.models import TEXTS, causal

    for name, noise in (("old", 0.0), ("new", 0.5)):
        likewise.record(causal(noise=noise), TEXTS[:4], name=name, progress=False).save(folder / name)


def _told(folder: Path) -> str:
    return str(likewise.diff(*(str(folder / f"{name}.likewise") for name in ("old", "new"))))


def _board(folder: Path) -> str:
    return render_board(Board.load(folder / "row.json", ours=False))


def _submitted(folder: Path) -> Any:
    (row,) = submit("cka", CachedViews.load(folder / "v.safetensors"), progress=False)
    return [cell.value for cell in row.cells]


def _write_journal(folder: Path) -> None:
    with Store(folder, shared=True) as store:
        likewise.compare(_VIEWS, "cka", store=store, progress=False)


def _journal(folder: Path) -> Any:
    return likewise.compare(_VIEWS, "cka", store=folder, progress=False).values


def _write_sketches(folder: Path) -> None:
    torch.manual_seed(0)
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}
    sketch(nets, "digits:test[:20]", size=256, progress=False).save(folder / "s")


def _sketches(folder: Path) -> Any:
    return Sketches.load(folder / "s.safetensors").matrix().values


RESULTS = (
    FileKind(
        "report, compare",
        _claimed(lambda f: Comparison({"cka": _matrix("cka")}).save(f / "matrices")),
        _page,
        True,
        folder=True,
    ),
    FileKind("report, transfer", _claimed(lambda f: _transfer().save_run(f)), _page, True, folder=True),
    FileKind("report, layerwise", _claimed(_layers), _page, True, folder=True),
    FileKind(
        "report, classes",
        _claimed(lambda f: ClassSimilarity(np.corrcoef(_DRAW[:4]), list("abcd")).save(f / "matrices" / "n")),
        _page,
        True,
        folder=True,
    ),
    FileKind("report, inspect", _claimed(_write_inspection), _page, True, folder=True),
    FileKind("report, zeroshot", _claimed(_write_zeroshot), _page, True, folder=True),
    FileKind("report, benchmark", _claimed(_write_benchmark), _page, True, folder=True),
    FileKind("report, inputs", _claimed(_influences), _page, True, folder=True),
    FileKind("report, unfinished", _claimed(_write_unfinished), _page, True, "*.safetensors", folder=True),
    FileKind("report, components", _write_components, _page, folder=True),
    FileKind("report, npz", lambda f: _matrix("cka").save(f / "m.npz"), _page, True, folder=True),
    FileKind("transfer", _claimed(lambda f: _transfer().save_run(f)), _transferred, True, folder=True),
    FileKind("families", _claimed(lambda f: _transfer().save_run(f)), lambda f: str(read_matrix(f)), True, folder=True),
    FileKind("families, csv", _write_components, lambda f: repr(as_frame(f / "components.csv"))),
    FileKind("teacher, csv", _write_components, lambda f: repr(read_table(f / "components.csv"))),
    FileKind(
        "answers",
        lambda f: _transfer().answers.save(f / "x"),
        lambda f: Answers.load(f / "x.safetensors").logits,
        True,
    ),
    FileKind("inputs", _influences, _influence, True, "inputs*"),
    FileKind("zeroshot", _write_zeroshot, lambda f: str(ZeroShot.load(f / "0.safetensors")), True, "0*"),
    FileKind("zeroshot, folder", lambda f: drawn().to_folder(f), lambda f: str(soft_labels(f)), True, folder=True),
    FileKind("benchmark table", _claimed(_write_benchmark), _benchmark, True, "*s.csv", folder=True),
    FileKind("benchmark run", _claimed(_write_benchmark), _run, True, folder=True),
    FileKind("benchmark inputs", _claimed(_write_benchmark), _pixels, True, "run.json", folder=True),
    FileKind(
        "benchmark network",
        _claimed(_write_benchmark),
        lambda f: read_record(f / "networks" / "s-0"),
        True,
        RECORD,
        folder=True,
    ),
    FileKind(
        "benchmark folder",
        _write_manifest,
        lambda f: from_folder(f, "cka", progress=False).drop(columns="seconds"),
        folder=True,
    ),
    FileKind("benchmark views", _claimed(_write_trained), _view, True, "weights*", folder=True),
    FileKind(
        "benchmark cached views",
        lambda f: cached().save(f / "v"),
        lambda f: [list(one.trial.views.values()) for one in CachedViews.load(f / "v.safetensors").trials],
        True,
    ),
    FileKind(
        "benchmark rows",
        lambda f: submit("cka", cached(), progress=False)[0].save(f / "row.json"),
        lambda f: [row.to_dict() for row in load_rows(f / "row.json")],
        True,
    ),
    FileKind("benchmark views, submitted", lambda f: cached().save(f / "v"), _submitted, True),
    FileKind("board", lambda f: submit("cka", cached(), progress=False)[0].save(f / "row.json"), _board, True),
    FileKind("recordings, compared", _write_recordings, _recordings, True, "*.likewise"),
    FileKind("recordings of language", _write_told, _told, True, "*.likewise"),
    FileKind("sketches", _write_sketches, _sketches, True),
    FileKind("store, shared", _write_journal, _journal, True, folder=True),
    FileKind("demo", _write_demo, _demo, True, folder=True),
    FileKind("zeroshot, fold", _write_fold, _fold, folder=True),
)
