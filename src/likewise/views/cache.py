"""Where views are kept: in memory, or in a folder with a file per layer.

A file is named by what a view depends on: the network's weights and code, the layer, the reduction
and the probe. One JSON note per request lists the files that answer it. It is written last, and a
request is answered from the folder only where all of its files match their checksums.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from likewise._base.files import guarded, is_file, write_whole
from likewise._base.hashing import facts_digest
from likewise.errors import DamagedStoreWarning
from likewise.views.activations import CLASSES, UNLABELLED, Activations, Outputs
from likewise.views.forward_pass import OUTPUTS, Pass
from likewise.views.sinks import FileSink, MemorySink, Writer, intact, mapped, remove_leftovers

Title = Callable[[str], str]
Answered = tuple[Outputs | None, Mapping[str, str]]
_RULES = 4  # raised where rows come out otherwise than before: what is older answers no request
_NAME = re.compile(r"[0-9a-f]{24}\.safetensors")
_IDENTITY = ("fingerprint", "layer", "reduction", "probe", "head")


class Views(Mapping[str, Activations]):
    """Views of one network by layer, in the order of the request; opened when first asked for."""

    def __init__(self, openers: Mapping[str, Callable[[], Activations]]) -> None:
        self._openers = dict(openers)
        self._open: dict[str, Activations] = {}

    def __getitem__(self, layer: str) -> Activations:
        if layer not in self._open:
            self._open[layer] = self._openers[layer]()
        return self._open[layer]

    def __reduce__(self) -> Any:
        views = dict(self)  # files may be elsewhere, or nowhere, where they are unpickled
        return Views, ({layer: partial(views.__getitem__, layer) for layer in views},)

    def __iter__(self) -> Iterator[str]:
        return iter(self._openers)

    def __len__(self) -> int:
        return len(self._openers)

    def __repr__(self) -> str:
        return f"Views({list(self._openers)})"


class InMemory:
    """Views in memory, checked when the pass is over."""

    def __init__(self, facts: Mapping[str, str], title: Title, n: int | None) -> None:
        self._facts, self._title, self._n = dict(facts), title, n

    def sink(self, layer: str) -> MemorySink:
        """Where the rows of a layer go."""
        return MemorySink(_label(layer, self._facts), self._n)

    def finish(self, done: Pass) -> Views:
        """The views of a finished pass."""
        outputs: Outputs | None = None
        answered: Mapping[str, str] = {}
        if OUTPUTS in done.sinks:
            logits = done.sinks.pop(OUTPUTS).finish()
            labels, answered = done.labelled(len(logits), logits.shape[1])
            outputs = Outputs(logits, labels)
        views = {}
        for layer, sink in done.sinks.items():
            about = self._facts | done.facts(layer) | _said(answered)
            views[layer] = Activations(
                sink.finish(),
                name=self._title(layer),
                probe=about["probe"],
                outputs=outputs if sink.n == done.n else None,
                about=about,
            )
        return Views({layer: partial(views.__getitem__, layer) for layer in views})


class InFolder:
    """Views in `STORE/views`: streamed there, mapped from there, found there again."""

    def __init__(
        self,
        store: str | os.PathLike[str],
        facts: Mapping[str, str],
        title: Title,
        answered: Mapping[str, str],
    ) -> None:
        self._facts, self._title, self._answered = dict(facts), title, dict(answered)
        self.folder = Path(store) / "views"
        with guarded(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)
        self._writer = Writer()

    def sink(self, layer: str) -> FileSink:
        """Where the rows of a layer go."""
        facts = self._facts | (self._answered if layer == OUTPUTS else {})
        return FileSink(_label(layer, self._facts), self.folder, facts, self._writer)

    def finish(self, done: Pass) -> dict[str, str]:
        """Name every file by its facts; which file holds which layer."""
        try:
            return self._named(done)
        except BaseException:
            for sink in done.sinks.values():
                sink.abort()
            raise

    def _named(self, done: Pass) -> dict[str, str]:
        files = {}
        for layer, sink in done.sinks.items():
            facts = done.facts(layer)
            labels = None
            if layer == OUTPUTS:
                labels, answered = done.labelled(sink.n, sink.width)
                known_labels = None if labels is None else labels.tolist()
                facts |= answered | {"reduction": facts_digest({"labels": known_labels, **answered})}
            known = self._facts | facts
            files[layer] = f"{facts_digest({key: known[key] for key in _IDENTITY if key in known})}.safetensors"
            sink.finish(self.folder / files[layer], facts, labels)
        return files

    def note(self, request: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Write which files answer a request."""
        write_whole(self._note(request), json.dumps(dict(files)).encode())

    def find(self, request: Mapping[str, Any]) -> dict[str, str] | None:
        """The files that answer a request, by layer, where all of them are here and intact."""
        try:
            files = {str(k): str(v) for k, v in json.loads(self._note(request).read_text()).items()}
        except (FileNotFoundError, ValueError, AttributeError):
            return None
        # a note may be damaged, or a stranger's: it names files of this folder or none
        if not files or not all(_NAME.fullmatch(name) for name in files.values()):
            return None
        if not all(is_file(self.folder / name) for name in files.values()):
            return None
        damaged = [self.folder / name for layer, name in files.items() if not intact(self.folder / name, layer)]
        for path in damaged:
            warnings.warn(
                f"{path} does not match its checksum; it is extracted anew.",
                DamagedStoreWarning,
                stacklevel=4,
            )
        return None if damaged else files

    def open(self, files: Mapping[str, str]) -> Views:
        """Views mapped from their files when first asked for; outputs are opened once for all."""
        outputs = cache(partial(self._outputs, files.get(OUTPUTS)))
        layers = {layer: file for layer, file in files.items() if layer != OUTPUTS}
        return Views({layer: partial(self._view, layer, file, outputs) for layer, file in layers.items()})

    def _view(self, layer: str, file: str, outputs: Callable[[], Answered]) -> Activations:
        tensors, facts = mapped(self.folder / file)
        values, (answers, answered) = tensors["values"], outputs()
        if answers is not None and len(answers.logits) != len(values):
            answers = None  # rows are positions, not inputs
        title, probe = self._title(layer), facts["probe"]
        about = facts | _said(answered)
        return Activations(values, name=title, probe=probe, outputs=answers, about=about)

    def _outputs(self, file: str | None) -> Answered:
        if file is None:
            return None, {}
        tensors, facts = mapped(self.folder / file)
        return Outputs(tensors["values"], tensors.get("labels")), facts

    def _note(self, request: Mapping[str, Any]) -> Path:
        return self.folder / f"{facts_digest({**request, 'rules': _RULES})}.json"


def _said(answered: Mapping[str, str]) -> dict[str, str]:
    """What is known of the answers, without what is not."""
    return {key: answered[key] for key in (CLASSES, UNLABELLED) if answered.get(key)}


def _label(layer: str, facts: Mapping[str, str]) -> str:
    return f"{layer!r} of {facts['network']!r}"
