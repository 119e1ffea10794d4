"""`TokenAnswers`: what two language models say of every token, in numbers with intervals over texts.

Tokens of one text are not independent, so intervals leave out or draw whole texts; of a single long text, blocks of
positions. Means are ratios of sums over texts with a jackknife; quantiles are taken of texts drawn with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import UndefinedError
from likewise.matrices.shares import wilson

QUANTILES = {"p90": 0.9, "p95": 0.95, "p99": 0.99}
DRAWS, BLOCK, FEWEST = 200, 64, 4  # draws of texts, positions of a block, and groups that an interval needs


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval over texts.

    Attributes:
        value: The number.
        low: The lower end; NaN where there are too few texts.
        high: The upper end.
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        interval = "" if math.isnan(self.low) else f" [{self.low:.4g}, {self.high:.4g}]"
        return f"{self.value:.4g}{interval}"


@dataclass(frozen=True, eq=False)
class Side:
    """What one network says, one entry per token that was asked for, in the order of the texts.

    Attributes:
        text: Which text the token belongs to.
        position: The position that answers.
        loss: -ln of the probability of the true token.
        top: The most likely token.
        bytes: How many bytes of each text were read; None where only tokens are known.
        cut: How many texts were longer than what was read.
    """

    text: Array
    position: Array
    loss: Array
    top: Array
    bytes: list[int] | None
    cut: int

    @property
    def perplexity(self) -> float:
        """e to the mean loss."""
        return float(np.exp(self.loss.mean()))


@dataclass(frozen=True, eq=False)
class TokenAnswers:
    """What two language models say of the same texts.

    Attributes:
        names: What the two are called.
        data: What the texts are called.
        n: How many texts there are.
        kind: `causal`, `masked` or `seq2seq`.
        a: What the first says.
        b: What the second says.
        kl: KL(a || b) at every token, in nats; None where the two read texts by different tokens.
        token: The true tokens; None as well.
        decode: From tokens to words, where a tokenizer is known.
    """

    names: tuple[str, ...]
    data: str
    n: int
    kind: str
    a: Side
    b: Side
    kl: Array | None = None
    token: Array | None = None
    decode: Callable[..., Any] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"TokenAnswers({self.names[0]!r}, {self.names[1]!r}, n={self.n}, tokens={len(self.a.loss)})"

    @property
    def comparable(self) -> bool:
        """Whether both read the texts by the same tokens, so that distributions can be compared."""
        return self.kl is not None

    @cached_property
    def groups(self) -> Array:
        """Which group every token belongs to: its text, or its block of positions in a single text."""
        return self.a.text if self.n > 1 else self.a.position // BLOCK

    def statistics(self) -> dict[str, Estimate]:
        """Every number, by the name of its measure; those on distributions only where tokens are the same."""
        return {**(self._of_distributions() if self.comparable else {}), **self._of_losses()}

    def _of_distributions(self) -> dict[str, Estimate]:
        kl, delta = self._kl(), self.delta_p
        numbers = {"kl": self.mean(kl, floor=0.0), "kl-median": self.quantile(kl, 0.5)}
        numbers |= {f"kl-{name}": self.quantile(kl, share) for name, share in QUANTILES.items()}
        numbers |= {"kl-largest": Estimate(float(kl.max())), "same-top": self.same_top()}
        numbers |= {"delta-p": self.mean(delta), "delta-p-rms": _root(self.mean(delta**2, floor=0.0))}
        numbers |= {"delta-p-p5": self.quantile(delta, 0.05), "delta-p-p95": self.quantile(delta, 0.95)}
        return numbers

    def _of_losses(self) -> dict[str, Estimate]:
        numbers = {}
        if self.comparable:
            numbers["log-perplexity-ratio"] = self.mean(self.b.loss - self.a.loss)
        if self.a.bytes is not None and self.b.bytes is not None:
            numbers["bits-per-byte-change"] = self._bits_change()
        return numbers

    def _kl(self) -> Array:
        if self.kl is None:
            raise UndefinedError(
                f"{self.names[0]} and {self.names[1]} read the texts by different tokens, so their distributions over "
                "the next token cannot be compared. Compare bits per byte, or representations."
            )
        return self.kl

    @property
    def delta_p(self) -> Array:
        """How much more likely the true token is to the second network than to the first."""
        self._kl()
        return np.exp(-self.b.loss) - np.exp(-self.a.loss)

    def bits_per_byte(self) -> tuple[float, float] | None:
        """Bits that either network needs per byte of the texts; None where only tokens are known."""
        if self.a.bytes is None or self.b.bytes is None:
            return None
        sides = ((self.a, self.a.bytes), (self.b, self.b.bytes))
        one, other = (float(side.loss.sum() / math.log(2) / sum(sizes)) for side, sizes in sides)
        return one, other

    def same_top(self) -> Estimate:
        """The share of tokens at which both find the same one the most likely."""
        self._kl()
        same = (self.a.top == self.b.top).astype(float)
        share = self.mean(same, floor=0.0, top=1.0)
        groups = len(np.unique(self.groups))
        if share.value in (0.0, 1.0) and groups >= FEWEST:  # texts that show none say little of other texts
            low, high = wilson(share.value, groups)
            return Estimate(share.value, float(low), float(high))
        return share

    def mean(self, values: Array, *, floor: float = -math.inf, top: float = math.inf) -> Estimate:
        """The mean over tokens, with an interval by leaving out every text in turn.

        Args:
            values: One number per token.
            floor: The least that the mean can be.
            top: The most that it can be.
        """
        _, group = np.unique(self.groups, return_inverse=True)
        sums, counts = np.bincount(group, values), np.bincount(group)
        return _ratio(sums, counts, floor, top)

    def _bits_change(self) -> Estimate:
        assert self.a.bytes is not None
        assert self.b.bytes is not None
        bits = [np.bincount(side.text, side.loss, self.n) / math.log(2) for side in (self.a, self.b)]
        sizes = [np.asarray(side.bytes, dtype=float) for side in (self.a, self.b)]
        whole = bits[1].sum() / sizes[1].sum() - bits[0].sum() / sizes[0].sum()
        if self.n < FEWEST:
            return Estimate(float(whole))
        without = [(b.sum() - b) / (s.sum() - s) for b, s in zip(bits, sizes, strict=True)]
        return _jackknife(float(whole), without[1] - without[0])

    def quantile(self, values: Array, share: float) -> Estimate:
        """A quantile over tokens, with an interval over draws of texts.

        Args:
            values: One number per token.
            share: Which quantile, such as 0.99.
        """
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        _, group = np.unique(self.groups, return_inverse=True)
        count, group = int(group.max()) + 1, group[order]
        value = float(np.quantile(values, share))
        if count < FEWEST:
            return Estimate(value)
        draw, found = np.random.default_rng(0), []
        for _ in range(DRAWS):
            weights = np.cumsum(np.bincount(draw.integers(count, size=count), minlength=count)[group])
            found.append(ranked[min(int(np.searchsorted(weights, share * weights[-1], side="right")), len(ranked) - 1)])
        low, high = np.quantile(found, [0.025, 0.975])
        return Estimate(value, float(min(low, value)), float(max(high, value)))

    def words(self, tokens: Sequence[int]) -> str:
        """Tokens as text, where a tokenizer is known; else their numbers.

        Args:
            tokens: Numbers of the vocabulary.
        """
        if self.decode is None:
            return " ".join(map(str, tokens))
        return str(self.decode(list(map(int, tokens))))


def _ratio(sums: Array, counts: Array, floor: float, top: float) -> Estimate:
    value = float(sums.sum() / counts.sum())
    if len(sums) < FEWEST or not np.isfinite(value):
        return Estimate(value)
    estimate = _jackknife(value, (sums.sum() - sums) / (counts.sum() - counts))
    return Estimate(value, max(estimate.low, floor), min(estimate.high, top))


def _jackknife(value: float, without: Array) -> Estimate:
    """A value with its interval, from what it is without each group in turn."""
    from scipy.stats import t

    count = len(without)
    spread = math.sqrt((count - 1) / count * float(np.square(without - without.mean()).sum()))
    half = float(t.ppf(0.975, count - 1)) * spread
    return Estimate(value, value - half, value + half)


def _root(square: Estimate) -> Estimate:
    return Estimate(
        *(math.sqrt(value) if value == value else math.nan for value in (square.value, square.low, square.high))
    )
