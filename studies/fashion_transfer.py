"""The experiments of the SAT paper on a zoo of known make: `python -m studies.fashion_transfer [PART ...]`.

The networks are those of `studies.fashion_networks`, trained first. Parts go by the names of their functions; each
keeps its table at once, and examples and answers stay in `studies/runs/transfer/store`, so that a run which was
stopped is resumed. Beside each figure stands the paper's, on ImageNet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import likewise
from likewise.analysis import agreement, clusters, component_importance, embed
from likewise.analysis.cluster_ensembles import errors_by_clusters
from likewise.analysis.ensembles import Ensembles, pair_reductions
from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer import Answers, TransferMatrix, answers, during, one_sided, sat
from studies.fashion_networks import FAMILIES, TEACHERS, Trained, students, zoo
from studies.tables import Page, markdown

RUNS = Path(__file__).parent / "runs" / "transfer"
STORE = RUNS / "store"
DOCS = Path(__file__).parent.parent / "docs"
PAGE = Page(DOCS / "transfer-fashion.md", RUNS / "fashion.json", "Attack transfer on Fashion-MNIST: the tables")
IMAGES, HELD_OUT, LOOK = "fashion-mnist:test[:500]", "fashion-mnist:test[1000:6000]", "fashion-mnist:test[6000:7000]"
EPS = 8 / 255
POINTS = 0.04  # accuracies further apart than this are not compared
PARTS: list[Callable[[], None]] = []


def part(function: Callable[[], None]) -> Callable[[], None]:
    """A part of the study."""
    PARTS.append(function)
    return function


def trained() -> list[Trained]:
    """The networks that are there."""
    return [one for one in zoo() if Path(one.weights).is_file()]


@cache
def held_out() -> Answers:
    """What all networks answer to images that no attack has seen."""
    return answers({one.name: one.weights for one in trained()}, HELD_OUT, store=STORE, progress=False)


@cache
def members() -> tuple[Trained, ...]:
    """The networks that may be compared: the most that lie within four points of accuracy."""
    accuracy = dict(zip(held_out().names, held_out().accuracies, strict=True))

    def near(low: float) -> tuple[Trained, ...]:
        return tuple(one for one in trained() if low <= accuracy[one.name] <= low + POINTS)

    return max((near(low) for low in accuracy.values()), key=len)


def addresses(names: Sequence[str] | None = None) -> dict[str, str]:
    """Names to weights: of all networks that may be compared, or of some."""
    return {one.name: one.weights for one in members() if names is None or one.name in names}


@cache
def transfer() -> TransferMatrix:
    """SAT of all networks by the paper's attack."""
    return sat(addresses(), IMAGES, eps=EPS, store=STORE, progress=False)


def known() -> Answers:
    """The held-out answers of the networks that are compared."""
    return held_out().subset([one.name for one in members()])


def put(key: str, title: str, table: pd.DataFrame, text: str = "", digits: int = 2) -> None:
    """A table of the page, with what the paper found."""
    PAGE.put(
        key,
        f"## {title}\n\n{text}\n\n{markdown(table, digits)}" if text else f"## {title}\n\n{markdown(table, digits)}",
    )
    sys.stdout.write(f"{title}\n{table.to_string()}\n")
    sys.stdout.flush()


def group_mean(matrix: SimilarityMatrix, names: Sequence[str], seed: int = 0) -> str:
    """The mean over the pairs of a group, with what it is for networks drawn anew."""
    values = matrix.reordered(names).values
    away = ~np.eye(len(names), dtype=bool)
    draw, means = np.random.default_rng(seed), []
    for _ in range(1000):
        rows = draw.integers(len(names), size=len(names))
        other = rows[:, None] != rows
        if other.any():
            means.append(values[np.ix_(rows, rows)][other].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values[away].mean():.2f} [{low:.2f}, {high:.2f}]"


@part
def zoo_table() -> None:
    """Which networks there are, and how well they do."""
    accuracy = dict(zip(held_out().names, held_out().accuracies, strict=True))
    inside = {one.name for one in members()}
    rows = [
        {
            "group": f"{kind}, {group}",
            "networks": len(own),
            "compared": sum(one.name in inside for one in own),
            "accuracy, %": _range([100 * accuracy[one.name] for one in own]),
        }
        for kind, group, own in _groups(trained())
    ]
    put("01", f"{len(trained())} networks, {len(inside)} of them within four points", pd.DataFrame(rows))


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _groups(listed: Sequence[Trained]) -> list[tuple[str, str, list[Trained]]]:
    kinds = {(one.architecture if one.architecture in ("resnet", "mixer") else "others", one.group) for one in listed}
    return [
        (kind, group, [o for o in listed if o.group == group and (kind == "others" or o.architecture == kind)])
        for kind, group in sorted(kinds)
    ]


@part
def table_2() -> None:
    """How alike are networks that differ in one thing?"""
    paper = {("resnet", "initialisation"): 4.23, ("resnet", "hyper-parameters"): 4.05, ("resnet", "regime"): 3.27}
    paper |= {("mixer", "initialisation"): 4.21, ("mixer", "hyper-parameters"): 4.22, ("mixer", "regime"): 3.44}
    rows = []
    for kind in ("resnet", "mixer"):
        for group in ("initialisation", "hyper-parameters", "regime"):
            own = [o.name for o in members() if o.architecture == kind and o.group == group]
            if len(own) > 1:
                mean = group_mean(transfer(), own)
                rows.append(
                    {
                        "networks differ by": f"{kind}: {group}",
                        "networks": len(own),
                        "mean SAT": mean,
                        "paper": f"{paper[kind, group]:.2f}",
                    }
                )
    firsts = [o.name for o in members() if o.name.endswith("-0")]
    rows.append(
        {
            "networks differ by": "architecture",
            "networks": len(firsts),
            "mean SAT": group_mean(transfer(), firsts),
            "paper": "2.73",
        }
    )
    every = [o.name for o in members()]
    rows.append(
        {
            "networks differ by": "all pairs",
            "networks": len(every),
            "mean SAT": group_mean(transfer(), every),
            "paper": "–",
        }
    )
    put("02", "Table 2: in what networks differ", pd.DataFrame(rows), "Ends hold 95 % over networks drawn anew.")


@part
def families() -> None:
    """Clusters, and the heat map sorted by them."""
    found = clusters(transfer(), "auto")
    order = [name for group in found.groups() for name in group]
    transfer().reordered(order).plot(DOCS / "transfer-study" / "fashion.png")
    rows = [{"family": i + 1, "members": ", ".join(group)} for i, group in enumerate(found.groups())]
    put("03", f"Families: {found.k}, stability {found.stability:.2f}", pd.DataFrame(rows))
    _map(found.labels)


def _map(labels: Sequence[int]) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    places = embed(transfer(), "tsne")
    figure, axes = plt.subplots(figsize=(9, 7))
    axes.scatter(places[:, 0], places[:, 1], c=labels, cmap="tab10")
    for name, place in zip(transfer().names, places, strict=True):
        axes.annotate(name, place, fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes.set_axis_off()
    figure.savefig(DOCS / "transfer-study" / "fashion-map.png", dpi=130, bbox_inches="tight")


@cache
def similarities() -> dict[str, SimilarityMatrix]:
    """SAT and its rivals over the same networks."""
    found = {"SAT": transfer()}
    others = likewise.compare(addresses(), ["cka", "disagreement"], data=LOOK, store=STORE, progress=False)
    found |= {"CKA": others["cka"], "disagreement": others["disagreement"]}
    for name, measure in (
        ("boundary agreement (Somepalli)", "boundary-agreement[triplets=100,resolution=20]"),
        ("boundary distance (Tramèr)", "boundary-distance"),
    ):
        found[name] = likewise.compare(
            addresses(), measure, data="fashion-mnist:test[:200]", store=STORE, progress=False
        )
    return found


@part
def figures_6_and_10() -> None:
    """Does likeness go with how little an ensemble of two gains?"""
    gains = pair_reductions(known())
    rows = []
    for name, matrix in similarities().items():
        pearson, spearman = (agreement(matrix, gains, how=how) for how in ("pearson", "spearman"))
        rows.append(
            {
                "similarity": name,
                "Pearson": -float(pearson),
                "p (Mantel)": pearson.p,
                "Spearman": -float(spearman),
                "paper": "-0.32" if name == "SAT" else "–",
            }
        )
    put(
        "06",
        "Figures 6 and 10: similarity against the gain of pairs (ERR)",
        pd.DataFrame(rows),
        "Below 0: alike networks gain little from each other. A distance is turned round first.",
    )


@part
def figure_9() -> None:
    """SAT on clean images against the gain on shifted ones."""
    data = likewise.dataset(HELD_OUT)
    noise = 0.15 * torch.randn((len(data), *data.inputs[:1].shape[1:]), generator=torch.Generator().manual_seed(0))
    shifted = likewise.data.Data("noisy", (data.inputs[:] + noise).clamp(0, 1), data.labels, data.classes)
    found = answers(addresses(), shifted, store=STORE, progress=False)
    score = agreement(transfer(), pair_reductions(found))
    rows = [
        {
            "images": "as they are",
            "mean accuracy, %": 100 * float(known().accuracies.mean()),
            "Pearson of SAT with ERR": -float(agreement(transfer(), pair_reductions(known()))),
        },
        {
            "images": "with noise of deviation 0.15",
            "mean accuracy, %": 100 * float(found.accuracies.mean()),
            "Pearson of SAT with ERR": -float(score),
        },
    ]
    put("09", "Figure 9: SAT on one kind of images, ERR on another", pd.DataFrame(rows))


@part
def table_3() -> None:
    """Ensembles from more families, by SAT's families and by two rivals."""
    found = clusters(transfer(), "auto")
    rivals: dict[str, Any] = {
        "SAT": found,
        "boundary agreement": clusters(similarities()["boundary agreement (Somepalli)"], found.k),
        "architecture and regime": _by_make(found.k),
    }
    paper = {2: ("7.13", "7.84", "7.78"), 5: ("12.58", "13.41", "13.79", "13.99", "14.11", "14.01")}
    tables = []
    for name, families in rivals.items():
        table = errors_by_clusters(known(), families, (2, 3, 4, 5), samples=2000)
        table.insert(0, "families by", name)
        tables.append(table)
    whole = pd.concat(tables)
    rows = []
    for (name, size), own in whole.groupby(["families by", "size"], sort=False):
        cells = {f"{row.families}": f"{100 * row.reduction:.2f}" for row in own.itertuples()}
        rows.append(
            {
                "families by": name,
                "members": size,
                **cells,
                "p": f"{own.p.iloc[0]:.3f}",
                "paper": " ".join(paper.get(size, ())) if name == "SAT" else "",
            }
        )
    table = pd.DataFrame(rows).fillna("–")
    order = ["families by", "members", "1", "2", "3", "4", "5", "random", "p", "paper"]
    put(
        "07",
        "Table 3: mean ERR in percent of ensembles from exactly 1 to 5 families",
        table[order],
        "p: the share of permutations of families among networks that go as strongly with ERR.",
    )


def _by_make(k: int) -> dict[str, int]:
    """k-means on what is known of how the networks were made."""
    from sklearn.cluster import KMeans

    table = pd.get_dummies(components()).to_numpy(dtype=float)
    labels = KMeans(k, n_init=20, random_state=0).fit_predict(table)
    return dict(zip((one.name for one in members()), labels.tolist(), strict=True))


def components() -> pd.DataFrame:
    """What the networks are made of, and how they were trained."""
    from likewise.analysis import component_table

    table = component_table(addresses())
    frame = pd.DataFrame(table).astype(str)
    frame["regime"] = [one.name.split("-")[1] if one.group == "regime" else "plain" for one in members()]
    return frame


@part
def importance() -> None:
    """Which components make the difference."""
    found = component_importance(transfer(), components())
    rows = [
        {"component": name, "all pairs": value, "held-out pairs": found.held_out[name]}
        for name, value in found.all_pairs.items()
    ]
    text = f"R² {found.r2:.2f} on all pairs, {found.r2_held_out:.2f} on held-out ones."
    put("12", "Which components make the difference: fall of R² if one is shuffled", pd.DataFrame(rows), text)


@part
def figure_8() -> None:
    """Ensembles within one architecture: what must differ?"""
    rows = []
    for kind in ("resnet", "mixer"):
        for group in ("initialisation", "hyper-parameters", "regime"):
            names = [o.name for o in members() if o.architecture == kind and o.group == group]
            if len(names) >= 3:
                own = known().subset(names)
                triples = np.array(list(combinations(range(len(names)), 3)))
                alone = (1 - own.accuracies)[triples].mean(axis=1)
                errors = Ensembles(own).errors(triples)
                rows.append(
                    {
                        "members differ by": f"{kind}: {group}",
                        "ensembles of 3": len(triples),
                        "mean ERR, %": 100 * float(np.mean(1 - errors / alone)),
                        "mean error, %": 100 * float(errors.mean()),
                    }
                )
    put("08", "Figure 8: ensembles of three within one architecture", pd.DataFrame(rows))


EIGHT = ("resnet-0", "vit-0", "lenet-0", "mlp-0", "mixer-0", "efficientnet-0", "nfnet-0", "resnet-mixup")


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
        "autoattack": {"eps": EPS},
    }
    few, names = "fashion-mnist:test[:200]", [name for name in EIGHT if name in addresses()]
    base = sat(addresses(names), few, eps=EPS, store=STORE, progress=False)
    rows = []
    for attack, options in attacks.items():
        if attack == "autoattack" and not _installed("pyautoattack"):
            continue
        found = sat(addresses(names), few, attack, store=STORE, progress=False, **options)
        upper = np.triu_indices(len(found), 1)
        rows.append(
            {
                "attack": attack,
                "mean SAT": float(found.values[upper].mean()),
                "own success, %": float(100 * found.rates.diagonal().mean()),
                "Pearson with PGD": float(agreement(base, found)),
                "paper": "0.98" if attack == "autoattack" else "–",
            }
        )
        put("10", f"B.1: SAT of {len(found)} networks by other attacks, 200 images", pd.DataFrame(rows))


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
                "Pearson with PGD": float(np.corrcoef(list(found.values()), list(by_pgd.values()))[0, 1]),
                "paper": "0.91" if attack == "patch-fool" else "–",
            }
        ]
        put(f"10 {attack}", f"B.1: {attack} from one source, 100 images", pd.DataFrame(rows))


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


def _installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


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
    whole = sat(addresses(names), "fashion-mnist:test[:1000]", eps=EPS, store=STORE, progress=False)
    rows = []
    for count in (25, 50, 100):
        parts = [_some(whole, slice(i * count, (i + 1) * count)).percent for i in range(10)]
        spread = np.std(np.stack(parts), axis=0, ddof=1)[np.triu_indices(len(names), 1)].mean()
        triplets = max(1, count // 50)
        rivals = [
            100
            * likewise.compare(
                addresses(names),
                f"boundary-agreement[triplets={triplets},resolution=50,seed={seed}]",
                data="fashion-mnist:test[:1000]",
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
            r, p = pearsonr(own[column], own["student, %"])
            lines.append(f"Pearson with the student's accuracy, {title}: {r:.2f} (p {p:.2f}, {len(own)} teachers).")
    lines.append("The paper: all -0.32 (p .12), same family 0.70, other family -0.51, teacher's accuracy 0.05.")
    put("13", "Teachers", table, " ".join(lines))


def _family(name: str) -> str:
    return FAMILIES.get(name.split("-")[0], "convolutions")


@part
def g_1() -> None:
    """A new network from its one-sided row."""
    found, hits = clusters(transfer(), "auto"), 0
    one, two = [], []
    for network in members():
        zoo_without = {name: address for name, address in addresses().items() if name != network.name}
        row = one_sided({network.name: network.weights}, zoo_without, IMAGES, eps=EPS, store=STORE, progress=False)
        one += list(row.values())
        two += [transfer()[network.name, name] for name in row]
        hits += found.without(network.name).assign(row) == found.labels[transfer().names.index(network.name)]
    rows = [
        {"": "Pearson of one- and two-sided scores", "ours": float(np.corrcoef(one, two)[0, 1]), "paper": "0.82"},
        {"": "put into their family from one side", "ours": hits / len(members()), "paper": "–"},
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
            "ours": float(score),
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


@part
def picks() -> None:
    """pick_ensemble against random and accuracy-only choices, over many zoos."""
    from likewise.analysis import regrets

    tables = []
    for size in (3, 5):
        table = regrets(transfer(), known(), size, zoos=200, zoo_size=12, progress=False).reset_index()
        table.insert(0, "members", size)
        tables.append(table)
    put("17", "Choosing ensembles: regret on held-out images, 200 zoos of 12 networks", pd.concat(tables), digits=3)


def main(wanted: list[str]) -> int:
    """The parts asked for, or all."""
    torch.set_num_threads(1)
    (DOCS / "transfer-study").mkdir(exist_ok=True)
    for one in PARTS:
        if not wanted or one.__name__ in wanted:
            one()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
