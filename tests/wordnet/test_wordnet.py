"""WordNet: exactly NLTK's values, senses chosen with care, and an order for pictures."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import InputError, LikewiseError, UnknownNameError
from likewise.wordnet import (
    MEASURES,
    Synset,
    branches,
    classes,
    find,
    likeness,
    lists,
    order,
    senses,
    similarity,
)
from likewise.wordnet.nouns import graph
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "dsi"
SHIPPED = ROOT / "src" / "likewise" / "wordnet" / "nouns.npz"
CHIHUAHUA = "n02085620"


def random_wnids(count: int, seed: int = 0) -> list[str]:
    return [f"n{x:08d}" for x in random.Random(seed).sample(graph().offsets.tolist(), count)]


def with_kin(wnids: list[str]) -> list[str]:
    """The synsets and, right after each, its first parent and that parent's."""
    parents = [next(iter(find(wnid).parents), wnid) for wnid in wnids]
    return [x for w, p in zip(wnids, parents, strict=True) for x in (w, p, *find(p).parents[:1])]


def dict_dir() -> Path:
    for place in (os.environ.get("WNSEARCHDIR", ""), "/usr/share/wordnet"):
        if place and (Path(place) / "data.noun").exists():
            return Path(place)
    pytest.skip("the dict files of WordNet 3.0 are not here: install wordnet-base, set WNSEARCHDIR")


def from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(error: type[LikewiseError], act: Any, *given: Any) -> str:
    with pytest.raises(error) as caught:
        act(*given)
    return str(caught.value)


# Values


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


@cache
def steps_up(name: str) -> dict[str, int]:
    """Every ancestor of a synset and the fewest steps to it, by a plain search."""
    found, queue = {name: 0}, [name]
    for at in queue:
        for parent in find(at).parents:
            if parent not in found:
                found[parent] = found[at] + 1
                queue.append(parent)
    return found


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


@pytest.mark.parametrize("measure", MEASURES)
def test_values_are_those_of_a_plain_search(measure: str) -> None:
    names = [find(wnid).name for wnid in with_kin(random_wnids(25))]
    expected = [[ORACLES[measure](a, b) for b in names] for a in names]
    assert similarity(names, measure).tolist() == expected


@pytest.fixture(scope="module")
def nltk_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("nltk")
    benchmark = from_file(ROOT / "benchmarks" / "wordnet_nltk.py")
    reader = benchmark.reader(dict_dir(), tmp_path_factory.mktemp("wordnet"))
    reader._max_depth["n", False] = 19  # to find it for lch, NLTK would read every noun
    return reader


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
    monkeypatch.setattr(likeness, "_WIDTH", 7)
    assert np.array_equal(similarity(wnids, measure), whole)


def test_ids_names_and_words_may_be_mixed_and_repeated() -> None:
    mixed = similarity(["n02084071", "Dog.n.01", "domestic dog", "bald eagle"])
    assert mixed[:3, :3].tolist() == np.ones((3, 3)).tolist()
    assert similarity([]).shape == (0, 0)
    assert similarity(["dog.n.01"]).tolist() == [[1.0]]


# Nouns


def test_the_graph_is_that_of_wordnet_3() -> None:
    counts = np.diff(graph().starts)
    assert len(counts) == 82_115
    assert ((counts > 1).sum(), counts.max()) == (2213, 6)
    assert np.flatnonzero(counts == 0).tolist() == [0]
    assert find("n00001740").name == "entity.n.01"
    assert graph().deepest.max() == 19  # twice this is the 38 of lch


def test_a_synset_knows_its_words_and_parents() -> None:
    expected = Synset(
        "n02084071",
        "dog.n.01",
        ("dog", "domestic dog", "Canis familiaris"),
        ("canine.n.02", "domestic_animal.n.01"),
    )
    assert find("n02084071") == find("dog.n.01") == find("domestic_dog") == expected


def test_every_name_finds_its_synset() -> None:
    for wnid in random_wnids(500, seed=2):
        assert find(find(wnid).name).wnid == wnid


def test_an_instance_has_its_kind_as_parent() -> None:
    assert find("Albert Einstein").parents == ("physicist.n.01",)


def test_a_word_lists_its_senses_in_order() -> None:
    names = ["mouse.n.01", "shiner.n.01", "mouse.n.03", "mouse.n.04"]
    assert [sense.name for sense in senses("Mouse")] == names
    assert senses("dog.n.01") == senses("n02084071") == [find("dog.n.01")]


# Lists


def test_lists_have_as_many_classes_as_their_datasets() -> None:
    sizes = {
        "cifar10": 10,
        "cifar100": 100,
        "coco80": 80,
        "fashion-mnist": 10,
        "imagenet1k": 1000,
        "mini-imagenet": 100,
        "tiny-imagenet": 200,
    }
    assert {name: len(set(classes(name).wnids)) for name in lists()} == sizes
    for name in lists():
        assert [find(wnid).wnid for wnid in classes(name).wnids] == list(classes(name).wnids)
        assert len(classes(name).names) == len(classes(name)) == sizes[name]
    assert classes("Fashion_MNIST") is classes("fashion-mnist")


def test_parts_of_imagenet_have_its_names() -> None:
    whole = dict(zip(classes("imagenet1k").wnids, classes("imagenet1k").names, strict=True))
    for part in (classes("mini-imagenet"), classes("tiny-imagenet")):
        assert part.names == tuple(whole[wnid] for wnid in part.wnids)
    assert classes("tiny-imagenet").names[0] == "Egyptian cat"


def test_first_senses_are_no_substitute_for_chosen_ones() -> None:
    chosen = classes("cifar100")
    first: list[str] = []
    unlisted, trapped = [], []
    for name, wnid in zip(chosen.names, chosen.wnids, strict=True):
        try:
            first.append(senses(name)[0].wnid)
        except UnknownNameError:
            unlisted.append(name)
            first.append(wnid)
        if first[-1] != wnid:
            trapped.append(name)
    assert unlisted == ["aquarium_fish", "maple_tree"]
    assert " ".join(trapped) == (
        "beaver bowl castle cloud dolphin flatfish forest girl keyboard lamp leopard lobster "
        "mushroom otter plate raccoon ray seal shrew skunk sweet_pepper table television tiger "
        "trout turtle whale"
    )
    assert len(trapped) == 27
    pairs = np.triu_indices(100, 1)
    careful, naive = similarity(chosen.wnids)[pairs], similarity(first)[pairs]
    assert np.corrcoef(careful, naive)[0, 1] == pytest.approx(0.70, abs=0.005)
    assert (careful != naive).mean() == pytest.approx(0.40, abs=0.005)


def test_no_trap_can_be_walked_into_by_name() -> None:
    for name in ("beaver", "ray", "seal", "turtle", "whale", "table", "television"):
        with pytest.raises(InputError, match=rf"^the noun '{name}' has \d+ senses"):
            find(name)


# Order


def test_kin_are_neighbours_in_the_order() -> None:
    names = classes("cifar10").names
    found = [names[i] for i in order(classes("cifar10").wnids)]
    assert " ".join(found) == "bird frog dog cat horse deer airplane ship automobile truck"


def test_the_order_does_not_depend_on_the_order_given() -> None:
    wnids = list(classes("imagenet1k").wnids)
    expected = [wnids[i] for i in order(wnids)]
    random.Random(0).shuffle(wnids)
    assert [wnids[i] for i in order(wnids)] == expected


def test_an_ancestor_comes_before_what_is_under_it() -> None:
    assert order(["tabby.n.01", "animal.n.01", "cat.n.01"]) == [1, 2, 0]


def test_classes_fall_into_a_few_groups_of_kin() -> None:
    names = classes("cifar10").names
    groups = dict(zip(names, branches(classes("cifar10").wnids), strict=True))
    vehicles = {name for name, group in groups.items() if group == "vehicle.n.01"}
    assert vehicles == {"airplane", "automobile", "ship", "truck"}
    assert {groups[name] for name in set(names) - vehicles} == {"vertebrate.n.01"}


@pytest.mark.parametrize("most", [1, 2, 8, 16])
@pytest.mark.parametrize("name", lists())
def test_groups_are_few_hold_their_members_and_are_no_crumbs(name: str, most: int) -> None:
    wnids = classes(name).wnids
    groups = branches(wnids, most)
    assert len(set(groups)) <= most
    assert all(g in steps_up(find(w).name) for g, w in zip(groups, wnids, strict=True))
    small = [group for group in set(groups) if groups.count(group) < 3]
    assert len(small) <= 1  # what is left over at the root


def test_groups_stay_together_in_the_order() -> None:
    wnids = classes("cifar100").wnids
    groups = branches(wnids)
    ordered = [groups[i] for i in order(wnids, groups)]
    borders = sum(a != b for a, b in pairwise(ordered))
    assert borders == len(set(groups)) - 1
    assert sorted(order(wnids, groups)) == list(range(100))


# Errors


def test_errors_say_what_to_do() -> None:
    assert refused(UnknownNameError, find, "n99999999") == (
        "no noun of WordNet 3.0 has the id 'n99999999'. Other versions number their nouns "
        "otherwise: give an id of 3.0, as ImageNet's are, or a name such as dog.n.01."
    )
    assert refused(UnknownNameError, find, "n02084072").startswith("no noun of WordNet 3.0 has")
    assert refused(UnknownNameError, find, "elefant.n.01") == (
        "no synset 'elefant.n.01' in WordNet 3.0. Did you mean 'elephant.n.01'?"
    )
    assert refused(UnknownNameError, find, "dog.n.08") == (
        "no synset 'dog.n.08' in WordNet 3.0: the senses of 'dog' end with 'dog.n.07'."
    )
    assert refused(InputError, find, "run.v.01") == ("the synset 'run.v.01' is no noun. Only nouns can be compared.")
    assert refused(UnknownNameError, find, "elefant") == ("no noun 'elefant' in WordNet 3.0. Did you mean 'elephant'?")
    assert refused(UnknownNameError, senses, "zzqqx") == "no noun 'zzqqx' in WordNet 3.0."
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
    assert refused(UnknownNameError, classes, "cifar-10") == (
        "no class list named 'cifar-10'. Known are cifar10, cifar100, coco80, fashion-mnist, "
        "imagenet1k, mini-imagenet, tiny-imagenet. Did you mean 'cifar10'?"
    )
    assert refused(InputError, branches, ["dog.n.01"], 0) == "most is 0. Give at least 1 group."
    assert refused(InputError, order, ["dog.n.01"], []) == (
        "there are 1 synsets and 0 groups. Give one group a synset."
    )


# The file


def test_the_room_needs_neither_torch_nor_pandas() -> None:
    code = (
        "import sys; from likewise import wordnet; wordnet.similarity(['dog.n.01', 'cat.n.01'])\n"
        "print([name for name in ('torch', 'pandas', 'nltk', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_shipped_file_is_built_from_the_dict_files(tmp_path: Path) -> None:
    script = from_file(ROOT / "scripts" / "build_wordnet.py")
    for name in ("once.npz", "twice.npz"):
        script.build(dict_dir(), tmp_path / name)
        assert (tmp_path / name).read_bytes() == SHIPPED.read_bytes()


def test_the_build_refuses_another_version(tmp_path: Path) -> None:
    build = from_file(ROOT / "scripts" / "build_wordnet.py").build
    with pytest.raises(SystemExit) as error:
        build(tmp_path, tmp_path / "out.npz")
    assert str(error.value) == (f"{tmp_path}/data.noun is not there. Give the dict folder of WordNet 3.0.")
    (tmp_path / "data.noun").write_text("00001740 03 n 01 entity 0 000 | what is\n")
    with pytest.raises(SystemExit) as error:
        build(tmp_path, tmp_path / "out.npz")
    assert str(error.value) == (
        f"{tmp_path} has 1 noun synsets, not the 82115 of WordNet 3.0. Give the dict folder of that version."
    )
