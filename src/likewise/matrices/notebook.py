"""What a notebook shows of a matrix: a table of numbers that is a small heat map, and words around it.

Names come from people, and are escaped: none can become markup. Colours are those of the pictures: bright is alike,
for similarities and distances, and grey is undefined.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.names import visible
from likewise.matrices.heatmap import GREY, Heatmap, scale
from likewise.matrices.tables import ends

if TYPE_CHECKING:
    import pandas as pd

Colours = Sequence[Sequence[str]]
_ELLIPSIS = "…"


def colours(heatmap: Heatmap) -> list[list[str]]:
    """The colour of every cell of a picture, as CSS writes it."""
    from matplotlib import colormaps

    low, high = scale(heatmap)
    shades = np.clip((heatmap.values - low) / (high - low), 0, 1)
    shades = np.sqrt(shades) if heatmap.square_root else shades
    shades = 1 - shades if heatmap.larger_is == "less alike" else shades
    table = (255 * colormaps["viridis"](np.nan_to_num(shades))[..., :3]).astype(int)
    return [
        [GREY if undefined else "#{:02x}{:02x}{:02x}".format(*cell) for cell, undefined in zip(row, nan, strict=True)]
        for row, nan in zip(table.tolist(), np.isnan(shades).tolist(), strict=True)
    ]


def as_html(
    title: str, frame: pd.DataFrame, notes: Sequence[str], shades: Colours | None = None, most: int = 20
) -> str:
    """A title, a table of at most `most` rows and columns, and notes below it."""
    rows, columns = (ends(side, most) for side in frame.shape)
    cells = frame.to_numpy()
    head = "".join(_header(frame.columns[j] if j is not None else _ELLIPSIS) for j in columns)
    side, top = (_escaped(axis.name or "") for axis in (frame.index, frame.columns))
    corner = " / ".join(filter(None, (side, top)))
    lines = [f"<tr><th>{corner}</th>{head}</tr>"]
    for i in rows:
        name = _header(frame.index[i] if i is not None else _ELLIPSIS)
        lines.append(f"<tr>{name}{''.join(_cell(cells, shades, i, j) for j in columns)}</tr>")
    below = "".join(f"<p>{_escaped(note)}</p>" for note in notes)
    return f"<p>{_escaped(title)}</p><table>{''.join(lines)}</table>{below}"


def _cell(cells: Any, shades: Colours | None, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return f"<td>{_ELLIPSIS}</td>"
    style = "" if shades is None else f' style="background:{shades[i][j]};color:{_text_colour(shades[i][j])}"'
    return f"<td{style}>{_escaped(cells[i, j])}</td>"


def _text_colour(colour: str) -> str:
    """Light on dark and dark on light."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#fff" if 0.3 * red + 0.6 * green + 0.1 * blue < 128 else "#000"


def _header(name: Any) -> str:
    return f"<th>{_escaped(name)}</th>"


def _escaped(text: Any) -> str:
    return html.escape(visible(str(text)))
