"""Hashes: they name files and keys of stores, so they are the same in every version."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise._base.hashing import InputsHash, as_bytes, digest, facts_digest, fingerprint, value_digest, weights_digest
from likewise.data import Data
from likewise.views import Activations, Outputs

ROWS = torch.arange(60.0).view(20, 3)


def test_a_digest_is_the_hash_of_all_bytes_in_order() -> None:
    values = torch.arange(4, dtype=torch.int32)
    assert digest(["ab", b"c", values]) == hashlib.sha256(b"abc" + values.numpy().tobytes()).hexdigest()
    assert digest([values.flip(0)]) != digest([values])
    assert digest([ROWS.T]) == hashlib.sha256(ROWS.numpy().T.tobytes()).hexdigest()  # as it reads, not as it lies


def test_bytes_of_a_tensor_in_order_are_no_copy() -> None:
    assert as_bytes(ROWS).nbytes == 4 * 60
    content = torch.zeros(3)
    view = as_bytes(content)
    content[0] = 1.0
    assert bytes(view[:4]) == bytes(as_bytes(torch.ones(1)))


def test_facts_have_one_digest_in_any_order() -> None:
    assert facts_digest({"a": 1, "b": None}) == facts_digest({"b": None, "a": 1})
    assert facts_digest({"a": 1}) == hashlib.sha256(b'{"a": 1}').hexdigest()[:24]


def test_inputs_have_one_hash_however_they_are_batched() -> None:
    whole, parts = InputsHash(), InputsHash()
    whole.update({"ids": ROWS, "texts": ["a", "b"]})
    parts.update({"ids": ROWS[:7], "texts": ["a"]})
    parts.update({"ids": ROWS[7:], "texts": ["b"]})
    assert whole.hexdigest() == parts.hexdigest()
    parts.update({"ids": ROWS[:1]})
    assert whole.hexdigest() != parts.hexdigest()


def test_digests_that_stand_in_stores_stay_what_they_were() -> None:
    outputs = Outputs(ROWS.cos(), torch.arange(20) % 3)
    assert Activations(ROWS).digest == "4fc0c0568189a1d4d6d135a9798fda3eef9f6a33749998936931890c125a88b1"
    assert Activations(ROWS.double(), outputs=outputs, about={"dtype": "float16"}).digest == (
        "9292fe23a2d0ff4ed8c767cade124a3850374f7d2c1705fb79f64f169def3492"
    )
    assert Data("rows", "text", ROWS, torch.arange(20) % 2, ("a", "b")).probe == "48f41bfe40d613a0"
    assert Data("t", "text", ["a", "b"], torch.tensor([0, 1]), ("a", "b")).probe == "d89cbf5256ea63ed"
    net = nn.Linear(2, 1)
    net.load_state_dict({"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0])})
    assert weights_digest(net) == "078d89af77230a4a"


class Bent(nn.Module):
    """A network whose likeness to another shows neither in its layers nor in its weights."""

    def __init__(self, act: Any = torch.relu, scale: float = 1, table: Any = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.act, self.scale, self.table = act, scale, table

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.act(self.scale * self.first(inputs)))


def hooked() -> Bent:
    net = Bent()
    net.first.register_forward_hook(lambda module, given, found: found.sin())
    return net


@pytest.mark.parametrize(
    "other",
    [
        lambda: Bent(torch.cos),
        lambda: Bent(lambda x: 2 * x),
        lambda: Bent(functools.partial(nn.functional.leaky_relu, negative_slope=0.5)),
        lambda: Bent(scale=5),
        lambda: Bent(table={"a": [1, torch.ones(2)]}),
        hooked,
    ],
)
def test_a_store_tells_networks_apart_by_what_they_do(other: Any, tmp_path: Path) -> None:
    data = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    plain = likewise.extract(other(), data, "last").values
    likewise.extract(Bent(), data, "last", store=tmp_path)
    assert torch.equal(likewise.extract(other(), data, "last", store=tmp_path).values, plain)
    assert fingerprint(other()) == fingerprint(other()) != fingerprint(Bent())


def test_functions_that_differ_in_a_constant_are_told_apart() -> None:
    doubled, tripled = Bent(lambda x: 2 * x), Bent(lambda x: 3 * x)
    assert fingerprint(doubled) != fingerprint(tripled)
    slopes = [Bent(functools.partial(nn.functional.leaky_relu, negative_slope=s)) for s in (0.1, 0.2)]
    assert fingerprint(slopes[0]) != fingerprint(slopes[1])


class Step:
    """An object of the user's without a repr, alone or inside another."""

    __slots__ = ("inner", "size")

    def __init__(self, size: int, inner: Any = None) -> None:
        self.size, self.inner = size, inner


def scaled(factor: float, offset: float = 0) -> Any:
    def scale(x: Any, times: float = offset, *, more: Any = (factor,)) -> Any:
        return factor * x + times

    return scale


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x in {1, "a"}, lambda x: x in {1, "b"}),
        (scaled(1), scaled(2)),
        (scaled(1), scaled(1, 3)),
        (functools.partial(scaled, 1), functools.partial(scaled, 2)),
        (Step(1), Step(2)),
        (Step(1, [Step(1)]), Step(1, [Step(2)])),
        (torch.relu, torch.cos),
        (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(label_smoothing=0.1)),
    ],
)
def test_values_are_told_apart_by_what_they_hold(one: Any, other: Any) -> None:
    assert value_digest(one) == value_digest(one) != value_digest(other)


def test_a_container_that_holds_itself_has_a_hash() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert value_digest(loop) != value_digest([1, [1]])


FILE = """
import torch
from torch import nn
import functools
GAIN = {gain}
LEVEL = functools.partial(torch.clamp, max={limit})
def bend(x):
    return {constant} * x.sin()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 4)
        self.names = {{"one", "two", "three"}}
    def forward(self, x):
        return self.shifted(bend(self.layer(x))) if x.ndim in {{2, "a", "b"}} else x
    def shifted(self, x):
        return LEVEL(x + {shift} * GAIN)
def build():
    return Net()
"""
PLAIN = {"gain": 1, "constant": 2, "shift": 1, "limit": 9}


def test_a_changed_line_of_a_file_is_another_network(tmp_path: Path) -> None:
    file, prints = tmp_path / "code.py", []  # Python has a module of that name
    for changed in ({}, {"gain": 2}, {"constant": 3}, {"shift": 4}, {"limit": 5}, {}):
        file.write_text(FILE.format(**PLAIN | changed))
        prints.append(fingerprint(likewise.network(f"{file}:build")))
    assert prints[0] == prints[-1]
    assert len(set(prints)) == 5


def test_the_same_network_has_the_same_fingerprint_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(**PLAIN))
    code = (
        "import likewise; from likewise._base.hashing import fingerprint; "
        f"print(fingerprint(likewise.network({f'{file}:build'!r})))"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert prints == {fingerprint(likewise.network(f"{file}:build")) + "\n"}
