"""Every kind of file that is read: how an intact one is written, and what reading it gives."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from safetensors.torch import save_file

import likewise
from likewise._base.optional import prepare_torchvision
from likewise.classes import ClassSimilarity, Inspector
from likewise.cli._words import labels_of
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.networks import network, save, train
from likewise.views.array_files import read_arrays

_X = np.random.default_rng(0).normal(size=(12, 5))
_MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class FileKind:
    """Files of one kind: written into a folder, and read from it as something to compare.

    `checked` says that the format carries a checksum over all that is read.
    """

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    checked: bool = False
    only: str = "*"
    folder: bool = False  # read as one: nothing outside of it is opened, whatever links lead there

    def damages(self, path: Path) -> bool:
        """Whether this file is one to damage."""
        return path.match(self.only)


def _write_samples(folder: Path) -> None:
    for name in "ab":
        (folder / name).mkdir()
        lines = [{"doc_id": i, "metrics": ["acc"], "acc": (i + len(name)) % 2} for i in range(8)]
        (folder / name / "samples_arc.jsonl").write_text("\n".join(map(json.dumps, lines)))


def _read_samples(folder: Path) -> Any:
    return str(likewise.language.paired_samples(folder / "a", folder / "b"))


def _write_recording(folder: Path) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3))
    likewise.record(net, torch.from_numpy(_X)[:, :4], name="old", progress=False).save(folder / "old")


def _read_recording(folder: Path) -> Any:
    recording = likewise.Recording.load(folder / "old.likewise")
    layers = {name: layer.values for name, layer in recording.layers.items()}
    return layers | {f"weight {name}": weight.values for name, weight in recording.weights.items()} | recording.answers


def _write_gguf(folder: Path) -> None:
    from tests.language.models import tiny_gguf

    tiny_gguf(folder / "a.gguf")


def _write_shards(folder: Path) -> None:
    from tests.language.models import causal, tokenizer

    causal().save_pretrained(folder, max_shard_size="10KB")
    tokenizer().save_pretrained(folder)


def _read_shards(folder: Path) -> Any:
    from tests.language.models import TEXTS

    address = f"hf:{folder}"
    said = likewise.language.answers(address, address, TEXTS[:4], progress=False, blockwise=True)
    return str(said)


def _arrays(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        found = read_arrays([str(folder / name)])
        return {key: np.asarray(likewise.views.Activations(value)) for key, value in found.items()}

    return read


def _state(net: torch.nn.Module) -> dict[str, Any]:
    return {key: value.numpy() for key, value in net.state_dict().items()}


def _weights(name: str, typed: str = "") -> Callable[[Path], Any]:
    return lambda folder: _state(network(f"{typed}{folder / name}"))


def _write_weights(folder: Path, name: str, **how: Any) -> None:
    torch.save(network("zoo:mlp,size=4,hidden=6").state_dict(), folder / name, **how)


def _data(address: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        data = likewise.dataset(address.format(folder=folder))
        content = b"".join(_content(data.inputs[:]) + _content(getattr(data, "texts", ())))
        return content, None if data.labels is None else data.labels.tolist(), data.classes

    return read


def _content(inputs: Any) -> list[bytes]:
    if isinstance(inputs, dict):
        nodes = getattr(inputs, "nodes", None)
        extra = [] if nodes is None else [nodes]
        return [value.numpy().tobytes() for value in [*inputs.values(), *extra]]
    if isinstance(inputs, torch.Tensor):
        return [inputs.numpy().tobytes()]
    return [repr(text).encode() for text in inputs]


def _matrix() -> SimilarityMatrix:
    values = np.cov(_X) + np.eye(12)
    return SimilarityMatrix([f"n{i}" for i in range(12)], values, "cka", "more alike", about={"seed": 3})


def _read_matrix(matrix: SimilarityMatrix) -> Any:
    facts = matrix.measure, matrix.larger_is, dict(matrix.about), dict(matrix.reasons)
    return matrix.names, matrix.values, facts


def _layers(path: Path) -> Any:
    found = LayerMatrix.load(path)
    return found.a, found.b, list(found.rows), list(found.columns), found.values, found.measure


def _write_layers(folder: Path) -> None:
    rows, columns = [f"r{i}" for i in range(12)], [f"c{i}" for i in range(5)]
    LayerMatrix("a", "b", rows, columns, _X, "cka", {"probe": "x"}).save(folder / "m.safetensors")


def _classes(path: Path) -> Any:
    found = ClassSimilarity.load(path)
    return found.values, found.classes, found.kind, found.split


def _inspected(folder: Path) -> Inspector:
    return Inspector(["cat", "dog", "ship"], out=folder)


def _write_inspection(folder: Path) -> None:
    inspector = _inspected(folder)
    for _ in range(2):
        inspector.update(np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1]))
        inspector.report([[1.0, 0.2], [0.9, 0.3], [-1.0, 0.0]])


def _inspection(folder: Path) -> Any:
    inspector = _inspected(folder)
    numbers = sorted(inspector.records.reports)
    kept = {n: {k: m.values for k, m in inspector.matrices(n).items()} for n in numbers}
    return numbers, [sorted(inspector.records.reports[n].items()) for n in numbers], kept


def _trained(folder: Path, epochs: int) -> Any:
    done = train("zoo:mlp,hidden=4", "digits:train[:40]", epochs=epochs, out=folder, progress=False)
    history = [{k: v for k, v in record.items() if k != "seconds"} for record in done.history]
    return _state(done.net), history


def _write_images(folder: Path, ending: str) -> None:
    from PIL import Image

    for label, name in enumerate(("cat", "dog")):
        (folder / name).mkdir()
        pixels = np.random.default_rng(label).integers(0, 255, (12, 10, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name / f"1{ending}")


def _write_text(folder: Path) -> None:
    lines = [f"a line of text, number {i}\t{i % 2}" for i in range(200)]
    table = "\n".join(["sentence\tlabel", *lines]).encode()
    (folder / "dev.tsv.gz").write_bytes(gzip.compress(table, mtime=0))


def _frame() -> pd.DataFrame:
    rows = [f'line "{i}", of text' for i in range(60)]
    return pd.DataFrame({"text": rows, "label": ["good", "bad"] * 30})


def _write_saved(folder: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    datasets.Dataset.from_pandas(_frame()).save_to_disk(folder)


def _write_captions(folder: Path) -> None:
    _write_images(folder, ".png")
    (folder / "metadata.csv").write_text("file_name,text\ncat/1.png,a cat\ndog/1.png,a dog\n")


def _graph() -> dict[str, Any]:
    chance = np.random.default_rng(0)
    masks = {mask: np.arange(30) % 3 == i for i, mask in enumerate(_MASKS)}
    edges = chance.integers(0, 30, (2, 60))
    x = (chance.random((30, 8)) < 0.4).astype(np.float32)
    return {"x": x, "edge_index": edges, "y": np.arange(30) % 7, **masks}


def _write_planetoid(folder: Path) -> None:
    chance, raw = np.random.default_rng(0), folder / "raw"
    raw.mkdir()
    test = np.arange(560, 600)
    x = (chance.random((600, 6)) < 0.3).astype(np.float32)
    y = np.eye(7, dtype=np.int32)[chance.integers(0, 7, 600)]
    graph = defaultdict(list, {i: [int(j) for j in chance.integers(0, 600, 3)] for i in range(600)})
    parts = {"x": x[:20], "allx": x[:560], "tx": x[test]}
    dumped: dict[str, Any] = {k: scipy.sparse.csr_matrix(v) for k, v in parts.items()}
    dumped |= {"y": y[:20], "ally": y[:560], "ty": y[test], "graph": graph}
    for name, part in dumped.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(part, protocol=2))
    shuffled = chance.permutation(test)
    (raw / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in shuffled))


def _write_arxiv(folder: Path) -> None:
    graph = _graph()
    tables = {"raw/edge": graph["edge_index"].T, "raw/node-feat": graph["x"]}
    tables |= {"raw/node-label": graph["y"][:, None]}
    for mask, part in zip(_MASKS, ("train", "valid", "test"), strict=True):
        tables[f"split/time/{part}"] = graph[mask].nonzero()[0][:, None]
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(",".join(f"{value:g}" for value in row) for row in rows)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _write_flickr(folder: Path) -> None:
    graph, raw = _graph(), folder / "raw"
    raw.mkdir()
    ones = np.ones(graph["edge_index"].shape[1])
    edges = scipy.sparse.csr_matrix((ones, tuple(graph["edge_index"])), shape=(30, 30))
    parts = {"data": edges.data, "indices": edges.indices, "indptr": edges.indptr}
    np.savez(raw / "adj_full.npz", shape=np.array(edges.shape), **parts)
    np.save(raw / "feats.npy", graph["x"])
    labels = {str(i): int(label) for i, label in enumerate(graph["y"])}
    (raw / "class_map.json").write_text(json.dumps(labels))
    names = zip(("tr", "va", "te"), _MASKS, strict=True)
    roles = {name: graph[mask].nonzero()[0].tolist() for name, mask in names}
    (raw / "role.json").write_text(json.dumps(roles))


def _write_mnist(folder: Path) -> None:
    chance = np.random.default_rng(0)
    images, labels = chance.integers(0, 255, (9, 28, 28), dtype=np.uint8), np.arange(9)
    np.savez_compressed(folder / "mnist.npz", x_test=images, y_test=labels)


def _write_cifar(folder: Path) -> None:
    chance = np.random.default_rng(0)
    images = chance.integers(0, 255, (9, 3, 32, 32), dtype=np.uint8)
    np.savez_compressed(folder / "test.npz", residual=images, y=np.arange(9))


def _write_binary(folder: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (9, 3074), dtype=np.uint8)
    pixels[:, :2] %= 20
    pixels.tofile(folder / "test.bin")


def _write_tiny(folder: Path) -> None:
    wnids = ["n02123045", "n02084071"]
    (folder / "wnids.txt").write_text("\n".join(wnids))
    (folder / "words.txt").write_text("n02123045\ttabby, tabby cat\nn02084071\tdog\n")
    (folder / "val" / "images").mkdir(parents=True)
    (folder / "val" / "val_annotations.txt").write_text(
        "".join(f"{i}.png\t{wnid}\t0\t0\n" for i, wnid in enumerate(wnids))
    )
    from PIL import Image

    for i in range(2):
        pixels = np.random.default_rng(i).integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "val" / "images" / f"{i}.png")


def _write_transformers(folder: Path) -> None:
    prepare_torchvision()
    import transformers

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_labels": 3}
    more = {"intermediate_size": 8, "image_size": 8, "patch_size": 4}
    config = transformers.ViTConfig(**sizes, **more)
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": 8, "width": 8}).save_pretrained(folder)


def _write_beside(folder: Path) -> None:
    save_file(network("zoo:mlp,size=4,hidden=6").state_dict(), folder / "a.safetensors")
    listed = {"normalisation": {"mean": [0.1] * 3, "std": [1.5] * 3}, "models": {"a": {}}}
    (folder / "models.json").write_text(json.dumps(listed))


def _stored(folder: Path) -> Any:
    views = {"a": _X, "b": _X[:, ::-1] ** 2, "c": np.abs(_X)}
    found = likewise.compare(views, "cka", store=folder / "store")
    net = network("zoo:mlp,size=8,channels=1,hidden=6")
    view = likewise.extract(net, likewise.dataset("digits:test[:20]"), store=folder / "store")
    return found.values, np.asarray(view)


_MLP = "zoo:mlp,size=4,hidden=6@"
KINDS = (
    FileKind("npy", lambda f: np.save(f / "a.npy", _X), _arrays("a.npy")),
    FileKind("samples of a benchmark", _write_samples, _read_samples),
    FileKind("recording", _write_recording, _read_recording, True),
    FileKind("npz", lambda f: np.savez(f / "a.npz", a=_X, b=2 * _X), _arrays("a.npz"), True),
    FileKind("npz, compressed", lambda f: np.savez_compressed(f / "a.npz", a=_X, b=2 * _X), _arrays("a.npz"), True),
    FileKind("pt", lambda f: torch.save(torch.from_numpy(_X), f / "a.pt"), _arrays("a.pt"), True),
    FileKind(
        "pt, old",
        lambda f: torch.save({"a": torch.from_numpy(_X)}, f / "a.th", _use_new_zipfile_serialization=False),
        _arrays("a.th"),
    ),
    FileKind(
        "safetensors",
        lambda f: save_file({"a": torch.from_numpy(_X)}, f / "a.safetensors"),
        _arrays("a.safetensors"),
    ),
    FileKind(
        "weights, ours",
        lambda f: save(network("zoo:mlp,size=4,hidden=6"), f / "w.safetensors"),
        _weights("w.safetensors"),
        True,
    ),
    FileKind("weights, pth", lambda f: _write_weights(f, "w.pth"), _weights("w.pth", _MLP), True),
    FileKind(
        "weights, th",
        lambda f: _write_weights(f, "w.th", _use_new_zipfile_serialization=False),
        _weights("w.th", _MLP),
    ),
    FileKind("weights, listed", _write_beside, _weights("a.safetensors", _MLP)),
    FileKind("gguf", _write_gguf, _weights("a.gguf,part=lm", "gguf:")),
    FileKind("shards", _write_shards, _read_shards),
    FileKind("transformers", _write_transformers, _weights("", "hf:")),
    FileKind(
        "similarity matrix",
        lambda f: _matrix().save(f / "m.safetensors"),
        lambda f: _read_matrix(SimilarityMatrix.load(f / "m.safetensors")),
        True,
    ),
    FileKind(
        "similarity matrix, npz",
        lambda f: _matrix().save(f / "m.npz"),
        lambda f: _read_matrix(SimilarityMatrix.load(f / "m.npz")),
        True,
    ),
    FileKind(
        "comparison",
        lambda f: Comparison({"cka": _matrix()}).save(f),
        lambda f: _read_matrix(Comparison.load(f)["cka"]),
        True,
        folder=True,
    ),
    FileKind("layer matrix", _write_layers, lambda f: _layers(f / "m.safetensors"), True),
    FileKind(
        "class similarity",
        lambda f: ClassSimilarity(np.corrcoef(_X)).save(f / "c.safetensors"),
        lambda f: _classes(f / "c.safetensors"),
        True,
    ),
    FileKind("inspection", _write_inspection, _inspection, True, "*.safetensors", folder=True),
    FileKind("training", lambda f: _trained(f, 1), lambda f: _trained(f, 1), True, "checkpoint*", folder=True),
    FileKind("store", _stored, _stored, True, folder=True),
    FileKind("text", _write_text, _data("sst2:{folder}/:dev"), True),
    FileKind("csv", lambda f: _frame().to_csv(f / "a.csv", index=False), _data("{folder}/a.csv")),
    FileKind("csv.gz", lambda f: _frame().to_csv(f / "a.csv.gz", index=False), _data("{folder}/a.csv.gz"), True),
    FileKind("tsv", lambda f: _frame().to_csv(f / "a.tsv", sep="\t", index=False), _data("{folder}/a.tsv")),
    FileKind(
        "jsonl", lambda f: _frame().to_json(f / "a.jsonl", orient="records", lines=True), _data("{folder}/a.jsonl")
    ),
    FileKind("parquet", lambda f: _frame().to_parquet(f / "a.parquet"), _data("{folder}/a.parquet")),
    FileKind("lines", lambda f: (f / "a.txt").write_text("a line\n" * 60), _data("{folder}/a.txt")),
    FileKind("labels", lambda f: (f / "a.txt").write_text("a clip\n" * 60), lambda f: str(labels_of(f"{f / 'a.txt'}"))),
    FileKind("datasets", _write_saved, _data("datasets:{folder}")),
    FileKind("captions", _write_captions, _data("captions:{folder}"), False, "*.csv"),
    *(
        FileKind(ending, partial(_write_images, ending=f".{ending}"), _data("imagefolder:{folder}"))
        for ending in ("png", "jpg", "gif", "tiff", "webp")
    ),
    FileKind("tiny-imagenet", _write_tiny, _data("tiny-imagenet:{folder}:val"), False, "*.txt"),
    FileKind("mnist", _write_mnist, _data("mnist:{folder}/:test"), True),
    FileKind("cifar10", _write_cifar, _data("cifar10:{folder}/:test"), True),
    FileKind("cifar100, binary", _write_binary, _data("cifar100:{folder}/:test")),
    FileKind("graph, npz", lambda f: np.savez(f / "cora.npz", **_graph()), _data("cora:{folder}/:all"), True),
    FileKind("planetoid", _write_planetoid, _data("cora:{folder}/:all")),
    FileKind("ogbn-arxiv", _write_arxiv, _data("ogbn-arxiv:{folder}/:all"), True),
    FileKind("flickr", _write_flickr, _data("flickr:{folder}/:all")),
)
