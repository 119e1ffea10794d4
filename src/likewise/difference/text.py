"""A `Diff` in words: sentences for a terminal, GitHub's Markdown for a pull request, HTML for a notebook.

Names of networks, layers and classes, and texts that flip, come from people: nothing in them can become markup.
"""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from likewise.difference.inputs import Shown, as_address
from likewise.difference.layers import DIVERGED, LayerChange

if TYPE_CHECKING:
    from likewise.difference.answers import Answers, ClassDrift, Flip
    from likewise.difference.result import Diff

WIDTH, LABEL = 80, 10
FLIPS, TEXT, ROWS = 8, 60, 12  # flips that are shown, letters of a text, rows of layers and classes
LEVEL = 0.05


def findings(diff: Diff) -> dict[str, str]:
    """What was found, by what was looked at."""
    found = {"layers": _layers(diff), "weights": _weights(diff)}
    if isinstance(diff.answers, str):
        found["answers"] = f"not compared: {diff.answers}."
    else:
        found["answers"] = _answers(diff.answers)
        found |= {"accuracy": _accuracy(diff.answers)} if diff.answers.accuracy is not None else {}
        found |= {"classes": _classes(diff.answers)} if diff.answers.flips else {}
    found["attacks"] = _attacks(diff)
    found["measures"] = "; ".join(_scores(diff)) + f" ({diff.looked_at}, n = {diff.n})."
    return found


def _scores(diff: Diff) -> Iterable[str]:
    for name, value in diff.scores.items():
        yield f"{name} undefined" if math.isnan(value) else f"{name} {value:.4g}"


def _layers(diff: Diff) -> str:
    count, first, fallen = len(diff.layers), diff.first_moved, diff.first_diverged
    if not count:
        return "none could be held against each other."
    if first is None:
        exact = all(layer.change == 0 for layer in diff.layers)
        return f"all {count} give the same numbers{'' if exact else ' but for rounding'}."
    lines = []
    if diff.same_layers:
        before = diff.layers.index(first)
        rest = "it is the first of all" if not before else f"the {before} before it give the same numbers"
        lines.append(f"{first.layer} is the first to change ({_size(first)}); {rest}.")
    else:
        lines.append("the networks are of different kinds, so each layer is held against its nearest.")
    least = min((layer for layer in diff.layers if layer.likeness == layer.likeness), key=_likeness, default=None)
    if fallen is not None:
        nearest = "" if diff.same_layers else f", nearest to {fallen.counterpart}"
        lines.append(f"{fallen.layer} is the first to diverge, below {DIVERGED} ({fallen.likeness:.3f}{nearest}).")
    elif least is not None:
        lines.append(f"None diverges, below {DIVERGED}; {least.layer} comes nearest ({least.likeness:.3f}).")
    return " ".join(lines)


def _likeness(layer: LayerChange) -> float:
    return layer.likeness


def _size(layer: LayerChange) -> str:
    likeness = "undefined" if math.isnan(layer.likeness) else f"{layer.likeness:.3f}"
    return f"by {percent(layer.change)}, cka-debiased {likeness}"


def _weights(diff: Diff) -> str:
    found = diff.weights
    if not found.shared:
        return "none have the same name and shape."
    words = [f"{len(found.changed)} of {found.shared} tensors differ"]
    if found.changed:
        shown = [f"{name} by {percent(change)}" for name, change in found.changed[:2]]
        more = f" and {len(found.changed) - 2} more" if len(found.changed) > 2 else ""
        words[0] += f": {', '.join(shown)}{more}"
    if found.other:
        words.append(f"{found.other} are in one network only or have another shape")
    if abs(found.zeros[1] - found.zeros[0]) >= 0.01:
        words.append(f"zeros {percent(found.zeros[0])} → {percent(found.zeros[1])}")
    return "; ".join(words) + "."


def _answers(answers: Answers) -> str:
    share = f"{percent(answers.disagreement)} [{percent(answers.low)}, {percent(answers.high)}]"
    return f"{len(answers.flips)} of {answers.n} flip: {share}."


def _accuracy(answers: Answers) -> str:
    before, after = answers.accuracy or (math.nan, math.nan)
    sure = f"p = {answers.p:.2g}"
    verdict = sure if answers.p <= LEVEL else f"a difference cannot be told, {sure}, n = {answers.n}"
    return f"{percent(before)} → {percent(after)} ({verdict})."


def _classes(answers: Answers) -> str:
    sure = [each for each in answers.classes if each.sure]
    if not sure:
        first = answers.classes[0]
        return f"none drifts more than the others can be told to; most flips: {_drift(first)}."
    more = f" and {len(sure) - 3} more" if len(sure) > 3 else ""
    return f"drifting more than the others: {', '.join(map(_drift, sure[:3]))}{more}."


def _drift(each: ClassDrift) -> str:
    right = "" if math.isnan(each.before) else f", {percent(each.before)} → {percent(each.after)} right"
    return f"{each.name} ({each.flips} of {each.count} flip{right})"


def _attacks(diff: Diff) -> str:
    found = diff.transfer
    if isinstance(found, str):
        return f"not compared: {found}."
    a, b = diff.names
    return (
        f"{found.attack} examples ({found.iterations} steps) made from {a} fool it on {percent(found.itself)} and {b} "
        f"on {percent(found.other)} of the {found.count} inputs both classify correctly."
    )


def percent(share: float) -> str:
    """A share in percent, with as many digits as say something.

    >>> percent(0.5), percent(0.0123), percent(0.00004), percent(0)
    ('50.0 %', '1.2 %', '0.004 %', '0 %')
    """
    value = 100 * share
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "∞ %"
    if abs(value) < 1e-9:
        return "0 %"
    return f"{value:.1f} %" if abs(value) >= 0.1 else f"{value:.1g} %"


def as_text(diff: Diff) -> str:
    """For a terminal, 80 columns wide."""
    title = f"{diff.names[0]} → {diff.names[1]} on {diff.data} ({diff.n} inputs): {diff.verdict}"
    lines = [*textwrap.wrap(title, WIDTH), ""]
    for label, text in findings(diff).items():
        lines += _wrapped(label, text)
    lines += ["", *_flip_lines(diff)] if not isinstance(diff.answers, str) and diff.answers.flips else []
    lines += ["", *(f"{'ok    ' if check.ok else 'FAILED'} {check}" for check in diff.checks)] if diff.checks else []
    return "\n".join(lines)


def _wrapped(label: str, text: str) -> list[str]:
    rest = " " * LABEL
    return textwrap.wrap(text, WIDTH, initial_indent=f"{label:{LABEL}}", subsequent_indent=rest, break_long_words=False)


def _flip_lines(diff: Diff) -> list[str]:
    rows = [["input", "truth", "was", "now", "text"]]
    for flip, shown in _flips(diff):
        rows.append([str(flip.row), flip.truth or "", flip.before, flip.after, _one_line(shown, 30)])
    used = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in used]
    shown_rows = zip(*used, strict=True)
    lines = ["  ".join(f"{cell:{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip() for row in shown_rows]
    return [*lines, *_more(diff)]


def _flips(diff: Diff) -> list[tuple[Flip, Shown]]:
    flips: Sequence[Flip] = () if isinstance(diff.answers, str) else diff.answers.flips
    return list(zip(flips, diff.inputs, strict=False))[:FLIPS]


def _more(diff: Diff) -> list[str]:
    rest = 0 if isinstance(diff.answers, str) else len(diff.answers.flips) - FLIPS
    return [f"and {rest} more, less sure of themselves"] if rest > 0 else []


def _one_line(shown: Shown, most: int = TEXT) -> str:
    text = " ".join(shown.split()) if isinstance(shown, str) else ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def as_markdown(diff: Diff, picture: str | None = None) -> str:
    """GitHub's Markdown; with the path of a picture, that is shown too."""
    a, b = map(escaped, diff.names)
    parts = [f"### {a} → {b}: {diff.verdict}", f"On {escaped(diff.data)}, {diff.n} inputs."]
    if diff.checks:
        rows = [["✅" if check.ok else "❌", escaped(str(check))] for check in diff.checks]
        parts.append(_table(["", "threshold"], rows))
    rows = [[f"**{label}**", escaped(text)] for label, text in findings(diff).items()]
    parts.append(_table(["", "what changed"], rows))
    parts += [f"![layers and flips]({picture})"] if picture else []
    parts.append(_folded("Layers", _table(["layer", "cka-debiased", "change"], _layer_rows(diff))))
    if not isinstance(diff.answers, str) and diff.answers.flips:
        flips = [
            [str(flip.row), *map(escaped, (flip.truth or "", flip.before, flip.after, _one_line(shown)))]
            for flip, shown in _flips(diff)
        ]
        table = _table(["input", "truth", "was", "now", "text"], flips)
        parts.append(_folded("Answers that flip", "\n".join([table, *_more(diff)])))
    return "\n\n".join(parts) + "\n"


def _layer_rows(diff: Diff) -> list[list[str]]:
    return [
        [escaped(each.layer), number(each.likeness), "" if math.isnan(each.change) else percent(each.change)]
        for each in shown_layers(diff)
    ]


def shown_layers(diff: Diff) -> list[LayerChange]:
    """The blocks, thinned where they are many, and the layers that were named."""
    blocks = [each for each in diff.layers if each.block] or list(diff.layers)
    step = max(1, math.ceil(len(blocks) / ROWS))
    named = (diff.first_moved, diff.first_diverged, diff.layers[-1] if diff.layers else None)
    wanted = [*blocks[::step], *(each for each in named if each is not None)]
    return [each for each in diff.layers if each in wanted]


def number(value: float) -> str:
    """Three digits, or a dash for what is undefined."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is: no markup, no mention, no link, no end of a cell.

    >>> escaped("a|b *c* <img> @all")
    'a\\\\|b \\\\*c\\\\* &lt;img&gt; &#64;all'
    """
    plain = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", plain).replace("://", "&#58;//").replace("@", "&#64;")


def as_html(diff: Diff) -> str:
    """For a notebook, with images that flip."""
    title = html.escape(f"{diff.names[0]} → {diff.names[1]} on {diff.data} ({diff.n} inputs): {diff.verdict}")
    rows = [f"<tr><th>{label}</th><td>{html.escape(text)}</td></tr>" for label, text in findings(diff).items()]
    cells = [_html_flip(flip, shown) for flip, shown in _flips(diff)]
    failed = "".join(f"<p>FAILED {html.escape(line)}</p>" for line in diff.failures)
    return (
        f"<p><b>{title}</b></p>{failed}<table style='text-align:left'>{''.join(rows)}</table>"
        f"<div style='display:flex;flex-wrap:wrap;gap:8px'>{''.join(cells)}</div>"
    )


def _html_flip(flip: Flip, shown: Shown) -> str:
    truth = "" if flip.truth is None else f" ({html.escape(flip.truth)})"
    words = f"{flip.row}: {html.escape(flip.before)} → {html.escape(flip.after)}{truth}"
    what = ""
    if isinstance(shown, str):
        what = f"<blockquote>{html.escape(_one_line(shown, 200))}</blockquote>"
    elif isinstance(shown, np.ndarray):
        style = "height:64px;image-rendering:pixelated"
        what = f"<img src='{as_address(shown)}' alt='input {flip.row}' style='{style}'>"
    return f"<figure style='margin:0'>{what}<figcaption>{words}</figcaption></figure>"
