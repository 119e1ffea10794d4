"""The graphs that have a name: citation networks, Flickr, ogbn-arxiv, and the embedded digits.

Each is looked for as arrays (`cora/cora.npz`), then in the folders of PyTorch Geometric and OGB, then
downloaded by PyTorch Geometric. The features of the citation networks are scaled to rows of sum one, and
the citations of ogbn-arxiv go both ways, as in ReSi and most other work.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise._base.files import check_regular, reading
from likewise._base.formats.array_files import check_room, read_npy, read_npz
from likewise._base.optional import geometric
from likewise.data.address import data_source
from likewise.data.graphs import SPLITS, GraphData, nodes_of
from likewise.data.sources import planetoid
from likewise.data.sources.locations import downloading, find
from likewise.data.sources.small_images import digits

_MOST_CLASSES = 10**6
_MASKS = ("train_mask", "val_mask", "test_mask")
_CORA = (
    "theory",
    "reinforcement learning",
    "genetic algorithms",
    "neural networks",
    "probabilistic methods",
    "case based",
    "rule learning",
)
_CITESEER = ("AI", "machine learning", "information retrieval", "databases", "agents", "HCI")
_PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
_ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


@data_source(name="cora", domain="graph", splits=SPLITS)
def cora(split: str, root: str | None = None) -> GraphData:
    """2,708 papers on machine learning and who cites whom; 7 fields (Planetoid split)."""
    return nodes_of(_planetoid("Cora", root), split, name="cora", classes=_CORA)


@data_source(name="citeseer", domain="graph", splits=SPLITS)
def citeseer(split: str, root: str | None = None) -> GraphData:
    """3,327 papers in computer science and who cites whom; 6 fields (Planetoid split)."""
    return nodes_of(_planetoid("CiteSeer", root), split, name="citeseer", classes=_CITESEER)


@data_source(name="pubmed", domain="graph", splits=SPLITS)
def pubmed(split: str, root: str | None = None) -> GraphData:
    """19,717 papers on diabetes and who cites whom; 3 kinds (Planetoid split)."""
    return nodes_of(_planetoid("PubMed", root), split, name="pubmed")


@data_source(name="flickr", domain="graph", splits=SPLITS)
def flickr(split: str, root: str | None = None) -> GraphData:
    """89,250 pictures on Flickr, joined where they share properties; 7 kinds."""
    graph = _load("flickr", root, "Flickr", _flickr)
    return nodes_of(graph, split, name="flickr")


@data_source(name="ogbn-arxiv", domain="graph", splits=SPLITS)
def ogbn_arxiv(split: str, root: str | None = None) -> GraphData:
    """169,343 papers on arXiv and who cites whom; 40 subject areas (split by year)."""
    graph = _load("ogbn-arxiv", root, "arxiv", _arxiv)
    return nodes_of(graph, split, name="ogbn-arxiv")


@data_source(name="digits-graph", domain="graph", splits=SPLITS, built_in=True)
def digits_graph(split: str, root: str | None = None) -> GraphData:
    """The embedded digits as a graph: each joined to the eight it looks most like."""
    pyg = geometric("load digits-graph")
    data = digits("all")
    x, y = data.inputs[:].flatten(1), data.labels.long()
    graph = pyg.data.Data(x=x, edge_index=_neighbours(x, 8), y=y, **_masks(y))
    return nodes_of(graph, split, name="digits-graph", classes=data.classes)


def _neighbours(x: Tensor, k: int) -> Tensor:
    """Edges both ways between each row and its k nearest, sorted, without doubles."""
    distances = torch.cdist(x.double(), x.double()).fill_diagonal_(torch.inf)
    nearest = distances.topk(k, largest=False).indices
    near = torch.zeros(len(x), len(x), dtype=torch.bool).scatter_(1, nearest, True)
    return (near | near.T).nonzero().T.contiguous()


def _masks(y: Tensor, per_class: int = 20, val: int = 500, test: int = 1000) -> dict[str, Tensor]:
    """The usual split of citation networks: the first 20 of every class, then 500, then 1,000."""
    train = torch.zeros(len(y), dtype=torch.bool)
    for label in range(int(y.max()) + 1):
        train[(y == label).nonzero()[:per_class, 0]] = True
    rest = (~train).nonzero()[:, 0]
    masks = {name: torch.zeros_like(train) for name in _MASKS[1:]}
    masks["val_mask"][rest[:val]] = True
    masks["test_mask"][rest[val : val + test]] = True
    return {"train_mask": train, **masks}


def _planetoid(name: str, root: str | None) -> Any:
    pyg = geometric(f"load {name.lower()}")

    def read(folder: Path) -> Any:
        raw = folder / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        for file in (f"ind.{name.lower()}.{ending}" for ending in planetoid.PARTS):
            if not (raw / file).exists():
                pyg.io.fs.cp(f"{_PLANETOID_URL}/{file}", str(raw))
        some = raw / f"ind.{name.lower()}.allx"
        with reading(some, f"{raw} holds no whole graph: {{reason}}. Fetch it again."):
            return _graph(planetoid.read(raw, name.lower()))

    graph = _load(name.lower(), root, name, read)
    graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1)
    return graph


def _load(name: str, root: str | None, folder: str, read: Callable[[Path], Any]) -> Any:
    """The graph from arrays, from a folder a library made, or downloaded into one."""
    home = Path(geometric(f"load {name}").get_home_dir())
    file = find(f"{name}/{name}.npz", f"{name}.npz", root=root, also=[home])
    if file is not None:
        return _from_arrays(file)
    raw = find(f"{folder}/raw", f"{name}/raw", "raw", root=root, also=[home])
    with downloading(name, f"{name}/{name}.npz with x, edge_index, y, {', '.join(_MASKS)}"):
        return read(raw.parent if raw else home / folder)


def _from_arrays(file: Path) -> Any:
    """A graph from arrays; its features may be sparse: x_row, x_col, x_val, x_shape."""
    with reading(file, f"{file} holds no graph: {{reason}}. Fetch it again."):
        arrays = read_npz(file)
        if "x" not in arrays:
            shape = [int(side) for side in arrays.pop("x_shape")]
            check_room(4 * math.prod(shape), file, on_disk=0)
            x = np.zeros(shape, dtype=np.float32)
            x[arrays.pop("x_row"), arrays.pop("x_col")] = arrays.pop("x_val")
            arrays["x"] = x
        return _graph(arrays)


def _graph(arrays: dict[str, Any]) -> Any:
    """Arrays as PyTorch Geometric holds a graph."""
    nodes = len(arrays["x"])
    if arrays["x"].ndim != 2 or any(arrays[mask].shape != (nodes,) for mask in _MASKS):
        raise ValueError("its features and masks are not of one number of nodes")
    if nodes and not 0 <= arrays["y"].min() <= arrays["y"].max() < _MOST_CLASSES:
        raise ValueError(f"its labels run from {arrays['y'].min()} to {arrays['y'].max()}")
    arrays |= {mask: arrays[mask].astype(bool) for mask in _MASKS}
    tensors = {key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in arrays.items()}
    tensors |= {key: tensors[key].long() for key in ("edge_index", "y")}
    return geometric("hold a graph").data.Data(**tensors)


def _flickr(folder: Path) -> Any:
    """The files of GraphSAINT. What PyTorch Geometric makes of them is a pickle, and is not read."""
    raw = folder / "raw"
    flickr = geometric("load flickr").datasets.Flickr
    ids = {"adj_full.npz": flickr.adj_full_id, "feats.npy": flickr.feats_id}
    ids |= {"class_map.json": flickr.class_map_id, "role.json": flickr.role_id}
    for name, identifier in ids.items():
        if not (raw / name).exists():
            geometric("download flickr").data.download_google_url(identifier, str(raw), name)
    with reading(raw / "feats.npy", f"{raw} holds no whole Flickr: {{reason}}. Fetch it again."):
        for name in ids:
            check_regular(raw / name)
        x, edges = read_npy(raw / "feats.npy"), read_npz(raw / "adj_full.npz")
        counts = np.diff(edges["indptr"])
        sources = np.repeat(np.arange(len(counts)), counts)
        labels = json.loads((raw / "class_map.json").read_text(encoding="utf-8"))
        roles = json.loads((raw / "role.json").read_text(encoding="utf-8"))
        masks = {mask: np.zeros(len(x), dtype=bool) for mask in _MASKS}
        for mask, role in zip(_MASKS, ("tr", "va", "te"), strict=True):
            masks[mask][roles[role]] = True
        y = np.array([labels[str(node)] for node in range(len(x))])
        both = np.stack([sources, edges["indices"]]).astype(np.int64)
        return _graph({"x": x.astype(np.float32), "y": y, "edge_index": both, **masks})


def _arxiv(folder: Path) -> Any:
    """The files of OGB: tables of edges, features, labels, and the split by year."""
    if not (folder / "raw").is_dir():
        data = geometric("download ogbn-arxiv").data
        data.extract_zip(data.download_url(_ARXIV_URL, str(folder.parent)), str(folder.parent))
    table = folder / "raw" / "node-feat.csv.gz"
    with reading(table, f"{folder} holds no whole graph: {{reason}}. Fetch it again."):
        return _arxiv_arrays(folder / "raw", folder / "split" / "time")


def _arxiv_arrays(raw: Path, split: Path) -> Any:
    edges, y = (_table(raw / f"{file}.csv.gz", np.int64) for file in ("edge", "node-label"))
    x = _table(raw / "node-feat.csv.gz", np.float32)
    both = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    masks = {mask: np.zeros(len(x), dtype=bool) for mask in _MASKS}
    for mask, file in zip(_MASKS, ("train", "valid", "test"), strict=True):
        masks[mask][_table(split / f"{file}.csv.gz", np.int64)[:, 0]] = True
    return _graph({"x": x, "y": y[:, 0], "edge_index": both.T, **masks})


def _table(path: Path, kind: Any) -> Array:
    with reading(path, f"{path} is no whole table of numbers: {{reason}}. Fetch it again."):
        return np.loadtxt(path, delimiter=",", dtype=kind, ndmin=2)
