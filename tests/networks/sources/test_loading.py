"""Weights that are rounded to fewer bits while they are loaded, or spread over devices and the disk."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import likewise
from likewise.errors import InputError, MissingDependencyError
from likewise.networks.building import on_device
from tests.helpers import sentence as refusal
from tests.language.models import TEXTS, causal, saved

PLACES = {"model.embed_tokens": "cpu", "model.rotary_emb": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk"}
PLACES |= {"model.norm": "cpu", "lm_head": "disk"}


def made(folder: Path) -> list[str]:
    """The addresses of two networks that differ in one matrix."""
    sizes: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "words": False}
    return [saved(causal(noise=noise, **sizes), folder / str(noise)) for noise in (0.0, 0.3)]


def test_a_network_that_is_partly_on_disk_is_the_whole_one(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed: pip install accelerate")
    a, b = made(tmp_path)
    whole = likewise.diff(a, b, TEXTS, names=["a", "b"], progress=False)
    nets = [likewise.network(address, part="lm", device_map=PLACES) for address in (a, b)]
    assert {value.device.type for value in nets[0].parameters()} == {"cpu", "meta"}
    parts = likewise.diff(*nets, TEXTS, names=["a", "b"], progress=False)
    assert parts.tokens.statistics["kl"].value == pytest.approx(whole.tokens.statistics["kl"].value, abs=1e-9)
    assert parts.weights == whole.weights
    assert parts.first_moved.layer == whole.first_moved.layer == "layers.1.mlp.down_proj"
    recording = likewise.record(nets[0], TEXTS, name="old", progress=False)
    assert likewise.diff(recording, a, TEXTS, progress=False).verdict == "identical"


def test_an_address_says_where_parts_go(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed: pip install accelerate")
    a, b = made(tmp_path)
    change = likewise.diff(f"{a},device_map=auto", b, TEXTS, names=["a", "b"], progress=False)
    assert change.first_moved.layer == "layers.1.mlp.down_proj"
    with pytest.raises(InputError, match="cannot be built: When passing device_map as a string"):
        likewise.network(f"{a},device_map=nowhere")
    net = likewise.network(a, part="lm", device_map=PLACES)
    assert refusal(InputError, on_device, net, "cpu") == (
        "the network was put on its devices while it was loaded. Leave out device=cpu."
    )


@pytest.mark.parametrize("bits", [4, 8])
def test_fewer_bits_need_a_library(bits: int, tmp_path: Path) -> None:
    address = f"{made(tmp_path)[0]},bits={bits}"
    if find_spec("bitsandbytes") is None and find_spec("torchao") is None:
        assert refusal(MissingDependencyError, likewise.network, address) == (
            f"to load {address} in {bits} bits, bitsandbytes or torchao is needed: pip install bitsandbytes."
        )
        return
    change = likewise.diff(made(tmp_path)[0], address, TEXTS, names=["a", "b"], progress=False)
    assert change.first_moved.layer == "layers.0.self_attn.q_proj"
    assert len(change.weights.changed) == 14
    assert all(0 < size < 4.0**-bits * 40 for _, size in change.weights.changed)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    address = made(tmp_path)[0]
    assert refusal(InputError, likewise.network, f"{address},bits=3").endswith("/0.0 is 3. Give 8 or 4.")
    assert refusal(InputError, lambda: likewise.diff(address, f"{address},bits=8", TEXTS, blockwise=True)) == (
        f"{address},bits=8 cannot be read block by block: bits and device_map are for networks that are loaded whole. "
        "Leave them out, or say blockwise=False."
    )
