"""Hashes: they name files and keys of stores, so they are the same in every version."""

import hashlib

import torch
from torch import nn

from likewise._base.hashing import InputsHash, as_bytes, digest, facts_digest, weights_digest
from likewise.data import Data
from likewise.views import Activations, Outputs

ROWS = torch.arange(60.0).view(20, 3)


def test_a_digest_is_the_hash_of_all_bytes_in_order():
    values = torch.arange(4, dtype=torch.int32)
    assert digest(["ab", b"c", values]) == hashlib.sha256(b"abc" + values.numpy().tobytes()).hexdigest()
    assert digest([values.flip(0)]) != digest([values])
    assert digest([ROWS.T]) == hashlib.sha256(ROWS.numpy().T.tobytes()).hexdigest()  # as it reads, not as it lies


def test_bytes_of_a_tensor_in_order_are_no_copy():
    assert as_bytes(ROWS).nbytes == 4 * 60
    content = torch.zeros(3)
    view = as_bytes(content)
    content[0] = 1.0
    assert bytes(view[:4]) == bytes(as_bytes(torch.ones(1)))


def test_facts_have_one_digest_in_any_order():
    assert facts_digest({"a": 1, "b": None}) == facts_digest({"b": None, "a": 1})
    assert facts_digest({"a": 1}) == hashlib.sha256(b'{"a": 1}').hexdigest()[:24]


def test_inputs_have_one_hash_however_they_are_batched():
    whole, parts = InputsHash(), InputsHash()
    whole.update({"ids": ROWS, "texts": ["a", "b"]})
    parts.update({"ids": ROWS[:7], "texts": ["a"]})
    parts.update({"ids": ROWS[7:], "texts": ["b"]})
    assert whole.hexdigest() == parts.hexdigest()
    parts.update({"ids": ROWS[:1]})
    assert whole.hexdigest() != parts.hexdigest()


def test_digests_that_stand_in_stores_stay_what_they_were():
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
