"""Other attacks, other sets of images, teachers, one-sided scores, epochs: parts of the study on Fashion-MNIST."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import likewise
from likewise.analysis import agreement, clusters
from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer import TransferMatrix, answers, during, one_sided, sat
from studies.fashion_matrix import (
    EIGHT,
    EPS,
    HELD_OUT,
    IMAGES,
    STORE,
    addresses,
    group_mean,
    held_out,
    members,
    part,
    put,
    redrawn,
    trained,
    transfer,
)
from studies.fashion_networks import FAMILIES, TEACHERS, students, zoo
from studies.tables import correlation


@part
def table_b1() -> None:
    """SAT by other attacks."""
    attacks: dict[str, dict[str, Any]] = {
        "fgsm": {"eps": EPS},
        "mi-fgsm": {"eps": EPS},
        "vmi-fgsm": {"eps": EPS, "neighbours": 5},
        "low-frequency-pgd": {"eps": EPS, "step": EPS / 5, "iterations": 20, "share": 0.25},
        "apgd-ce": {"eps": EPS, "iterations": 50},
        "apgd-t": {"eps": EPS, "iterations": 20, "targets": 3},
    }
    _other_attacks("10", attacks, "fashion-mnist:test[:200]")


@part
def autoattack() -> None:
    """SAT by AutoAttack, which takes far longer: fewer images."""
    _other_attacks("10 autoattack", {"autoattack": {"eps": EPS}}, "fashion-mnist:test[:100]")


def _other_attacks(key: str, attacks: dict[str, dict[str, Any]], few: str) -> None:
    names = [name for name in EIGHT if name in addresses()]
    base = sat(addresses(names), few, eps=EPS, store=STORE, progress=False)
    rows = []
    for attack, options in attacks.items():
        found = sat(addresses(names), few, attack=attack, store=STORE, progress=False, **options)
        upper = np.triu_indices(len(found), 1)
        rows.append(
            {
                "attack": attack,
                "mean SAT": float(found.values[upper].mean()),
                "own success, %": float(100 * found.rates.diagonal().mean()),
                "Pearson with PGD": correlation(agreement(base, found)),
                "paper": "0.98" if attack == "autoattack" else "–",
            }
        )
        title = "other attacks" if len(attacks) > 1 else attack
        put(key, f"B.1: SAT of {len(found)} networks by {title}, {len(found.labels)} images", pd.DataFrame(rows))


@part
def one_source() -> None:
    """Attacks that start from one kind of network: its examples, shown to all others."""
    few = "fashion-mnist:test[:100]"
    for source, attack, options in (
        ("vit-0", "patch-fool", {"iterations": 100}),
        ("resnet-0", "generator", {"generator": _generator("resnet-0"), "eps": EPS}),
    ):
        if source not in addresses():
            continue
        others = {name: address for name, address in addresses().items() if name != source}
        own = {source: addresses()[source]}
        by_pgd = one_sided(own, others, few, eps=EPS, store=STORE, progress=False)
        found = one_sided(own, others, few, attack, store=STORE, progress=False, **options)
        rows = [
            {
                "attack": attack,
                "source": source,
                "networks": len(others),
                "mean percent fooled": float(np.mean(found.percent)),
                "Pearson with PGD": _pearson(list(found.values()), list(by_pgd.values())),
                "paper": "0.91" if attack == "patch-fool" else "–",
            }
        ]
        put(f"10 {attack}", f"B.1: {attack} from one source, 100 images", pd.DataFrame(rows))


def _pearson(one: Sequence[float], two: Sequence[float]) -> str:
    """A correlation over networks."""
    both = np.array([one, two])
    return redrawn(lambda rows: float(np.corrcoef(both[:, rows])[0, 1]), both.shape[1])


def _generator(victim: str) -> torch.nn.Module:
    """A small network that changes images so that one network errs, trained on images of the training set."""
    from torch import nn

    torch.manual_seed(0)
    net = likewise.network(addresses()[victim]).eval().requires_grad_(False)
    made = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 1, 3, padding=1),
    )
    optimiser = torch.optim.Adam(made.parameters(), 1e-3)
    for images, labels in likewise.dataset("fashion-mnist:train[:4000]").batches(64, shuffle=0):
        changed = (images + EPS * torch.tanh(made(images))).clamp(0, 1)
        loss = -torch.nn.functional.cross_entropy(net(changed), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return _Changed(made)


class _Changed(torch.nn.Module):
    """The images that a generator makes of given ones."""

    def __init__(self, change: torch.nn.Module) -> None:
        super().__init__()
        self.change = change

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images + EPS * torch.tanh(self.change(images))


@part
def table_b2() -> None:
    """Adversarially trained networks among themselves."""
    robust = {o.name: o.weights for o in trained() if "adversarial" in o.name}
    if len(robust) < 2:
        return
    found = sat(robust, IMAGES, eps=EPS, store=STORE, progress=False)
    plain = [o.name for o in members() if o.architecture == "resnet" and o.group == "regime" and o.name not in robust]
    rows = [
        {
            "networks": "adversarially trained",
            "count": len(robust),
            "mean SAT": group_mean(found, list(robust)),
            "own success, %": float(100 * found.rates.diagonal().mean()),
            "paper": "3.15",
        },
        {
            "networks": "other regimes",
            "count": len(plain),
            "mean SAT": group_mean(transfer(), plain),
            "own success, %": float(100 * transfer().reordered(plain).rates.diagonal().mean()),
            "paper": "3.27",
        },
    ]
    put("11", "B.2: adversarially trained ResNets among themselves", pd.DataFrame(rows))


@part
def table_a1() -> None:
    """How far SAT and boundary agreement vary from one set of images to another, at equal cost."""
    names = [name for name in EIGHT if name in addresses()][:6]
    images = "fashion-mnist:test[:2500]"
    whole = sat(addresses(names), images, eps=EPS, store=STORE, progress=False)
    rows = []
    for count in (50, 100, 250):
        parts = [_some(whole, slice(i * count, (i + 1) * count)).percent for i in range(10)]
        spread = np.std(np.stack(parts), axis=0, ddof=1)[np.triu_indices(len(names), 1)].mean()
        triplets = count // 50  # 50 steps for each image, 2500 points for each triplet
        rivals = [
            100
            * likewise.compare(
                addresses(names),
                f"boundary-agreement[triplets={triplets},resolution=50,seed={seed}]",
                data=images,
                store=STORE,
                progress=False,
            ).values
            for seed in range(10)
        ]
        other = np.std(np.stack(rivals), axis=0, ddof=1)[np.triu_indices(len(names), 1)].mean()
        rows.append(
            {
                "images": count,
                "triplets": triplets,
                "SAT, points": float(spread),
                "boundary agreement, points": float(other),
            }
        )
    text = "The paper, with 500 to 5000 images and 10 to 100 triplets: 1.88 1.05 0.91 0.77 against 4.49 3.28 1.63 1.54."
    put(
        "05",
        "Table A.1: deviation over ten disjoint sets, in percentage points at equal cost",
        pd.DataFrame(rows),
        text,
    )


def _some(matrix: TransferMatrix, inputs: slice) -> TransferMatrix:
    assert matrix.answers is not None
    return TransferMatrix.of(matrix.answers.at(inputs), matrix.predictions[:, :, inputs])


@part
def teachers() -> None:
    """Which teacher helps a student: one that is alike or not?"""
    from scipy.stats import pearsonr

    taught = {o.name: o for o in students() if Path(o.weights).is_file()}
    if "student-alone" not in taught or len(taught) < 4:
        return
    found = answers({name: one.weights for name, one in taught.items()}, HELD_OUT, store=STORE, progress=False)
    accuracy = dict(zip(found.names, 100 * found.accuracies, strict=True))
    zoo_accuracy = dict(zip(held_out().names, 100 * held_out().accuracies, strict=True))
    rows = [
        {
            "teacher": name,
            "family": _family(name),
            "SAT with vit-0": transfer()[name, "vit-0"],
            "teacher, %": float(zoo_accuracy[name]),
            "student, %": float(accuracy[f"student-of-{name}"]),
        }
        for name in TEACHERS
        if f"student-of-{name}" in accuracy and name in transfer().names
    ]
    table = pd.DataFrame(rows)
    others = table[table["teacher"] != "vit-0"]  # its score with itself says nothing
    lines = [f"A student alone: {accuracy['student-alone']:.2f} %."]
    for title, own, column in (
        ("all teachers", others, "SAT with vit-0"),
        ("other family", others[others.family == "convolutions"], "SAT with vit-0"),
        ("accuracy of the teacher", others, "teacher, %"),
    ):
        if len(own) > 3:
            found = pearsonr(own[column], own["student, %"])
            low, high = found.confidence_interval()
            lines.append(
                f"Pearson with the student's accuracy, {title}: {found.statistic:.2f} [{low:.2f}, {high:.2f}] "
                f"(p {found.pvalue:.2f}, {len(own)} teachers)."
            )
    lines.append("The paper: all -0.32 (p .12), same family 0.70, other family -0.51, teacher's accuracy 0.05.")
    put("13", "Teachers", table, " ".join(lines))


def _family(name: str) -> str:
    return FAMILIES.get(name.split("-")[0], "convolutions")


@part
def g_1() -> None:
    """A new network from its one-sided row."""
    found, hits = clusters(transfer(), 3, method="spectral"), []
    one, two = [], []
    for network in members():
        zoo_without = {name: address for name, address in addresses().items() if name != network.name}
        row = one_sided({network.name: network.weights}, zoo_without, IMAGES, eps=EPS, store=STORE, progress=False)
        one.append(list(row.values()))
        two.append([transfer()[network.name, name] for name in row])
        hits.append(found.without(network.name).assign(row) == found.labels[transfer().names.index(network.name)])
    scores = np.array([one, two])

    def same(rows: np.ndarray) -> float:
        return float(np.corrcoef(scores[:, rows].reshape(2, -1))[0, 1])

    rows = [
        {"": "Pearson of one- and two-sided scores", "ours": redrawn(same, len(hits)), "paper": "0.82"},
        {
            "": "put into their family from one side",
            "ours": redrawn(lambda rows: float(np.mean(np.array(hits)[rows])), len(hits)),
            "paper": "–",
        },
    ]
    put("14", "G.1: a new network by one attack alone", pd.DataFrame(rows))


@part
def g_2() -> None:
    """Do networks that fall together make the same mistakes?"""
    matrix = transfer()
    same = SimilarityMatrix(matrix.names, matrix.same_mistakes, larger_is="more alike")
    score = agreement(matrix, same)
    rows = [
        {
            "": "Pearson of SAT with the share of same wrong answers",
            "ours": correlation(score),
            "p (Mantel)": score.p,
            "paper": "positive",
        }
    ]
    put("15", "G.2: same mistakes under attack", pd.DataFrame(rows), digits=4)


@part
def g_3() -> None:
    """SAT of every epoch to the last."""
    for name in ("resnet-0", "mixer-0"):
        one = next(o for o in zoo() if o.name == name)
        table = during(one.folder, IMAGES, eps=EPS, store=STORE, progress=False)
        put(
            f"16 {name}",
            f"G.3: {name} on its way",
            table,
            "The paper: epoch 0 2.84, 20 4.46, 40 4.56, 180 4.60." if name == "resnet-0" else "",
        )
