"""Class lists of datasets, and the senses their classes have."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import InputError, UnknownNameError
from likewise.wordnet import classes, find, lists, senses, similarity
from tests.wordnet.helpers import refused


def test_lists_have_as_many_classes_as_their_datasets() -> None:
    sizes = {
        "cifar10": 10,
        "cifar100": 100,
        "coco80": 80,
        "fashion-mnist": 10,
        "imagenet1k": 1000,
        "mini-imagenet": 100,
        "tiny-imagenet": 200,
        "voc20": 20,
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


def test_an_unknown_list_is_refused_with_the_nearest() -> None:
    assert refused(UnknownNameError, classes, "cifar-10") == (
        "no class list named 'cifar-10'. Known are cifar10, cifar100, coco80, fashion-mnist, "
        "imagenet1k, mini-imagenet, tiny-imagenet, voc20. Did you mean 'cifar10'?"
    )
