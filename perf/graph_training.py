"""GCN, GraphSAGE and GAT on Cora with ReSi's settings: how good, and what training here costs.

Each network is trained by `likewise.networks.train`, and beside it PyTorch Geometric's own model by
a bare loop (forward, cross-entropy on the training nodes, backward, Adam). The two take turns epoch
by epoch within one run, so that whatever else the machine does falls on both alike. Times are
CPU seconds of this process on one thread; `ratio` is training here to the bare loop. Rows are added
to the file: the settings of the paper's table, or with --code those of its code (batches normalised).

    LIKEWISE_DATA=... python -m perf.graph_training --seeds 10 [--code]
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import likewise
from likewise._base.optional import geometric
from likewise.networks import evaluate, network, train
from likewise.networks.zoo.graph import resi
from perf.common import RESULTS

KINDS = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}


class BareLoop:
    """The library's own model and the shortest loop over it; one epoch each time it is called."""

    def __init__(self, net: nn.Module, graph: Any, training: dict[str, Any]) -> None:
        self.net, self.graph, self.seconds = net, graph, 0.0
        rate = {name: training[name] for name in ("lr", "weight_decay")}
        self.optimiser = torch.optim.Adam(net.parameters(), **rate)

    def __call__(self, *_: object) -> None:
        start = time.process_time()
        self.net.train()
        self.optimiser.zero_grad()
        answers = self.net(self.graph.x, self.graph.edge_index)[self.graph.train_mask]
        functional.cross_entropy(answers, self.graph.y[self.graph.train_mask]).backward()
        self.optimiser.step()
        self.seconds += time.process_time() - start


def own_model(name: str, data: likewise.data.Data, options: dict[str, Any]) -> nn.Module:
    more = {"heads": 8} if name == "gat" else {}
    models = geometric("compare with").nn
    model: nn.Module = getattr(models, KINDS[name])(
        data.graph.num_features,
        options["width"],
        options["depth"],
        len(data.classes),
        dropout=options["dropout"],
        act=options["activation"],
        norm=options["norm"],
        **more,
    )
    return model


def measure(name: str, variant: str | None, seed: int, address: str) -> dict[str, Any]:
    data, test = likewise.dataset(f"{address}:train"), likewise.dataset(f"{address}:test")
    preset = resi(name, "cora", variant)
    torch.manual_seed(seed)
    bare = BareLoop(own_model(name, data, dict(preset.network)), data.graph, dict(preset.training))
    net = network(f"zoo:{name}", data=data, seed=seed, **preset.network)
    start = time.process_time()
    train(net, data, seed=seed, callbacks=[bare], progress=False, **preset.training)
    here = time.process_time() - start - bare.seconds
    return {
        "network": name,
        "settings": "code" if variant else "paper",
        "data": address,
        "seed": seed,
        "epochs": preset.training["epochs"],
        "accuracy": evaluate(net, test)[1],
        "bare_accuracy": evaluate(bare.net.eval(), test)[1],
        "cpu_s": round(here, 2),
        "bare_cpu_s": round(bare.seconds, 2),
        "ratio": round(here / bare.seconds, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--code", action="store_true", help="the settings of ReSi's code, not its paper's")
    parser.add_argument("--data", default="cora")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS / "graph_training.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    machine = {
        "machine": platform.machine(),
        "torch": torch.__version__,
        "torch_geometric": geometric("compare with").__version__,
        "likewise": likewise.__version__,
    }
    with options.out.open("a", newline="") as file:
        for name in options.networks:
            for seed in range(options.seeds):
                row = measure(name, "resi" if options.code else None, seed, options.data) | machine
                writer = csv.DictWriter(file, row)
                if not file.tell():
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
