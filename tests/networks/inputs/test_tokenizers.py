"""Texts are cut where the network ends, and it is said how many."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise.errors import InputError
from likewise.networks.inputs.tokenizers import FromTransformers, longest_text
from tests.fuzz.tiny_transformers import build, save
from tests.networks.helpers import refused

tokenizers: Any = pytest.importorskip("tokenizers")
transformers: Any = pytest.importorskip("transformers")
LONG = ["the cat sat . " * 40, "a dog", "good bad " * 50]
HOW: dict[str, Any] = {"layers": "logits", "reduce": "mean", "progress": False}


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    def make(kind: str) -> Path:
        save(kind, tmp_path / kind)
        return tmp_path / kind

    return make


def expected(folder: Path, texts: list[str], longest: int | None) -> np.ndarray:
    """The mean of the last states over the tokens, by the library alone, text by text."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    net = transformers.AutoModel.from_pretrained(folder).eval()
    limit = {} if longest is None else {"truncation": True, "max_length": longest}
    with torch.no_grad():
        states = [net(**tokenizer(text, return_tensors="pt", **limit)).last_hidden_state for text in texts]
    return np.stack([each[0].mean(dim=0).numpy() for each in states])


@pytest.mark.parametrize(
    ("kind", "longest"),
    [("bert", 64), ("roberta", 63), ("mpnet", 62), ("gpt2", 64), ("opt", 64), ("llama", 64)],
)
def test_texts_are_cut_where_the_network_ends_and_counted(kind: str, longest: int, folder: Any) -> None:
    path = folder(kind)
    with pytest.warns(UserWarning, match=f"^2 of 3 texts are longer than the {longest} tokens of 'it' and are cut.$"):
        found = likewise.extract(f"hf:{path}", LONG, name="it", batch_size=2, **HOW)
    np.testing.assert_allclose(np.asarray(found), expected(path, LONG, longest), atol=1e-5)


def test_texts_that_differ_late_differ(folder: Any) -> None:
    """Nothing is cut before the network's own length, which is beyond the 128 tokens of old."""
    path = folder("mamba")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(path)
    texts = ["good " * 200, "good " * 150 + "bad " * 50]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = np.asarray(likewise.extract(f"hf:{path}", texts, **HOW))
    np.testing.assert_allclose(found, expected(path, texts, None), atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-4


def test_longest_cuts_sooner_but_not_later(folder: Any) -> None:
    path = folder("bert")
    with pytest.warns(UserWarning, match="^2 of 3 texts are longer than the 16 tokens of 'it' and are cut.$"):
        found = likewise.extract(f"hf:{path},longest=16", LONG, name="it", **HOW)
    np.testing.assert_allclose(np.asarray(found), expected(path, LONG, 16), atol=1e-5)
    for asked in ("65", "0", "long"):
        with pytest.raises(InputError) as error:
            likewise.network(f"hf:{path},longest={asked}")
        assert str(error.value) == (
            f"longest is {int(asked) if asked.isdecimal() else asked!r}. Give a number of tokens, at most 64, which "
            "is all that BertModel takes."
        )


def test_a_text_that_just_fits_is_not_counted(folder: Any) -> None:
    path = folder("bert")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    special = len(tokenizer("")["input_ids"])
    fits = "cat " * (64 - special)
    assert len(tokenizer(fits)["input_ids"]) == 64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        likewise.extract(f"hf:{path}", [fits, "cat"], **HOW)
    with pytest.warns(UserWarning, match="^1 of 2 texts are longer than the 64 tokens of 'it' and are cut.$"):
        likewise.extract(f"hf:{path}", [fits, fits + "cat"], name="it", **HOW)


def test_a_network_without_positions_has_the_tokenizers_limit_or_none() -> None:
    class Tokenizer:
        model_max_length = 10**30

    assert longest_text(build("mamba"), Tokenizer()) is None
    assert longest_text(build("bert"), Tokenizer()) == 64
    Tokenizer.model_max_length = 48
    assert longest_text(build("mamba"), Tokenizer()) == longest_text(build("bert"), Tokenizer()) == 48


def test_texts_by_hashed_words_and_pairs_are_counted_too() -> None:
    pairs = [("one two three four five six seven", "one"), ("one", "two")]
    with pytest.warns(UserWarning, match="^1 of 2 texts are longer than the 8 tokens of 'it' and are cut.$"):
        likewise.extract("zoo:bert-tiny,longest=8,width=16", pairs, name="it")


def test_a_training_says_it_before_it_begins() -> None:
    data = likewise.data.Data("texts", "text", ["good " * 9, "bad", "good", "bad"], [1, 0, 1, 0], ("bad", "good"))
    with pytest.warns(
        UserWarning, match="^1 of 4 texts are longer than the 8 tokens of 'TextClassifier' and are cut.$"
    ):
        likewise.train("zoo:bert-tiny,longest=8,width=16", data, epochs=1)


def test_a_text_without_tokens_is_named(folder: Any) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    tokenizer.backend_tokenizer.post_processor = tokenizers.processors.Sequence([])  # as that of GPT-2, which adds none
    assert (
        refused(lambda: FromTransformers(tokenizer, 64)(["a cat", "", "a dog"]))
        == "the text '' has no tokens, so there is nothing to show. Leave such texts out."
    )


@pytest.mark.usefixtures("vision")
def test_a_network_that_looks_at_padding_is_shown_texts_of_one_length(folder: Any) -> None:
    """The text tower of SigLIP answers by its last position: of a text alone and of one in a batch it has to be one."""
    path, texts = folder("siglip"), ["a dog", "the cat sat on the mat under the tree"]
    rows = np.asarray(likewise.extract(f"hf:{path},part=text", texts, "embedding"))
    alone = [np.asarray(likewise.extract(f"hf:{path},part=text", [text, text], "embedding"))[0] for text in texts]
    np.testing.assert_allclose(rows, alone, atol=1e-5)
    tokens = transformers.AutoTokenizer.from_pretrained(path)(texts, padding="max_length", return_tensors="pt")
    with torch.no_grad():
        own = transformers.SiglipModel.from_pretrained(path).eval().text_model(**tokens).pooler_output
    np.testing.assert_allclose(rows, own.numpy(), atol=1e-5)
