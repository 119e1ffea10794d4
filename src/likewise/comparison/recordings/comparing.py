"""`compare` and `layerwise` of recordings: debiased CKA by sketches of similarities, also beside networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from likewise.errors import InputError, brief
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.score import Score
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.function import Measure
from likewise.measures.registry import MEASURES, get
from likewise.networks.names import named_networks
from likewise.views.show import Show

MEASURE = "cka-debiased"
NOTE = "by sketches: within .03, and .005 on average"


def compare_recorded(
    views: Any, other: Any, measure: Any, options: Mapping[str, Any], **named: Any
) -> Score | SimilarityMatrix:
    """Two recordings or networks as a score, many as a matrix."""
    if measure is None and other is not None and not is_recording(other) and _names_measure(other):
        other, measure = None, other
    show = Show.only("compare of recordings", options, **named)
    _check_measure(measure)
    two = not isinstance(views, (Mapping, list, tuple))
    listed = [views, other] if two else list(views.values()) if isinstance(views, Mapping) else list(views)
    if two and other is None:
        raise InputError("one recording was given. Give two, or a recording and a network with data.")
    recordings = _recordings(listed, show)
    names = list(views) if isinstance(views, Mapping) else _names([recording.name for recording in recordings])
    values = np.array([[_score(a, b, show.layers) for b in recordings] for a in recordings])
    info, first = get(MEASURE).info, recordings[0]
    if two:
        facts: dict[str, Any] = {"names": (names[0], names[1]), "n": first.n, "paired": False}
        return Score(float(values[0, 1]), measure=MEASURE, bounds=info.bounds, identity=info.identity, **facts)
    about = {"n": first.n, "probe": first.probe, "note": NOTE}
    return SimilarityMatrix(names, values, MEASURE, info.larger_is, about=about, bounds=info.bounds)


def layerwise_recorded(a: Any, b: Any, measure: Any, options: Mapping[str, Any], **named: Any) -> LayerMatrix:
    """Every layer of a recording with every layer of another that has a sketch of similarities."""
    show = Show.only("layerwise of recordings", options, **named)
    _check_measure(measure)
    several = isinstance(a, (Mapping, list, tuple))
    listed = (list(a.values()) if isinstance(a, Mapping) else list(a)) if several else [a, a if b is None else b]
    if len(listed) != 2:
        raise InputError(f"layerwise takes two networks, and was given {len(listed)}. Give two.")
    one, other = _recordings(listed, show)
    names = list(a) if isinstance(a, Mapping) else _names([one.name, other.name])
    rows, columns, values = similarities(one, other)
    about = {"n": one.n, "probe": one.probe, "note": NOTE}
    bounds = get(MEASURE).info.bounds
    return LayerMatrix(names[0], names[1], rows, columns, values, MEASURE, about, larger_is="more alike", bounds=bounds)


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


def _recordings(things: Sequence[Any], show: Show) -> list[Recording]:
    """Everything as recordings of one probe; networks are recorded on the data."""
    recordings = []
    for thing in things:
        if is_recording(thing):
            recordings.append(opened(thing))
        else:
            show.check_data(
                "a comparison with recordings", str(thing) if isinstance(thing, str) else type(thing).__name__
            )
            recordings.append(record_layers(thing, next(iter(named_networks([thing]))), show))
    for recording in recordings[1:]:
        check_one_probe(recordings[0], recording)
    return recordings


def _names(names: Sequence[str]) -> list[str]:
    """Names that differ: what repeats is numbered."""
    return [f"{name}#{names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)]


def _score(a: Recording, b: Recording, layer: Any) -> float:
    """Debiased CKA of one layer, by default the last that both have sketches of."""
    both = [name for name, sketch in a.layers.items() if sketch.similarity is not None and name in b.layers]
    both = [name for name in both if b.layers[name].similarity is not None]
    if isinstance(layer, str):
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
