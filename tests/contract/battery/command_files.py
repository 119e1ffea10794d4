"""The files that the examples of commands are run on, and a folder of a user's who has nothing to do with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import likewise
from likewise import SimilarityMatrix, train
from likewise.transfer.logits import Answers
from likewise.transfer.matrix import TransferMatrix
from tests.benchmark.board.made import cached
from tests.benchmark.frames import row
from tests.benchmark.frames import run as write_results

NETS = """
import torch
from torch import nn

def build(width=8, classes=10, pixels=64):
    torch.manual_seed(width)
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, classes))

def of_colours():
    return build(8, 3, 192)

def other():
    return build(6)
"""
NAMES = ("one", "two", "three", "four", "five", "six")
TAKEN = ("command.txt", "scores.csv", "sat.csv", "diff.md", "curves.csv", "results.csv", "report.html", "weights.txt")


def write_files(folder: Path) -> None:
    """Write arrays, a network, results of runs, a training, and files of a user."""
    draw = np.random.default_rng(0)
    for name in "abc":
        np.save(folder / f"{name}.npy", draw.normal(size=(40, 5)))
    np.save(folder / "labels.npy", draw.integers(3, size=40))
    (folder / "nets.py").write_text(NETS)
    for name in "ab":
        lines = [{"doc_id": i, "metrics": ["acc"], "acc": int(draw.integers(2))} for i in range(20)]
        (folder / f"samples_{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _write_matrices(folder, draw)
    _write_representations(folder / "own", draw)
    cells = [("labels", "auprc"), ("shortcut", "auprc")]
    rows = [
        row(measure=measure, value=value, grounding=grounding, metric=metric, variant=form, measure_variant=form)
        for measure, value in (("cka", 0.5), ("rsa", 0.7))
        for grounding, metric in cells
        for form in ("published", "resi")
    ]
    networks = [
        {"name": f"{group}{i}", "group": group, "groundings": "labels", "seed": i, "accuracy": 0.9}
        for group in "ab"
        for i in range(2)
    ]
    write_results(folder / "bench", rows, networks)
    sizes = {"seeds": 3, "group": 2, "layered": 2, "probe": 20, "train": 40, "training": {"epochs": 1}}
    options = {"preset": sizes, "groundings": ["accuracy"], "measures": "cka", "out": folder / "trained"}
    likewise.benchmark.run("vision", "digits", "mlp", **options, progress=False)
    views = cached()
    views.save(folder / "cached")
    likewise.benchmark.submit("rsa", views, submitter="somebody", progress=False)[0].save(folder / "sent.json")
    old = likewise.network(f"{folder / 'nets.py'}:build")
    shown = {"mean": 0, "std": 1, "progress": False}
    likewise.record(old, "digits:test[:40]", name="old", **shown).save(folder / "old")
    torch.manual_seed(0)
    train("zoo:mlp", "digits:train[:200]", epochs=2, lr=0.05, out=folder / "training", keep_epochs=True, progress=False)
    _write_images(folder / "images", draw)
    (folder / "user.txt").write_text("a user's own text\n")
    (folder / "taken").mkdir()
    for name in TAKEN:
        (folder / "taken" / name).write_text(f"a user's own {name}\n")


def _write_matrices(folder: Path, draw: np.random.Generator) -> None:
    values = np.corrcoef(draw.normal(size=(6, 9)))
    SimilarityMatrix(NAMES, values, measure="cka", larger_is="more alike").save(folder / "matrix.safetensors")
    lines = [
        ",".join(["", *NAMES]),
        *(",".join([name, *map(str, line)]) for name, line in zip(NAMES, values, strict=True)),
    ]
    (folder / "square.csv").write_text("\n".join(lines) + "\n")
    (folder / "components.csv").write_text(
        "network,norm\n" + "".join(f"{name},{i % 2}\n" for i, name in enumerate(NAMES))
    )
    (folder / "outcomes.csv").write_text(
        "network,accuracy\n" + "".join(f"{name},0.{i + 1}\n" for i, name in enumerate(NAMES[1:]))
    )
    labels = draw.integers(3, size=40)
    answers = Answers(NAMES, 2 * np.eye(3)[labels] + draw.normal(size=(6, 40, 3)), labels)
    TransferMatrix.of(answers, draw.integers(3, size=(6, 6, 40))).save_run(folder / "run")


def _write_images(folder: Path, draw: np.random.Generator) -> None:
    for name in ("cat", "dog", "trout"):
        (folder / name).mkdir(parents=True)
        for i in range(4):
            Image.fromarray(draw.integers(256, size=(8, 8, 3), dtype=np.uint8)).save(folder / name / f"{i}.png")


def _write_representations(folder: Path, draw: np.random.Generator) -> None:
    folder.mkdir()
    networks = {}
    for group in "ab":
        base = draw.normal(size=(30, 4))
        for number in range(2):
            np.save(folder / f"{group}{number}.npy", base + 0.1 * draw.normal(size=base.shape))
            networks[f"{group}{number}"] = {"representation": f"{group}{number}.npy", "group": group}
    (folder / "manifest.json").write_text(json.dumps({"networks": networks}))
