"""Attacks on the networks of Raw Zero-Shot: counted as `robustness` counts them, and refused where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import likewise
from likewise.errors import InputError
from likewise.transfer import robustness
from likewise.zeroshot import attacked
from tests.zeroshot.helpers import drawn


def test_networks_are_attacked_as_by_robustness(tmp_path: Path) -> None:
    digits = likewise.dataset("digits:train[:300]")
    net = likewise.network("zoo:mlp", data=digits, seed=1)
    likewise.train(net, digits, epochs=3, out=tmp_path / "net", progress=False)
    weights = str(tmp_path / "net" / "weights.safetensors")
    result = drawn("net", about={"weights": [weights]})
    options = {"thresholds": [1, 3], "population": 5}
    (table,) = attacked(result, "digits", images=12, progress=False, **options).values()
    one = robustness(weights, "digits:test[:12]", generations=[1], progress=False, **options)
    assert table.equals(one)
    assert table["images"].tolist() == [12] * 4


@pytest.mark.parametrize(
    ("results", "images", "sentence"),
    [
        (
            drawn("net"),
            5,
            "the answers of 'net' came without its network, and attacks need it. Train it here with a store, or leave "
            "the attacks out.",
        ),
        (drawn("net"), 0, "images is 0. Attack at least 1."),
        ([], 5, "no result is given, so there is nothing to attack. Give at least one."),
    ],
)
def test_what_cannot_be_attacked_is_refused(results, images: int, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attacked(results, "digits", images=images)
