"""Texts of one batch in chunks of similar length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.networks.inputs import padding
from likewise.networks.inputs.feature_extractors import Prepared
from likewise.networks.inputs.padding import by_length

NET = nn.Linear(1, 1)


def tokens(lengths: list[int], *, left: bool = False) -> Prepared:
    width = max(lengths)
    mask = (torch.arange(width)[None] < torch.tensor(lengths)[:, None]).long()
    mask = mask.flip(1) if left else mask
    ids = torch.arange(len(lengths) * width).reshape(-1, width)
    return Prepared.of({"input_ids": ids, "attention_mask": mask, "one": torch.arange(len(lengths))}, ())


def test_chunks_are_texts_of_similar_length_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(padding._BUDGET, "cpu", 10)
    inputs = tokens([2, 8, 3, 1, 3])
    chunks = by_length(NET, inputs)
    # 8 | 3 3 2: three columns of three texts are nine | 1
    assert [rows.tolist() for rows, _ in chunks] == [[1], [2, 4, 0], [3]]
    for (rows, chunk), width in zip(chunks, [8, 3, 1], strict=True):
        assert torch.equal(chunk["input_ids"], inputs["input_ids"][rows, :width])
        assert torch.equal(chunk["attention_mask"], inputs["attention_mask"][rows, :width])
        assert torch.equal(chunk["one"], rows)
        assert chunk.mask is not None
        assert torch.equal(chunk.mask, chunk["attention_mask"])


def _without(inputs: Prepared, name: str) -> Prepared:
    del inputs[name]
    return inputs


@pytest.mark.parametrize(
    "inputs",
    [
        tokens([8, 8, 8]),
        tokens([8, 2, 3], left=True),
        _without(tokens([8, 2, 3]), "attention_mask"),
        _without(tokens([8, 2, 3]), "input_ids"),
        tokens([4, 1]),
        torch.zeros(3, 8),
    ],
    ids=["one length", "padded on the left", "no mask", "no tokens", "few", "a tensor"],
)
def test_what_would_not_gain_or_might_change_stays_whole(inputs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(padding._BUDGET, "cpu", 10)
    assert by_length(NET, inputs) == []


def test_texts_of_a_network_that_was_trained_on_full_padding_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tokenizer:
        padding = "max_length"

        def __call__(self, texts: list[str]) -> Tensor:
            raise NotImplementedError

    monkeypatch.setitem(padding._BUDGET, "cpu", 10)
    net: Any = nn.Linear(1, 1)
    net.tokenize = Tokenizer()
    assert by_length(net, tokens([8, 2, 3])) == []
