"""The panel of inputs: which of them two networks see differently, as pictures or texts with both answers."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.comparison.influence import LEFT_OUT, Influence
from likewise.report.families import Zoo
from likewise.report.panels.matrix import Panel
from likewise.report.panels.packing import packed

SHOWN, LONGEST, PAIRS = 8, 400, 3000  # inputs per pair; letters of a text; pairs times measures that keep all of them


def inputs_panel(found: Sequence[Influence], zoo: Zoo) -> Panel | None:
    """Which inputs pull the likeness of a pair down most."""
    known = [one for one in found if set(one.names) <= set(zoo.names)]
    if not known:
        return None
    one = known[0]
    names = ", ".join(one.measures)
    worst, counts = np.unique(one.rows[one.rows >= 0][..., None], return_counts=True)
    share = counts.max() / (counts.sum() or 1) if len(counts) else 0.0
    answer = f"By {names}: for each pair, the inputs that pull likeness down most."
    if len(worst):
        label = _class(one, int(one.labels[worst[counts.argmax()]]))
        answer += (
            f" Input {int(worst[counts.argmax()])}{f' ({label})' if label else ''} stands among them most often, in "
            f"{share:.0%} of all places."
        )
    return Panel(
        "inputs",
        "Which inputs do two networks see differently?",
        answer,
        "Choose a pair and a measure. Where a measure has a score per input (pnka: does it keep its place among the "
        "others?), "
        "that is the number, and low is bad. Elsewhere it is the score with the input minus the score without it, so "
        "that "
        "below 0 the pair would be more alike without it. Below each input stands what either network takes it for.",
        {"sets": [_set(each, zoo) for each in known]},
        (),
        ("inputs",),
    )


def _set(one: Influence, zoo: Zoo) -> dict[str, Any]:
    places = [zoo.names.index(name) for name in one.names]
    pairs = len(one.measures) * len(one.names) ** 2
    kept = min(SHOWN if pairs <= PAIRS else 3, one.rows.shape[-1])
    rows, values = one.rows[..., :kept], one.values[..., :kept]
    used = sorted(set(rows[rows >= 0].tolist()))
    shown = {row: place for place, row in enumerate(one.shown)}
    pictures, texts = {}, {}
    for row in used:
        if row in shown and len(one.pictures):
            pictures[row] = base64.b64encode(png(one.pictures[shown[row]])).decode()
        elif row in shown and one.texts:
            text = one.texts[shown[row]]
            texts[row] = text[:LONGEST] + "…" * (len(text) > LONGEST)
    return {
        "networks": places,
        "measures": [{"label": m, "left_out": how == LEFT_OUT} for m, how in zip(one.measures, one.how, strict=True)],
        "kept": kept,
        "rows": packed(rows.reshape(-1, kept)),
        "values": packed(values.reshape(-1, kept)),
        "labels": {row: _class(one, int(one.labels[row])) for row in used},
        "answers": {row: [_class(one, int(each)) for each in one.predictions[:, row]] for row in used},
        "pictures": pictures,
        "texts": texts,
    }


def _class(one: Influence, number: int) -> str:
    if number < 0:
        return ""
    return one.classes[number] if number < len(one.classes) else f"class {number}"


def png(image: np.ndarray[Any, Any]) -> bytes:
    """An image (height, width, 1 or 3) of bytes as a PNG file.

    >>> png(np.zeros((2, 2, 1), dtype=np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width, channels = image.shape
    lines = b"".join(b"\x00" + row.tobytes() for row in np.ascontiguousarray(image, dtype=np.uint8))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
