"""Families, ensembles and what goes with similarity: parts of the study on Fashion-MNIST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch

import likewise
from likewise.analysis import agreement, clusters, component_importance, embed
from likewise.analysis.cluster_ensembles import errors_by_clusters
from likewise.analysis.ensembles import Ensembles, pair_reductions
from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer import answers
from studies.fashion_matrix import (
    DOCS,
    EIGHT,
    HELD_OUT,
    LOOK,
    STORE,
    addresses,
    group_mean,
    held_out,
    known,
    members,
    part,
    put,
    redrawn,
    trained,
    transfer,
)
from studies.fashion_networks import Trained
from studies.tables import correlation


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
    found = clusters(transfer(), 3, method="spectral")
    order = [name for group in found.groups() for name in group]
    transfer().reordered(order).plot(DOCS / "transfer-study" / "fashion.png")
    rows = [{"family": i + 1, "members": ", ".join(group)} for i, group in enumerate(found.groups())]
    put("03", f"{found.k} families, by spectral clustering as in the paper", pd.DataFrame(rows), found.verdict)
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


SOMEPALLI = "boundary agreement (Somepalli)"


@cache
def similarities() -> dict[str, SimilarityMatrix]:
    """SAT and its rivals over the same networks."""
    found = {"SAT": transfer()}
    others = likewise.compare(addresses(), ["cka", "disagreement"], data=LOOK, store=STORE, progress=False)
    found |= {"CKA": others["cka"], "disagreement": others["disagreement"]}
    how = "boundary-agreement[triplets=40,resolution=20]"
    planes = likewise.compare(addresses(), how, data="fashion-mnist:test[:200]", store=STORE, progress=False)
    return found | {SOMEPALLI: planes}


@part
def boundary_distances() -> None:
    """The distance of boundaries, which is slow: for eight networks, beside the others."""
    names = [name for name in EIGHT if name in addresses()]
    how = "boundary-distance[inputs=100]"
    far = likewise.compare(addresses(names), how, data="fashion-mnist:test[:200]", store=STORE, progress=False)
    gains = pair_reductions(known().subset(names))
    others = {name: matrix.reordered(names) for name, matrix in similarities().items()}
    rows = []
    for name, matrix in ({"boundary distance (Tramèr)": far} | others).items():
        score = agreement(matrix, gains)
        rows.append({"similarity": name, "Pearson with ERR": correlation(score, -1), "p (Mantel)": score.p})
    put("06 distances", f"Figure 10 for {len(names)} networks, with the distance of boundaries", pd.DataFrame(rows))


@part
def figures_6_and_10() -> None:
    """Does similarity correlate with how little an ensemble of two gains?"""
    gains = pair_reductions(known())
    rows = []
    for name, matrix in similarities().items():
        pearson, spearman = (agreement(matrix, gains, how=how) for how in ("pearson", "spearman"))
        rows.append(
            {
                "similarity": name,
                "Pearson": correlation(pearson, -1),
                "p (Mantel)": pearson.p,
                "Spearman": correlation(spearman, -1),
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
    images = torch.cat([batch for batch, _ in data.batches(1000)])
    noise = 0.15 * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    shifted = replace(data, name="noisy", inputs=(images + noise).clamp(0, 1))
    found = answers(addresses(), shifted, store=STORE, progress=False)
    score = agreement(transfer(), pair_reductions(found))
    rows = [
        {
            "images": "as they are",
            "mean accuracy, %": 100 * float(known().accuracies.mean()),
            "Pearson of SAT with ERR": correlation(agreement(transfer(), pair_reductions(known())), -1),
        },
        {
            "images": "with noise of deviation 0.15",
            "mean accuracy, %": 100 * float(found.accuracies.mean()),
            "Pearson of SAT with ERR": correlation(score, -1),
        },
    ]
    put("09", "Figure 9: SAT on one kind of images, ERR on another", pd.DataFrame(rows))


@part
def table_3() -> None:
    """Ensembles from more families, by SAT's families and by two rivals."""
    found = clusters(transfer(), 3, method="spectral")
    rivals: dict[str, Any] = {
        "SAT": found,
        "boundary agreement": clusters(similarities()[SOMEPALLI], found.k, method="spectral"),
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
        cells = {f"{row.families}": _percent(row) if row.samples else "–" for row in own.itertuples()}
        rows.append(
            {
                "families by": name,
                "members": size,
                **cells,
                "p": f"{own.p.iloc[0]:.3f}",
                "paper": " ".join(paper.get(size, ())) if name == "SAT" else "",
            }
        )
    table = pd.DataFrame(rows).fillna("–").replace("nan", "–")
    order = ["families by", "members", "1", "2", "3", "4", "5", "random", "p", "paper"]
    put(
        "07",
        "Table 3: mean ERR in percent of ensembles from exactly 1 to 5 families",
        table[order],
        "Ends hold 95 % over other images and members. p: the share of permutations of families among networks "
        "that go as strongly with ERR.",
    )


def _percent(row: Any) -> str:
    return f"{100 * row.reduction:.2f} [{100 * row.reduction_low:.1f}, {100 * row.reduction_high:.1f}]"


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
                alone, together = (~own.right)[triples].mean(axis=1), Ensembles(own).wrong(triples)
                rows.append(
                    {
                        "members differ by": f"{kind}: {group}",
                        "ensembles of 3": len(triples),
                        "mean ERR, %": redrawn(
                            lambda rows, alone=alone, together=together: (
                                100 * np.mean(1 - together[:, rows].mean(axis=1) / alone[:, rows].mean(axis=1))
                            ),
                            own.n,
                        ),
                        "mean error, %": 100 * float(together.mean()),
                    }
                )
    put(
        "08",
        "Figure 8: ensembles of three within one architecture",
        pd.DataFrame(rows),
        "Ends hold 95 % over other images.",
    )


@part
def picks() -> None:
    """pick_ensemble against random and accuracy-only choices, over many zoos."""
    from likewise.analysis import regrets

    tables = []
    for size in (3, 5):
        table = 100 * regrets(transfer(), known(), size, zoos=200, zoo_size=12, progress=False)
        rows = {name: _with_ends(table, name) for name in ("error", "regret", "gain")}
        tables.append(pd.DataFrame({"members": size, "choice": table.index, **rows}))
    title = "Choosing ensembles: percent and points of error on held-out images, 200 zoos of 12 networks"
    put("17", title, pd.concat(tables), "gain: how much more a choice errs than `pick_ensemble`.")


def _with_ends(table: pd.DataFrame, name: str) -> list[str]:
    columns = table[[name, f"{name}_low", f"{name}_high"]]
    return [f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in columns.itertuples(index=False)]
