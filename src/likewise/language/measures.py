"""Measures of next tokens: two language models are alike if they expect the same words.

All read one pass of both networks over the texts of the comparison (`answers`), which a pair makes once however many of
these measures are asked for. `likewise.language.answers` gives the same numbers with intervals.
"""

from __future__ import annotations

from typing import Any

from likewise.errors import InputError, UndefinedError
from likewise.language.networks import language_network
from likewise.language.reading import WINDOW, compare_tokens
from likewise.language.result import TokenAnswers
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.workspace import quantity
from likewise.views.show import Show

FACTS: dict[str, Any] = {
    "family": "functional",
    "on": "networks",
    "paired": False,
    "rows": 2,
    "cost": "a pass of both networks",
    "limits": {"window": (2, None), "context": (1, None)},
}
PERPLEXITY = "Jelinek et al. 1977, doi:10.1121/1.2016299"


@quantity
def _answers(pair: Pair, window: int, context: int, seed: int) -> TokenAnswers:
    subjects: list[Any] = [rep.view.subject for rep in (pair.a, pair.b)]
    nets = [language_network(subject.network, device=subject.device) for subject in subjects]
    show = Show(device=subjects[0].device, progress=False)
    names = [rep.view.name for rep in (pair.a, pair.b)]
    return compare_tokens(nets, names, subjects[0].data, show, window=window, context=context, seed=seed)


def _statistic(pair: Pair, name: str, window: int, context: int, seed: int) -> float:
    found = _answers(pair, window, context, seed)
    numbers = found.statistics()
    if name not in numbers:
        reason = (
            "they read the texts by different tokens" if not found.comparable else "only tokens are known, no texts"
        )
        raise UndefinedError(f"{name} is undefined for {pair}: {reason}. Compare bits per byte, or representations.")
    return numbers[name].value


def _check(statistic: str, names: tuple[str, ...]) -> None:
    if statistic not in names:
        raise InputError(f"statistic is {statistic!r}. Choose {', '.join(names[:-1])} or {names[-1]}.")


@measure(
    name="kl",
    aliases=("token-kl",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    symmetric=False,
    source="Kullback & Leibler 1951, doi:10.1214/aoms/1177729694",
    **FACTS,
)
def kl(pair: Pair, *, statistic: str = "mean", window: int = WINDOW, context: int = 1, seed: int = 0) -> float:
    """How much worse the second language model predicts what the first one would say next.

    KL(X || Y) = Σ over tokens p_X (ln p_X - ln p_Y) in nats, of the distribution over the next token at every position
    of the texts, and its mean over positions. 0: the same distributions; 0.01 is what eight bits do, 0.1 is noticed.
    Few positions decide the mean: look at `p99` and `largest` too.

    Options:
        statistic: Over positions: mean, median, p90, p95, p99 or largest.
        window: The most tokens of a text that are read.
        context: How many tokens are read before the first that is predicted.
        seed: Draws the tokens that are hidden from masked models.

    Example:
        >>> import likewise
        >>> likewise.measures.get("kl").info.on
        'networks'
    """
    names = ("mean", "median", "p90", "p95", "p99", "largest")
    _check(statistic, names)
    return _statistic(pair, "kl" if statistic == "mean" else f"kl-{statistic}", window, context, seed)


@measure(
    name="same-top",
    aliases=("same-top-token",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    source="Georgi Gerganov et al. 2024, llama.cpp, tools/perplexity",
    **FACTS,
)
def same_top(pair: Pair, *, window: int = WINDOW, context: int = 1, seed: int = 0) -> float:
    """How often two language models find the same next token the most likely.

    The share of positions of the texts at which both distributions have the same largest entry. 1: always, so that both
    write the same when they take the most likely token; unrelated models agree on common words.

    Options:
        window: The most tokens of a text that are read.
        context: How many tokens are read before the first that is predicted.
        seed: Draws the tokens that are hidden from masked models.

    Example:
        >>> import likewise
        >>> likewise.measures.get("same-top").info.on
        'networks'
    """
    return _statistic(pair, "same-top", window, context, seed)


@measure(
    name="delta-p",
    larger_is="less alike",
    bounds=(-1, 1),
    identity=0,
    symmetric=False,
    source="Georgi Gerganov et al. 2024, llama.cpp, tools/perplexity",
    **FACTS,
)
def delta_p(pair: Pair, *, statistic: str = "rms", window: int = WINDOW, context: int = 1, seed: int = 0) -> float:
    """How much the probability of the true next token changes from one language model to another.

    Δ = p_Y(true) - p_X(true) at every position; by default its root mean square. 0: unchanged. `mean` tells whether the
    second is worse (below 0) or better (above 0) at the texts, `p5` and `p95` how far it goes.

    Options:
        statistic: Over positions: rms, mean, p5 or p95.
        window: The most tokens of a text that are read.
        context: How many tokens are read before the first that is predicted.
        seed: Draws the tokens that are hidden from masked models.

    Example:
        >>> import likewise
        >>> likewise.measures.get("delta-p").info.on
        'networks'
    """
    names = ("rms", "mean", "p5", "p95")
    _check(statistic, names)
    return _statistic(pair, "delta-p" if statistic == "mean" else f"delta-p-{statistic}", window, context, seed)


@measure(
    name="perplexity-change",
    aliases=("log-perplexity-ratio",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    metric=True,
    source=PERPLEXITY,
    **FACTS,
)
def perplexity_change(pair: Pair, *, window: int = WINDOW, context: int = 1, seed: int = 0) -> float:
    """How far the perplexities of two language models on the texts are apart.

    |ln(PPL_Y / PPL_X)|, the absolute difference of the mean losses per token. 0: equally good at the texts, though
    perhaps at different words of them; 0.01: one per cent. `likewise.language.answers` has the sign.

    Options:
        window: The most tokens of a text that are read.
        context: How many tokens are read before the first that is predicted.
        seed: Draws the tokens that are hidden from masked models.

    Example:
        >>> import likewise
        >>> likewise.measures.get("perplexity-change").info.on
        'networks'
    """
    return abs(_statistic(pair, "log-perplexity-ratio", window, context, seed))


@measure(
    name="bits-per-byte-change",
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    metric=True,
    source=PERPLEXITY,
    **FACTS,
)
def bits_per_byte_change(pair: Pair, *, window: int = WINDOW, context: int = 1, seed: int = 0) -> float:
    """How far two language models are apart in the bits that they need per byte of the texts.

    The absolute difference of Σ losses / ln 2 / bytes of the texts. 0: equally good at them. Networks with different
    tokenizers can be compared by it; the first token of a text, before which nothing was read, costs nothing.

    Options:
        window: The most tokens of a text that are read.
        context: How many tokens are read before the first that is predicted.
        seed: Draws the tokens that are hidden from masked models.

    Example:
        >>> import likewise
        >>> likewise.measures.get("bits-per-byte-change").info.on
        'networks'
    """
    return abs(_statistic(pair, "bits-per-byte-change", window, context, seed))
