"""Graphs by address, graphs of one's own, and the files they are read from."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from likewise._base.optional import geometric
from likewise.data import dataset
from likewise.data.graphs import nodes_of
from likewise.data.sources import planetoid
from likewise.errors import InputError, MissingDataError, MissingDependencyError
from tests.conftest import data_root
from tests.helpers import sentence as refusal

if find_spec("torch_geometric") is None:
    pytest.skip("torch_geometric is not installed", allow_module_level=True)
pyg = geometric("test graphs")


def ring(n: int = 6, **parts: Any) -> Any:
    """A graph of n nodes in a ring, two classes in turn."""
    a = torch.arange(n)
    edges = torch.cat([torch.stack([a, (a + 1) % n]), torch.stack([(a + 1) % n, a])], dim=1)
    graph = pyg.data.Data(x=torch.eye(n), edge_index=edges, y=a % 2, test_mask=a < 4)
    return graph.update(parts)


def test_the_digits_graph_joins_each_digit_to_the_eight_nearest_both_ways() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    graph = dataset("digits-graph").graph
    expected = neighbors.kneighbors_graph(graph.x.numpy(), 8).astype(bool)
    expected = (expected + expected.T).tocoo()
    found = set(map(tuple, graph.edge_index.T.tolist()))
    wanted = set(zip(expected.row.tolist(), expected.col.tolist(), strict=True))
    # Pixels are whole sixteenths, so a few digits have two neighbours equally far in eighth place.
    assert len(found ^ wanted) < 0.01 * len(wanted)
    assert found == {(b, a) for a, b in found}
    assert all(a != b for a, b in found)


def test_the_splits_of_the_digits_graph_share_no_node() -> None:
    splits = {name: dataset(f"digits-graph:{name}") for name in ("train", "val", "test")}
    nodes = [set(split.inputs.index.tolist()) for split in splits.values()]
    assert [len(part) for part in nodes] == [200, 500, 1000]
    assert len(set.union(*nodes)) == 1700
    assert splits["train"].labels.bincount().tolist() == [20] * 10
    assert len(dataset("digits-graph:all")) == 1797


def test_a_batch_is_the_whole_graph_whatever_the_batch_size() -> None:
    data = dataset("digits-graph:val[:7]")
    ((batch, labels),) = list(data.batches(2))
    assert batch["x"].shape == (1797, 64)
    assert torch.equal(batch.rows(data.graph.y), labels)
    assert len(labels) == len(data) == 7
    assert data.name == "digits-graph:val[:7]"


def test_a_batch_keeps_its_nodes_when_it_moves() -> None:
    ((batch, labels),) = list(nodes_of(ring(), "test", name="ring").batches(device="meta"))
    assert batch.nodes.device.type == batch["x"].device.type == labels.device.type == "meta"


def test_the_probe_tells_nodes_edges_and_features_apart() -> None:
    graph, more = ring(), ring()
    more.x = more.x * 2
    fewer = ring()
    fewer.edge_index = fewer.edge_index[:, 1:]
    whole = nodes_of(graph, "test", name="ring")
    others = [whole[:3], whole[[1, 0, 2, 3]], nodes_of(more, "test", name="ring")]
    others.append(nodes_of(fewer, "test", name="ring"))
    probes = {whole.probe, *(other.probe for other in others)}
    assert len(probes) == 5
    assert nodes_of(ring(), "test", name="another name").probe == whole.probe


def test_a_graph_of_ones_own_is_data_too() -> None:
    data = nodes_of(ring(), "test", name="ring", classes=("even", "odd"))
    assert repr(data) == "GraphData('ring:test', n=4, classes=2)"
    assert data.labels.tolist() == [0, 1, 0, 1]


BAD = {
    "the graph 'ring' has no val_mask. Set it, one truth value per node, or take 'all'.": {},
    "the graph 'ring' has no y. Give node features x (nodes, features), edge_index (2, edges) and labels y (nodes,).": {
        "y": None
    },
    "the edge_index of 'ring' has shape (12, 2), torch.int64. Give whole numbers (2, edges): sources above targets.": {
        "edge_index": ring().edge_index.T
    },
    "the edges of 'ring' name nodes 0 to 6, but it has 6 nodes. Nodes count from 0 to 5.": {
        "edge_index": torch.tensor([[0, 6], [6, 0]])
    },
    "the labels of 'ring' must be 6 whole numbers from 0, got int64 of shape (6, 1). Give one class index per input.": {
        "y": torch.zeros(6, 1, dtype=torch.long)
    },
}


@pytest.mark.parametrize(("sentence", "parts"), BAD.items(), ids=["mask", "y", "T", "range", "2d"])
def test_a_graph_that_cannot_be_used_is_refused(sentence: str, parts: dict[str, Any]) -> None:
    assert refusal(InputError, nodes_of, ring(**parts), "val", name="ring") == sentence


def test_labels_beyond_the_classes_are_refused() -> None:
    assert refusal(InputError, nodes_of, ring(y=torch.full((6,), 2)), "test", name="ring", classes=("even", "odd")) == (
        "the labels of 'ring:test' must be 4 whole numbers from 0 to 1, got numbers from 2 to 2. "
        "Give one class index per input."
    )


def test_an_unknown_split_is_refused_with_the_nearest() -> None:
    assert refusal(InputError, dataset, "digits-graph:tets") == (
        "digits-graph has no split 'tets', asked for by 'digits-graph:tets'. Did you mean 'test'? "
        "It has test, train, val, all."
    )


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and a place for downloads that cannot be written: a file."""
    (tmp_path / "file").write_text("")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PYG_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["pubmed", "flickr", "ogbn-arxiv"])
def test_a_graph_that_is_nowhere_says_what_to_put_where(name: str, nowhere: Path) -> None:
    with pytest.raises(MissingDataError) as error:
        dataset(name)
    reason = str(error.value.__cause__)
    assert str(nowhere / "file") in reason
    assert str(error.value) == (
        f"{name} was not found in {nowhere / 'data'} or {nowhere / 'likewise'} and could not be "
        f"downloaded ({reason}). Put "
        f"{name}/{name}.npz with x, edge_index, y, train_mask, val_mask, test_mask there, or set "
        "LIKEWISE_DATA to the folder that holds it."
    )


def test_without_pytorch_geometric_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch_geometric", None)
    assert refusal(MissingDependencyError, dataset, "digits-graph") == (
        "to load digits-graph, torch_geometric is needed: pip install 'likewise[graph]'."
    )


def test_flickr_is_read_from_the_files_of_pytorch_geometric(nowhere: Path) -> None:
    raw = nowhere / "data" / "flickr" / "raw"
    raw.mkdir(parents=True)
    edges = scipy.sparse.csr_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    scipy.sparse.save_npz(raw / "adj_full.npz", edges)
    np.save(raw / "feats.npy", np.arange(6.0).reshape(3, 2))
    (raw / "class_map.json").write_text(json.dumps({"0": 1, "1": 0, "2": 1}))
    (raw / "role.json").write_text(json.dumps({"tr": [2], "va": [1], "te": [0]}))
    data = dataset("flickr:train")
    assert data.inputs.index.tolist() == [2]
    assert data.labels.tolist() == [1]
    assert data.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_arxiv_is_read_from_the_files_of_ogb_with_citations_both_ways(nowhere: Path) -> None:
    folder = nowhere / "data" / "ogbn-arxiv"
    tables = {
        "raw/edge": [[0, 1], [2, 1]],
        "raw/node-feat": [[0.5, 1.5], [2.0, -1.0], [0.0, 0.25]],
        "raw/node-label": [[3], [0], [1]],
        "split/time/train": [[1]],
        "split/time/valid": [[2]],
        "split/time/test": [[0]],
    }
    for name, rows in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(folder / f"{name}.csv.gz", np.array(rows), delimiter=",", fmt="%g")
    data = dataset("ogbn-arxiv:val")
    assert data.graph.x.tolist() == tables["raw/node-feat"]
    assert data.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (data.inputs.index.tolist(), data.labels.tolist()) == ([2], [1])


def write_planetoid(raw: Path) -> None:
    """Files in the form of Planetoid's Citeseer: 600 nodes, two test nodes without features."""
    chance = np.random.default_rng(0)
    test = np.setdiff1d(np.arange(560, 600), [570, 585])
    features = scipy.sparse.random(598, 12, density=0.3, random_state=0, format="csr")
    labels = np.eye(4, dtype=np.int64)[chance.integers(4, size=598)]
    graph = defaultdict(list)
    for a, b in chance.integers(600, size=(900, 2)).tolist():
        graph[a].append(b)
        graph[b].append(a)
    parts = {"x": features[:20], "tx": features[560:], "allx": features[:560], "graph": graph}
    parts |= {"y": labels[:20], "ty": labels[560:], "ally": labels[:560]}
    raw.mkdir(parents=True)
    for name, part in parts.items():
        (raw / f"ind.citeseer.{name}").write_bytes(pickle.dumps(part, protocol=2))
    shuffled = chance.permutation(test)
    (raw / "ind.citeseer.test.index").write_text("".join(f"{node}\n" for node in shuffled))


def test_planetoid_files_are_read_as_pytorch_geometric_reads_them(tmp_path: Path) -> None:
    write_planetoid(tmp_path / "CiteSeer" / "raw")
    found = planetoid.read(tmp_path / "CiteSeer" / "raw", "citeseer")
    expected = pyg.datasets.Planetoid(str(tmp_path), "CiteSeer")[0]
    edges = found.pop("edge_index").T.tolist()
    assert edges == sorted(expected.edge_index.T.tolist())
    for key, values in found.items():
        assert torch.equal(torch.from_numpy(values), expected[key]), key
    scaled = dataset(f"citeseer:{tmp_path}:all").graph.x.sum(dim=1)
    assert scaled.max() <= 1 + 1e-6


class Harmful:
    def __reduce__(self) -> Any:
        return eval, ("print('run')",)


def test_a_planetoid_file_that_would_run_something_is_refused(tmp_path: Path) -> None:
    write_planetoid(tmp_path / "raw")
    file = tmp_path / "raw" / "ind.citeseer.graph"
    file.write_bytes(pickle.dumps(Harmful(), protocol=2))
    assert refusal(InputError, planetoid.read, tmp_path / "raw", "citeseer") == (
        f"{file} is not a file of Planetoid: it asks for __builtin__.eval. Fetch it again from its source."
    )


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_the_real_citation_networks_have_their_published_counts(name: str, real_data: Path) -> None:
    counts = json.loads(data_root(name, "counts.json").read_text())
    data = dataset(f"{name}:all")
    graph = data.graph
    assert graph.x.shape == (counts["nodes"], counts["feat"])
    assert graph.edge_index.shape == (2, counts["edges_directed"])
    assert data.labels.bincount().tolist() == counts["class_counts"]
    assert len(data.classes) == counts["classes"]
    sizes = [len(dataset(f"{name}:{split}")) for split in ("train", "val", "test")]
    assert sizes == [counts["train"], counts["val"], counts["test"]]
    assert int((graph.x > 0).sum()) == counts["nnz"]
    rows = graph.x.sum(dim=1)
    assert torch.allclose(rows[rows > 0], torch.ones(()), atol=1e-5)
