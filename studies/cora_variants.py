"""Changes of the benchmark on Cora, to see which networks give the figures of the paper.

`labels`  in the shortcut test, wrong labels of test nodes are drawn for each network; in the reference's code, as it is
          published, once for all
`apart`   in the augmentation test, standard networks start from weights of their own, and the groups that drop edges
          share theirs; by the reference's code all three share them
`seeds`   in the augmentation test, no two groups share weights to start from
`both`    the first with the last, in the shortcut test
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from likewise.benchmark.domains import Experiment, Group, NetworkSpec
from likewise.benchmark.domains.graph import Graph
from likewise.data import Data
from likewise.data.graphs import Nodes

_ELSEWHERE = 500  # beyond the seeds of any group, before those of the next repetition


class OwnLabels(Graph):
    """Every network has wrong labels of its own at test nodes, in training and when it is looked at."""

    def changed(self, data: Data, spec: NetworkSpec, share: float | None = None) -> Data:
        """Behind the features of test nodes, another wrong label for each network."""
        with_shortcuts = super().changed(data, spec, share)
        graph: Any = with_shortcuts.inputs.graph
        draw = torch.Generator().manual_seed(spec.seed)
        test, classes = graph.test_mask, len(data.classes)
        steps = torch.randint(1, classes, (int(test.sum()),), generator=draw)
        graph.x = graph.x.clone()
        graph.x[test, -classes:] = functional.one_hot((graph.y[test] + steps) % classes, classes).to(graph.x)
        return replace(with_shortcuts, inputs=Nodes(graph, with_shortcuts.inputs.index))


class OtherSeeds(Graph):
    """No network of one group starts from the weights of a network of another."""

    def spec(self, group: Group, number: int, experiment: Experiment) -> NetworkSpec:
        """The seed that a preset other than the paper's would give."""
        spec = super().spec(group, number, experiment)
        seed = spec.seed + self._offset(group, experiment)
        return replace(spec, seed=seed, change_seed=self.change_seed(seed, experiment))


class StandardApart(Graph):
    """Standard networks start from other weights than those that drop edges, as if they were trained elsewhere."""

    def spec(self, group: Group, number: int, experiment: Experiment) -> NetworkSpec:
        """Another seed for networks without a change."""
        spec = super().spec(group, number, experiment)
        if group.kind is not None:
            return spec
        seed = spec.seed + _ELSEWHERE
        return replace(spec, seed=seed, change_seed=self.change_seed(seed, experiment))


class Both(OwnLabels, OtherSeeds):
    """Labels of their own, and other weights to start from in every group."""


VARIANTS = {
    "labels": (OwnLabels(), "shortcut"),
    "apart": (StandardApart(), "augmentation"),
    "seeds": (OtherSeeds(), "augmentation"),
    "both": (Both(), "shortcut"),
}
