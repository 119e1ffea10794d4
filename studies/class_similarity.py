"""Five findings about class similarity, looked at again on CIFAR-10: `python studies/class_similarity.py`.

Two convolutional and two transformer-like networks are trained on all 50,000 images, the weights of
every epoch are kept, and each epoch is inspected on the test set. Pictures and tables go to
`docs/class-similarity/`, those that show images of the data to `studies/runs/`. A run that was stopped
goes on; names of networks do a part of it (`python studies/class_similarity.py ViT`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import likewise
from likewise import classes

HERE = Path(__file__).parent
RUNS = HERE / "runs" / "class_similarity"
DOCS = HERE.parent / "docs" / "class-similarity"
EPOCHS, SHOWN = 30, (1, 5, 15, 30)
SGD = {"optimiser": "sgd", "lr": 0.05, "weight_decay": 5e-4}
ADAMW = {"optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.05}
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "LeNet": ("zoo:lenet", SGD),
    "ResNet": ("timm:test_resnet", SGD),
    "Mixer": ("zoo:mixer-tiny,depth=4,width=64", ADAMW),
    "ViT": ("zoo:vit-tiny,depth=4,width=64,heads=4,hidden=128", ADAMW),
}
CURVES = (
    "wsi_max",
    "sai_ncsm_scsm",
    "sai_ncsm_scsm_spearman",
    "sai_ncsm_ccsm",
    "sai_ccsm_scsm",
    "nidm_errors",
    "widm_errors",
)


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


def inspected(name: str) -> classes.Inspector:
    """Every epoch of a network on the test set, and on 5,000 of the training images."""
    return classes.inspect(
        trained(name),
        "cifar10:test",
        train="cifar10:train[:5000]",
        out=RUNS / name / "inspection",
        adversarial_every=10,
    )


def templates(name: str) -> pd.DataFrame:
    """Cosine of the templates of right and wrong samples with their class's, at some epochs."""
    rows, mistakes = {}, {}
    for epoch in SHOWN:
        net = str(RUNS / name / "epochs" / f"{epoch:04d}.safetensors")
        for split in ("train", "test"):
            view = likewise.extract(net, f"cifar10:{split}[:5000]", progress=False)
            outputs = view.outputs
            templates = classes.templates(view.values, outputs.labels, outputs.predictions)
            rows[f"{split}, right", epoch] = templates.right
            rows[f"{split}, wrong", epoch] = templates.wrong
        mistakes[f"epoch {epoch}"] = templates
    classes.histogram(mistakes, DOCS / f"templates-{name.lower()}.png")
    return pd.Series(rows).unstack().round(3)


def turning_points(curves: pd.DataFrame) -> pd.DataFrame:
    """Start, top, epoch of the top, end, and phases of the main curves."""
    rows = []
    for name in CURVES:
        line = curves[name].dropna()
        told = str(classes.phases(line.tolist(), line.index.tolist()))
        rows.append(
            {
                "curve": name,
                "start": line.iloc[0],
                "epoch 1": line.get(1, np.nan),
                "top": line.max(),
                "at epoch": line.idxmax(),
                "end": line.iloc[-1],
                "phases": told,
            }
        )
    return pd.DataFrame(rows).set_index("curve").round(3)


def drawn(inspectors: dict[str, classes.Inspector]) -> None:
    """All pictures of the study."""
    frames = {name: inspector.curves() for name, inspector in inspectors.items()}
    chance = next(iter(inspectors.values())).chance()
    classes.curves(frames, DOCS / "curves.png", chance=chance)
    for kind, title in (("weights", "NCSM"), ("confusion", "CCSM")):
        panels = {
            f"{name}, {title}, epoch {epoch}": inspector.matrices(epoch)[kind]
            for name, inspector in inspectors.items()
            for epoch in SHOWN
        }
        classes.matrices(panels, DOCS / f"{kind}.png")
    data = likewise.dataset("cifar10:test")
    for epoch in (SHOWN[0], SHOWN[-1]):
        net = str(RUNS / "ResNet" / "epochs" / f"{epoch:04d}.safetensors")
        answers = likewise.extract(net, data, progress=False).outputs.predictions
        reference = inspectors["ResNet"].reference
        classes.mistakes(data, answers, reference, RUNS / f"mistakes-{epoch}.png")
    classes.animate(inspectors["ResNet"], DOCS / "film.html", title="ResNet on CIFAR-10")


def tables(inspectors: dict[str, classes.Inspector]) -> str:
    """The numbers of the study as Markdown."""
    parts = []
    for name, inspector in inspectors.items():
        curves = inspector.curves()
        parts += [
            f"### {name}",
            "",
            f"Address `{NETWORKS[name][0]}`, accuracy "
            f"{curves['accuracy'].iloc[-1]:.3f}, of the training images "
            f"{curves['accuracy_train'].iloc[-1]:.3f}.",
            "",
        ]
        parts += [_markdown(turning_points(curves)), ""]
        columns = [
            "wsi_mean",
            "wsi_max",
            "wsi_min",
            "sai_ncsm_tncsm_train",
            "sai_ncsm_tncsm",
            "overfitting",
            "fooling_rate",
            "sai_ncsm_scsm_calibrated",
            "sai_ncsm_ccsm_pearson",
            "sai_ccsm_scsm_pearson",
        ]
        epochs = [0, *SHOWN]
        parts += [_markdown(curves.loc[epochs, columns].T.round(3)), ""]
        parts += ["Templates:", "", _markdown(templates(name)), ""]
    return "\n".join(parts)


def _markdown(frame: pd.DataFrame) -> str:
    head = [str(frame.index.name or ""), *map(str, frame.columns)]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for label, row in zip(frame.index, frame.itertuples(index=False), strict=True):
        cells = ["" if isinstance(v, float) and np.isnan(v) else str(v) for v in row]
        lines.append("| " + " | ".join([str(label), *cells]) + " |")
    return "\n".join(lines)


def main(names: list[str]) -> None:
    if names:
        for name in names:
            inspected(name)
        return
    inspectors = {name: inspected(name) for name in NETWORKS}
    DOCS.mkdir(parents=True, exist_ok=True)
    drawn(inspectors)
    (DOCS / "tables.md").write_text(tables(inspectors), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
