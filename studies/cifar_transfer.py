"""Attack transfer among published CIFAR-10 networks: `LIKEWISE_DATA=... python -m studies.cifar_transfer`.

Nine networks between 90.0 and 94.6 % are the matrix, at three sizes of the attack; three more, of other accuracy, stand
apart. Examples and answers are kept in `studies/runs/transfer/store`: a run that was stopped is resumed, and another
process may make the examples of one size meanwhile (`python -m studies.cifar_transfer 2`).
"""

from __future__ import annotations

import os
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from perf.cifar10_accuracy import ARCHITECTURES

import likewise
from likewise.analysis import agreement, clusters
from likewise.analysis.ensembles import pair_reductions
from likewise.transfer import TransferMatrix, answers, sat
from studies.tables import Page, correlation, markdown

RUNS = Path(__file__).parent / "runs" / "transfer"
STORE = RUNS / "store"
DOCS = Path(__file__).parent.parent / "docs"
IMAGES, HELD_OUT = "cifar10:test[:500]", "cifar10:test[5000:]"
APART = ("resnet20_pgd_ehanw", "vit_d128_l6_smmk47", "hybrid_cnn_mlp_smmk47")
SIZES = (8, 4, 2)  # eps, in 255ths
PAGE = Page(DOCS / "transfer-cifar10.md", RUNS / "cifar.json", "Attack transfer on CIFAR-10: the tables")


def networks() -> dict[str, str]:
    """Addresses of the published networks by the names of their files."""
    root = Path(os.environ["LIKEWISE_DATA"])
    return {
        stem: f"zoo:{architecture}@{root / folder / stem}.safetensors"
        for folder, listed in ARCHITECTURES.items()
        for stem, architecture in listed.items()
    }


def matrix(names: dict[str, str], eps: int) -> TransferMatrix:
    """SAT by the paper's attack."""
    return sat(names, IMAGES, eps=eps / 255, store=STORE, progress=False)


def summary(transfer: TransferMatrix, eps: int) -> dict[str, object]:
    """One row: what a matrix says as a whole, and its two ends with their intervals."""
    upper = np.triu_indices(len(transfer), 1)
    values = transfer.values[upper]
    pairs = [(transfer.names[i], transfer.names[j]) for i, j in zip(*upper, strict=True)]

    def end(index: int) -> str:
        a, b = pairs[index]
        interval = transfer.interval(a, b)
        return f"{a}, {b}: {values[index]:.2f} [{float(interval.low):.2f}, {float(interval.high):.2f}]"

    counts = transfer.counts[upper]
    return {
        "eps": f"{eps}/255",
        "mean SAT": float(values.mean()),
        "ln of mean percent": float(np.log(transfer.percent[upper].mean())),
        "diagonal": f"{transfer.values.diagonal().min():.2f} to {transfer.values.diagonal().max():.2f}",
        "inputs both know": f"{counts.min()} to {counts.max()}",
        "least alike": end(int(values.argmin())),
        "most alike": end(int(values.argmax())),
    }


def main(sizes: list[str]) -> int:
    """All parts, or the matrices of some sizes only."""
    torch.set_num_threads(1)
    every = networks()
    main_nine = {name: address for name, address in every.items() if name not in APART}
    if sizes:
        for eps in sizes:
            matrix(main_nine, int(eps))
        return 0
    by_eps: dict[int, TransferMatrix] = {}
    for eps in SIZES:
        by_eps[eps] = matrix(main_nine, eps)
        rows = pd.DataFrame([summary(transfer, size) for size, transfer in by_eps.items()])
        PAGE.put("1", f"## Nine networks, three sizes of the attack\n\n{markdown(rows)}")
        families = clusters(by_eps[eps], 3)
        by_eps[eps].reordered([name for group in families.groups() for name in group]).plot(
            DOCS / "transfer-study" / f"cifar10-{eps}.png"
        )
        sys.stdout.write(f"eps {eps}/255 done\n")
        sys.stdout.flush()
    held_out = answers(main_nine, HELD_OUT, store=STORE, progress=False)
    gains = pair_reductions(held_out)
    rivals = ["cka", "disagreement", "boundary-agreement[triplets=20,resolution=20]"]
    other = likewise.compare(main_nine, rivals, data=IMAGES, store=STORE, progress=False)
    compared = {f"SAT {eps}/255": transfer for eps, transfer in by_eps.items()} | dict(other)
    rows = [
        {"similarity": name, "Pearson with ERR": correlation(score, -1), "p (Mantel)": score.p}
        for name, score in ((name, agreement(transfer, gains)) for name, transfer in compared.items())
    ]
    PAGE.put("2", f"## Against the gain of pairs (ERR on {held_out.n} other images)\n\n{markdown(pd.DataFrame(rows))}")
    pairs = [
        {"": f"{one}/255 and {two}/255", "Pearson": correlation(agreement(by_eps[one], by_eps[two]))}
        for one, two in combinations(SIZES, 2)
    ]
    PAGE.put("3", f"## Do the sizes agree?\n\n{markdown(pd.DataFrame(pairs))}")
    whole = matrix(every, 8)
    apart = pd.DataFrame(
        [
            {
                "network": name,
                "accuracy, %": 100 * float(whole.answers.accuracies[whole.names.index(name)]),
                "mean SAT with the nine": float(np.mean([whole[name, other] for other in main_nine])),
                "attacked itself": whole[name, name],
                "inputs known with the nine": int(
                    np.mean([whole.counts[whole.names.index(name), whole.names.index(o)] for o in main_nine])
                ),
            }
            for name in APART
        ]
    )
    PAGE.put("4", f"## Three networks of other accuracy, 8/255\n\n{markdown(apart)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
