"""A `Diff` in words: sentences for a terminal, GitHub's Markdown for a pull request, HTML for a notebook.

Names of networks, layers and classes, and texts that flip, come from people: nothing in them can become markup.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from likewise._base.names import visible
from likewise.difference.inputs import Preview, data_url
from likewise.difference.language_models.token_text import changed_lines, changed_table, token_findings
from likewise.difference.layers import DIVERGED, LayerChange
from likewise.matrices.shares import wilson
from likewise.matrices.tables import escape_markdown

if TYPE_CHECKING:
    from likewise.difference.answers import AnswerChange, ClassDrift, Flip
    from likewise.difference.result import Diff

WIDTH, LABEL = 80, 11
FLIPS, TEXT, ROWS = 8, 60, 12  # flips that are shown, letters of a text, rows of layers and classes
LEVEL = 0.05


def findings(diff: Diff) -> dict[str, str]:
    """One or two sentences per subject."""
    sentences = {"layers": _layers(diff), "weights": _weights(diff)}
    if diff.tokens is not None:
        return sentences | token_findings(diff.tokens) | {"measures": _measures(diff)}
    if isinstance(diff.answers, str):
        sentences["answers"] = f"not compared: {diff.answers}."
    else:
        sentences["answers"] = _answers(diff.answers)
        sentences |= {"accuracy": _accuracy(diff.answers)} if diff.answers.accuracy is not None else {}
        sentences |= {"classes": _classes(diff.answers)} if diff.answers.flips else {}
    sentences["attacks"] = _attacks(diff)
    sentences["measures"] = _measures(diff)
    return sentences


def _measures(diff: Diff) -> str:
    scores = (f"{key} undefined" if math.isnan(score) else f"{key} {score:.4g}" for key, score in diff.scores.items())
    return "; ".join(scores) + f" ({diff.looked_at}, n = {diff.n})."


def _layers(diff: Diff) -> str:
    count, first, diverged = len(diff.layers), diff.first_moved, diff.first_diverged
    if not count:
        return "none could be compared."
    if first is None:
        exact = all(layer.change == 0 for layer in diff.layers)
        return f"all {count} give the same numbers{'' if exact else ' but for rounding'}."
    lines = []
    if diff.same_layers:
        before = diff.layers.index(first)
        rest = "it is the first of all" if not before else f"the {before} before it give the same numbers"
        cka = "undefined" if math.isnan(first.likeness) else f"{first.likeness:.3f}"
        lines.append(f"{first.layer} is the first to change (by {percent(first.change)}, cka-debiased {cka}); {rest}.")
        if not diff.layers[-1].moved and not diff.weights.changed:
            lines.append("The last layer agrees again: this is a convention, such as a sum that is taken elsewhere.")
    else:
        lines.append("the networks are of different kinds, so each layer is compared with the most similar one.")
    defined = [layer for layer in diff.layers if not math.isnan(layer.likeness)]
    if diverged is not None:
        nearest = "" if diff.same_layers else f", most like {diverged.counterpart}"
        lines.append(f"{diverged.layer} is the first to diverge, below {DIVERGED} ({diverged.likeness:.3f}{nearest}).")
    elif defined:
        least = min(defined, key=lambda layer: layer.likeness)
        lines.append(f"None diverges, below {DIVERGED}; {least.layer} comes nearest ({least.likeness:.3f}).")
    return " ".join(lines)


def _weights(diff: Diff) -> str:
    shared, changed = diff.weights.shared, diff.weights.changed
    if not shared:
        return "none have the same name and shape."
    words = [f"{len(changed)} of {shared} tensors differ"]
    if changed:
        first = [f"{name} by {percent(change)}" for name, change in changed[:2]]
        more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
        words[0] += f": {', '.join(first)}{more}"
    if diff.weights.other:
        words.append(f"{diff.weights.other} are in one network only or have another shape")
    before, after = diff.weights.zeros
    if abs(after - before) >= 0.01:
        words.append(f"zeros {percent(before)} → {percent(after)}")
    return "; ".join(words) + "."


def _answers(answers: AnswerChange) -> str:
    share = f"{percent(answers.disagreement)} [{percent(answers.low)}, {percent(answers.high)}]"
    return f"{len(answers.flips)} of {answers.n} flip: {share}."


def _accuracy(answers: AnswerChange) -> str:
    before, after = answers.accuracy or (math.nan, math.nan)
    evidence = f"p = {answers.p:.2g}"
    evidence = evidence if answers.p <= LEVEL else f"not significant, {evidence}, n = {answers.n}"
    return f"{percent(before)} → {percent(after)} ({evidence})."


def _classes(answers: AnswerChange) -> str:
    drifting = [drift for drift in answers.classes if drift.sure]
    if not drifting:
        return f"none drifts significantly more than the others; most flips: {_drift(answers.classes[0])}."
    more = f" and {len(drifting) - 3} more" if len(drifting) > 3 else ""
    return f"drifting more than the others: {', '.join(map(_drift, drifting[:3]))}{more}."


def _drift(drift: ClassDrift) -> str:
    right = "" if math.isnan(drift.before) else f", {percent(drift.before)} → {percent(drift.after)} right"
    return f"{drift.name} ({drift.flips} of {drift.count} flip{right})"


def _attacks(diff: Diff) -> str:
    attacks, (a, b) = diff.transfer, diff.names
    if isinstance(attacks, str):
        return f"not compared: {attacks}."
    examples = f"{attacks.attack} examples ({attacks.iterations} steps) made from {a}"
    itself, other = _share(attacks.itself, attacks.right), _share(attacks.other, attacks.count)
    return f"{examples} fool it on {itself} inputs it classifies correctly, and {b} on {other} that both do."


def _share(share: float, count: int) -> str:
    """A share with its interval, of how many inputs."""
    if not count:
        return "none of the 0"
    low, high = wilson(share, count)
    return f"{percent(share)} [{percent(low)}, {percent(high)}] of the {count}"


def percent(share: float) -> str:
    """A share in percent, with as many digits as matter.

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
    lines = [*textwrap.wrap(visible(title), WIDTH), ""]
    for label, text in findings(diff).items():
        first, rest = f"{label:{LABEL}}", " " * LABEL
        lines += textwrap.wrap(
            visible(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False
        )
    lines += ["", *_flip_lines(diff)] if diff.flips else []
    lines += ["", *map(visible, changed_lines(diff.tokens))] if diff.tokens is not None and diff.tokens.changed else []
    lines += (
        ["", *(f"{'ok    ' if check.ok else 'FAILED'} {visible(str(check))}" for check in diff.checks)]
        if diff.checks
        else []
    )
    return "\n".join(lines)


def _flip_lines(diff: Diff) -> list[str]:
    rows = [["input", "truth", "was", "now", "text"]]
    for flip, preview in _flips(diff):
        rows.append([str(flip.row), flip.truth or "", flip.before, flip.after, _one_line(preview, 30)])
    rows = [[visible(cell) for cell in row] for row in rows]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    padded = [[f"{cell:{max(map(len, column))}}" for cell in column] for column in columns]
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)] + _more(diff)


def _flips(diff: Diff) -> list[tuple[Flip, Preview]]:
    shown: list[Preview] = [*diff.inputs, *[None] * FLIPS]  # recordings hold no inputs
    return list(zip(diff.flips, shown, strict=False))[:FLIPS]


def _more(diff: Diff) -> list[str]:
    rest = len(diff.flips) - FLIPS
    return [f"and {rest} more, by smaller margins"] if rest > 0 else []


def _one_line(preview: Preview, most: int = TEXT) -> str:
    text = " ".join(preview.split()) if isinstance(preview, str) else ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def as_markdown(diff: Diff, picture: str | None = None) -> str:
    """GitHub's Markdown, with a picture if its path is given."""
    a, b = map(escape_markdown, diff.names)
    sections = [f"### {a} → {b}: {diff.verdict}", f"On {escape_markdown(diff.data)}, {diff.n} inputs."]
    if diff.checks:
        rows = [["✅" if check.ok else "❌", escape_markdown(str(check))] for check in diff.checks]
        sections.append(_table(["", "threshold"], rows))
    rows = [[f"**{label}**", escape_markdown(text)] for label, text in findings(diff).items()]
    sections.append(_table(["", "what changed"], rows))
    sections += [f"![layers and flips]({picture})"] if picture else []
    sections.append(_details("Layers", _table(["layer", "cka-debiased", "change"], _layer_rows(diff))))
    if diff.flips:
        flips = [
            [str(flip.row), *map(escape_markdown, (flip.truth or "", flip.before, flip.after, _one_line(preview)))]
            for flip, preview in _flips(diff)
        ]
        table = _table(["input", "truth", "was", "now", "text"], flips)
        sections.append(_details("Answers that flip", "\n".join([table, *_more(diff)])))
    if diff.tokens is not None and diff.tokens.changed:
        head, *rows = changed_table(diff.tokens)
        table = _table(head, [list(map(escape_markdown, row)) for row in rows])
        sections.append(_details("Texts that changed most", table))
    return "\n\n".join(sections) + "\n"


def _layer_rows(diff: Diff) -> list[list[str]]:
    return [
        [
            escape_markdown(layer.layer),
            number(layer.likeness),
            "" if math.isnan(layer.change) else percent(layer.change),
        ]
        for layer in listed_layers(diff)
    ]


def listed_layers(diff: Diff) -> list[LayerChange]:
    """The blocks, thinned where they are many, the last layer, and those that sentences name."""
    blocks = [layer for layer in diff.layers if layer.block] or list(diff.layers)
    step = max(1, math.ceil(len(blocks) / ROWS))
    listed = [*blocks[::step], diff.first_moved, diff.first_diverged, *diff.layers[-1:]]
    return [layer for layer in diff.layers if layer in listed]


def number(value: float) -> str:
    """Three digits, or a dash for what is undefined."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _details(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def as_html(diff: Diff) -> str:
    """For a notebook, with images that flip."""
    title = _escaped(f"{diff.names[0]} → {diff.names[1]} on {diff.data} ({diff.n} inputs): {diff.verdict}")
    rows = [f"<tr><th>{label}</th><td>{_escaped(text)}</td></tr>" for label, text in findings(diff).items()]
    cells = [_html_flip(flip, preview) for flip, preview in _flips(diff)]
    failed = "".join(f"<p>FAILED {_escaped(line)}</p>" for line in diff.failures)
    return (
        f"<p><b>{title}</b></p>{failed}<table style='text-align:left'>{''.join(rows)}</table>"
        f"<div style='display:flex;flex-wrap:wrap;gap:8px'>{''.join(cells)}</div>"
    )


def _escaped(text: str) -> str:
    return html.escape(visible(text))


def _html_flip(flip: Flip, preview: Preview) -> str:
    truth = "" if flip.truth is None else f" ({_escaped(flip.truth)})"
    words = f"{flip.row}: {_escaped(flip.before)} → {_escaped(flip.after)}{truth}"
    content = ""
    if isinstance(preview, str):
        content = f"<blockquote>{_escaped(_one_line(preview, 200))}</blockquote>"
    elif isinstance(preview, np.ndarray):
        style = "height:64px;image-rendering:pixelated"
        content = f"<img src='{data_url(preview)}' alt='input {flip.row}' style='{style}'>"
    return f"<figure style='margin:0'>{content}<figcaption>{words}</figcaption></figure>"
