"""Sentences made here, whose label follows from their main clause."""

from __future__ import annotations

import likewise
from likewise.data.sources.synthetic_text import sentences

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
