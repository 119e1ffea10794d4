"""What changed in the words of two language models: sentences, and the texts that changed most."""

from __future__ import annotations

import math

from likewise.difference.language_models.tokens import CLOSE, Drift, TokenChange
from likewise.language import Estimate

MOST = 3  # tokens and positions that are named
SHOWN = 5  # texts


def token_findings(tokens: TokenChange) -> dict[str, str]:
    """One or two sentences per subject."""
    sentences = {"tokens": _distributions(tokens), "perplexity": _perplexity(tokens)}
    if tokens.comparable:
        sentences["drift"] = _drift(tokens)
    cut = f" {tokens.cut} were longer than what was read, and are cut." if tokens.cut else ""
    kind = {"causal": "next tokens", "masked": "hidden tokens", "seq2seq": "tokens of the targets"}[tokens.kind]
    sentences["texts"] = f"{tokens.tokens:,} {kind} of {tokens.texts:,} texts.{cut}"
    return sentences


def _distributions(tokens: TokenChange) -> str:
    if not tokens.comparable:
        return "not compared: the two read the texts by different tokens. Bits per byte and layers can be compared."
    numbers = tokens.statistics
    rounding = f" Its precision alone makes {tokens.rounding:.2g}." if tokens.rounding else ""
    return (
        f"KL divergence {_interval(numbers['kl'])} nats on average, {numbers['kl-p99'].value:.3g} at 99 % of tokens, "
        f"{numbers['kl-largest'].value:.3g} at most.{rounding} The most likely token is the same at "
        f"{_interval(numbers['same-top'], share=True)} of them (close: at most {CLOSE[0]:g} and at least "
        f"{100 * CLOSE[1]:g} %). The true token's probability changes by {numbers['delta-p-rms'].value:.3g} (root mean "
        f"square), {numbers['delta-p'].value:+.2g} on average."
    )


def _perplexity(tokens: TokenChange) -> str:
    before, after = tokens.perplexity
    ratio, bits = tokens.statistics.get("log-perplexity-ratio"), tokens.bits_per_byte
    words = []
    if ratio is not None:
        ends = f" [{100 * math.expm1(ratio.low):+.2g}, {100 * math.expm1(ratio.high):+.2g}]"
        interval = "" if math.isnan(ratio.low) else ends
        words.append(f"{before:.4g} → {after:.4g} ({100 * math.expm1(ratio.value):+.2g}{interval} %)")
    if bits is not None:
        change = tokens.statistics["bits-per-byte-change"]
        words.append(f"bits per byte {bits[0]:.4g} → {bits[1]:.4g}, by {_interval(change)}")
    return "; ".join(words) + "." if words else f"{before:.4g} → {after:.4g}, of different tokens."


def _drift(tokens: TokenChange) -> str:
    found = [drift for drift in (*tokens.drifting_positions, *tokens.drifting_tokens) if drift.sure]
    if not found:
        return "no token and no range of positions moves significantly more than the rest of the texts."
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    return f"moving more than the rest of the texts: {', '.join(map(_named, found[:MOST]))}{more}."


def _named(drift: Drift) -> str:
    return f"{drift.name} (KL {drift.kl:.2g}, in {drift.texts} texts)"


def _interval(estimate: Estimate, *, share: bool = False) -> str:
    scale, unit = (100, " %") if share else (1, "")
    value = f"{scale * estimate.value:.3g}{unit}"
    return value if math.isnan(estimate.low) else f"{value} [{scale * estimate.low:.3g}, {scale * estimate.high:.3g}]"


def changed_table(tokens: TokenChange) -> list[list[str]]:
    """The texts that changed most, with the token at which the two part first."""
    rows = [["text", "KL", "after", "was", "now", "truth"]]
    for text in tokens.changed[:SHOWN]:
        words = ["…" + text.before, text.was, text.now, text.truth] if text.position is not None else ["", "", "", ""]
        rows.append([str(text.row), f"{text.kl:.2g}", *(" ".join(word.split()) for word in words)])
    return rows


def changed_lines(tokens: TokenChange) -> list[str]:
    """The same for a terminal."""
    table = changed_table(tokens)
    columns = [
        [cell if len(cell) <= 34 else f"…{cell[-33:]}" for cell in column] for column in zip(*table, strict=True)
    ]
    padded = [[f"{cell:{max(map(len, column))}}" for cell in column] for column in columns]
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
