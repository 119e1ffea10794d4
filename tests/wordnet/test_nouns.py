"""The nouns of WordNet 3.0: ids, names, senses, and the file they are read from."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from likewise.errors import InputError, UnknownNameError
from likewise.wordnet import Synset, find, senses
from likewise.wordnet.nouns import graph
from tests.conftest import ROOT
from tests.wordnet.helpers import dict_dir, from_file, refused

SHIPPED = ROOT / "src" / "likewise" / "wordnet"


def random_wnids(count: int, seed: int = 0) -> list[str]:
    return [f"n{x:08d}" for x in random.Random(seed).sample(graph().offsets.tolist(), count)]


def test_the_graph_is_that_of_wordnet_3() -> None:
    counts = np.diff(graph().starts)
    assert len(counts) == 82_115
    assert ((counts > 1).sum(), counts.max()) == (2213, 6)
    assert np.flatnonzero(counts == 0).tolist() == [0]
    assert find("n00001740").name == "entity.n.01"
    assert graph().deepest.max() == 19  # twice this is the 38 of lch


def test_a_synset_knows_its_words_and_parents() -> None:
    expected = Synset(
        "n02084071", "dog.n.01", ("dog", "domestic dog", "Canis familiaris"), ("canine.n.02", "domestic_animal.n.01")
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


def test_a_noun_that_is_not_there_is_refused_with_the_nearest() -> None:
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
    assert refused(InputError, find, "run.v.01") == "the synset 'run.v.01' is no noun. Only nouns can be compared."
    assert refused(UnknownNameError, find, "elefant") == "no noun 'elefant' in WordNet 3.0. Did you mean 'elephant'?"
    assert refused(UnknownNameError, senses, "zzqqx") == "no noun 'zzqqx' in WordNet 3.0."


def test_the_shipped_files_are_built_from_the_dict_files(tmp_path: Path) -> None:
    script = from_file(ROOT / "scripts" / "build_wordnet.py")
    for _ in range(2):
        script.build(dict_dir(), tmp_path)
        for name in ("nouns.npz", "thesaurus.npz"):
            assert (tmp_path / name).read_bytes() == (SHIPPED / name).read_bytes()


def test_the_build_refuses_another_version(tmp_path: Path) -> None:
    build = from_file(ROOT / "scripts" / "build_wordnet.py").build
    with pytest.raises(SystemExit) as error:
        build(tmp_path, tmp_path)
    assert str(error.value) == f"{tmp_path}/data.noun is not there. Give the dict folder of WordNet 3.0."
    (tmp_path / "data.noun").write_text("00001740 03 n 01 entity 0 000 | what is\n")
    with pytest.raises(SystemExit) as error:
        build(tmp_path, tmp_path)
    assert str(error.value) == (
        f"{tmp_path} has 1 noun synsets, not the 82115 of WordNet 3.0. Give the dict folder of that version."
    )
