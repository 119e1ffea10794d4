"""The front door: every public verb takes the same things in the same way, or says in one sentence why not."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.data import Data
from likewise.errors import LikewiseError
from likewise.views.show import Show, ShowOptions

X, Y, Z = np.random.default_rng(0).normal(size=(3, 30, 6))
IMAGES = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
DATA = Data("tiny", "image", IMAGES, [i % 3 for i in range(30)], ("cat", "dog", "ship"))
VERBS: dict[str, Callable[..., Any]] = {
    "compare": likewise.compare,
    "calibrate": lambda *a, **k: likewise.calibrate(*a, **{"permutations": 5, **k}),
    "bootstrap": likewise.bootstrap,
    "influence": likewise.influence,
    "pointwise": likewise.pointwise,
    "layerwise": likewise.layerwise,
    "diff": lambda *a, **k: likewise.diff(*a, **{"transfer": 0, **k}),
    "extract": likewise.extract,
    "answers": likewise.transfer.answers,
    "sat": lambda *a, **k: likewise.transfer.sat(*a, **{"eps": 0.1, "iterations": 2, **k}),
}
ARRAYS = {"compare", "calibrate", "bootstrap", "influence", "pointwise"}
WHOLE = {"answers", "sat"}  # look at networks as a whole, not at layers
ALL = set(VERBS)
LAYERS = ALL - WHOLE
FORMS: dict[str, tuple[tuple[Any, ...], dict[str, Any], set[str]]] = {}


def net(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 7), nn.ReLU(), nn.Linear(7, 3)).eval()


A, B, C = map(net, range(3))


def form(name: str, *args: Any, works: set[str], **options: Any) -> None:
    FORMS[name] = (args, options, works)


form("two arrays", X, Y, works=ARRAYS)
form("two views", likewise.Activations(X, name="a"), likewise.Activations(Y, name="b"), works=ARRAYS)
form("a list of arrays", [X, Y, Z], works=ARRAYS - {"pointwise"})
form("a mapping of arrays", {"a": X, "b": Y}, works=ARRAYS)
form("two networks", A, B, data=DATA, works=ALL - {"extract"})
form("a list of networks", [A, B], data=DATA, works=ALL)
form("a mapping of networks", {"a": A, "b": B}, data=DATA, works=ALL)
form("a mapping of three networks", {"a": A, "b": B, "c": C}, data=DATA, works=ALL - {"pointwise", "layerwise", "diff"})
form("two addresses", ["zoo:mlp", "zoo:mlp,seed=5"], data="digits:test[:30]", works=ALL)
form("a network and an array", A, X, data=DATA, works={"compare", "calibrate", "bootstrap", "influence", "pointwise"})
form("no data", A, B, works=set())
form("one thing", X, works=set())
form("nothing", {}, works=set())
form("a number", 3, 4, works=set())
form("a measure", [A, B], data=DATA, measure="cka", works=LAYERS - {"diff", "extract", "pointwise"})
form("a measure's option", [A, B], data=DATA, measure="jaccard", k=5, works=LAYERS - {"diff", "extract", "pointwise"})
form("a measure's key", [A, B], data=DATA, measure="jaccard[k=5]", works=LAYERS - {"diff", "extract", "pointwise"})
form("a function", [X, Y], measure=lambda x, y: float((x * y).sum()), works=ARRAYS - {"pointwise"})
form("measures", [A, B], data=DATA, measures="cka", works=set())
form("one layer", [A, B], data=DATA, layers="1", works=LAYERS)
form("a layer by network", {"a": A, "b": B}, data=DATA, layers={"a": "1", "b": "2"}, works=LAYERS - {"diff"})
form("a head by network", {"a": A, "b": B}, data=DATA, head={"a": "3", "b": "3"}, works=LAYERS)
form("a head of no network", {"a": A, "b": B}, data=DATA, head={"x": "3"}, works=set())
form("a head", [A, B], data=DATA, head="3", works=LAYERS)
form("how it runs", [A, B], data=DATA, reduce="flatten", batch_size=7, device="cpu", dtype="float32", works=LAYERS)
form("progress", [A, B], data=DATA, progress=False, works=ALL)
form("a memory limit", [A, B], data=DATA, memory="1GB", works=LAYERS - {"extract"})
form("an unknown option", [A, B], data=DATA, batchsize=3, works=set())
form("an option of no one", [A, B], data=DATA, colour="red", works=set())
form("an impossible batch", [A, B], data=DATA, batch_size=0, works=set())
form("numpy's batch", [A, B], data=DATA, batch_size=np.int64(7), works=ALL)
form("a store that is no folder", [A, B], data=DATA, store=5, works=set())
form("an unknown precision", [A, B], data=DATA, dtype="float7", works=set())


@pytest.mark.filterwarnings("ignore:clean accuracies differ")
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_the_same_things_or_says_why_not(verb: str, name: str) -> None:
    args, options, works = FORMS[name]
    if verb == "extract" and len(args) == 2 and "data" in options:
        pytest.skip("its second argument is the data")
    if verb in works:
        assert VERBS[verb](*args, **options) is not None
        return
    with pytest.raises(LikewiseError) as error:
        VERBS[verb](*args, **options)
    assert is_sentence(str(error.value)), str(error.value)


def is_sentence(message: str) -> bool:
    """Whether a message is short, in one line, and ends as a sentence does."""
    return "\n" not in message and len(message) < 400 and bool(re.search(r"[.?][')]?$", message))


@pytest.mark.filterwarnings("ignore:clean accuracies differ")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_keeps_activations_in_a_store(verb: str, tmp_path: Path) -> None:
    networks = {"a": A, "b": B}
    options = {"data": DATA, "store": tmp_path / "store"} | ({"measure": "cka"} if verb == "layerwise" else {})
    first = VERBS[verb](networks, **options)
    assert any((tmp_path / "store").iterdir())
    assert repr(VERBS[verb](networks, **options)) == repr(first)


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_with_a_slip_is_named(verb: str) -> None:
    with pytest.raises(LikewiseError) as error:
        VERBS[verb]([A, B], data=DATA, batchsize=3)
    assert str(error.value) == f"{verb} has no option 'batchsize'. Did you mean 'batch_size'?"


def test_show_and_its_keywords_agree() -> None:
    assert [field.name for field in fields(Show)] == ["data", "layers", *ShowOptions.__annotations__]
    assert all(field.metadata["help"].endswith(".") for field in fields(Show))


@pytest.mark.parametrize("function", [likewise.compare, likewise.calibrate, likewise.bootstrap, likewise.influence])
def test_verbs_of_measures_begin_alike(function: Callable[..., Any]) -> None:
    parameters = list(inspect.signature(function).parameters)
    assert parameters[:5] == ["views", "other", "measure", "data", "layers"]
