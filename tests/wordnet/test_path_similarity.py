"""How alike nouns are: the three measures, held against NLTK and a plain search."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import InputError, UnknownNameError
from likewise.wordnet import MEASURES, classes, find, path_similarity, similarity
from likewise.wordnet.nouns import graph
from tests.conftest import ROOT
from tests.wordnet.helpers import dict_dir, from_file, refused, steps_up

GOLDEN = ROOT / "tests" / "golden" / "dsi"


CHIHUAHUA = "n02085620"


def random_wnids(count: int, seed: int = 0) -> list[str]:
    return [f"n{x:08d}" for x in random.Random(seed).sample(graph().offsets.tolist(), count)]


def with_kin(wnids: list[str]) -> list[str]:
    """The synsets and, right after each, its first parent and that parent's."""
    parents = [next(iter(find(wnid).parents), wnid) for wnid in wnids]
    return [x for w, p in zip(wnids, parents, strict=True) for x in (w, p, *find(p).parents[:1])]


def distance(a: str, b: str) -> int:
    ups, others = steps_up(a), steps_up(b)
    return min(ups[x] + others[x] for x in ups if x in others)


@cache
def longest(name: str) -> int:
    return max((1 + longest(parent) for parent in find(name).parents), default=0)


def shortest(name: str) -> int:
    return steps_up(name)["entity.n.01"]


def wup(a: str, b: str) -> float:
    """Wu and Palmer as NLTK has it: ties by name, the first synset before all others."""
    shared = sorted(set(steps_up(a)) & set(steps_up(b)))
    deepest = [x for x in shared if shortest(x) == max(map(shortest, shared))]
    chosen = a if a in deepest else deepest[0]
    depth = longest(chosen) + 1
    return 2 * depth / (distance(a, chosen) + depth + distance(b, chosen) + depth)


ORACLES = {
    "path": lambda a, b: 1 / (distance(a, b) + 1),
    "lch": lambda a, b: -math.log((distance(a, b) + 1) / 38),
    "wup": wup,
}


@pytest.fixture(scope="module")
def nltk_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("nltk")
    benchmark = from_file(ROOT / "perf" / "wordnet_nltk.py")
    reader = benchmark.reader(dict_dir(), tmp_path_factory.mktemp("wordnet"))
    reader._max_depth["n", False] = 19  # to find it for lch, NLTK would read every noun
    return reader


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "coco80", "fashion_mnist", "mini_imagenet", "imagenet1k"])
def test_path_similarity_is_exactly_nltks(name: str) -> None:
    orders = json.loads((GOLDEN / "golden_wordnet_order.json").read_text())
    assert list(classes(name).wnids) == orders[name]["order"]
    with np.load(GOLDEN / "golden_wordnet.npz") as golden:
        assert np.array_equal(similarity(classes(name).wnids).astype(np.float32), golden[name])


def test_values_by_hand() -> None:
    # dog - canine - carnivore - feline - cat: 4 steps. The longest way from carnivore to the root
    # has 12 synsets, both ends counted, so wup is 2 * 12 / ((12 + 2) + (12 + 2)).
    pair = ["dog.n.01", "cat.n.01"]
    assert similarity(pair)[0, 1] == 1 / 5
    assert similarity(pair, "lch")[0, 1] == -math.log(5 / 38)
    assert similarity(pair, "wup")[0, 1] == 24 / 28


@pytest.mark.parametrize("measure", MEASURES)
def test_values_are_those_of_a_plain_search(measure: str) -> None:
    names = [find(wnid).name for wnid in with_kin(random_wnids(25))]
    expected = [[ORACLES[measure](a, b) for b in names] for a in names]
    assert similarity(names, measure).tolist() == expected


@pytest.mark.parametrize("measure", MEASURES)
def test_values_are_those_of_nltk(measure: str, nltk_wordnet: Any) -> None:
    odd = [CHIHUAHUA, "body_substance.n.01", "substance.n.01"]
    ours = [find(name) for name in [*with_kin(random_wnids(30, seed=1)), *odd]]
    theirs = [nltk_wordnet.synset_from_pos_and_offset("n", int(one.wnid[1:])) for one in ours]
    assert [one.name for one in ours] == [synset.name() for synset in theirs]
    expected = [[getattr(a, f"{measure}_similarity")(b) for b in theirs] for a in theirs]
    assert similarity([one.wnid for one in ours], measure).tolist() == expected


@pytest.mark.parametrize(("measure", "own"), [("path", 1.0), ("lch", math.log(38))])
def test_path_and_lch_are_symmetric_and_highest_for_the_same(measure: str, own: float) -> None:
    matrix = similarity(classes("cifar100").wnids, measure)
    assert np.array_equal(matrix, matrix.T)
    assert np.diag(matrix) == pytest.approx(own, abs=1e-15)
    assert (matrix - np.diag(np.diag(matrix))).max() < own


def test_wup_keeps_the_oddities_of_nltk() -> None:
    # What lies deepest above a chihuahua by the shortest way is not the chihuahua: it is a dog, a
    # dog is a domestic animal, and that way is short.
    assert similarity([CHIHUAHUA], "wup").tolist() == [[0.8125]]
    assert (np.diag(similarity(classes("imagenet1k").wnids, "wup")) < 1).sum() == 107
    pair = similarity(["body_substance.n.01", "substance.n.01"], "wup")
    assert (pair[0, 1], pair[1, 0]) == (8 / 11, 10 / 11)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=12), st.sampled_from(list(MEASURES)))
def test_a_pair_is_as_alike_in_any_company(rows: list[int], measure: str) -> None:
    wnids = classes("cifar100").wnids
    alone = similarity([wnids[i] for i in rows], measure)
    assert np.array_equal(alone, similarity(wnids, measure)[np.ix_(rows, rows)])


@pytest.mark.parametrize("measure", MEASURES)
def test_blocks_change_nothing(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wnids = classes("coco80").wnids
    whole = similarity(wnids, measure)
    monkeypatch.setattr(path_similarity, "_WIDTH", 7)
    assert np.array_equal(similarity(wnids, measure), whole)


def test_ids_names_and_words_may_be_mixed_and_repeated() -> None:
    mixed = similarity(["n02084071", "Dog.n.01", "domestic dog", "bald eagle"])
    assert mixed[:3, :3].tolist() == np.ones((3, 3)).tolist()
    assert similarity([]).shape == (0, 0)
    assert similarity(["dog.n.01"]).tolist() == [[1.0]]


def test_what_cannot_be_compared_is_refused() -> None:
    assert refused(InputError, similarity, ["mouse", "cat.n.01"]) == (
        "the noun 'mouse' has 4 senses in WordNet 3.0: mouse.n.01 (a kind of rodent.n.01), "
        "shiner.n.01 (a kind of bruise.n.01), mouse.n.03 (a kind of person.n.01), mouse.n.04 "
        "(a kind of electronic_device.n.01). Give the name or the id of the one that is meant."
    )
    assert refused(UnknownNameError, similarity, ["dog.n.01"], "paht") == (
        "no measure of WordNet named 'paht'. Known are path, wup, lch. Did you mean 'path'?"
    )
    assert refused(InputError, similarity, "dog.n.01") == (
        "the synsets are one text, 'dog.n.01'. Give a list of ids or names."
    )


def test_the_room_needs_neither_torch_nor_pandas() -> None:
    code = (
        "import sys; from likewise import wordnet; wordnet.similarity(['dog.n.01', 'cat.n.01'])\n"
        "print([name for name in ('torch', 'pandas', 'nltk', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
