"""The measures of next tokens: those of `answers`, by the front door."""

from __future__ import annotations

import numpy as np
import pytest

import likewise
from likewise import language
from likewise.errors import InputError, UndefinedError
from tests.language.models import TEXTS, causal


def test_the_measures_are_the_numbers_of_answers() -> None:
    nets = {"a": causal(), "b": causal(noise=2.0)}
    keys = ["kl", "kl[statistic=p99]", "same-top", "delta-p", "perplexity-change", "bits-per-byte-change"]
    scores = likewise.compare(nets, keys, data=TEXTS, layers="embedding", progress=False)
    numbers = language.answers(*nets.values(), TEXTS, progress=False).statistics()
    expected = {"kl": "kl", "kl[statistic=p99]": "kl-p99", "same-top": "same-top", "delta-p": "delta-p-rms"}
    for key, name in expected.items():
        assert scores[key]["a", "b"] == pytest.approx(numbers[name].value, rel=1e-9)
    assert scores["perplexity-change"]["a", "b"] == pytest.approx(abs(numbers["log-perplexity-ratio"].value), rel=1e-9)
    assert scores["bits-per-byte-change"]["a", "b"] == pytest.approx(abs(numbers["bits-per-byte-change"].value))
    assert scores["kl"]["a", "b"] != scores["kl"]["b", "a"]


def test_declared_facts_hold() -> None:
    nets = [causal(seed=seed) for seed in (0, 1, 2)]
    for name in ("kl", "same-top", "delta-p", "perplexity-change", "bits-per-byte-change"):
        info = likewise.measures.get(name).info
        matrix = likewise.compare(
            {**dict(zip("abc", nets, strict=True)), "twin": nets[0]},
            name,
            data=TEXTS,
            layers="embedding",
            progress=False,
        )
        assert matrix["a", "twin"] == info.identity
        values = np.array([[matrix[x, y] for y in "abc"] for x in "abc"])
        low, high = info.bounds
        assert (values >= (-np.inf if low is None else low)).all()
        assert (values <= (np.inf if high is None else high)).all()
        if name != "delta-p":  # symmetric by default, and not by its mean
            assert np.allclose(values, values.T) == info.symmetric
        if info.metric:
            assert values[0, 2] <= values[0, 1] + values[1, 2] + 1e-12


def test_a_statistic_that_there_is_not_is_refused() -> None:
    a = causal()
    with pytest.raises(InputError) as error:
        likewise.compare(a, a, "kl", data=TEXTS, statistic="p98", layers="embedding", progress=False)
    assert str(error.value) == "statistic is 'p98'. Choose mean, median, p90, p95, p99 or largest."


def test_networks_of_other_tokens_have_no_kl() -> None:
    import torch

    other = likewise.network(
        causal(words=False), tokenizer=lambda texts: {"input_ids": torch.tensor([[5, 6, 7] for _ in texts])}
    )
    with pytest.raises(UndefinedError, match="they read the texts by different tokens"):
        likewise.compare(causal(), other, "kl", data=TEXTS, layers="embedding", progress=False)
