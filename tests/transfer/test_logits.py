"""Answers of several networks to the same labelled inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.data import Data
from likewise.errors import DamagedStoreWarning, StoreError, UnknownNameError
from likewise.networks import evaluate
from likewise.networks.class_names import record_classes
from likewise.transfer import Answers, answers
from likewise.wordnet import ClassNames
from tests.conftest import refused
from tests.transfer.helpers import WORDS, Bag, digits, trained, zoo


def test_answers_are_the_logits_of_each_network_and_its_accuracy() -> None:
    found = answers(zoo(), digits(), progress=False)
    images = digits().inputs[:]
    with torch.no_grad():
        expected = torch.stack([net(images) for net in zoo().values()])
    np.testing.assert_allclose(found.logits, expected.numpy(), atol=1e-5)
    assert found.labels.tolist() == digits().labels.tolist()
    for net, accuracy in zip(zoo().values(), found.accuracies, strict=True):
        assert accuracy == evaluate(net, digits())[1]
    np.testing.assert_array_equal(found.right, expected.argmax(dim=2).numpy() == found.labels)


def test_a_network_that_counts_its_classes_otherwise_is_put_into_the_order_of_the_data() -> None:
    names = digits().classes
    net, turned = trained(), trained()
    order = torch.arange(9, -1, -1)
    with torch.no_grad():
        turned.fc.weight.copy_(turned.fc.weight[order])
        turned.fc.bias.copy_(turned.fc.bias[order])
    record_classes(turned, ClassNames(tuple(reversed(names))))
    found = answers({"net": net, "turned": turned}, digits(), progress=False)
    np.testing.assert_allclose(found.logits[0], found.logits[1], atol=1e-5)


def test_classes_beyond_those_of_the_data_follow_by_name() -> None:
    class Columns(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.arange(4.0).expand(len(images), 4)

    one, other = Columns(), Columns()
    record_classes(one, ClassNames(("cat", "dog", "newt", "bee")))
    record_classes(other, ClassNames(("newt", "dog", "bee", "cat")))
    data = Data("animals", "image", torch.rand(2, 1, 8, 8), [0, 1], ("dog", "cat"))
    found = answers({"one": one, "other": other}, data, progress=False)
    # dog, cat, then bee and newt
    assert found.logits[:, 0].tolist() == [[1, 0, 3, 2], [1, 3, 2, 0]]


def test_texts_have_answers_too() -> None:
    assert answers([Bag(), Bag()], WORDS, progress=False).logits.shape == (2, 6, 2)


def test_subset_and_split_keep_inputs_and_labels_together() -> None:
    found = answers(zoo(), digits(), progress=False)
    some = found.subset(["c", "a"])
    assert some.names == ("c", "a")
    np.testing.assert_array_equal(some.logits, found.logits[[2, 0]])
    assert refused(lambda: found.subset(["d"]), UnknownNameError) == "no network named 'd'. Choose from 'a', 'b', 'c'."
    first, rest = found.split(0.25, seed=3)
    assert (first.n, rest.n) == (10, 30)
    joined = np.concatenate([first.logits, rest.logits], axis=1)
    assert sorted(joined[0, :, 0]) == sorted(found.logits[0, :, 0])
    for part in (first, rest):
        rows = [int(np.flatnonzero((found.logits[0] == row).all(axis=1))[0]) for row in part.logits[0]]
        np.testing.assert_array_equal(part.labels, found.labels[rows])
    again, _ = found.split(0.25, seed=3)
    np.testing.assert_array_equal(again.logits, first.logits)
    other, _ = found.split(0.25, seed=4)
    assert not np.array_equal(other.logits, first.logits)


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (1.0, "share is 1.0. Give the share of inputs in the first part, between 0 and 1."),
        (0.001, "40 inputs cannot be split at 0.001. Show the networks more inputs."),
    ],
)
def test_a_part_without_inputs_is_refused(share: float, sentence: str) -> None:
    assert refused(lambda: answers(zoo(), digits(), progress=False).split(share)) == sentence


def test_answers_are_saved_and_loaded(tmp_path: Path) -> None:
    found = answers(zoo(), digits(), progress=False)
    path = found.save(tmp_path / "answers")
    assert path == tmp_path / "answers.safetensors"
    again = Answers.load(path)
    assert (again.names, repr(again)) == (found.names, "Answers(3 networks, n=40, classes=10)")
    np.testing.assert_array_equal(again.logits, found.logits)
    np.testing.assert_array_equal(again.labels, found.labels)


def test_a_damaged_file_and_one_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = answers(zoo(), digits(), progress=False).save(tmp_path / "answers")
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    for bad, text in ((path, None), (tmp_path / "other.safetensors", "words")):
        if text:
            bad.write_text(text)
        assert (
            refused(lambda path=bad: Answers.load(path), StoreError)
            == f"{bad} holds no answers, or it is damaged. Give a file that Answers.save wrote."
        )
    assert (
        refused(lambda: Answers.load(tmp_path / "none.safetensors"), StoreError)
        == f"there is no file {tmp_path / 'none.safetensors'}. Check the path."
    )


def test_answers_come_from_the_store_the_next_time_and_anew_where_it_is_damaged(tmp_path: Path) -> None:
    calls: list[int] = []
    net = trained()
    net.register_forward_hook(lambda *given: calls.append(len(given[1][0])))
    first = answers({"a": net}, digits(), store=tmp_path, progress=False)
    assert sum(calls) == 40 + 1 + 2  # one input says how many classes there are, and twice that nothing is drawn
    again = answers({"a": net}, digits(), store=tmp_path, progress=False)
    assert sum(calls) == 40 + 1 + 2 + 1
    np.testing.assert_array_equal(first.logits, again.logits)
    (path,) = (tmp_path / "answers").glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.warns(DamagedStoreWarning, match="does not match its checksum; it is computed anew"):
        repaired = answers({"a": net}, digits(), store=tmp_path, progress=False)
    np.testing.assert_array_equal(first.logits, repaired.logits)


class Broken(nn.Module):
    """Answers with what is asked of it."""

    def __init__(self, answer: Tensor) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, images: Tensor) -> Tensor:
        return self.answer.expand(len(images), *self.answer.shape)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            torch.zeros(10, 2, 2),
            "'b' answers with float32 of shape (1, 10, 2, 2), not with logits (inputs, classes). Give a classifier.",
        ),
        (
            torch.zeros(10, dtype=torch.long),
            "'b' answers with int64 of shape (1, 10), not with logits (inputs, classes). Give a classifier.",
        ),
        (
            torch.full((10,), float("nan")),
            "'b' answers with numbers that are not finite. Repair its weights, or leave it out.",
        ),
        (
            torch.zeros(7),
            "the labels of 'digits:test[:40]' do not fit 'b': it has 10 classes ('0', '1', '2' and 7 more), and the "
            "network answers with 7 numbers that have no names. Use a network of these classes.",
        ),
    ],
)
def test_a_network_that_does_not_classify_is_refused(answer: Tensor, sentence: str) -> None:
    assert refused(lambda: answers({"a": trained(), "b": Broken(answer)}, digits(), progress=False)) == sentence


def test_networks_of_other_classes_are_refused() -> None:
    net = Broken(torch.zeros(11))
    record_classes(net, ClassNames((*digits().classes, "ten")))
    assert refused(lambda: answers({"a": trained(), "b": net}, digits(), progress=False)) == (
        "'b' answers with 11 classes and 'a' with 10. Give networks of the same classes."
    )


@pytest.mark.parametrize(
    ("networks", "data", "sentence"),
    [
        ([], "digits:test[:4]", "there is no network to ask. Give at least one."),
        ([3], "digits:test[:4]", "3 is not a network. Give an address or a module."),
        (
            ["zoo:mlp"],
            torch.rand(4, 1, 8, 8),
            "the data is an array of shape (4, 1, 8, 8), which has no labels, and they are needed to compare "
            "answers with them. Give an address, (images, labels), or likewise.data.Data(name, domain, inputs, labels, "
            "classes).",
        ),
        (
            ["zoo:mlp"],
            likewise.dataset("digits:test")[:0],
            "'digits:test[:0]' holds no inputs. Give a part of the data that has some.",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(networks: object, data: object, sentence: str) -> None:
    assert refused(lambda: answers(networks, data, progress=False)) == sentence


@pytest.mark.parametrize(
    ("names", "logits", "sentence"),
    [
        (
            ["a"],
            np.zeros((2, 2)),
            "logits of 1 networks are (1, inputs, classes), got (2, 2). Give one row per input and network.",
        ),
        (["a", "a"], np.zeros((2, 2, 2)), "the name 'a' is given twice. Names must differ."),
        (["a"], np.full((1, 2, 2), np.inf), "the array of logits has NaN or infinite entries. Drop or repair them."),
        (
            ["a"],
            np.zeros((1, 2, 1)),
            "labels must be 2 whole numbers from 0 to 0, got numbers from 0 to 1. Give one class index per input.",
        ),
    ],
)
def test_answers_check_themselves(names: list[str], logits: object, sentence: str) -> None:
    assert refused(lambda: Answers(names, logits, [0, 1])) == sentence
