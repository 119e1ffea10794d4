"""Graphs: nodes of one graph, classified by GCN, GraphSAGE and GAT.

The settings of `paper` are those of the reference's code, which made the paper's tables: with batch normalisation, of
which the paper's table 4 says nothing. Looked at are test nodes, at the output of a convolution before normalisation
and activation: of the second to last, and in the layer test, for which deeper networks are trained, of all but the
last.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from likewise._base.hashing import digest
from likewise.benchmark.domains import ChangeKind, Domain, Experiment, Group, LayerViews, NetworkSpec, Preset, domain
from likewise.data import Data
from likewise.data.changes import add_shortcut
from likewise.data.graphs import Nodes
from likewise.errors import UnknownNameError
from likewise.networks import Settings, unwrapped
from likewise.networks.address import parse
from likewise.networks.zoo.graph import DropEdges, resi
from likewise.views import Activations
from likewise.views.extract import extract

_LEVELS: dict[ChangeKind, tuple[float, ...]] = {
    "labels": (0.0, 0.25, 1.0),
    "shortcut": (0.0, 0.5, 1.0),
    "augmentation": (0.0, 0.2, 0.8),
}
_DEPTH = 6  # of the networks of the layer test
_MOST = 10_000  # test nodes that are looked at


@domain("graph", "graphs")
class Graph(Domain):
    """Nodes of a citation network, of pictures or of digits, and what they are about."""

    kind = "graph"
    data = ("cora", "citeseer", "flickr", "ogbn-arxiv", "digits-graph")
    networks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"gcn": "zoo:gcn", "sage": "zoo:sage", "graphsage": "zoo:sage", "gat": "zoo:gat"}
    )

    def preset(self, name: str, data: str, network: str) -> Preset:
        """The paper's settings for its data, those of Cora for any other; `small` has 50 epochs."""
        if name == "paper":
            return Preset()
        return Preset(seeds=6, group=4, layered=3, training={"epochs": 50})

    def _settings(self, experiment: Experiment) -> Any:
        architecture = parse(self.address(experiment, 0)).name
        try:
            return resi(architecture, experiment.data_name, variant="resi")
        except UnknownNameError:
            return resi(architecture if architecture in ("gcn", "sage", "gat") else "gcn", "cora", variant="resi")

    def options(self, experiment: Experiment) -> dict[str, Any]:
        """Width, depth, dropout, activation and normalisation of the paper's code."""
        return dict(self._settings(experiment).network)

    def training(self, experiment: Experiment, group: Group) -> dict[str, Any]:
        """Adam at the paper's rate for as many epochs."""
        return dict(self._settings(experiment).training)

    def levels(self, kind: ChangeKind, experiment: Experiment) -> tuple[float, ...]:
        """The groups of the paper (A.2 to A.4)."""
        return _LEVELS[kind]

    def groups(self, grounding: str, experiment: Experiment) -> list[Group]:
        """As everywhere, but for the layers: networks of their own, six layers deep."""
        if grounding == "layers":
            return [Group("six layers", experiment.preset.layered, options={"depth": _DEPTH})]
        return super().groups(grounding, experiment)

    def change_seed(self, seed: int, experiment: Experiment) -> int:
        """Another seed for every network, as in the reference."""
        return seed

    def settings(self, spec: NetworkSpec) -> Settings:
        """Edges are dropped anew every epoch in the groups of the augmentation test.

        The draws of the dropout then differ from those of the standard network of the same seed: in the reference both
        come from one stream.
        """
        settings = super().settings(spec)
        if spec.kind != "augmentation":
            return settings
        return replace(settings, augment=(DropEdges(spec.share),), seed=settings.seed + round(1e6 * spec.share))

    def probe(self, spec: NetworkSpec, experiment: Experiment) -> Data:
        """Test nodes, at most 10,000; in the shortcut test with shortcuts that are always wrong.

        Their neighbours have the same wrong shortcuts for every network too, but in `paper`: there, as in the
        reference, every network is shown the graph it was trained on.
        """
        nodes = self.load(spec.data, "probe")
        most = _MOST if experiment.preset.probe is None else experiment.preset.probe
        if len(nodes) > most:
            nodes = nodes[np.sort(np.random.RandomState(2024).choice(len(nodes), most, replace=False)).tolist()]
        if spec.kind != "shortcut":
            return nodes
        return self.changed(nodes, spec) if experiment.as_in_paper else add_shortcut(nodes, 0.0, 0)

    def checks(self, spec: NetworkSpec, experiment: Experiment) -> dict[str, Data]:
        """Right shortcuts are those of validation nodes: test nodes never have them."""
        if spec.kind != "shortcut":
            return super().checks(spec, experiment)
        return {"fit": self.train_data(spec), "shortcut": self.changed(self.load(spec.data, "val"), spec, 1.0)}

    def augmented(self, probe: Data, experiment: Experiment) -> Data:
        """The probe with as many edges left as the strongest augmentation leaves."""
        graph: Any = copy(probe.inputs.graph)
        drawn = torch.rand(graph.edge_index.shape[1], generator=torch.Generator().manual_seed(2024))
        graph.edge_index = graph.edge_index[:, drawn >= max(self.levels("augmentation", experiment))]
        return replace(probe, name=f"{probe.name},edges dropped", inputs=Nodes(graph, probe.inputs.index))

    def view(self, net: nn.Module, probe: Data, **show: Any) -> Activations:
        """The output of the second to last convolution. Nodes are compared with nodes, whatever their features."""
        view: Activations = extract(net, probe, _convolutions(net)[-2], **show)
        nodes = digest([probe.inputs.index.numpy().tobytes()])
        return replace(view, probe=nodes, reduce=None)

    def layer_views(self, net: nn.Module, probe: Data, experiment: Experiment, **show: Any) -> LayerViews:
        """The outputs of all convolutions but the last."""
        return LayerViews(extract(net, probe, _convolutions(net)[:-1], **show))


def _convolutions(net: nn.Module) -> list[str]:
    """The names of the convolutions, in order."""
    return [f"convs.{number}" for number in range(len(unwrapped(net).convs))]  # type: ignore[arg-type]
