"""Graphs: one graph per dataset, and the nodes of it that a split looks at.

A network is always shown the whole graph and answers for every node, so a batch is the whole graph,
and it carries the nodes whose answers are asked for: `batch.rows(net(**batch))`. Slices of the data
are slices of those nodes; the graph stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise._base.arrays import check_labels
from likewise.data.inputs import Data
from likewise.errors import InputError

SPLITS = ("test", "train", "val", "all")


class GraphBatch(dict[str, Tensor]):
    """The whole graph as a network takes it (`net(**batch)`), and the nodes that are asked for.

    Args:
        graph: What the network takes, by name: "x" and "edge_index".
        nodes: The numbers of the nodes that are asked for.
    """

    def __init__(self, graph: dict[str, Tensor], nodes: Tensor) -> None:
        super().__init__(graph)
        self.nodes = nodes

    def rows(self, values: Tensor) -> Tensor:
        """The rows of the nodes asked for.

        Args:
            values: One row for every node.
        """
        return values[self.nodes]

    def to(self, device: Any) -> GraphBatch:
        """The batch on another device.

        Args:
            device: Such as "cuda:0".
        """
        return GraphBatch({k: v.to(device) for k, v in self.items()}, self.nodes.to(device))


@dataclass(frozen=True, eq=False)
class Nodes:
    """Some nodes of one graph, a `torch_geometric` Data."""

    graph: Any
    index: Tensor

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> GraphBatch:
        return GraphBatch({"x": self.graph.x, "edge_index": self.graph.edge_index}, self.index[rows])

    def only(self, rows: Any) -> Nodes:
        """Fewer nodes of the same graph."""
        return Nodes(self.graph, self.index[rows])

    def content(self) -> Iterator[bytes]:
        """What the hash of the probe is made of: features, edges, and which nodes count."""
        for tensor in (self.graph.x, self.graph.edge_index, self.index):
            yield str(tuple(tensor.shape)).encode()
            yield tensor.detach().cpu().contiguous().numpy().tobytes()


class GraphData(Data):
    """Nodes of one graph and their labels; `batches` gives the whole graph, once."""

    @property
    def graph(self) -> Any:
        """The graph itself, with all nodes, labels and masks."""
        return self.inputs.graph

    def batches(
        self, batch_size: int = 256, *, shuffle: int | None = None, device: Any = None, num_workers: int | None = None
    ) -> Iterator[tuple[GraphBatch, Tensor]]:
        """One batch, whatever the arguments are: the whole graph and the labels of the nodes asked for.

        Args:
            batch_size: Ignored.
            shuffle: Ignored.
            device: Where the tensors go.
            num_workers: Ignored.

        Yields:
            The graph and the labels.
        """
        batch, labels = self.inputs[:], self.labels
        yield (batch, labels) if device is None else (batch.to(device), labels.to(device))


def nodes_of(graph: Any, split: str, *, name: str, classes: tuple[str, ...] = ()) -> GraphData:
    """The nodes of a split of a graph as data; a graph of your own works as the named ones do.

    Args:
        graph: A `torch_geometric` Data with `x`, `edge_index` and `y`.
        split: `train`, `val` or `test` by the graph's masks, or `all`.
        name: What the data is called.
        classes: The names of the classes; by default their numbers.

    Raises:
        InputError: The graph has no such split, or is not one.
    """
    _check(graph, name)
    if split == "all":
        index = torch.arange(graph.num_nodes)
    elif getattr(graph, f"{split}_mask", None) is not None:
        index = graph[f"{split}_mask"].nonzero()[:, 0]
    else:
        raise InputError(f"the graph {name!r} has no {split}_mask. Set it, one truth value per node, or take 'all'.")
    classes = classes or tuple(str(label) for label in range(int(graph.y.max()) + 1))
    return GraphData(f"{name}:{split}", "graph", Nodes(graph, index), graph.y[index], classes)


def _check(graph: Any, name: str) -> None:
    absent = [name for name in ("x", "edge_index", "y") if getattr(graph, name, None) is None]
    if absent:
        raise InputError(
            f"the graph {name!r} has no {' and no '.join(absent)}. Give node features x (nodes, "
            "features), edge_index (2, edges) and labels y (nodes,)."
        )
    nodes, edges = len(graph.x), graph.edge_index
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise InputError(
            f"the edge_index of {name!r} has shape {tuple(edges.shape)}, {edges.dtype}. Give whole "
            "numbers (2, edges): sources above targets."
        )
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        raise InputError(
            f"the edges of {name!r} name nodes {int(edges.min())} to {int(edges.max())}, but it "
            f"has {nodes} nodes. Nodes count from 0 to {nodes - 1}."
        )
    check_labels(graph.y, nodes, what=f"the labels of {name!r}")
