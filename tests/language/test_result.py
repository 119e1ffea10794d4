"""Numbers over tokens with intervals over texts: by hand, by loops, and how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likewise.errors import UndefinedError
from likewise.language import TokenAnswers
from likewise.language.result import Side


def made(kl: list[list[float]], same: list[list[bool]] | None = None) -> TokenAnswers:
    """Answers with these KL divergences, one list per text."""
    text = np.repeat(np.arange(len(kl)), [len(row) for row in kl])
    position = np.concatenate([np.arange(len(row)) for row in kl])
    values = np.concatenate([np.asarray(row, dtype=float) for row in kl])
    top = np.zeros(len(text), dtype=int)
    other = top if same is None else np.where(np.concatenate([np.asarray(row) for row in same]), 0, 1)
    one, two = (Side(text, position, np.ones(len(text)), tops, [4] * len(kl), 0) for tops in (top, other))
    return TokenAnswers(("a", "b"), "made", len(kl), "causal", one, two, kl=values, token=top)


def test_a_mean_and_its_interval_by_hand() -> None:
    # sums 2, 6, 4, 8 over 2, 2, 1, 3 tokens: 20/8 = 2.5; without each text 18/6, 14/6, 16/7, 12/5
    estimate = made([[1, 1], [3, 3], [4], [2, 3, 3]]).statistics()["kl"]
    without = np.array([18 / 6, 14 / 6, 16 / 7, 12 / 5])
    spread = math.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    assert estimate.value == 2.5
    assert estimate.high == pytest.approx(2.5 + 3.182446 * spread, rel=1e-6)
    assert estimate.low == pytest.approx(5 - estimate.high)


def test_quantiles_are_those_of_all_tokens_and_their_interval_is_over_texts() -> None:
    draw = np.random.default_rng(0)
    answers = made([draw.exponential(size=20).tolist() for _ in range(50)])
    numbers = answers.statistics()
    ranked = np.sort(answers.kl)
    assert numbers["kl-median"].value == pytest.approx((ranked[499] + ranked[500]) / 2)
    assert numbers["kl-p99"].value == pytest.approx(0.99 * ranked[989] + 0.01 * ranked[990])  # 0.99 · 999 = 989.01
    assert numbers["kl-largest"].value == ranked[-1]
    assert numbers["kl-p90"].low < numbers["kl-p90"].value < numbers["kl-p90"].high


def test_intervals_over_texts_hold_where_tokens_of_a_text_go_together() -> None:
    """95 % of 200 draws, within what 200 draws show; over tokens alone fewer than 70 % would."""
    held = tokens_alone = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        texts = draw.exponential(size=40)[:, None] + 0.2 * draw.exponential(size=(40, 30))
        estimate = made(texts.tolist()).statistics()["kl"]
        held += estimate.low <= 1.2 <= estimate.high
        half = 1.96 * texts.std() / math.sqrt(texts.size)
        tokens_alone += abs(texts.mean() - 1.2) <= half
    assert 0.88 <= held / 200 <= 0.99
    assert tokens_alone / 200 < 0.7


def test_tokens_that_are_all_the_same_leave_room_for_other_texts() -> None:
    share = made([[0.0, 0.0]] * 30).statistics()["same-top"]
    assert share.value == 1.0
    assert 0.85 < share.low < 0.95
    assert share.high == 1.0


def test_few_texts_have_no_interval_and_one_long_text_has_blocks() -> None:
    assert math.isnan(made([[1.0, 2.0]] * 3).statistics()["kl"].low)
    one = made([np.random.default_rng(0).exponential(size=640).tolist()]).statistics()["kl"]
    assert one.low < one.value < one.high
    assert str(made([[1.0, 2.0]] * 3).statistics()["kl"]) == "1.5"


def test_distributions_of_other_tokens_are_refused_with_a_remedy() -> None:
    answers = made([[1.0]] * 5)
    apart = TokenAnswers(("a", "b"), "made", 5, "causal", answers.a, answers.b)
    with pytest.raises(UndefinedError) as error:
        apart.same_top()
    assert str(error.value) == (
        "a and b read the texts by different tokens, so their distributions over the next token cannot be compared. "
        "Compare bits per byte, or representations."
    )
