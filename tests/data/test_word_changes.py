"""Easy data augmentation: which words change, how many, and what stays."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.data import Data, add_shortcut, augment_text, dataset
from likewise.data.word_changes import STOP_WORDS, is_stop_word
from likewise.errors import InputError
from likewise.wordnet import synonyms
from tests.helpers import sentence

CONTENT = ("story", "plot", "dull", "superb", "moving", "film", "enjoy", "quickly", "clever", "actor", "xyzzy")
texts = st.lists(st.sampled_from((*CONTENT, "the", "a", "was", "not", "of")), min_size=1, max_size=12).map(" ".join)
shares = st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0])


def of(*inputs: Any) -> Data:
    return Data("mine", "text", list(inputs))


def operation(text: str, changed: str, share: float) -> str:
    """Which operation made one text from another, after checking that it did as much as it should."""
    before, after = text.split(), changed.split()
    free = [word for word in before if word not in STOP_WORDS]
    able = [word for word in free if any(other.isalpha() for other in synonyms(word))]
    count = min(max(1, int(share * len(before))), len(free))
    lost, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    if not lost and not new:
        moved = sum(one != other for one, other in zip(before, after, strict=True))
        assert moved <= count + count % 2
        return "swap"
    if not new:
        assert sum(lost.values()) == min(count, len(before) - 1)
        assert set(lost) <= set(free)
        return "delete"
    if len(after) > len(before):
        assert len(after) - len(before) == count
        assert all(any(word in synonyms(source) for source in able) for word in new)
        return "insert"
    assert len(after) == len(before)
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert len(pairs) == min(count, len(able))
    assert all(one in able and other in synonyms(one) for one, other in pairs)
    return "replace"


@given(texts, shares, st.integers(0, 2**40))
def test_one_operation_changes_as_many_words_as_asked(text: str, share: float, seed: int) -> None:
    (changed,) = augment_text(of(text), share, seed).inputs
    if changed != text:
        operation(text, changed, share)
    else:  # nothing could change it: a single word without synonyms, or stop words alone
        free = [word for word in text.split() if word not in STOP_WORDS]
        assert not free or set(text.split()) == {"xyzzy"}
        assert not free or len(text.split()) == 1


def test_all_four_operations_are_as_likely() -> None:
    draw = random.Random(0)
    inputs = [" ".join(draw.sample(CONTENT[:-1], 6)) for _ in range(2000)]
    changed = augment_text(of(*inputs), 0.5, seed=1).inputs
    kinds = Counter(operation(text, other, 0.5) for text, other in zip(inputs, changed, strict=True))
    assert set(kinds) == {"swap", "delete", "insert", "replace"}
    assert all(abs(count - 500) < 80 for count in kinds.values())  # four deviations


@given(st.lists(texts, min_size=1, max_size=8), shares, st.integers(0, 99), st.randoms())
def test_the_order_of_the_texts_is_no_matter(inputs: list[str], share: float, seed: int, draw: random.Random) -> None:
    order = list(range(len(inputs)))
    draw.shuffle(order)
    changed = augment_text(of(*inputs), share, seed).inputs
    assert augment_text(of(*(inputs[i] for i in order)), share, seed).inputs == [changed[i] for i in order]
    assert augment_text(of(*inputs)[:1], share, seed).inputs == changed[:1]


@given(st.lists(st.text(max_size=30), max_size=5), st.integers(0, 99))
def test_a_share_of_0_changes_nothing(inputs: list[str], seed: int) -> None:
    assert augment_text(of(*inputs), 0, seed).inputs == inputs


@given(st.text(max_size=40), shares, st.integers(0, 99))
def test_a_text_with_a_word_keeps_one_and_any_other_stays(text: str, share: float, seed: int) -> None:
    (changed,) = augment_text(of(text), share, seed).inputs
    has_word = re.search(r"[^\W_]", text) is not None
    assert (re.search(r"[^\W_]", changed) is not None) == has_word
    assert has_word or changed == text


def test_another_seed_makes_another_text_and_the_same_the_same() -> None:
    data = dataset("sentences:train")
    first, again, other = (augment_text(data, 0.5, seed).inputs for seed in (1, 1, 2))
    assert first == again
    assert sum(one != two for one, two in zip(first, other, strict=True)) > 0.7 * len(data)


def test_punctuation_stays_and_capitals_pass_to_the_synonym() -> None:
    changed = {augment_text(of("Dull, moving (SUPERB) film!"), 1.0, seed).inputs[0] for seed in range(200)}
    replaced = [text for text in changed if re.fullmatch(r"\w+, \w+ \(\w+\) \w+!", text)]
    assert any("(BRILLIANT)" in text and text[0].isupper() for text in replaced)
    assert "Dull, ()!" in changed  # all but one deleted
    assert "Moving, Dull (film) SUPERB!" not in changed  # words that change places keep their letters
    assert any(text.startswith("moving, Dull") for text in replaced)


def test_stop_words_and_their_short_forms_stay() -> None:
    text = "it's not what they don't or won't have , the film"
    kept = [word for word in text.split() if is_stop_word(word)]
    assert kept == ["it's", "not", "what", "they", "don't", "or", "won't", "have", "the"]
    for seed in range(50):
        (changed,) = augment_text(of(text), 1.0, seed).inputs
        assert Counter(kept) <= Counter(changed.split())


def test_one_word_is_replaced_or_joined_by_a_synonym_and_never_lost() -> None:
    found = {augment_text(of("superb"), share, seed).inputs[0] for share in (0.1, 1.0) for seed in range(20)}
    assert found == {"brilliant", "superb brilliant"}
    assert augment_text(of("xyzzy", "the", "", "..."), 1.0).inputs == ["xyzzy", "the", "", "..."]


def test_of_a_pair_the_premise_is_changed_alone() -> None:
    pairs = [("the plot was dull .", f"hypothesis {number}") for number in range(40)]
    changed = augment_text(of(*pairs), 1.0).inputs
    assert [second for _, second in changed] == [second for _, second in pairs]
    assert all(first != "the plot was dull ." for first, _ in changed)
    assert len({first for first, _ in changed}) > 5  # one premise beside several hypotheses is changed anew


def test_labels_and_classes_stay_and_the_name_tells_the_change() -> None:
    plain = dataset("sentences:train[:50]")
    changed = augment_text(plain, 0.25, seed=3)
    assert changed.name == "sentences:train[:50],augmented=0.25,seed=3"
    assert torch.equal(changed.labels, plain.labels)
    assert (changed.classes, len(changed)) == (plain.classes, 50)
    assert changed.probe != plain.probe


def test_class_tokens_are_no_words() -> None:
    plain = dataset("sentences:train[:200]")
    changed = augment_text(add_shortcut(plain, 1.0), 1.0, seed=2)
    tokens = [text.split(" ", 1)[0] for text in changed.inputs]
    assert tokens == [f"[CLASS{label}]" for label in plain.labels.tolist()]
    assert all("CLASS" not in text.split(" ", 1)[1] for text in changed.inputs)
    assert changed.class_tokens == 2
    assert changed.name == "sentences:train[:200],shortcut=1.0,seed=0,augmented=1.0,seed=2"


@pytest.mark.parametrize("address", ["sst2:train[:300]", "sst2:dev[:300]", "sentences[:300]", "mnli:dev[:300]"])
def test_real_texts_are_changed_with_their_labels(address: str, real_data: Path) -> None:
    plain = dataset(address)
    changed = augment_text(plain, 1.0)
    moved = sum(one != other for one, other in zip(plain.inputs, changed.inputs, strict=True))
    assert moved > 0.97 * len(plain)
    assert torch.equal(changed.labels, plain.labels)
    shown = add_shortcut(changed, 1.0)
    firsts = [text if isinstance(text, str) else text[0] for text in shown.inputs]
    assert [text.split(" ", 1)[0] for text in firsts] == [f"[CLASS{label}]" for label in plain.labels.tolist()]


def test_what_is_no_text_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError) as error:
        augment_text(dataset("digits[:5]"), 0.5)
    assert str(error.value) == "'digits:test[:5]' holds image inputs. Give data of text inputs."
    for change in (augment_text, add_shortcut):
        assert sentence(InputError, change, Data("ids", "text", torch.zeros(2, 4), [0, 1], ("a", "b")), 0.5) == (
            "'ids' holds tokens, and not the words they are of. Give texts."
        )
    assert sentence(InputError, augment_text, of("good"), 2) == "the share is 2. Give a number from 0 to 1."
    with pytest.raises(InputError) as error:
        augment_text(of("good"), 0.5, seed=None)  # type: ignore[arg-type]
    assert str(error.value) == "the seed is None. Give a whole number."
