"""`diff` of language models that are read block by block against the same read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import likewise
from likewise.errors import InputError
from likewise.language.blockwise import blocks as language_blocks
from tests.helpers import sentence as refusal
from tests.language.models import TEXTS
from tests.language.test_blocks import bert, counted, gemma2, gpt2, in_shards, llama


def both_ways(a: str, b: str, data: Any = TEXTS, **options: Any) -> tuple[Any, Any]:
    """The difference read whole and block by block, all texts in one batch."""
    options = {"progress": False, "batch_size": 64, **options}
    whole, parts = (likewise.diff(a, b, data, names=["a", "b"], blockwise=way, **options) for way in (False, True))
    return whole, parts


def assert_equal(parts: Any, whole: Any) -> None:
    assert parts.verdict == whole.verdict
    assert [layer.layer for layer in parts.layers] == [layer.layer for layer in whole.layers]
    for one, other in zip(parts.layers, whole.layers, strict=True):
        assert one.change == pytest.approx(other.change, abs=1e-5)
        assert one.likeness == pytest.approx(other.likeness, abs=1e-5, nan_ok=True)
        assert one.block == other.block
    assert parts.weights == whole.weights
    assert parts.first_moved == whole.first_moved or parts.first_moved.layer == whole.first_moved.layer
    for name, value in whole.scores.items():
        assert parts.scores[name] == pytest.approx(value, abs=1e-5)
    for name, estimate in whole.tokens.statistics.items():
        assert parts.tokens.statistics[name].value == pytest.approx(estimate.value, abs=1e-5)


@pytest.mark.parametrize("make", [llama, gpt2, gemma2, bert])
def test_block_by_block_is_the_whole_difference(make: Any, tmp_path: Path) -> None:
    a, b = (in_shards(make(seed), tmp_path / str(seed)) for seed in (0, 1))
    whole, parts = both_ways(a, b, fail_under={"cka-debiased": 0.5})
    assert_equal(parts, whole)
    assert parts.looked_at == whole.looked_at


def test_each_weight_is_read_once_for_layers_answers_and_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (in_shards(llama(seed), tmp_path / str(seed)) for seed in (0, 1))
    count = counted(monkeypatch)
    change = likewise.diff(a, b, TEXTS, blockwise=True, progress=False)
    assert change.first_moved.layer == "layers.1.mlp.down_proj"
    assert set(count.values()) == {1}
    assert len(count) == 2 * len(llama(0).state_dict())


def test_hidden_states_that_do_not_fit_take_several_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (in_shards(llama(seed), tmp_path / str(seed)) for seed in (0, 1))
    whole = likewise.diff(a, b, TEXTS, blockwise=False, progress=False, batch_size=8)
    count = counted(monkeypatch)
    monkeypatch.setattr(language_blocks, "free_memory", lambda: 1)
    parts = likewise.diff(a, b, TEXTS, progress=False, batch_size=8)  # by default, since nothing fits
    assert set(count.values()) == {1, 3}  # 24 texts; the last norm stays
    assert parts.verdict == whole.verdict
    assert parts.weights == whole.weights
    assert [one.change for one in parts.layers] == pytest.approx([one.change for one in whole.layers], abs=1e-5)
    assert parts.scores["cka-debiased"] == pytest.approx(whole.scores["cka-debiased"], abs=1e-5)


def test_a_copy_in_half_precision_is_equal_but_for_rounding(tmp_path: Path) -> None:
    a, b = in_shards(llama(0), tmp_path / "a"), in_shards(llama(0).bfloat16(), tmp_path / "b")
    whole, parts = both_ways(a, b)
    assert parts.verdict == whole.verdict == "equal but for rounding"
    assert parts.tokens.rounding == pytest.approx(whole.tokens.rounding, rel=0.1)
    floors = [[layer.floor for layer in change.layers] for change in (parts, whole)]
    assert floors[0] == pytest.approx(floors[1], rel=0.1)


def test_networks_of_different_kinds_are_compared_by_their_most_similar_blocks(tmp_path: Path) -> None:
    a, b = in_shards(llama(0), tmp_path / "a"), in_shards(gpt2(1), tmp_path / "b")
    whole, parts = both_ways(a, b)
    assert [layer.layer for layer in parts.layers] == ["layers.0", "layers.1"]
    assert [layer.counterpart for layer in parts.layers] == [layer.counterpart for layer in whole.layers]
    for one, other in zip(parts.layers, whole.layers, strict=True):
        assert one.likeness == pytest.approx(other.likeness, abs=1e-5)
    assert parts.weights == whole.weights
    assert parts.verdict == whole.verdict


def test_networks_with_other_tokens_go_one_after_another(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    a, b = in_shards(llama(0), tmp_path / "a"), in_shards(llama(1), tmp_path / "b")
    words = PreTrainedTokenizerFast.from_pretrained(tmp_path / "b")
    words.add_tokens(["other"])
    words.save_pretrained(tmp_path / "b")
    whole, parts = both_ways(a, b)
    assert not parts.tokens.comparable
    assert parts.tokens.statistics["bits-per-byte-change"].value == pytest.approx(
        whole.tokens.statistics["bits-per-byte-change"].value, abs=1e-5
    )
    blocks = {layer.layer: layer for layer in whole.layers}
    assert [layer.layer for layer in parts.layers] == ["layers.0", "layers.1"]
    for layer in parts.layers:
        assert layer.change == pytest.approx(blocks[layer.layer].change, abs=1e-5)
    assert parts.weights == whole.weights


def test_what_cannot_be_read_block_by_block_is_refused(tmp_path: Path) -> None:
    a = in_shards(llama(0), tmp_path / "a")
    assert refusal(
        InputError, lambda: likewise.diff(a, a, TEXTS, names=["a", "b"], blockwise=True, reduce="spatial")
    ) == (
        "reduce='spatial' keeps every token, and a network that is read block by block gives one row per text. Choose "
        "'mean', 'last' or 'cls'."
    )
