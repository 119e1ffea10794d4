"""Functions of the user's as measures: told apart by what they compute, wherever they run."""

import functools
import importlib
import os
import statistics
import subprocess
import sys
import types

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.comparison.schedule import measure_key
from likewise.measures.registry import select
from likewise.work.store import Store

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 30, 4))


def key(function):
    return measure_key(select(function)[0])


def compiled(source, name="users_module", **names):
    """The function `mine` of a module of this name with this source; without a name, of no module."""
    space = {**names} if name is None else {"__name__": name, **names}
    exec(source, space)
    return space["mine"]


def closure(factor):
    def mine(x, y):
        return factor * float(x.mean() - y.mean())

    return mine


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x, y):
        return self.factor * float(x[0, 0])


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x, y):
        return self.factor


def scaled(x, y, *, factor=1.0):
    return factor * float(x[0, 0])


def static(body, name="users_module"):
    source = f"""
class Tool:
    @staticmethod
    def value(x):
        return {body}

    @property
    def also(self):
        return {body}

def mine(x, y):
    return Tool.value(x)
"""
    return compiled(source, name)


PAIRS = {
    "code": (lambda x, y: 5.0, lambda x, y: 6.0),
    "what is used of the inputs": (lambda x, y: x[0, 0], lambda x, y: y[0, 0]),
    "closures": (closure(1.0), closure(2.0)),
    "defaults": (
        compiled("def mine(x, y, k=1): return k"),
        compiled("def mine(x, y, k=2): return k"),
    ),
    "keyword defaults": (
        compiled("def mine(x, y, *, k=1): return k"),
        compiled("def mine(x, y, *, k=2): return k"),
    ),
    "inner functions": (
        compiled("def mine(x, y): return (lambda: 1.0)()"),
        compiled("def mine(x, y): return (lambda: 2.0)()"),
    ),
    "helpers": (
        compiled("def help(): return 1.0\ndef mine(x, y): return help()"),
        compiled("def help(): return 2.0\ndef mine(x, y): return help()"),
    ),
    "global numbers": (
        compiled("W = 1.0\ndef mine(x, y): return W"),
        compiled("W = 2.0\ndef mine(x, y): return W"),
    ),
    "global arrays": (
        compiled("def mine(x, y): return W.sum()", W=np.ones(3)),
        compiled("def mine(x, y): return W.sum()", W=np.zeros(3)),
    ),
    "global tables": (
        compiled("def mine(x, y): return W['a']", W={"a": 1.0}),
        compiled("def mine(x, y): return W['a']", W={"a": 2.0}),
    ),
    "global objects": (
        compiled("def mine(x, y): return W(x, y)", W=Scaled(1.0)),
        compiled("def mine(x, y): return W(x, y)", W=Scaled(2.0)),
    ),
    "classes": (static("1.0"), static("2.0")),
    "caches": (
        compiled(
            "@lru_cache\ndef help(): return 1.0\ndef mine(x, y): return help()",
            lru_cache=functools.lru_cache,
        ),
        compiled(
            "@lru_cache\ndef help(): return 2.0\ndef mine(x, y): return help()",
            lru_cache=functools.lru_cache,
        ),
    ),
    "code, in a module named like one of Python's": (
        compiled("def mine(x, y): return 1.0", name="statistics"),
        compiled("def mine(x, y): return 2.0", name="statistics"),
    ),
    "code without a module": (
        compiled("def mine(x, y): return 1.0", name=None),
        compiled("def mine(x, y): return 2.0", name=None),
    ),
    "helpers without a module": (
        compiled("def mine(x, y): return help()", help=compiled("def mine(): return 1.0", name=None)),
        compiled("def mine(x, y): return help()", help=compiled("def mine(): return 2.0", name=None)),
    ),
    "classes without a module": (static("1.0", name=None), static("2.0", name=None)),
    "classes in a module named like one of Python's": (static("1.0", name="queue"), static("2.0", name="queue")),
    "partials": (functools.partial(scaled, factor=1.0), functools.partial(scaled, factor=2.0)),
    "objects": (Scaled(1.0), Scaled(2.0)),
    "objects with slots": (Slotted(1.0), Slotted(2.0)),
    "methods": (Scaled(1.0).__call__, Scaled(2.0).__call__),
}


@pytest.mark.parametrize("difference", list(PAIRS))
def test_functions_are_told_apart_by(difference) -> None:
    first, second = PAIRS[difference]
    assert key(first) != key(second)
    assert key(first) == key(first)


def test_a_helper_in_a_module_of_the_users_counts() -> None:
    tools = types.ModuleType("users_tools")
    source = "def mine(x, y): return tools.help(x)"
    keys = []
    for body in ("1.0", "2.0"):
        exec(f"def help(x): return {body}", vars(tools))
        keys.append(key(compiled(source, tools=tools)))
    assert keys[0] != keys[1]


def test_a_file_named_like_a_module_of_pythons_is_the_users(tmp_path, monkeypatch) -> None:
    scores = []
    for value in (1.0, 16.0):
        folder = tmp_path / str(value)
        folder.mkdir()
        (folder / "code.py").write_text(f"def mine(x, y): return {value}\n")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder)
            patch.delitem(sys.modules, "code", raising=False)
            mine = importlib.import_module("code").mine
            assert mine.__code__.co_filename == str(folder / "code.py")
            scores.append(float(likewise.compare(X, Y, mine, store=tmp_path / "store")))
            del sys.modules["code"]
    assert scores == [1.0, 16.0]


def test_what_python_brings_counts_by_its_name() -> None:
    functions = (statistics.mean, statistics.mean, statistics.median)
    first, again, other = (key(functools.partial(lambda x, y, f: f([1.0]), f=function)) for function in functions)
    assert first == again != other


def test_an_edited_function_is_computed_again(tmp_path) -> None:
    def old(x, y):
        return 1.0

    def new(x, y):
        return 16.0

    old.__name__ = new.__name__ = "mine"
    old.__qualname__ = new.__qualname__ = "mine"
    assert likewise.compare(X, Y, old, store=tmp_path) == 1.0
    assert likewise.compare(X, Y, new, store=tmp_path) == 16.0
    assert likewise.compare(X, Y, old, store=tmp_path) == 1.0
    with Store(tmp_path) as store:
        assert len(store) == 2


def test_registered_measures_of_any_family_go_by_their_code(tmp_path) -> None:
    for value in (1.0, 2.0):
        measures.register(lambda x, y, value=value: value, name="mine", family="rsm")
        try:
            assert likewise.compare(X, Y, "mine", store=tmp_path) == value
        finally:
            measures.unregister("mine")


def test_options_that_are_functions_go_by_their_code() -> None:
    mine = select(compiled("def mine(x, y, how=None): return how(x)"))[0]
    first, second = (mine.bind(how=how) for how in (lambda x: 1.0, lambda x: 2.0))
    assert measure_key(first) != measure_key(second)


SCRIPT = """
import functools, numpy as np
from likewise.measures.registry import select
from likewise.comparison.schedule import measure_key
TABLE = {"b": {"x", "y", "z"}, "a": np.arange(3)}
class Tool:
    def __init__(self): self.names = {"p", "q", "r"}
    def __call__(self, x): return len(self.names)
TOOL = Tool()
def mine(x, y, *, k=(1, 2)):
    inner = lambda v: v in {"one", "two", "three"}
    return TOOL(x) + inner("one") + TABLE["a"].sum()
print(measure_key(select(mine)[0]), measure_key(select(functools.partial(mine, k=3))[0]))
"""


def test_the_key_of_a_function_is_the_same_in_every_process() -> None:
    printed = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(done.stdout)
    assert len(printed) == 1


def test_two_functions_of_one_name_are_both_computed() -> None:
    both = likewise.compare({"x": X, "y": Y}, [lambda x, y: 5.0, lambda x, y: 6.0])
    assert {name: matrix["x", "y"] for name, matrix in both.items()} == {
        "<lambda>": 5.0,
        "<lambda>#2": 6.0,
    }
    once = likewise.compare({"x": X, "y": Y}, [scaled, scaled, "cka"])
    assert list(once) == ["scaled", "cka"]


def test_a_partial_and_an_object_are_measures() -> None:
    assert likewise.compare(X, Y, functools.partial(scaled, factor=2.0)) == 2 * X[0, 0]
    assert likewise.compare(X, Y, Scaled(3.0)) == 3 * X[0, 0]
