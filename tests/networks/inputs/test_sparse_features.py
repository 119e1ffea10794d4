"""First layers that look for zeros: the same answers and gradients as PyTorch Geometric's own layers."""

import pytest
import torch
from torch import nn

import likewise

geometric = pytest.importorskip("torch_geometric")
KINDS = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}


def graph(share, nodes=300, features=500):
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, features, generator=draw, dtype=torch.float64)
    x[torch.rand(nodes, features, generator=draw) >= share] = 0
    edges = torch.randint(0, nodes - 20, (2, 900), generator=draw)  # the last nodes have no neighbours
    return x, edges


def twins(name):
    """A network of the zoo, and PyTorch Geometric's own with the same weights."""
    ours = likewise.network(f"zoo:{name}", features=500, classes=4, width=16, depth=2, seed=0, untrained=True)
    options = {"heads": 8, "act": "elu", "dropout": 0.6} if name == "gat" else {"dropout": 0.5}
    kind = getattr(geometric.nn.models, KINDS[name])
    theirs = kind(in_channels=500, out_channels=4, hidden_channels=16, num_layers=2, norm=None, **options)
    theirs.load_state_dict(ours.state_dict())
    return ours.double().eval(), theirs.double().eval()


@pytest.mark.parametrize("share", [0.02, 0.8])
@pytest.mark.parametrize("name", KINDS)
def test_answers_and_gradients_are_those_of_the_dense_layers(name, share):
    x, edges = graph(share)
    answers, gradients = [], []
    for net in twins(name):
        answers.append(net(x, edges))
        answers[-1].square().sum().backward()
        gradients.append({key: value.grad for key, value in net.named_parameters()})
    torch.testing.assert_close(*answers, rtol=1e-10, atol=1e-12)
    assert gradients[0].keys() == gradients[1].keys()
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][key], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", KINDS)
def test_a_sparse_first_layer_starts_from_the_same_weights_and_is_reset(name):
    ours, _ = twins(name)
    torch.manual_seed(3)
    ours.reset_parameters()
    before = {key: value.clone() for key, value in ours.state_dict().items()}
    torch.manual_seed(3)
    ours.reset_parameters()
    assert all(torch.equal(before[key], value) for key, value in ours.state_dict().items())


def test_features_that_were_changed_in_place_are_read_anew():
    x, edges = graph(0.02)
    ours, theirs = twins("gcn")
    ours(x, edges)
    x[:, :10] = 1.5
    torch.testing.assert_close(ours(x, edges), theirs(x, edges), rtol=1e-10, atol=1e-12)


def test_the_gradient_of_features_is_had_where_it_is_asked_for():
    x, edges = graph(0.02)
    ours, theirs = twins("sage")
    found = []
    for net in (ours, theirs):
        leaf = x.clone().requires_grad_()
        net(leaf, edges).sum().backward()
        found.append(leaf.grad)
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-11)


def test_a_layer_of_pytorch_geometric_stays_its_own_behind_the_first():
    net = likewise.network("zoo:sage", features=500, classes=4, depth=3, seed=0, untrained=True)
    assert type(net.convs[1]) is geometric.nn.SAGEConv
    assert isinstance(net.convs[0], nn.Module)
    assert set(net.state_dict()) >= {"convs.0.lin_l.weight", "convs.0.lin_l.bias", "convs.0.lin_r.weight"}
