"""Does training on DBI or AM move robustness? `python -m studies.zeroshot_losses` prints the table of the page.

A small network on digits, trained on cross-entropy alone or with one of the metrics beside it, paired by seed. Each
condition is trained without every class in turn too, so that the metrics themselves are those of Raw Zero-Shot.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise.attacks import get
from likewise.zeroshot import ZeroShot, losses

SEEDS, STEPS, BATCH, WIDTH = 8, 300, 256, 64
EPS = (0.05, 0.1)
Term = Callable[[Tensor, Tensor], Tensor]


def build(classes: int, seed: int) -> nn.Sequential:
    """Two layers, from the seed alone."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, classes))


def fit(images: Tensor, labels: Tensor, classes: int, seed: int, term: Term | None) -> nn.Sequential:
    """A network after a few hundred steps of Adam on random batches."""
    net = build(classes, seed)
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        rows = torch.randint(len(images), (BATCH,), generator=draw)
        logits = net(images[rows])
        loss = functional.cross_entropy(logits, labels[rows])
        if term is not None:
            loss = loss + term(logits, labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net.eval()


def answers(net: nn.Module, images: Tensor) -> np.ndarray:
    """Logits as numbers."""
    with torch.no_grad():
        return net(images).numpy().astype(np.float64)


def spread(weight: float) -> Term:
    """DBI of the soft labels of other classes."""
    return lambda logits, labels: weight * losses.dbi(losses.others(logits, labels), labels)


def towards(weight: float, means: Tensor) -> Term:
    """AM between the soft labels of other classes and what networks that never saw the class answer on average."""
    return lambda logits, labels: weight * losses.amalgam(losses.others(logits, labels), means[labels], labels)


CONDITIONS = {
    "cross-entropy": None,
    "DBI lower (weight 0.3)": ("dbi", 0.3),
    "DBI lower (weight 1)": ("dbi", 1.0),
    "DBI higher (weight -0.3)": ("dbi", -0.3),
    "AM lower (weight 0.3)": ("am", 0.3),
    "AM lower (weight 1)": ("am", 1.0),
}


def one_seed(seed: int) -> list[dict[str, object]]:
    """Every condition from one seed."""
    train, test = likewise.dataset("digits:train"), likewise.dataset("digits:test")
    images, labels = train.inputs[:].float(), train.labels
    shown, truth = test.inputs[:].float(), test.labels
    n = len(train.classes)
    rows = []
    plain: list[nn.Module] = []
    for name, condition in CONDITIONS.items():
        kind, weight = condition or ("", 0.0)
        held_out: list[nn.Module] = plain
        if kind != "am":  # AM changes the network of all classes only
            held_out = []
            for i in range(n):
                rest = labels != i
                left = labels[rest] - (labels[rest] > i).long()
                held_out.append(fit(images[rest], left, n - 1, seed, spread(weight) if kind else None))
            plain = plain or held_out
        term = spread(weight) if kind == "dbi" else None
        if kind == "am":
            soft = [torch.from_numpy(answers(net, images[labels == i])).softmax(dim=1) for i, net in enumerate(plain)]
            term = towards(weight, torch.stack([one.mean(dim=0) for one in soft]).float())
        net = fit(images, labels, n, seed, term)
        full = tuple(answers(net, images[labels == i]) for i in range(n))
        parts = tuple(answers(other, images[labels == i]) for i, other in enumerate(held_out))
        found = ZeroShot(name, train.classes, (full,), (parts,), "logits")
        row: dict[str, object] = {"condition": name, "seed": seed, "DBI": found.dbi().mean}
        row |= {"AM in [0, 1]": found.amalgam().normalised_mean}
        with torch.no_grad():
            row["accuracy"] = float((net(shown).argmax(dim=1) == truth).float().mean())
        for eps in EPS:
            moved = get("pgd")(net, shown, truth, eps=eps, step=eps / 5, iterations=20, seed=seed).images
            with torch.no_grad():
                row[f"right after PGD {eps:g}"] = float((net(moved).argmax(dim=1) == truth).float().mean())
        rows.append(row)
    return rows


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, and the difference to cross-entropy of the same seed with Student's 95 % interval."""
    wide = frame.set_index(["seed", "condition"])
    rows = []
    for name in CONDITIONS:
        values = wide.xs(name, level="condition")
        row = {"trained on": name}
        for column in values:
            gap = (values[column] - wide.xs("cross-entropy", level="condition")[column]).to_numpy()
            half = stats.t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / len(gap) ** 0.5
            text = f"{values[column].mean():.3f}"
            change = f" ({gap.mean():+.3f} [{gap.mean() - half:+.3f}, {gap.mean() + half:+.3f}])"
            row[column] = text if name == "cross-entropy" else text + change
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> int:
    """Train, attack and print."""
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    for seed in range(SEEDS):
        rows += one_seed(seed)
        sys.stderr.write(f"seed {seed} of {SEEDS}\n")
        sys.stderr.flush()
    table = summary(pd.DataFrame(rows))
    lines = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    sys.stdout.write("".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
