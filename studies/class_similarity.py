"""Five findings about class similarity, looked at again on CIFAR-10: `python studies/class_similarity.py`.

Two convolutional and two transformer-like networks are trained on all 50,000 images, the weights of
every epoch are kept, and each epoch is inspected on the test set. A run that was stopped goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import likewise

RUNS = Path(__file__).parent / "runs" / "class_similarity"
EPOCHS = 30
SGD = {"optimiser": "sgd", "lr": 0.05, "weight_decay": 5e-4}
ADAMW = {"optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.05}
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "LeNet": ("zoo:lenet", SGD),
    "ResNet": ("timm:test_resnet", SGD),
    "Mixer": ("zoo:mixer-tiny,depth=4,width=64", ADAMW),
    "ViT": ("zoo:vit-tiny,depth=4,width=64,heads=4,hidden=128", ADAMW),
}


def trained(name: str) -> Path:
    """Train one network, or go on with it; the folder with the weights of every epoch."""
    address, recipe = NETWORKS[name]
    out = RUNS / name
    likewise.networks.train(
        address,
        "cifar10:train",
        validation="cifar10:test",
        out=out,
        keep_epochs=True,
        epochs=EPOCHS,
        schedule="plateau",
        warmup=1,
        augment=("flip", "crop"),
        progress=True,
        **recipe,
    )
    return out


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NETWORKS:
        trained(chosen)
