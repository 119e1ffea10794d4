"""The networks of the study of attack transfer: `python -m studies.fashion_networks [PATTERN ...]`.

Networks trained on Fashion-MNIST so that it is known in what they differ: two architectures in groups that differ by
their initial weights, by hyper-parameters and by regime, and nine more. A run that was stopped is resumed;
`python -m studies.fashion_networks 0/2` trains every second of them, for two processes side by side.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch

import likewise

RUNS = Path(__file__).parent / "runs" / "transfer" / "fashion"
TRAIN, VALIDATE = "fashion-mnist:train[:12000]", "fashion-mnist:train[-2000:]"
RESNET = "zoo:resnet20-b,depth=8"
MIXER = "zoo:mixer-tiny,depth=4,width=64"
STUDENT = "zoo:vit-tiny,depth=2,width=64,heads=4,hidden=128"
BASE: dict[str, Any] = {
    "optimiser": "adamw",
    "lr": 4e-3,
    "weight_decay": 0.02,
    "warmup": 0.5,
    "batch_size": 64,
    "epochs": 4,
    "augment": ("flip",),
}


@dataclass(frozen=True)
class Trained:
    """One network of the zoo: its address, in which group it stands, and what is special in its training."""

    name: str
    address: str
    architecture: str
    group: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the training leaves its weights."""
        return RUNS / self.name

    @property
    def weights(self) -> str:
        """The trained network as an address."""
        return str(self.folder / "weights.safetensors")

    def train(self) -> float:
        """Train it, or take what is there; the accuracy on images it was not trained on."""
        done = likewise.train(
            self.address,
            TRAIN,
            validation=VALIDATE,
            out=self.folder,
            keep_epochs=self.name in WATCHED,
            progress=False,
            **(BASE | self.settings),
        )
        return float(done.history[-1]["validation_accuracy"])


def _grown(
    architecture: str, address: str, seeds: int, regimes: Mapping[str, Any], base: dict[str, Any]
) -> Iterator[Trained]:
    """The groups of one architecture; learning rates are shares of the base's."""
    for seed in range(seeds):
        yield Trained(f"{architecture}-{seed}", address, architecture, "initialisation", base | {"seed": seed})
    for group, settings in (("hyper-parameters", HYPER), ("regime", regimes)):
        for number, (name, change) in enumerate(settings.items()):
            seed = {"seed": 10 + number + 10 * (group == "regime")}
            rate = {"lr": change["lr"] * base["lr"]} if "lr" in change else {}
            yield Trained(f"{architecture}-{name}", address, architecture, group, base | seed | change | rate)


HYPER = {
    "slow": {"lr": 0.4},
    "fast": {"lr": 2.0},
    "heavy": {"weight_decay": 0.1},
    "step": {"schedule": "step"},
}
REGIMES: dict[str, Any] = {
    "smoothing": {"label_smoothing": 0.1},
    "mixup": {"mixup": 0.2},
    "cutmix": {"cutmix": 1.0},
    "cutout": {"augment": ("flip", "cutout")},
}
ADVERSARIAL = {
    f"adversarial-{eps}": {
        "epochs": 3,
        "adversarial": {"attack": "pgd", "eps": eps / 255, "iterations": 2, "relative_step": 0.75},
    }
    for eps in (1, 2, 4)
}
OTHERS = {
    "lenet": "zoo:lenet",
    "mlp": "zoo:mlp",
    "vit": "zoo:vit-tiny,depth=4,width=64,heads=4,hidden=128",
    "efficientnet": "timm:test_efficientnet",
    "efficientnet-gn": "timm:test_efficientnet_gn",
    "nfnet": "timm:test_nfnet",
    "mambaout": "timm:test_mambaout",
    "byobnet": "timm:test_byobnet",
    "resnet-timm": "timm:test_resnet",
}
PACE: dict[str, Any] = {  # so that accuracies stay near
    "vit": {"epochs": 8, "lr": 2e-3},
    **{name: {"epochs": 5} for name in ("lenet", "mlp")},
    **{name: {"epochs": 3} for name in ("efficientnet", "efficientnet-gn", "nfnet")},
    **{name: {"epochs": 2} for name in ("byobnet", "resnet-timm")},
}
TWICE = ("lenet", "mlp", "vit", "efficientnet", "nfnet")  # with a second initialisation
WATCHED = ("resnet-0", "mixer-0")  # every epoch is kept
FAMILIES = {"vit": "patches", "mixer": "patches", "mlp": "patches"}  # all others convolve


def distilled(name: str, teacher: str) -> dict[str, Any]:
    """The settings of a network that learns from another."""
    return {name: {"teacher": str(RUNS / teacher / "weights.safetensors")}}


def zoo() -> list[Trained]:
    """All networks whose transfer is measured, those first that others learn from."""
    others = [
        Trained(f"{name}-{seed}", address, name, "architecture", PACE.get(name, {}) | {"seed": seed})
        for seed in range(2)
        for name, address in OTHERS.items()
        if seed == 0 or name in TWICE
    ]
    resnets = _grown("resnet", RESNET, 5, REGIMES | distilled("distilled", "efficientnet-0") | ADVERSARIAL, BASE)
    mixers = _grown(
        "mixer", MIXER, 4, REGIMES | distilled("distilled", "efficientnet-0"), BASE | {"epochs": 5, "lr": 2e-3}
    )
    ordered = [*others[: len(OTHERS)], *mixers, *resnets, *others[len(OTHERS) :]]
    return sorted(ordered, key=lambda one: "teacher" in one.settings or "adversarial" in one.settings)


QUICK = {"seed": 5, "epochs": 2}  # for students
TEACHERS = ("resnet-0", "efficientnet-0", "nfnet-0", "lenet-0", "vit-0", "mixer-mixup", "mixer-0", "mlp-0")


def students() -> list[Trained]:
    """The same small network, taught by different teachers, and by none."""
    alone = [Trained("student-alone", STUDENT, "student", "student", QUICK)]
    taught = [
        Trained(f"student-of-{name}", STUDENT, "student", "student", QUICK | distilled("", name)[""])
        for name in TEACHERS
    ]
    return alone + taught


def main(arguments: list[str]) -> int:
    """Train what is asked for."""
    torch.set_num_threads(1)
    wanted = [*zoo(), *students()]
    for argument in arguments:
        if "/" in argument:
            first, step = (int(part) for part in argument.split("/"))
            wanted = wanted[first::step]
        else:
            wanted = [one for one in wanted if fnmatchcase(one.name, argument)]
    for one in wanted:
        sys.stdout.write(f"{one.name:24} {one.train():.4f}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
