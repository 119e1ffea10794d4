"""Films of class similarity: every epoch's matrices as an HTML page with a slider, or as a GIF.

Matrices travel as one byte per entry; more than 200 classes are averaged down to 200 x 200, which is what a screen
shows anyway.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import write_whole
from likewise._base.names import visible, visible_all
from likewise.classes.epoch_report import panels
from likewise.classes.pictures.still import TITLES, matrices
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.classes.inspector import Inspector

LARGEST = 200


def animate(
    inspector: Inspector,
    path: str | Path,
    *,
    epochs: Sequence[int] | None = None,
    title: str = "What the network finds alike",
    seconds: float = 0.4,
) -> Path:
    """Write the matrices of an inspected training as a film: an HTML page with a slider, or a GIF.

    The page needs nothing from outside. More than 200 classes are averaged down to 200 x 200.

    Args:
        inspector: What watched the training.
        path: Where to write it; ends in .html or .gif.
        epochs: The numbers of the epochs; by default all, without those whose weights alone were reported where others
            have more.
        title: The title of the film.
        seconds: How long one epoch is shown.

    Raises:
        InputError: No epoch was reported, the epochs have no matrix in common, or the path ends otherwise.
    """
    target = Path(path)
    reports = inspector.records.reports
    counted = [number for number in sorted(reports) if "samples" in reports[number]]
    numbers = (counted or sorted(reports)) if epochs is None else list(epochs)
    if not numbers:
        raise InputError("no epoch was reported yet, so there is nothing to animate.")
    writers = {".html": _page, ".gif": _gif}
    if target.suffix not in writers:
        raise InputError(f"{target.name} must end in .html or .gif.")
    write_whole(target, writers[target.suffix](inspector, numbers, title, seconds))
    return target


def _frames(inspector: Inspector, numbers: Sequence[int]) -> tuple[list[dict[str, ClassSimilarity]], ClassSimilarity]:
    """The matrices that all epochs have, and the one whose order of classes all are shown in."""
    epochs = [inspector.matrices(number) for number in numbers]
    kinds = [kind for kind in TITLES if all(kind in epoch for epoch in epochs)]
    if not kinds:
        raise InputError("these epochs have no matrix in common, so there is nothing to animate.")
    frames = [{kind: epoch[kind] for kind in kinds} for epoch in epochs]
    return frames, inspector.reference or frames[-1][kinds[0]]


def _page(inspector: Inspector, numbers: Sequence[int], title: str, seconds: float) -> bytes:
    from matplotlib import colormaps

    frames, ordering = _frames(inspector, numbers)
    names = ordering.order()
    films = [
        {"title": TITLES[kind], "frames": _bytes([frame[kind].only(names) for frame in frames])} for kind in frames[0]
    ]
    if inspector.reference is not None:
        still = _bytes([inspector.reference.only(names)])
        films.append({"title": "meaning (WordNet)", "frames": still})
    table, titles = inspector.curves().loc[list(numbers)], panels()
    lines = {
        title: [None if v != v else round(v, 5) for v in table[name].tolist()]
        for name, title in titles.items()
        if name in table
    }
    colours = (colormaps["viridis"](np.arange(256))[:, :3] * 255).round().astype(int)
    content = {
        "title": title,
        "epochs": list(numbers),
        "classes": names,
        "size": min(len(names), LARGEST),
        "borders": [start / len(names) for start, _, _ in ordering.borders(names)[1:]],
        "films": films,
        "curves": lines,
        "chance": {titles[k]: round(v, 5) for k, v in inspector.chance().items() if k in titles},
        "colours": colours.tolist(),
        "seconds": seconds,
    }
    page = files("likewise.classes").joinpath("film.html").read_text(encoding="utf-8")
    # no sign that could open or close an element or a comment is left inside the script
    data = json.dumps(visible_all(content), ensure_ascii=False).replace("<", "\\u003c")
    return page.replace("/*DATA*/null", data).encode()


def _bytes(frames: Sequence[ClassSimilarity]) -> dict[str, Any]:
    """Frames of one kind on one scale, 255 for the largest entry off the diagonal, 0 for undefined ones."""
    grids = np.stack([_reduced(matrix) for matrix in frames])
    if frames[0].kind == "confusion":  # most entries are near 0
        grids = np.sqrt(np.maximum(grids, 0))
    low, high = _limits(grids)
    scaled = (grids - low) / (high - low if high > low else 1)
    whole = np.nan_to_num(1 + 254 * scaled, nan=0.0).round().astype(np.uint8)
    return {
        "data": base64.b64encode(whole.tobytes()).decode(),
        "count": len(frames),
        "low": round(low**2 if frames[0].kind == "confusion" else low, 4),
        "high": round(high**2 if frames[0].kind == "confusion" else high, 4),
    }


def _limits(grids: np.ndarray | list[np.ndarray]) -> tuple[float, float]:
    """The smallest and the largest entry of all frames, so that they can be compared."""
    finite = np.asarray(grids)[np.isfinite(grids)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _reduced(matrix: ClassSimilarity) -> np.ndarray:
    values = matrix.off_diagonal()
    if len(values) <= LARGEST:
        return values
    cuts = np.linspace(0, len(values), LARGEST + 1).astype(int)[:-1]
    finite = np.isfinite(values)
    sums, counts = (
        np.add.reduceat(np.add.reduceat(grid, cuts, axis=0), cuts, axis=1)
        for grid in (np.where(finite, values, 0.0), finite.astype(float))
    )
    return sums / np.where(counts > 0, counts, np.nan)


def _gif(inspector: Inspector, numbers: Sequence[int], title: str, seconds: float) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    frames, ordering = _frames(inspector, numbers)
    names, pictures = ordering.order(), []
    limits = {kind: _limits([frame[kind].off_diagonal() for frame in frames]) for kind in frames[0]}
    for number, frame in zip(numbers, frames, strict=True):
        titled = {f"{TITLES[kind]}, epoch {number}": matrix for kind, matrix in frame.items()}
        figure = matrices(titled, order=names)
        figure.suptitle(visible(title), fontsize=10, parse_math=False)
        for axis, kind in zip(figure.axes, frame, strict=False):  # the scales come after
            axis.images[0].set_clim(*limits[kind])
        figure.set_dpi(80)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    content = io.BytesIO()
    pause = [int(1000 * seconds)] * (len(pictures) - 1) + [int(4000 * seconds)]
    pictures[0].save(content, format="GIF", save_all=True, append_images=pictures[1:], duration=pause, loop=0)
    return content.getvalue()
