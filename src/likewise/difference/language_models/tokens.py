"""What a changed language model says otherwise: distributions over the next token, tokens and positions that drift.

Every number is over texts: a token, or a range of positions, drifts where it moves more than the rest of the same texts
does, text by text (Wilcoxon's signed-rank test), with the false discovery rate over all that are tested held at 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError
from likewise.language import Estimate, TokenAnswers
from likewise.measures.function import Measure

LEVEL = 0.05
CLOSE, CHANGED = (0.02, 0.95), (0.2, 0.8)  # most KL divergence, and least share of the same top token
FEWEST = 6  # texts that a token or a range of positions is tested on
EDGES = (0, 8, 16, 32, 64, 128, 256, 512)  # ranges of positions
STATISTICS = {"kl": "mean", "delta-p": "rms"}  # of measures that have several, the one by default
NAMES = {"perplexity-change": "log-perplexity-ratio"}  # in the statistics
KEPT, AROUND = 8, 6  # texts that are kept, and tokens that are shown before the one where they part


@dataclass(frozen=True)
class Drift:
    """A token, or a range of positions, and how much more it moves than the rest of the same texts."""

    name: str
    count: int  # how many tokens of the texts it is
    texts: int  # how many texts have it
    kl: float  # mean KL divergence there
    q: float  # how likely so much is by chance, over all that were tested

    @property
    def sure(self) -> bool:
        """Whether it moves more than the rest of the texts does."""
        return self.q <= LEVEL


@dataclass(frozen=True)
class ChangedText:
    """A text on which the two differ, and where they part first."""

    row: int
    kl: float  # mean KL divergence over the text
    position: int | None  # of the first token at which the most likely one differs; None where there is none
    before: str  # what was read until then, its last words
    was: str  # what the first network expects
    now: str  # what the second expects
    truth: str  # what stands there


@dataclass(frozen=True)
class TokenChange:
    """What two language models say of every token of the same texts."""

    kind: str
    tokens: int  # how many tokens were asked for
    texts: int
    cut: int  # texts that were longer than what was read
    comparable: bool  # whether both read the same tokens
    statistics: Mapping[str, Estimate]
    perplexity: tuple[float, float]
    bits_per_byte: tuple[float, float] | None
    drifting_tokens: tuple[Drift, ...]
    drifting_positions: tuple[Drift, ...]
    changed: tuple[ChangedText, ...]  # the largest changes first
    rounding: float  # mean KL divergence that the precision of the second alone makes; 0 where precisions are the same

    @property
    def within_rounding(self) -> bool:
        """Whether the answers differ by no more than rounding does."""
        return self.comparable and self.statistics["kl"].value <= max(2 * self.rounding, 1e-9)

    def keeps(self, limits: tuple[float, float]) -> bool:
        """Whether KL divergence and the same top token keep two limits."""
        if not self.comparable:
            return False
        return self.statistics["kl"].value <= limits[0] and self.statistics["same-top"].value >= limits[1]


def token_changes(answers: TokenAnswers, rounding: float = 0.0) -> TokenChange:
    """What changed from the first language model to the second."""
    same = answers.comparable
    return TokenChange(
        kind=answers.kind,
        tokens=len(answers.a.loss),
        texts=answers.n,
        cut=max(answers.a.cut, answers.b.cut),
        comparable=same,
        statistics=answers.statistics(),
        perplexity=(answers.a.perplexity, answers.b.perplexity),
        bits_per_byte=answers.bits_per_byte(),
        drifting_tokens=_drifts(answers, *_by_token(answers)) if same else (),
        drifting_positions=_drifts(answers, *_by_position(answers)) if same else (),
        changed=tuple(_changed(answers)) if same else (),
        rounding=rounding,
    )


def token_score(tokens: TokenChange, measure: Measure) -> tuple[float, str]:
    """The value of a measure of next tokens, or why it is undefined."""
    statistic = measure.options.get("statistic", STATISTICS.get(measure.name, "mean"))
    name = NAMES.get(measure.name, measure.name)
    name = name if statistic == "mean" else f"{name}-{statistic}"
    if measure.name not in ("kl", "same-top", "delta-p", "perplexity-change", "bits-per-byte-change"):
        raise InputError(f"diff has no {measure.key} of language models. Use likewise.compare.")
    if name not in tokens.statistics:
        return float("nan"), "the two read the texts by different tokens"
    value = tokens.statistics[name].value
    return (abs(value) if measure.name.endswith("-change") else value), ""


def _by_token(answers: TokenAnswers) -> tuple[Array, dict[int, str]]:
    """The group of every token: which one it is."""
    assert answers.token is not None
    return answers.token, {token: repr(answers.words([token])) for token in np.unique(answers.token).tolist()}


def _by_position(answers: TokenAnswers) -> tuple[Array, dict[int, str]]:
    """The group of every token: the range of its position."""
    edges = np.array([*EDGES, max(int(answers.a.position.max()) + 1, EDGES[-1] + 1)])
    group = np.searchsorted(edges, answers.a.position, side="right") - 1
    return group, {i: f"positions {low} to {high - 1}" for i, (low, high) in enumerate(pairwise(edges.tolist()))}


def _drifts(answers: TokenAnswers, group: Array, names: Mapping[int, str]) -> tuple[Drift, ...]:
    """Groups of tokens that move more than the rest of their texts, the surest first."""
    from scipy.stats import false_discovery_control, wilcoxon

    assert answers.kl is not None
    kl, text = answers.kl, answers.groups
    _, text = np.unique(text, return_inverse=True)
    count = int(text.max()) + 1
    sums, sizes = np.bincount(text, kl, count), np.bincount(text, minlength=count)
    rows, chances = [], []
    for key in np.unique(group).tolist():
        inside = group == key
        own, many = np.bincount(text[inside], kl[inside], count), np.bincount(text[inside], minlength=count)
        both = (many > 0) & (many < sizes)
        if both.sum() < FEWEST:
            continue
        apart = own[both] / many[both] - (sums - own)[both] / (sizes - many)[both]
        if not np.any(apart):
            continue
        chances.append(float(wilcoxon(apart, alternative="greater").pvalue))
        rows.append((names[key], int(inside.sum()), int((many > 0).sum()), float(kl[inside].mean())))
    if not rows:
        return ()
    corrected = false_discovery_control(chances)
    drifts = [Drift(*row, q=float(chance)) for row, chance in zip(rows, corrected, strict=True)]
    return tuple(sorted(drifts, key=lambda drift: (drift.q, -drift.kl)))


def _changed(answers: TokenAnswers) -> Iterator[ChangedText]:
    """The texts with the largest mean KL divergence, and where the most likely tokens part."""
    assert answers.kl is not None
    assert answers.token is not None
    text = answers.a.text
    sizes = np.bincount(text, minlength=answers.n)
    means = np.bincount(text, answers.kl, answers.n) / np.maximum(sizes, 1)
    for row in np.argsort(-means, kind="stable")[:KEPT].tolist():
        rows = np.flatnonzero(text == row)
        if not len(rows) or means[row] == 0:
            continue
        parts = rows[answers.a.top[rows] != answers.b.top[rows]]
        if not len(parts):
            yield ChangedText(row, float(means[row]), None, "", "", "", "")
            continue
        first = int(parts[0])
        before = answers.token[[i for i in rows if i < first and answers.kind != "masked"][-AROUND:]]
        was, now, truth = (
            answers.words([int(tokens[first])]) for tokens in (answers.a.top, answers.b.top, answers.token)
        )
        position = int(answers.a.position[first])
        yield ChangedText(
            row, float(means[row]), position, answers.words(before.tolist()) if len(before) else "", was, now, truth
        )
