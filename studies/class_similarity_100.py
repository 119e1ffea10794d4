"""Class similarity with a hundred classes: `python -m studies.class_similarity_100 FOLDER OUT`.

FOLDER holds 100 classes of Tiny-ImageNet as files below train and val, in folders named by WordNet id. A LeNet and a
small vision transformer are trained from three seeds each, and the same transformer with a far higher learning rate
from three more, the bad network of Deep Similarity Inspector's appendix E. A training that is done is not repeated;
names of networks after OUT do a part of it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

import likewise
from likewise import classes
from likewise.data import Data

EPOCHS, SEEDS = 20, (0, 1, 2)
VIT = "timm:test_vit,img_size=32,patch_size=8,depth=2"
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "LeNet": ("zoo:lenet", {"optimiser": "sgd", "lr": 0.05, "weight_decay": 5e-4}),
    "ViT": (VIT, {"optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.05}),
    "bad ViT": (VIT, {"optimiser": "adamw", "lr": 0.02, "weight_decay": 0.05}),
}


def images(folder: str, split: str) -> Data:
    """A split at 32 x 32 pixels, decoded once: 200 images of every class to train on, 50 to inspect on."""
    files = likewise.dataset(f"imagefolder:{folder},size=32", split=split)
    pixels = torch.cat([(batch * 255).round().to(torch.uint8) for batch, _ in files.batches(500, num_workers=0)])
    return Data(f"tiny-imagenet-100:{split}", "image", pixels, files.labels, files.classes)


def watched(name: str, seed: int, train: Data, val: Data, out: Path) -> classes.Inspector:
    """A network trained from a seed, with every epoch inspected on the validation images."""
    address, recipe = NETWORKS[name]
    folder = f"{name.replace(' ', '-')}-{seed}"
    watch = classes.Inspector(
        list(val.classes), reference="tiny-imagenet", out=out / "inspected" / folder, adversarial_every=10
    )
    if watch.next_epoch > EPOCHS:
        return watch
    common: dict[str, Any] = {
        "schedule": "plateau",
        "warmup": 1,
        "augment": ("flip", "crop"),
        "seed": seed,
        "epochs": EPOCHS,
        "batch_size": 64,
    }
    likewise.train(
        address, train, validation=val, out=out / folder, callbacks=[watch], progress=False, **common, **recipe
    )
    return watch


def main(folder: str, out: str, *names: str) -> None:
    train, val = images(folder, "train"), images(folder, "val")
    for seed in SEEDS:
        for name in names or NETWORKS:
            watch = watched(name, seed, train, val, Path(out))
            last = watch.curves().iloc[-1]
            print(name, seed, last[["accuracy", "sai_ncsm_scsm", "wsi_mean"]].round(3).to_dict(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
