"""Class similarity with a hundred classes: `python -m studies.class_similarity_100 FOLDER OUT`.

FOLDER holds 100 classes of Tiny-ImageNet as files below train and val, in folders named by WordNet id. A LeNet and a
small vision transformer are trained from three seeds each, and the same transformer with a far higher learning rate
from three more, the bad network of Deep Similarity Inspector's appendix E. A run that was stopped resumes; names of
networks after OUT do a part of it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise import classes
from likewise.data import Data

EPOCHS, SEEDS, PER_CLASS = 20, (0, 1, 2), {"train": 20, "val": 10}
VIT = "timm:test_vit,img_size=16,patch_size=8,depth=2"
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "LeNet": ("zoo:lenet", {"optimiser": "sgd", "lr": 0.05, "weight_decay": 5e-4}),
    "ViT": (VIT, {"optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.05}),
    "bad ViT": (VIT, {"optimiser": "adamw", "lr": 0.02, "weight_decay": 0.05}),
}


def images(folder: str, split: str) -> Data:
    """A split at 16 x 16 pixels: the first 20 images of every class to train on, the first 10 to inspect on."""
    data = likewise.dataset(f"imagefolder:{folder},size=16", split=split)
    labels = data.need_labels("train").numpy()
    first = [np.flatnonzero(labels == c)[: PER_CLASS[split]] for c in range(len(data.classes))]
    return data[np.sort(np.concatenate(first))]


def watched(name: str, seed: int, train: Data, val: Data, out: Path) -> classes.Inspector:
    """A network trained from a seed, with every epoch inspected on the validation images."""
    address, recipe = NETWORKS[name]
    folder = out / f"{name.replace(' ', '-')}-{seed}"
    watch = classes.Inspector(
        list(val.classes), reference="tiny-imagenet", out=out / "inspected" / folder.name, adversarial_every=10
    )
    common = {
        "schedule": "plateau",
        "warmup": 1,
        "augment": ("flip", "crop"),
        "seed": seed,
        "epochs": EPOCHS,
        "batch_size": 50,
    }
    likewise.train(
        address, train, validation=val, out=folder, callbacks=[watch], num_workers=0, progress=False, **common, **recipe
    )
    return watch


def main(folder: str, out: str, *names: str) -> None:
    train, val = images(folder, "train"), images(folder, "val")
    for seed in SEEDS:
        for name in names or reversed(NETWORKS):
            watch = watched(name, seed, train, val, Path(out))
            last = watch.curves().iloc[-1]
            print(name, seed, last[["accuracy", "sai_ncsm_scsm", "wsi_mean"]].round(3).to_dict(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
