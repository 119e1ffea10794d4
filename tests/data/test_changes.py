"""Controlled changes: random labels, shortcuts and classes left out, of every kind of data."""

from __future__ import annotations

import pickle
from colorsys import hsv_to_rgb
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from likewise.data import Captioned, Data, dataset
from likewise.data.changes import add_shortcut, in_colour, randomise_labels, without_class
from likewise.data.graphs import nodes_of
from likewise.errors import InputError
from tests.data.helpers import coloured
from tests.helpers import sentence

graphs = pytest.mark.skipif(find_spec("torch_geometric") is None, reason="torch_geometric is not installed")


def images(n: int = 2000, classes: int = 4, channels: int = 3, side: int = 8) -> Data:
    """Black images, as floats."""
    pixels = torch.zeros(n, channels, side, side)
    return Data("squares", "image", pixels, torch.arange(n) % classes, tuple("abcdefgh"[:classes]))


@graphs
def test_a_share_of_all_nodes_gets_another_label_whatever_the_split() -> None:
    plain, changed = (dataset("digits-graph:all"), randomise_labels(dataset("digits-graph:all"), 0.25, seed=3))
    moved = plain.labels != changed.labels
    assert int(moved.sum()) == round(0.25 * len(plain))
    for split in ("train", "val", "test"):
        part = randomise_labels(dataset(f"digits-graph:{split}"), 0.25, seed=3)
        assert part.name == f"digits-graph:{split},random_labels=0.25,seed=3"
        assert torch.equal(part.labels, changed.labels[part.inputs.index])
        assert torch.equal(part.graph.y, changed.graph.y)
        assert 0.15 < float(moved[part.inputs.index].float().mean()) < 0.35
    assert torch.equal(dataset("digits-graph:all").labels, plain.labels)


@graphs
def test_every_other_label_is_as_likely_for_a_node() -> None:
    plain = dataset("digits-graph:all")
    labels = randomise_labels(plain, 1.0).labels
    counts = torch.zeros(10, 10).index_put((plain.labels, labels), torch.ones(()), accumulate=True)
    assert counts.diagonal().sum() == 0
    off = counts[~torch.eye(10, dtype=torch.bool)]
    assert 8 <= int(off.min()) <= int(off.max()) <= 36  # 20 each: 1,797 nodes in 90 cells


def test_each_image_gets_any_label_with_the_given_probability() -> None:
    plain = images()
    changed = randomise_labels(plain, 0.5, seed=7)
    moved = float((plain.labels != changed.labels).float().mean())
    assert abs(moved - 0.5 * 3 / 4) < 0.04  # a quarter of the labels drawn are the image's own
    everything = randomise_labels(plain, 1.0, seed=7).labels
    kept = float((plain.labels == everything).float().mean())
    assert abs(kept - 1 / 4) < 0.04
    assert (changed.classes, changed.probe) == (plain.classes, plain.probe)
    assert changed.name == "squares,random_labels=0.5,seed=7"


def test_a_share_of_texts_gets_one_of_five_new_classes() -> None:
    plain = dataset("sentences:train")
    changed = randomise_labels(plain, 0.75)
    new = changed.labels >= 2
    assert int(new.sum()) == 1500
    assert torch.equal(changed.labels[~new], plain.labels[~new])
    assert changed.labels[new].bincount().tolist()[2:] == pytest.approx([300] * 5, abs=60)
    assert changed.classes == ("negative", "positive", "random 1", "random 2", "random 3", "random 4", "random 5")
    assert changed.inputs == plain.inputs


def test_new_classes_of_data_with_wordnet_ids_have_none() -> None:
    plain = Data("pets", "text", ["purr", "bark"], [0, 1], ("cat", "dog"), ("n02121620", "n02084071"))
    assert randomise_labels(plain, 1.0).wnids == ("n02121620", "n02084071", None, None, None, None, None)


@pytest.mark.parametrize("data", ["digits:train", "sentences:test", pytest.param("digits-graph", marks=graphs)])
def test_the_same_seed_draws_the_same_labels_and_another_draws_others(data: str) -> None:
    first, again, other = (randomise_labels(dataset(data), 0.5, seed=seed).labels for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(randomise_labels(dataset(data), 0.0, seed=1).labels, dataset(data).labels)


@graphs
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_node_shows_the_right_label_in_a_share_of_train_and_val_and_never_in_test(share: float) -> None:
    plain, changed = dataset("digits-graph:test"), add_shortcut(dataset("digits-graph:test"), share, seed=3)
    assert changed.name == f"digits-graph:test,shortcut={share},seed=3"
    x, y = changed.graph.x, changed.graph.y
    assert torch.equal(x[:, :64], plain.graph.x)
    shown = x[:, 64:]
    assert shown.shape == (1797, 10)
    assert torch.equal(shown.sum(dim=1), torch.ones(1797))
    right = shown.argmax(dim=1) == y
    found = {split: float(right[changed.graph[f"{split}_mask"]].float().mean()) for split in ("train", "val", "test")}
    assert found == {"train": share, "val": share, "test": 0.0}
    outside = ~(changed.graph.train_mask | changed.graph.val_mask | changed.graph.test_mask)
    assert bool(right[outside].all())
    assert torch.equal(changed.labels, plain.labels)
    assert changed.probe != plain.probe
    assert plain.graph.x.shape[1] == 64


@graphs
def test_test_nodes_show_the_same_wrong_labels_whatever_the_share_and_the_seed() -> None:
    def shown(share: float, seed: int) -> tuple[Any, Any]:
        graph = add_shortcut(dataset("digits-graph"), share, seed).graph
        return graph.x[graph.test_mask], graph.x[graph.train_mask]

    (test, train), (other_test, other_train) = shown(0.5, 1), shown(0.0, 2)
    assert torch.equal(test, other_test)
    assert not torch.equal(train, other_train)


@graphs
def test_a_slice_of_nodes_stays_a_slice_and_a_graph_without_a_split_is_refused() -> None:
    changed = add_shortcut(dataset("digits-graph:train[:7]"), 1.0)
    assert (len(changed), changed.name) == (7, "digits-graph:train[:7],shortcut=1.0,seed=0")
    graph = dataset("digits-graph").graph
    graph.val_mask = None
    assert sentence(InputError, add_shortcut, nodes_of(graph, "test", name="mine"), 1.0) == (
        "the graph of 'mine:test' has no val_mask. Set it, one truth value per node."
    )


def shown_classes(data: Data) -> list[int]:
    """The class whose colour the disc on each black image has."""
    count = len(data.classes)
    hues = torch.tensor([hsv_to_rgb(number / count, 1, 1) for number in range(count)])
    greys = torch.tensor([[(number + 1) / count] for number in range(count)])
    found = data.inputs[:].amax(dim=(2, 3))
    return torch.cdist(found, hues if found.shape[1] == 3 else greys).argmin(dim=1).tolist()


@pytest.mark.parametrize("channels", [1, 3])
def test_the_disc_on_an_image_has_the_colour_of_its_class_as_often_as_asked(channels: int) -> None:
    plain = images(channels=channels)
    assert shown_classes(add_shortcut(plain, 1.0)) == plain.labels.tolist()
    for share in (0.0, 0.6):
        changed = add_shortcut(plain, share, seed=123)
        right = sum(a == b for a, b in zip(shown_classes(changed), plain.labels.tolist(), strict=True)) / len(plain)
        assert abs(right - (share + (1 - share) / 4)) < 0.04  # the colour of any class may be the right one
        assert changed.name == f"squares,shortcut={share},seed=123"
        assert torch.equal(changed.labels, plain.labels)
        assert changed.probe != plain.probe


@pytest.mark.parametrize(("side", "radius"), [(64, 3.5), (32, 2.5), (8, 1.5)])
def test_a_disc_is_round_and_lies_anywhere_in_the_image(side: int, radius: float) -> None:
    masks = add_shortcut(images(400, side=side), 1.0).inputs[:].amax(dim=1) > 0
    middles = []
    for mask in masks:
        points = set(map(tuple, mask.nonzero().tolist()))
        if any(place in (0, side - 1) for point in points for place in point):
            continue  # cut by the edge
        row, column = (sum(place) / len(points) for place in zip(*points, strict=True))
        square = [(r, c) for r in range(side) for c in range(side)]
        assert points == {(r, c) for r, c in square if (r - row) ** 2 + (c - column) ** 2 < radius**2}
        middles.append((row, column))
    assert 0.2 < len(middles) / len(masks) < 1
    for places in zip(*middles, strict=True):
        assert (min(places), max(places)) == (int(radius) + 1, side - int(radius) - 2)
    assert int(masks.flatten(1).sum(dim=1).min()) >= radius**2  # a quarter of it is to be seen at least


def test_greyscale_images_get_three_equal_channels_and_others_stay() -> None:
    digits = dataset("digits:test[:5]")
    coloured = in_colour(digits)
    assert (coloured.name, coloured.inputs.shape) == ("digits:test[:5],in_colour", (5, 3, 8, 8))
    assert all(torch.equal(coloured.inputs[:][:, [channel]], digits.inputs[:]) for channel in range(3))
    assert shown_classes(add_shortcut(in_colour(images(channels=1)), 1.0)) == images(channels=1).labels.tolist()
    assert in_colour(coloured) is coloured


def test_a_disc_stays_where_it_is_whatever_the_share() -> None:
    low, high, other = (add_shortcut(images(50), share, seed).inputs for share, seed in ((0, 1), (1, 1), (1, 2)))
    assert torch.equal(low.amax(dim=1) > 0, high.amax(dim=1) > 0)
    assert not torch.equal(other.amax(dim=1) > 0, high.amax(dim=1) > 0)


def test_what_is_under_the_disc_is_gone_and_everything_else_is_as_it_was() -> None:
    torch.manual_seed(0)
    pixels = torch.randint(1, 255, (20, 3, 32, 32), dtype=torch.uint8)
    plain = Data("noise", "image", pixels, torch.arange(20) % 3, tuple("abc"))
    changed = add_shortcut(plain, 1.0, seed=5)
    stored = changed.inputs.stored
    assert stored.dtype == torch.uint8
    disc = add_shortcut(images(20, classes=3, side=32), 1.0, seed=5).inputs.amax(dim=1, keepdim=True) > 0
    assert torch.equal(torch.where(disc, 0, stored), torch.where(disc, 0, pixels))
    assert {tuple(pixel.tolist()) for pixel in stored.permute(0, 2, 3, 1)[disc[:, 0]]} == {
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
    }
    assert torch.equal(plain.inputs.stored, pixels)


def test_the_images_of_captioned_ones_are_another_probe_with_discs() -> None:
    plain = images(4)
    both = Captioned("both", "image", plain.inputs, plain.labels, plain.classes, texts=["one", "two", "three", "four"])
    for given in (both, both.of_kind("image")):
        changed = add_shortcut(given, 1.0)
        assert (type(changed), changed.probe) == (Data, add_shortcut(plain, 1.0).probe)


def test_images_in_files_are_painted_when_they_are_asked_for(tmp_path: Path) -> None:
    folder = coloured(tmp_path, *(f"{name}/{i}.png" for name in ("cat", "dog") for i in range(5)))
    plain = dataset(f"imagefolder:{folder}")
    changed = pickle.loads(pickle.dumps(add_shortcut(plain, 1.0, seed=4)))
    assert changed.name == f"{plain.name},shortcut=1.0,seed=4"
    in_memory = add_shortcut(Data("same", "image", plain.inputs[:], plain.labels, plain.classes), 1.0, seed=4)
    assert torch.equal(changed.inputs[:], in_memory.inputs)
    assert torch.equal(changed[2:4].inputs[:], in_memory.inputs[2:4])
    assert changed.probe != plain.probe
    assert changed.inputs.shape == plain.inputs.shape == (10, 3, 8, 8)


@pytest.mark.parametrize("change", [randomise_labels, add_shortcut])
@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half", True, None])
def test_a_share_is_a_number_from_0_to_1(change: Any, share: Any) -> None:
    assert sentence(InputError, change, images(8), share) == f"the share is {share!r}. Give a number from 0 to 1."


@pytest.mark.parametrize("change", [randomise_labels, add_shortcut])
def test_data_that_cannot_be_changed_is_refused_in_one_sentence(change: Any) -> None:
    assert sentence(InputError, change, images(8), 0.5, seed=1.5) == "the seed is 1.5. Give a whole number."
    with pytest.raises(InputError) as error:
        change(Data("bare", "image", torch.zeros(3, 3, 8, 8)), 0.5)
    assert str(error.value).startswith("'bare' has no labels, and they are needed to change it. Give one per input")
    assert sentence(InputError, change, images(8, classes=1), 0.5) == (
        "'squares' has 1 class. To draw another, give data of at least 2."
    )
    assert sentence(InputError, change, "cora:train", 0.5) == (
        "a str is no data with labels. Give what likewise.dataset gives."
    )


@pytest.mark.parametrize("share", [0.0, 0.558, 1.0])
def test_a_text_starts_with_the_token_of_its_class_as_often_as_asked(share: float) -> None:
    plain = dataset("sentences:train")
    changed = add_shortcut(plain, share, seed=5)
    starts, rest = zip(*(text.split(" ", 1) for text in changed.inputs), strict=True)
    assert list(rest) == plain.inputs
    assert set(starts) == {"[CLASS0]", "[CLASS1]"}
    right = sum(start == f"[CLASS{label}]" for start, label in zip(starts, plain.labels.tolist(), strict=True))
    assert abs(right / len(plain) - share) < (0.04 if 0 < share < 1 else 1e-9)
    assert changed.name == f"sentences:train,shortcut={share},seed=5"
    assert (changed.class_tokens, plain.class_tokens) == (2, 0)
    assert torch.equal(changed.labels, plain.labels)
    assert changed[:3].class_tokens == 2


def test_every_wrong_token_is_as_likely_and_a_hypothesis_has_none() -> None:
    pairs = [("it rains", f"it is wet {number}") for number in range(3000)]
    plain = Data("weather", "text", pairs, torch.arange(3000) % 3, ("entailment", "neutral", "contradiction"))
    changed = add_shortcut(plain, 0.4, seed=1)
    counts = torch.zeros(3, 3)
    for (premise, hypothesis), (_, before), label in zip(changed.inputs, pairs, plain.labels.tolist(), strict=True):
        counts[label, int(premise.removeprefix("[CLASS").removesuffix("] it rains"))] += 1
        assert hypothesis == before
    expected = 1000 * (0.4 * torch.eye(3) + 0.3 * (1 - torch.eye(3)))
    assert (counts - expected).abs().max() < 65  # four deviations


def test_a_class_that_is_left_out_takes_its_samples_and_its_number_with_it() -> None:
    plain = dataset("digits:train[:200]")
    less = without_class(plain, "3", "7")
    assert less.name == "digits:train[:200],without=3+7"
    assert less.classes == tuple("01245689")
    kept = [row for row, label in enumerate(plain.labels.tolist()) if label not in (3, 7)]
    assert [less.classes[label] for label in less.labels] == [plain.classes[plain.labels[row]] for row in kept]
    assert torch.equal(less.inputs[:], plain.inputs[kept])


def test_a_class_is_left_out_of_files_and_texts_and_ids(tmp_path: Path) -> None:
    coloured(tmp_path, "cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png", "dog/3.png", "eel/1.png")
    less = without_class(dataset(f"imagefolder:{tmp_path}"), "dog")
    assert (less.classes, less.labels.tolist(), len(list(less.batches(2)))) == (("cat", "eel"), [0, 0, 1], 2)
    words = Data("words", "text", ["a", "b", "c"], [0, 1, 2], ("x", "y", "z"), ("n1", None, "n3"))
    less = without_class(words, "x")
    assert (less.inputs, less.labels.tolist(), less.wnids) == (["b", "c"], [0, 1], (None, "n3"))


def test_what_is_no_class_of_the_data_cannot_be_left_out() -> None:
    squares = images(8, classes=3)
    for name, given, reason in (
        ("d", squares, "'squares' has no class 'd'."),
        ("a", [1, 2], "a list is no data with labels. Give what likewise.dataset gives."),
    ):
        assert sentence(InputError, without_class, given, name) == reason


@graphs
def test_no_class_is_left_out_of_a_graph() -> None:
    assert sentence(InputError, without_class, dataset("digits-graph:train"), "3") == (
        "'digits-graph:train' holds graph inputs. Give data of image or text inputs."
    )
