"""AutoAttack of ours beside the package pyautoattack: `LIKEWISE_DATA=... python -m studies.autoattack`.

Four published CIFAR-10 networks, the same images, bounds and budgets for both, far below the budgets of the paper so
that it ends on a laptop. A run that was stopped is resumed. pyautoattack has to be installed for it; nothing else here
needs it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyautoattack
import torch
from perf.cifar10_accuracy import ARCHITECTURES
from torch import Tensor, nn

import likewise
from likewise import attacks
from likewise._base.files import write_whole

RUNS = Path(os.environ.get("LIKEWISE_STUDY", Path(__file__).parent / "runs")) / "autoattack.json"
IMAGES = "cifar10:test[:100]"
BUDGET: dict[str, Any] = {"iterations": 10, "targets": 3, "queries": 200}
EPS = {"resnet20": 1, "resnet20_chenyaofo": 1, "shufflenetv2_x0_5_chenyaofo": 1, "resnet20_pgd_ehanw": 8}  # in 255ths


def address(name: str) -> str:
    """A published network by the name of its file."""
    root = Path(os.environ["LIKEWISE_DATA"])
    places = [(folder, listed[name]) for folder, listed in ARCHITECTURES.items() if name in listed]
    ((folder, architecture),) = places
    return f"zoo:{architecture}@{root / folder / name}.safetensors"


def theirs(net: nn.Module, images: Tensor, labels: Tensor, eps: float) -> Tensor:
    """Examples by the package, with the budget of ours."""
    suite = pyautoattack.AutoAttack(net, norm="Linf", eps=eps, seed=0, device="cpu")
    suite.apgd.n_iter = suite.apgd_targeted.n_iter = suite.fab.n_iter = BUDGET["iterations"]
    suite.apgd_targeted.n_target_classes = suite.fab.n_target_classes = BUDGET["targets"]
    suite.square.n_queries = BUDGET["queries"]
    moved, _ = suite.run_standard_evaluation(images, labels, batch_size=len(images))
    return moved


def ours(net: nn.Module, images: Tensor, labels: Tensor, eps: float) -> Tensor:
    """Examples by ours."""
    return attacks.get("autoattack")(net, images, labels, eps=eps, **BUDGET).images


def main() -> int:
    """Every network by both, and what is left of its accuracy."""
    torch.set_num_threads(1)
    rows: dict[str, Any] = json.loads(RUNS.read_text()) if RUNS.is_file() else {}
    for name, size in EPS.items():
        data = likewise.dataset(IMAGES)
        net = likewise.network(address(name), data=data).eval()
        images, labels = data.inputs[:], data.labels
        for maker in (theirs, ours):
            key = f"{name}, {size}/255, {maker.__name__}"
            if key in rows:
                continue
            start = time.process_time()
            moved = maker(net, images, labels, size / 255)
            with torch.no_grad():
                robust = (net(moved).argmax(dim=1) == labels).double().mean()
                clean = (net(images).argmax(dim=1) == labels).double().mean()
            far = float((moved - images).abs().max()) * 255
            rows[key] = [float(clean), float(robust), far, time.process_time() - start]
            write_whole(RUNS, json.dumps(rows, indent=1).encode())
            sys.stdout.write(f"{key}: {rows[key]}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
