"""`diff` beside a recording: the first layer that changes, with the old network gone; baselines of tests."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise import testing
from likewise.difference import record_arrays
from likewise.errors import InputError
from likewise.language.recorded import _divergence
from tests.comparison.recordings.test_recording import X, made
from tests.language.models import TEXTS, causal, tokenizer


def noisy(net: nn.Module, layer: str, size: float) -> nn.Module:
    net = copy.deepcopy(net)
    with torch.no_grad():
        weight = net.get_submodule(layer).weight
        weight.add_(size * weight.std() * torch.randn(weight.shape, generator=torch.Generator().manual_seed(7)))
    return net


@pytest.mark.parametrize("layer", ["0", "2", "4"])
@pytest.mark.parametrize("size", [1e-3, 0.1])
def test_the_layer_of_a_fault_is_named_without_the_old_network(tmp_path: Path, layer: str, size: float) -> None:
    path = likewise.record(made(), X, name="old", progress=False).save(tmp_path / "old")
    change = likewise.diff(path, noisy(made(), layer, size), X, progress=False)
    assert change.first_moved.layer == layer
    assert [name for name, _ in change.weights.changed] == [f"{layer}.weight"]
    exact = likewise.diff(made(), noisy(made(), layer, size), X, progress=False)
    for one, other in zip(change.layers, exact.layers, strict=True):
        assert one.change == pytest.approx(other.change, rel=0.1, abs=1e-7)
    assert change.answers.disagreement == exact.answers.disagreement
    assert change.verdict == exact.verdict


def test_the_same_network_is_identical_and_an_other_runtime_equal_but_for_rounding() -> None:
    recording = likewise.record(made(), X, name="old", progress=False)
    assert likewise.diff(recording, made(), X, progress=False).verdict == "identical"
    rows, arrays = X.numpy(), {}
    for name, module in made().named_children():  # another runtime: numpy, in another order of sums
        if isinstance(module, nn.Linear):
            weight, bias = module.weight.detach().numpy(), module.bias.detach().numpy()
            rows = (weight[:, ::-1] @ rows.T[::-1]).T + bias
        else:
            rows = np.maximum(rows, 0)
        arrays[name] = rows
    other = record_arrays(arrays, recording.probe, name="numpy", logits=rows)
    change = likewise.diff(recording, other)
    assert change.verdict in ("equal but for rounding", "identical")
    assert max(layer.change for layer in change.layers) < 1e-5


def test_a_layer_that_differs_while_what_follows_agrees_is_told_as_a_convention() -> None:
    recording = likewise.record(made(), X, name="old", progress=False)
    rows, arrays = X, {}
    with torch.no_grad():
        for name, module in made().named_children():
            rows = module(rows)
            arrays[name] = rows + 1 if name == "2" else rows  # given before something is taken off it
    other = record_arrays(arrays, recording.probe, name="elsewhere", logits=rows)
    sentence = "The last layer agrees again: this is a convention, such as a sum that is taken elsewhere."
    assert sentence in likewise.diff(recording, other).findings()["layers"]
    assert sentence not in likewise.diff(recording, noisy(made(), "2", 0.1), X, progress=False).findings()["layers"]


def test_language_models_are_compared_by_what_was_recorded(tmp_path: Path) -> None:
    a, b = causal(), causal(noise=0.5)
    path = likewise.record(a, TEXTS, name="old", progress=False).save(tmp_path / "lm")
    change = likewise.diff(path, b, TEXTS, fail_over={"kl": 1e-12}, progress=False)
    exact = likewise.diff(a, b, TEXTS, names=["old", "new"], progress=False)
    assert change.first_moved.layer == exact.first_moved.layer == "layers.1.mlp.down_proj"
    kl, whole = (one.tokens.statistics["kl"].value for one in (change, exact))
    assert 0.9 * whole < kl <= whole * 1.001  # never more than over all tokens, but for rounding to single precision
    assert change.tokens.statistics["same-top"].value == exact.tokens.statistics["same-top"].value
    assert not change.ok
    assert likewise.diff(path, causal(), TEXTS, progress=False).verdict == "identical"


def test_a_baseline_is_written_by_the_first_run_and_compared_by_the_next(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.likewise"
    with pytest.warns(UserWarning, match="is recorded as the baseline"):
        assert testing.assert_alike(made(), baseline, X, progress=False) is None
    assert testing.assert_alike(made(), baseline, X, progress=False).verdict == "identical"
    with pytest.raises(AssertionError) as error:
        testing.assert_alike(made(3), baseline, X, progress=False)
    assert ": different" in str(error.value)
    with pytest.raises(AssertionError, match=r"disagreement = .* is over 0.01"):
        testing.assert_alike(made(3), baseline, X, fail_over={"disagreement": 0.01}, progress=False)


def test_a_recording_cannot_be_attacked_and_needs_data_beside_a_network() -> None:
    recording = likewise.record(made(), X, progress=False)
    with pytest.raises(InputError) as error:
        likewise.diff(recording, made(), X, transfer=True)
    assert str(error.value) == "a recording holds no network, so none can be attacked. Leave transfer out."
    with pytest.raises(InputError) as error:
        likewise.diff(recording, made())
    assert str(error.value) == "no data to show the network. Pass the data that the recording was made on."


@pytest.mark.parametrize(("old", "new"), [("float32", "bfloat16"), ("bfloat16", "float32"), ("bfloat16", "bfloat16")])
def test_another_precision_or_batch_size_is_rounding_and_a_fault_beyond_it_is_named(old: str, new: str) -> None:
    before, after = (getattr(torch, precision) for precision in (old, new))
    sizes = {"hidden_size": 64, "intermediate_size": 128}
    recording = likewise.record(causal(**sizes).to(before), TEXTS, name="old", progress=False)
    same = likewise.diff(recording, causal(**sizes).to(after), TEXTS, batch_size=5, progress=False)
    assert same.verdict in ("identical", "equal but for rounding")
    assert same.first_moved is None
    faulty = likewise.diff(recording, causal(noise=0.3, **sizes).to(after), TEXTS, batch_size=5, progress=False)
    assert faulty.first_moved.layer == "layers.1.mlp.down_proj"
    assert faulty.verdict == "close"


@pytest.mark.parametrize("seed", range(6))
def test_one_drawing_of_finer_weights_is_not_the_most_that_rounding_does(seed: int) -> None:
    recording = likewise.record(causal(seed, hidden_size=16), TEXTS[:2], name="old", progress=False)
    same = likewise.diff(recording, causal(seed, hidden_size=16).to(torch.bfloat16), TEXTS[:2], progress=False)
    assert same.first_moved is None


def test_single_precision_of_probabilities_is_no_divergence() -> None:
    draw = np.random.default_rng(0)
    logits = torch.tensor(draw.normal(size=(20, 500)) * 3)
    top = logits.log_softmax(dim=1).topk(64, dim=1)
    kept = {"top": top.indices.int().numpy(), "log_p": top.values.float().numpy()}
    moved = {**kept, "log_p": kept["log_p"] * np.float32(1 + 1e-7)}
    assert (_divergence(kept, kept) == 0).all()
    assert (_divergence(kept, moved) >= 0).all()
    assert _divergence(kept, moved).max() < 1e-11


def test_models_that_answer_in_other_ways_are_refused_and_words_are_those_of_the_network_that_is_there() -> None:
    from transformers import BertConfig, BertForMaskedLM

    recording = likewise.record(causal(), TEXTS, name="old", progress=False)
    masked = BertForMaskedLM(
        BertConfig(vocab_size=len(tokenizer()), hidden_size=16, intermediate_size=32, num_attention_heads=2)
    )
    with pytest.raises(InputError) as error:
        likewise.diff(recording, likewise.network(masked.eval(), tokenizer=tokenizer()), TEXTS, progress=False)
    assert str(error.value) == ("old is a causal and BertForMaskedLM a masked language model. Compare two of a kind.")
    change = likewise.diff(recording, causal(noise=2.0), TEXTS, progress=False)
    parted = next(text for text in change.tokens.changed if text.position is not None)
    assert parted.truth in TEXTS[parted.row]


def test_a_recording_and_a_language_model_are_compared_without_its_head() -> None:
    recording = likewise.record(causal(), TEXTS, name="old", progress=False)
    assert float(likewise.compare(recording, causal(), data=TEXTS, progress=False)) == pytest.approx(1, abs=1e-6)
    layers = likewise.layerwise(recording, causal(), data=TEXTS, progress=False)
    assert list(layers.rows) == list(layers.columns) == ["layers.0", "layers.1", "norm"]
