"""Which inputs do two networks see differently? As pictures or texts, with both answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.comparison.influence import LEFT_OUT, Influence
from likewise.difference.inputs import data_url
from likewise.report.panels.panel import Material, Panel, pack
from likewise.report.words import listed, with_full_name

INPUTS, FEWER, PAIRS = 8, 3, 3000  # inputs per pair, fewer where there are more pairs times measures than this
LONGEST = 400  # letters of a text


def panel(material: Material) -> Panel | None:
    """The inputs that lower the similarity of a pair most."""
    names = material.networks.names
    influences = [influence for influence in material.runs.inputs if set(influence.names) <= set(names)]
    if not influences:
        return None
    first = influences[0]
    measures = listed([with_full_name(measure) for measure in first.measures])
    answer = f"By {measures}: for each pair, the inputs that lower similarity most."
    rows, counts = np.unique(first.rows[first.rows >= 0], return_counts=True)
    if len(rows):
        row = int(rows[counts.argmax()])
        label = _class(first, int(first.labels[row]))
        share = counts.max() / counts.sum()
        answer += f" Input {row}{f' ({label})' if label else ''} is listed most often, with {share:.0%} of all entries."
    return Panel(
        "inputs",
        "Which inputs do two networks see differently?",
        answer,
        "Choose a pair and a measure. Where a measure has a score per input (pnka: does it keep its place among the "
        "others?), that is the number, and low is bad. Elsewhere it is the score with the input minus the score "
        "without it: below 0, the pair would be more alike without it. Below each input are both answers.",
        {"sets": [_set(influence, names) for influence in influences]},
        (),
        ("inputs",),
    )


def _set(influence: Influence, names: tuple[str, ...]) -> dict[str, Any]:
    pairs = len(influence.measures) * len(influence.names) ** 2
    count = min(INPUTS if pairs <= PAIRS else FEWER, influence.rows.shape[-1])
    rows, values = influence.rows[..., :count], influence.values[..., :count]
    listed = sorted(set(rows[rows >= 0].tolist()))
    index = {row: i for i, row in enumerate(influence.shown)}
    pictures, texts = {}, {}
    for row in listed:
        if row in index and len(influence.pictures):
            pictures[row] = data_url(influence.pictures[index[row]])
        elif row in index and influence.texts:
            text = influence.texts[index[row]]
            texts[row] = text[:LONGEST] + "…" * (len(text) > LONGEST)
    return {
        "networks": [names.index(name) for name in influence.names],
        "measures": [
            {"label": measure, "left_out": method == LEFT_OUT}
            for measure, method in zip(influence.measures, influence.how, strict=True)
        ],
        "kept": count,
        "rows": pack(rows.reshape(-1, count)),
        "values": pack(values.reshape(-1, count)),
        "labels": {row: _class(influence, int(influence.labels[row])) for row in listed},
        "answers": {row: [_class(influence, int(k)) for k in influence.predictions[:, row]] for row in listed},
        "pictures": pictures,
        "texts": texts,
    }


def _class(influence: Influence, number: int) -> str:
    if number < 0:
        return ""
    return influence.classes[number] if number < len(influence.classes) else f"class {number}"
