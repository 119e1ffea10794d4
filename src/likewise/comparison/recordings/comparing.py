"""`compare` and `layerwise` of recordings: debiased CKA by sketches of similarities, also beside networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.comparison.recordings.recorder import record_layers
from likewise.comparison.recordings.recording import (
    Recording,
    check_one_probe,
    is_recording,
    layer_similarity,
    opened,
    similarities,
)
from likewise.errors import InputError, OptionError, brief
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.score import Score
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.measures.function import Measure
from likewise.measures.registry import MEASURES, get
from likewise.measures.workspace import parse_memory
from likewise.networks.names import named_networks
from likewise.views.show import Show

MEASURE = "cka-debiased"
NOTE = "by sketches: within .03, and .005 on average"


def compare_recorded(
    views: Any,
    other: Any,
    measure: Any,
    options: Mapping[str, Any],
    unused: Mapping[str, Any],
    memory: str | int | None,
    **named: Any,
) -> Score | SimilarityMatrix | Comparison:
    """Two recordings or networks as a score, many as a matrix, and as a comparison for a list of measures."""
    two = not isinstance(views, (Mapping, list, tuple))
    if measure is None and other is not None and not (two and (is_recording(other) or not _names_measure(other))):
        other, measure = None, other
    _refuse("compare", unused)
    show = Show.only("compare of recordings", options, **named)
    _check_measure(measure)
    listed = [views, other] if two else list(views.values()) if isinstance(views, Mapping) else list(views)
    if two and other is None:
        raise InputError("one recording was given. Give two, or a recording and a network with data.")
    layer = _one_layer(show.layers)
    recordings = _recordings(listed, replace(show, layers=None), memory)
    names = list(views) if isinstance(views, Mapping) else _names([recording.name for recording in recordings])
    values = np.array([[_score(a, b, layer) for b in recordings] for a in recordings])
    info, first = get(MEASURE).info, recordings[0]
    if two:
        facts: dict[str, Any] = {"names": (names[0], names[1]), "n": first.n, "paired": False}
        return Score(float(values[0, 1]), measure=MEASURE, bounds=info.bounds, identity=info.identity, **facts)
    about = {"n": first.n, "probe": first.probe, "note": NOTE}
    matrix = SimilarityMatrix(names, values, MEASURE, info.larger_is, about=about, bounds=info.bounds)
    return Comparison({MEASURE: matrix}) if isinstance(measure, (list, tuple)) else matrix


def layerwise_recorded(
    a: Any,
    b: Any,
    measure: Any,
    options: Mapping[str, Any],
    unused: Mapping[str, Any],
    memory: str | int | None,
    **named: Any,
) -> LayerMatrix:
    """Every layer of a recording with every layer of another that has a sketch of similarities."""
    _refuse("layerwise", unused)
    show = Show.only("layerwise of recordings", options, without=["store"], **named)
    _check_measure(measure)
    several = isinstance(a, (Mapping, list, tuple))
    listed = (list(a.values()) if isinstance(a, Mapping) else list(a)) if several else [a, a if b is None else b]
    if len(listed) != 2:
        raise InputError(f"layerwise takes two networks, and was given {len(listed)}. Give two.")
    one, other = _recordings(listed, show, memory)
    names = list(a) if isinstance(a, Mapping) else _names([one.name, other.name])
    rows, columns, values = similarities(one, other)
    about = {"n": one.n, "probe": one.probe, "note": NOTE}
    bounds = get(MEASURE).info.bounds
    return LayerMatrix(names[0], names[1], rows, columns, values, MEASURE, about, larger_is="more alike", bounds=bounds)


def _refuse(verb: str, unused: Mapping[str, Any]) -> None:
    """Refuse what needs the inputs, which recordings do not hold."""
    for name, value in unused.items():
        if value is not None and value is not False:
            raise OptionError(
                f"{verb} has no use for {name} beside recordings, which hold sketches and no inputs. Leave it out."
            )


def _names_measure(thing: Any) -> bool:
    names = thing if isinstance(thing, (list, tuple)) else [thing]
    return all(
        isinstance(name, Measure) or (isinstance(name, str) and name.partition("[")[0] in MEASURES) for name in names
    )


def _check_measure(measure: Any) -> None:
    if measure is None:
        return
    names = list(measure) if isinstance(measure, (list, tuple)) else [measure]
    for name in names:
        if getattr(name, "key", name) != MEASURE:
            raise InputError(
                f"recordings hold what {MEASURE} needs, and not what {brief(getattr(name, 'key', name))} does. Compare "
                "the networks themselves, or leave measure out."
            )


def _one_layer(layers: Any) -> str | None:
    """The layer to look at, which has one name on both sides."""
    names = list(layers.values()) if isinstance(layers, Mapping) else [layers]
    if any(name != names[0] for name in names) or not isinstance(names[0], str | None):
        raise InputError(
            f"recordings are compared at a layer of one name, and layers is {brief(layers)}. Name one, or leave it out."
        )
    return names[0]


def _recordings(things: Sequence[Any], show: Show, memory: str | int | None) -> list[Recording]:
    """Everything as recordings of one probe; networks are recorded on the data."""
    recordings = []
    choices = iter(show.per_network(named_networks([thing for thing in things if not is_recording(thing)])).items())
    for thing in things:
        if is_recording(thing):
            recordings.append(opened(thing))
        else:
            name, choice = next(choices)
            show.check_data("a comparison with recordings", name)
            recordings.append(record_layers(thing, name, choice, memory=parse_memory(memory)))
    for recording in recordings[1:]:
        check_one_probe(recordings[0], recording)
    return recordings


def _names(names: Sequence[str]) -> list[str]:
    """Names that differ: what repeats is numbered."""
    return [f"{name}#{names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)]


def _score(a: Recording, b: Recording, layer: str | None) -> float:
    """Debiased CKA of one layer, by default the last that both have sketches of."""
    both = [name for name, sketch in a.layers.items() if sketch.similarity is not None and name in b.layers]
    both = [name for name in both if b.layers[name].similarity is not None]
    if layer is not None:
        if layer not in both:
            raise InputError(
                f"{a.name!r} and {b.name!r} have no similarities of a layer {layer!r}. Choose {', '.join(both)}."
            )
        both = [layer]
    if not both:
        rows, columns = ([n for n, s in side.layers.items() if s.similarity is not None] for side in (a, b))
        if not rows or not columns:
            raise InputError(f"{a.name!r} or {b.name!r} has no sketch of similarities. Record it with its blocks.")
        return layer_similarity(a.layers[rows[-1]], b.layers[columns[-1]])
    return layer_similarity(a.layers[both[-1]], b.layers[both[-1]])
