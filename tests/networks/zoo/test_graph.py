"""Graph networks: PyTorch Geometric's own, with ReSi's settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import likewise
from likewise._base.optional import geometric
from likewise.errors import InputError, UnknownNameError
from likewise.networks import evaluate, head, network, train
from likewise.networks.zoo.graph import RESI, DropEdges, resi
from tests.networks.helpers import refused

if find_spec("torch_geometric") is None:
    pytest.skip("torch_geometric is not installed", allow_module_level=True)


pyg = geometric("test graph networks")


KINDS = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}


@pytest.mark.parametrize("name", KINDS)
def test_a_training_ends_where_a_bare_loop_over_the_librarys_own_model_ends(name: str) -> None:
    data = likewise.dataset("digits-graph:train")
    options = {"width": 16, "dropout": 0.0}
    net = network(f"zoo:{name}", data=data, **options)
    depth, act = (2, "elu") if name == "gat" else (3, "relu")
    more = {"heads": 8} if name == "gat" else {}
    bare = getattr(pyg.nn, KINDS[name])(64, 16, depth, 10, act=act, **more)
    bare.load_state_dict(net.state_dict())
    adam = {"lr": 0.01, "weight_decay": 5e-4}
    train(net, data, epochs=3, optimiser="adam", schedule="constant", **adam)
    optimiser = torch.optim.Adam(bare.parameters(), **adam)
    graph = data.graph
    for _ in range(3):
        optimiser.zero_grad()
        answers = bare(graph.x, graph.edge_index)[graph.train_mask]
        functional.cross_entropy(answers, graph.y[graph.train_mask]).backward()
        optimiser.step()
    for key, value in bare.state_dict().items():
        assert torch.equal(value, net.state_dict()[key]), key


@pytest.mark.parametrize("name", KINDS)
def test_each_learns_the_digits_from_twenty_of_a_kind(name: str) -> None:
    settings = {"optimiser": "adam", "lr": 0.01, "schedule": "constant"}
    done = train(f"zoo:{name}", "digits-graph", epochs=40, **settings)
    _, accuracy = evaluate(done.net, likewise.dataset("digits-graph:test"))
    assert accuracy > 0.85


@pytest.mark.parametrize("name", KINDS)
def test_the_head_is_what_happens_to_a_node_among_its_like(name: str) -> None:
    net = network(f"zoo:{name}", features=4, classes=3, width=16, seed=1)
    found = head(net)
    assert found.weight.shape == (3, 16)
    assert found.layer_name == f"convs.{len(net.convs) - 1}"
    a = torch.arange(5)  # five equal nodes in a ring
    edges = torch.stack([torch.cat([a, a]), torch.cat([(a + 1) % 5, (a - 1) % 5])])
    rows = torch.randn(1, 16, generator=torch.Generator().manual_seed(0)).expand(5, 16)
    expected = rows @ found.weight.T + found.bias
    assert torch.allclose(net.convs[-1](rows, edges), expected, atol=1e-5)


def test_ones_own_model_of_the_library_has_a_head_too() -> None:
    jumping = pyg.nn.GCN(4, 8, 2, 3, jk="cat")
    assert head(jumping).layer_name == "lin"
    assert head(pyg.nn.GCN(4, 8, 2, 3)).weight.shape == (3, 8)


def test_a_view_of_a_graph_network_shows_the_nodes_of_the_split() -> None:
    data = likewise.dataset("digits-graph:test[:50]")
    net = network("zoo:gcn", data=data)
    seen: list[torch.Tensor] = []
    net.convs[1].register_forward_hook(lambda *call: seen.append(call[2].detach()))
    net(data.graph.x, data.graph.edge_index)
    view = likewise.extract(net, data, layers="convs.1")
    assert torch.equal(view.values, seen[0][data.inputs.index].double())
    assert view.outputs.labels.tolist() == data.labels.tolist()


@pytest.mark.parametrize(("variant", "norm"), [(None, "Identity"), ("resi", "BatchNorm")])
@pytest.mark.parametrize(("name", "graph"), RESI)
def test_resis_settings_build_what_they_say(name: str, graph: str, variant: str | None, norm: str) -> None:
    preset = resi(name, graph, variant)
    net = network(f"zoo:{name}", features=5, classes=3, **preset.network)
    assert net.hidden_channels == preset.network["width"]
    assert net.num_layers == preset.network["depth"]
    assert {type(part).__name__ for part in net.norms[:-1]} == {norm}


def test_resis_cora_settings_are_the_papers() -> None:
    """Table 4 of the paper: layers, activation, dropout, learning rate, decay, epochs."""
    table = {
        "gcn": (3, "relu", 0.5, 0.01, 0.0, 200),
        "sage": (3, "relu", 0.5, 0.005, 0.0005, 200),
        "gat": (2, "elu", 0.6, 0.005, 0.0005, 200),
    }
    for name, row in table.items():
        net, training = resi(name, "cora").network, resi(name, "cora").training
        found = (net["depth"], net["activation"], net["dropout"])
        assert (*found, training["lr"], training["weight_decay"], training["epochs"]) == row


def test_dropped_edges_are_a_share_drawn_anew_each_time_and_the_nodes_stay() -> None:
    ((batch, _),) = likewise.dataset("digits-graph:val[:9]").batches()
    chance = torch.Generator().manual_seed(0)
    once, twice = DropEdges(0.2)(batch, chance), DropEdges(0.2)(batch, chance)
    whole = batch["edge_index"].shape[1]
    share = once["edge_index"].shape[1] / whole
    assert abs(share - 0.8) < 4 * (0.8 * 0.2 / whole) ** 0.5  # four deviations of a binomial share
    assert set(map(tuple, once["edge_index"].T.tolist())) < set(map(tuple, batch["edge_index"].T.tolist()))
    assert once["edge_index"].shape != twice["edge_index"].shape
    assert torch.equal(once.nodes, batch.nodes)


def test_a_training_with_dropped_edges_ends_elsewhere_and_comes_back_to_the_same() -> None:
    def ends(*augment: DropEdges) -> torch.Tensor:
        settings = {"optimiser": "adam", "lr": 0.01, "augment": augment}
        return head(train("zoo:gcn", "digits-graph", epochs=2, **settings).net).weight

    assert torch.equal(ends(DropEdges(0.5)), ends(DropEdges(0.5)))
    assert not torch.equal(ends(DropEdges(0.5)), ends())


@pytest.mark.parametrize(
    ("act", "kind", "sentence"),
    [
        (lambda: DropEdges(1.0), InputError, "DropEdges was given p = 1.0. Give a share from 0 to below 1."),
        (
            lambda: resi("gcn", "cora", "code"),
            UnknownNameError,
            "ReSi's settings have no variant 'code'; they have 'resi'.",
        ),
        (
            lambda: resi("gcn", "coro"),
            UnknownNameError,
            "ReSi has no settings for gcn on coro. Did you mean 'gcn on cora'? It has gcn on cora, sage on cora, gat "
            "on cora, gcn on flickr, sage on flickr, gat on flickr, gcn on ogbn-arxiv, sage on ogbn-arxiv, gat on "
            "ogbn-arxiv.",
        ),
        (
            lambda: network("zoo:gat", width=20),
            InputError,
            "8 heads cannot share a width of 20. Choose a width that is a multiple of 8.",
        ),
        (lambda: network("zoo:sage", depth=0), InputError, "depth is 0. Give at least 1."),
        (
            lambda: evaluate(network("zoo:gcn"), likewise.dataset("digits-graph")),
            InputError,
            "GCN was built for 1433 features per node and was shown 64. Build it with features=64.",
        ),
        (
            lambda: evaluate(network("zoo:gcn"), likewise.dataset("sentences[:3]")),
            InputError,
            "GCN takes graphs, and was shown text. Use a text network, such as zoo:minilm.",
        ),
    ],
    ids=["all edges", "variant", "data", "heads", "depth", "features", "text"],
)
def test_what_cannot_be_built_or_shown_is_refused(act: Callable[[], Any], kind: type[Exception], sentence: str) -> None:
    assert refused(act, kind) == sentence


@pytest.mark.parametrize(
    ("address", "takes", "data", "holds", "example"),
    [
        ("zoo:gcn", "graph", "digits", "image", "zoo:resnet20"),
        ("zoo:lenet", "image", "sentences", "text", "zoo:bert-tiny"),
        ("zoo:bert-tiny", "text", "digits-graph", "graph", "zoo:gcn"),
    ],
)
def test_data_of_another_kind_is_refused(address: str, takes: str, data: str, holds: str, example: str) -> None:
    assert refused(lambda: train(address, data, epochs=1)) == (
        f"{address} takes {takes} inputs and '{data}:train' holds {holds} inputs. Choose a network "
        f"for these, such as {example}."
    )


def test_gcn_with_resis_settings_learns_the_real_cora(real_data: Path) -> None:
    preset = resi("gcn", "cora")
    net = network("zoo:gcn", **preset.network)
    done = train(net, "cora", **preset.training)
    _, accuracy = evaluate(done.net, likewise.dataset("cora"))
    assert 0.74 < accuracy < 0.83  # the commonest class has 0.32
