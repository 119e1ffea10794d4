"""`record`: a small file that stands for a network on a probe; and the difference of two such recordings.

So a network is compared with one that is no longer there: the baseline of a continuous integration, another runtime, a
checkpoint of last year. Numbers are those of `diff` but for the error of sketches: debiased CKA within .03, relative
changes within 10 %.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from likewise._base.arrays import Array
from likewise.comparison.recordings.recorder import as_probe, class_answers, record_layers, sketched_weights
from likewise.comparison.recordings.recording import (
    Recording,
    check_one_probe,
    is_recording,
    layer_change,
    layer_similarity,
    opened,
)
from likewise.comparison.recordings.sketches import relative_change
from likewise.data import Data
from likewise.difference.answers import AnswerChange, answer_changes
from likewise.difference.language_models.tokens import token_changes, token_score
from likewise.difference.layers import LayerChange
from likewise.difference.result import Check, Diff
from likewise.difference.rounding import precision_of, unrounded, with_floors
from likewise.difference.weights import WeightChange
from likewise.errors import InputError, brief
from likewise.language.networks import as_language_model
from likewise.language.reading import decoder_of
from likewise.language.recorded import answers_of, record_tokens
from likewise.measures.function import Measure
from likewise.measures.workspace import parse_memory
from likewise.networks.forward import DTYPES
from likewise.networks.names import named_networks, network_and_name
from likewise.networks.sources.language import language_kind
from likewise.views import Activations, Outputs
from likewise.views.extract import extract_network
from likewise.views.show import Show, ShowOptions

TOKENS, CLASSES = "tokens", "classes"
FULL = 32  # bits of a precision whose rounding is less than a change
OTHER = 7  # inputs of a batch, to see what its size does
DRAWN = 1.6  # times what one drawing of finer weights changes, since another may change more


def record(
    network: Any,
    data: Any = None,
    *,
    name: str | None = None,
    layers: Any = None,
    memory: str | int | None = None,
    **show: Unpack[ShowOptions],
) -> Recording:
    """Keep of a network what a later comparison needs: sketches of layers and weights, and its answers.

    `Recording.save` writes it to a file of at most 16 kB per layer, one per weight, and the answers. `likewise.diff`,
    `likewise.compare` and `likewise.layerwise` take recordings, and paths that end with `.likewise`, as they take
    networks.

    Args:
        network: An address or a module.
        data: What it is shown: the probe, which later networks have to be shown as well.
        name: What the network is called.
        layers: Names or globs of layers; by default all.
        memory: The most that layers may take at a time, such as "4GB"; by default two thirds of what is free.
        **show: How it is shown (see `Show`). By default `reduce` is "flatten", and "mean" for texts.

    Returns:
        The recording.

    Raises:
        InputError: There is no data, or what was passed is no network.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> recording = record(net, torch.rand(50, 4), progress=False)
        >>> recording.kind, list(recording.layers)
        ('classes', ['0', '1', '2'])
    """
    return _subject(network, data, name, layers, memory, show).record()


@dataclass(frozen=True)
class _Subject:
    """A network that is there, and how it is recorded."""

    net: nn.Module
    name: str
    data: Data
    show: Show
    layers: Any
    memory: int
    is_language: bool

    @property
    def precision(self) -> torch.dtype:
        """The precision it runs in."""
        return precision_of(self.net) if self.show.dtype is None else DTYPES[self.show.dtype]

    def record(self, *, weights: bool = True) -> Recording:
        """What is kept of it."""
        recording = record_layers(self.net, self.name, self.show, selected=self.layers, memory=self.memory)
        answers, kind = _answers(self.net, self.name, self.data, self.show, is_language=self.is_language)
        precision = str(self.precision).removeprefix("torch.")
        about = {**recording.about, "precision": precision, "device": str(self.show.device or "cpu")}
        about |= {"language": language_kind(self.net) or "causal"} if self.is_language else {}
        sketches = sketched_weights(self.net) if weights else {}
        return replace(recording, kind=kind, answers=answers, weights=sketches, about=about)

    def rounded(self, precision: torch.dtype) -> _Subject:
        """The same network, less than rounding away: in another precision, or in batches of another size."""
        if precision == self.precision:
            return replace(self, show=replace(self.show, batch_size=1 if self.show.batch_size == OTHER else OTHER))
        if self.show.dtype is not None:
            return replace(self, show=replace(self.show, dtype=str(precision).removeprefix("torch.")))
        if torch.finfo(precision).bits < torch.finfo(self.precision).bits:
            return replace(self, net=copy.deepcopy(self.net).to(precision))
        return replace(self, net=unrounded(self.net, precision))


def _subject(network: Any, data: Any, name: str | None, layers: Any, memory: Any, show: Mapping[str, Any]) -> _Subject:
    if not isinstance(network, (str, nn.Module)):
        raise InputError(f"record takes a network, and was given {brief(network)}. Give an address or a module.")
    options = Show.only("record", show, without=["store"], data=data)
    options.check_data("record", str(network) if isinstance(network, str) else type(network).__name__)
    inputs = as_probe(data)
    [(typed, choices)] = options.per_network(named_networks([network])).items()
    called = name or typed
    whole = as_language_model(network, device=options.device) if inputs.domain == "text" else None
    shown, choice = choices.for_network(network)
    module = whole or network_and_name(shown, called, data=inputs, device=options.device)[0]
    choice = replace(choice, data=inputs)
    return _Subject(module, called, inputs, choice, layers, parse_memory(memory), whole is not None)


def _answers(net: nn.Module, name: str, data: Data, show: Show, *, is_language: bool) -> tuple[dict[str, Array], str]:
    if is_language:
        return record_tokens(net, name, data, show), TOKENS
    view = extract_network(net, replace(show, layers=None, reduce=show.reduce), name)
    if view.outputs is None:
        return {}, ""
    return class_answers(view.outputs.logits, view.outputs.labels), CLASSES


def recorded_change(
    a: Any,
    b: Any,
    data: Any,
    *,
    names: Sequence[str] | None,
    layers: Any,
    transfer: Any,
    memory: Any,
    show: Mapping[str, Any],
    limits: Sequence[tuple[Measure, str, float]],
) -> Diff:
    """The difference of two things of which at least one is a recording; the other is recorded on the data."""
    if transfer:
        raise InputError("a recording holds no network, so none can be attacked. Leave transfer out.")
    if data is None and not (is_recording(a) and is_recording(b)):
        raise InputError("no data to show the network. Pass the data that the recording was made on.")
    subjects = [None if is_recording(x) else _subject(x, data, None, layers, memory, show) for x in (a, b)]
    sides = [opened(x) if net is None else net.record() for x, net in zip((a, b), subjects, strict=True)]
    called = [str(name) for name in (names if names is not None else (side.name for side in sides))]
    called = [f"{called[0]} (recorded)", called[1]] if called[0] == called[1] else called
    check_one_probe(*sides)
    decode = next((decoder_of(net.net) for net in subjects if net is not None), None)
    change = _difference(sides[0], sides[1], (called[0], called[1]), decode)
    for net, own, other in zip(subjects, sides, reversed(sides), strict=True):
        if net is not None and change.verdict not in ("identical", "equal but for rounding"):
            change = _beyond_rounding(change, net, own, other)
    scores, reasons = dict(change.scores), dict(change.reasons)
    for measure, _, _ in limits:
        scores[measure.key], reason = _score(change, measure)
        reasons |= {measure.key: reason} if reason else {}
    checks = [Check(m.key, side, limit, scores[m.key], reasons.get(m.key, "")) for m, side, limit in limits]
    return replace(change, scores=scores, reasons=reasons, checks=tuple(checks))


def _beyond_rounding(change: Diff, subject: _Subject, own: Recording, other: Recording) -> Diff:
    """The difference with what rounding alone does, measured on the network that is there.

    In single precision that is less than counts as a change. In half precision the size of a batch changes numbers as
    much as small faults do, and a network in another precision than the recording differs by what was rounded away.
    """
    recorded = DTYPES.get(str(other.about.get("precision")), torch.float32)
    if min(torch.finfo(precision).bits for precision in (recorded, subject.precision)) >= FULL:
        return change
    rounded = replace(subject, show=replace(subject.show, progress=False)).rounded(recorded).record(weights=False)
    rounding = _difference(own, rounded, change.names)
    finer = torch.finfo(recorded).bits > torch.finfo(subject.precision).bits
    floors = {layer.layer: (DRAWN if finer else 1.0) * layer.change for layer in rounding.layers}
    tokens = change.tokens
    if tokens is not None and rounding.tokens is not None and rounding.tokens.comparable:
        tokens = replace(tokens, rounding=rounding.tokens.statistics["kl"].value)
    return replace(change, layers=with_floors(change.layers, floors), tokens=tokens)


def _score(change: Diff, measure: Measure) -> tuple[float, str]:
    """The value of a measure by what recordings keep, or why it is undefined."""
    if measure.key in change.scores:
        return change.scores[measure.key], change.reasons.get(measure.key, "")
    if measure.info.on == "networks":
        if change.tokens is None:
            return math.nan, "the recordings hold no answers of language models"
        return token_score(change.tokens, measure)
    if measure.key == "disagreement" and not isinstance(change.answers, str):
        return change.answers.disagreement, ""
    return math.nan, "recordings do not hold what it needs"


def _difference(a: Recording, b: Recording, names: tuple[str, str], decode: Any = None) -> Diff:
    changes = [
        LayerChange(
            name, name, layer_similarity(layer, b.layers[name]), layer_change(layer, b.layers[name]), layer.block
        )
        for name, layer in a.layers.items()
        if name in b.layers
    ]
    last = next((change for change in reversed(changes) if not math.isnan(change.likeness)), None)
    tokens = token_changes(answers_of(a, b, names, decode)) if a.kind == b.kind == TOKENS else None
    answers: AnswerChange | str = (
        "they answer with tokens" if tokens is not None else "there are none in both recordings"
    )
    if a.kind == b.kind == CLASSES:
        answers = answer_changes(_view(a, names[0]), _view(b, names[1]), ())
    scores = {"cka-debiased": math.nan if last is None else last.likeness}
    return Diff(
        names=names,
        data=a.data,
        n=a.n,
        looked_at="none" if last is None else last.layer,
        scores=scores,
        reasons={} if last is not None else {"cka-debiased": "no layer of one name has a sketch of similarities"},
        layers=tuple(changes),
        weights=_weights(a, b),
        answers=answers,
        transfer="recordings hold no network",
        inputs=(),
        tokens=tokens,
    )


def _view(recording: Recording, name: str) -> Activations:
    """The answers as logits: what is kept of them, and the rest of the probability shared by the other classes."""
    top, said = recording.answers["top"], recording.answers["log_p"].astype(np.float64)
    count = int(recording.answers["classes"][0])
    if (need := 8 * len(top) * count) > parse_memory(None):
        raise InputError(
            f"the answers of {recording.name!r} are of {count:,} classes and would take {need / 1e9:,.0f} GB. Record "
            "the network on fewer inputs."
        )
    rest = np.log(np.maximum(1 - np.exp(said).sum(axis=1), 1e-12) / max(count - top.shape[1], 1))
    logits = np.repeat(np.minimum(rest, said.min(axis=1) - 1e-9)[:, None], count, axis=1)
    np.put_along_axis(logits, top.astype(np.int64), said, axis=1)
    labels = recording.answers.get("labels")
    outputs = Outputs(logits, None if labels is None else labels.astype(np.int64))
    return Activations(logits, name=name, probe=recording.probe, outputs=outputs)


def _weights(a: Recording, b: Recording) -> WeightChange:
    common = [name for name, weight in a.weights.items() if name in b.weights and b.weights[name].shape == weight.shape]
    changed = [
        (name, relative_change(a.weights[name].values, b.weights[name].values, a.weights[name].norm))
        for name in common
        if a.weights[name].digest != b.weights[name].digest
    ]
    numbers = sum(a.weights[name].count for name in common)
    zeros = [sum(side.weights[name].zeros * side.weights[name].count for name in common) for side in (a, b)]
    other = len(a.weights.keys() | b.weights.keys()) - len(common)
    return WeightChange(len(common), tuple(changed), other, (zeros[0] / max(numbers, 1), zeros[1] / max(numbers, 1)))
