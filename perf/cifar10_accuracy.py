"""Accuracy of published CIFAR-10 networks through their addresses, beside the recorded figures.

    LIKEWISE_DATA=... python -m perf.cifar10_accuracy [--images 10000]

A recorded figure is `measured_test_accuracy` of the models.json beside the weights. It equals the
authors' claim but for ShuffleNetV2 (they say 90.13) and resnet20_ehanw (they say nothing).
Writes perf/results/cifar10_accuracy.csv with machine and versions.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
import time
from pathlib import Path

import torch

import likewise
from likewise.data import Data
from likewise.networks import logits
from perf.common import RESULTS

ARCHITECTURES = {
    "cifar10_resnets": {name: name for name in ("resnet20", "resnet32", "resnet44", "resnet56")},
    "cifar10_models_extra": {
        "resnet20_chenyaofo": "resnet20-b",
        "resnet56_chenyaofo": "resnet56-b",
        "resnet20_ehanw": "resnet20-b",
        "resnet20_pgd_ehanw": "resnet20-b",
        "shufflenetv2_x0_5_chenyaofo": "shufflenetv2-x0-5",
        "vit_d128_l6_smmk47": "vit-tiny-post",
        "hybrid_cnn_mlp_smmk47": "conv-mlp",
        "lmfrnet_santosantonio1": "lmfrnet",
    },
}


def accuracy(address: str, data: Data) -> float:
    """The share of images the network names rightly."""
    net = likewise.network(address)
    right = 0
    with torch.inference_mode():
        for images, labels in data.batches(500):
            right += int((logits(net, images).argmax(dim=1) == labels).sum())
    return right / len(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=RESULTS / "cifar10_accuracy.csv")
    images, out = parser.parse_args().images, parser.parse_args().out
    root = Path(os.environ["LIKEWISE_DATA"])
    data = likewise.dataset(f"cifar10:test[:{images}]")
    rows = []
    for folder, networks in ARCHITECTURES.items():
        listed = json.loads((root / folder / "models.json").read_text())["models"]
        for stem, architecture in networks.items():
            start = time.perf_counter()
            measured = accuracy(f"zoo:{architecture}@{root / folder / stem}.safetensors", data)
            row = {
                "weights": stem,
                "network": f"zoo:{architecture}",
                "images": len(data),
                "accuracy": round(100 * measured, 2),
                "recorded": round(100 * listed[stem]["measured_test_accuracy"], 2),
                "seconds": round(time.perf_counter() - start, 1),
                "machine": f"{platform.machine()} {os.cpu_count()} cores",
                "versions": f"likewise {likewise.__version__}, torch {torch.__version__}",
            }
            rows.append(row)
            sys.stdout.write(f"{stem:30} {row['accuracy']:6.2f} {row['recorded']:6.2f}\n")
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return int(any(row["accuracy"] != row["recorded"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
