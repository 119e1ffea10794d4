"""`record`: a small file that stands for a network on a probe; and the difference of two such recordings.

So a network is compared with one that is no longer there: the baseline of a continuous integration, another runtime, a
checkpoint of last year. Numbers are those of `diff` but for the error of sketches: debiased CKA within .03, relative
changes within 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from likewise.difference.weights import WeightChange
from likewise.errors import InputError, brief
from likewise.language.networks import as_language_model, encoder_of
from likewise.language.recorded import answers_of, record_tokens
from likewise.measures.function import Measure
from likewise.measures.workspace import parse_memory
from likewise.networks.names import named_networks, network_and_name
from likewise.views import Activations, Outputs
from likewise.views.extract import extract_network
from likewise.views.show import Show, ShowOptions

TOKENS, CLASSES = "tokens", "classes"


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
    inside = encoder_of(module) if whole is not None else module
    recording = record_layers(inside, called, choice, selected=layers, memory=parse_memory(memory))
    answers, kind = _answers(module, called, inputs, choice, is_language=whole is not None)
    precision = str(next((p.dtype for p in module.parameters()), torch.float32)).removeprefix("torch.")
    about = {**recording.about, "precision": precision, "device": str(options.device or "cpu")}
    return replace(recording, kind=kind, answers=answers, weights=sketched_weights(module), about=about)


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
    sides = []
    for thing in (a, b):
        if not is_recording(thing) and data is None:
            raise InputError("no data to show the network. Pass the data that the recording was made on.")
        made = opened(thing) if is_recording(thing) else record(thing, data, layers=layers, memory=memory, **show)
        sides.append(made)
    called = [str(name) for name in (names if names is not None else (side.name for side in sides))]
    called = [f"{called[0]} (recorded)", called[1]] if called[0] == called[1] else called
    check_one_probe(*sides)
    change = _difference(sides[0], sides[1], (called[0], called[1]))
    scores, reasons = dict(change.scores), dict(change.reasons)
    for measure, _, _ in limits:
        scores[measure.key], reason = _score(change, measure)
        reasons |= {measure.key: reason} if reason else {}
    checks = [Check(m.key, side, limit, scores[m.key], reasons.get(m.key, "")) for m, side, limit in limits]
    return replace(change, scores=scores, reasons=reasons, checks=tuple(checks))


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


def _difference(a: Recording, b: Recording, names: tuple[str, str]) -> Diff:
    changes = [
        LayerChange(
            name, name, layer_similarity(layer, b.layers[name]), layer_change(layer, b.layers[name]), layer.block
        )
        for name, layer in a.layers.items()
        if name in b.layers
    ]
    last = next((change for change in reversed(changes) if not math.isnan(change.likeness)), None)
    tokens = token_changes(answers_of(a, b, names)) if a.kind == b.kind == TOKENS else None
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
