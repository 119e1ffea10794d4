"""Views on disk: `STORE/views` holds one file per layer of a network, and one per array.

A file of a layer is named by what the view depends on: the network's weights and code, the layer, the reduction and
the probe. One JSON note per request lists the files that answer it. It is written last, and a request is answered
from the folder only where all of its files match their checksums. A view that came as an array is named by its
content.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from likewise._base.files import is_file, write_whole
from likewise._base.folders import file_of, read_json
from likewise._base.formats.records import parse
from likewise._base.hashing import facts_digest
from likewise._base.progress import warn
from likewise._base.sealed import Stream, Writer
from likewise.errors import DamagedStoreWarning, StoreError
from likewise.views.activations import OUTPUTS, Activations, Outputs, Views, check_width, output_facts, stored_dtype
from likewise.work.store import Artifacts, intact, open_store, read

if TYPE_CHECKING:
    from likewise.views.layer_pass import Pass

Title = Callable[[str], str]
StoredOutputs = tuple[Outputs | None, Mapping[str, str]]  # with what is recorded of them
VIEWS = "views"  # the folder of a store
_RULES = 6  # raised where rows come out otherwise than before: what is older answers no request
_NAME = re.compile(r"[0-9a-f]{24}\.safetensors")
_IDENTITY = ("fingerprint", "layer", "reduction", "probe", "head", "precision", "transform", "commit")


class FileSink:
    """Rows in a file that grows, appended by a writer thread."""

    def __init__(self, label: str, stream: Stream) -> None:
        self.label = label
        self.n = self.width = 0
        self._stream = stream
        self._dtype = torch.float32

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch; a thread writes them."""
        if not self.width:
            self.width = rows.shape[1]
            self._dtype = stored_dtype(rows)
        check_width(self.label, self.width, rows)
        self._stream.append("values", rows.to(self._dtype))
        self.n += len(rows)

    def finish(self, path: Path, facts: Mapping[str, str], **numbers: Tensor | None) -> None:
        """Give the file its name, with numbers of inputs and facts that were not known at the start."""
        for name, values in numbers.items():
            if values is not None:
                # 4 bytes each: behind float32 values, wider numbers would not lie on their own boundary
                self._stream.append(name, values.int())
        self._stream.finish(path, facts)

    def abort(self) -> None:
        """Drop what was taken and its file."""
        self._stream.abort()


class FolderViews:
    """Views in `STORE/views`: streamed there, mapped from there, found there again."""

    def __init__(
        self, store: str | os.PathLike[str], facts: Mapping[str, str], title: Title, answered: Mapping[str, str]
    ) -> None:
        self._facts, self._title, self._answered = dict(facts), title, dict(answered)
        with open_store(store):  # which sees that the folder is ours
            self.folder = Artifacts(Path(store) / VIEWS).folder
        self._writer = Writer(self.folder)

    def sink(self, layer: str) -> FileSink:
        """Where the rows of a layer go."""
        facts = self._facts | (self._answered if layer == OUTPUTS else {})
        return FileSink(f"{layer!r} of {self._facts['network']!r}", Stream(self.folder, facts, self._writer))

    def views(self, request: Mapping[str, Any] | None, watch: Callable[[Callable[[str], FileSink]], Pass]) -> Views:
        """What answers a request: the files of an earlier one, else those of a pass, noted for the next time.

        Without a request, since inputs show only as they are read, there is always a pass.
        """
        files = None if request is None else self.find(request)
        if files is None and request is not None and request["layers"] is None:
            files = self.find({**request, "layers": "penultimate"})  # the default where there is a classifier
        if files is None:
            files = self.finish(watch(self.sink))
            if request is not None:
                write_whole(self._note(request), json.dumps(files).encode())
        return self.open(files)

    def finish(self, done: Pass) -> dict[str, str]:
        """Name every file by its facts; which file holds which layer."""
        files = {}
        try:
            for layer, sink in done.sinks.items():
                facts, labels = done.facts(layer), None
                if layer == OUTPUTS:
                    labels, answered = done.labelled(sink.n, sink.width)
                    listed = None if labels is None else labels.tolist()
                    facts |= answered | {"reduction": facts_digest({"labels": listed, **answered})}
                merged = self._facts | facts
                files[layer] = f"{facts_digest({key: merged[key] for key in _IDENTITY if key in merged})}.safetensors"
                sink.finish(self.folder / files[layer], facts, labels=labels, clusters=done.clusters(layer))
        except BaseException:
            for sink in done.sinks.values():
                sink.abort()
            raise
        return files

    def find(self, request: Mapping[str, Any]) -> dict[str, str] | None:
        """The files that answer a request, by layer, where all of them are here and intact."""
        try:
            files = read_json(self.folder, self._note(request).name)
        except StoreError:
            return None
        # a note may be damaged, or a stranger's: it names files of this folder or none
        if not files or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in files.values()):
            return None
        try:
            paths = {layer: file_of(self.folder, name) for layer, name in files.items()}
        except StoreError:
            return None
        damaged = [path for layer, path in paths.items() if (intact(path) or {}).get("layer") != layer]
        for path in damaged:
            warn(f"{path} does not match its checksum; it is extracted anew.", DamagedStoreWarning)
        return None if damaged else files

    def open(self, files: Mapping[str, str]) -> Views:
        """Views mapped from their files when first looked up; outputs are opened once for all."""
        paths = {layer: self.folder / file for layer, file in files.items()}
        outputs_file = paths.pop(OUTPUTS, None)
        stored_outputs = cache(partial(_stored_outputs, outputs_file))

        def opener(layer: str) -> Activations:
            return _view(paths[layer], outputs_file, stored_outputs(), self._title(layer))

        return Views({layer: partial(opener, layer) for layer in paths})

    def _note(self, request: Mapping[str, Any]) -> Path:
        return self.folder / f"{facts_digest({**request, 'rules': _RULES})}.json"


def put_view(folder: Artifacts, view: Activations) -> tuple[Path, ...]:
    """The files of a view: those it was read from, else one that is named by its content."""
    if view.files and all(is_file(path) for path in view.files):
        return view.files
    path = folder.path(view.digest)
    if path.exists():
        if _matches(path, view.digest):
            return (path,)
        warn(f"{path} does not match its checksum; it is written anew.", DamagedStoreWarning)
    tensors = {"values": view.values}
    if view.outputs is not None:
        tensors["logits"] = view.outputs.logits
        if view.outputs.labels is not None:
            tensors["labels"] = view.outputs.labels
    if view.clusters is not None:
        tensors["clusters"] = torch.from_numpy(view.clusters)
    facts = {"name": view.name, "probe": view.probe or "", "about": json.dumps(dict(view.about))}
    return (folder.put(view.digest, tensors, facts),)


def read_view(files: Sequence[Path], name: str | None = None) -> Activations:
    """A view from its files: mapped, so that what memory it takes can be given back."""
    outputs_file = files[1] if len(files) > 1 else None
    return _view(files[0], outputs_file, _stored_outputs(outputs_file), name)


def _view(path: Path, outputs_file: Path | None, stored_outputs: StoredOutputs, name: str | None) -> Activations:
    tensors, facts = read(path)
    values = tensors["values"]
    outputs, recorded = stored_outputs
    if "logits" in tensors:
        outputs = Outputs(tensors["logits"], tensors.get("labels"))
    if outputs is not None and len(outputs.logits) != len(values):
        outputs = None  # rows are positions, not inputs
    view = Activations(
        values,
        name=facts.get("name", "") if name is None else name,
        probe=facts["probe"] or None,
        outputs=outputs,
        about=parse(facts["about"]) if "about" in facts else facts | output_facts(recorded),
        clusters=tensors.get("clusters"),
    )
    return view.stored_in((path,) if outputs_file is None else (path, outputs_file))


def _stored_outputs(file: Path | None) -> StoredOutputs:
    if file is None:
        return None, {}
    tensors, facts = read(file)
    return Outputs(tensors["values"], tensors.get("labels")), facts


def _matches(path: Path, digest: str) -> bool:
    """Whether a file named by its content holds it; what is damaged may raise anything, or not be finite."""
    try:
        return read_view([path]).digest == digest
    except (OSError, ValueError, LookupError, TypeError, RuntimeError):
        return False
