"""`diff` of language models: what changed in layers, weights and words, and when it raises an alarm."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import likewise
from likewise.difference.language_models.tokens import token_changes
from likewise.errors import InputError
from tests.language.models import TEXTS, causal, saved
from tests.language.test_result import made


def changed(a, b, **options):
    return likewise.diff(a, b, TEXTS, names=["a", "b"], progress=False, **options)


def test_a_copy_is_identical_and_a_noisy_layer_is_named() -> None:
    same = changed(causal(), causal())
    assert same.verdict == "identical"
    assert same.tokens.statistics["kl"].value == 0
    noisy = changed(causal(), causal(noise=0.05))
    assert noisy.verdict == "close"
    assert noisy.first_moved.layer == "layers.1.mlp.down_proj"
    assert [name for name, _ in noisy.weights.changed] == ["model.layers.1.mlp.down_proj.weight"]
    assert changed(causal(), causal(seed=3)).verdict == "different"


def test_a_copy_in_half_precision_is_equal_but_for_rounding_and_a_fault_in_it_is_found() -> None:
    half = changed(causal(), causal().to(torch.bfloat16))
    assert half.verdict == "equal but for rounding"
    assert half.first_moved is None
    assert half.tokens.rounding == pytest.approx(half.tokens.statistics["kl"].value, rel=0.2)
    faulty = changed(causal(), causal(noise=0.3).to(torch.bfloat16))
    assert faulty.first_moved.layer == "layers.1.mlp.down_proj"
    assert faulty.verdict in ("close", "changed")


def test_thresholds_of_next_tokens_decide() -> None:
    most = {"kl": 1e-9, "kl[statistic=p99]": 100}
    change = changed(causal(), causal(noise=1.0), fail_over=most, fail_under={"same-top": 0})
    assert change.failures == [f"kl = {change.tokens.statistics['kl'].value:.4g} is over 1e-09"]
    assert not change.ok


def test_thresholds_of_next_tokens_are_refused_for_networks_of_images() -> None:
    net = likewise.network("zoo:mlp", size=8, channels=1)
    with pytest.raises(InputError) as error:
        likewise.diff(net, net, "digits:test[:20]", fail_over={"kl": 0.1}, progress=False)
    assert str(error.value) == (
        "kl looks at what language models say of texts, and these networks or this data are not of the kind. Choose a "
        "measure of layers or answers."
    )


def test_the_text_and_the_files_tell_what_parts(tmp_path) -> None:
    change = changed(causal(), causal(noise=2.0))
    text = str(change)
    assert "KL divergence" in text
    assert "first to change" in text
    worst = change.tokens.changed[0]
    assert worst.kl == max(entry.kl for entry in change.tokens.changed)
    assert f"\n{worst.row} " in text
    facts = json.loads((change.write(tmp_path / "out")[1]).read_text())
    assert facts["tokens"]["statistics"]["kl"]["value"] == pytest.approx(change.tokens.statistics["kl"].value)
    assert "Texts that changed most" in (tmp_path / "out" / "diff.md").read_text()
    assert "KL divergence" in change._repr_html_()


def test_addresses_and_tokens_are_compared_as_modules_are(tmp_path) -> None:
    from tests.language.models import tokenizer

    a, b = causal(words=False), causal(noise=0.5, words=False)
    addresses = [saved(net, tmp_path / name) for net, name in ((a, "a"), (b, "b"))]
    whole = likewise.diff(*addresses, TEXTS, progress=False)
    tokens = dict(tokenizer()(TEXTS, padding=True, return_tensors="pt"))
    ids = {key: tokens[key] for key in ("input_ids", "attention_mask")}
    bare = likewise.diff(a, b, ids, names=["a", "b"], progress=False)
    assert bare.tokens.statistics["kl"].value == pytest.approx(whole.tokens.statistics["kl"].value, rel=1e-5)
    assert bare.verdict == whole.verdict
    assert bare.first_moved.layer == whole.first_moved.layer == "layers.1.mlp.down_proj"


def test_few_texts_and_broken_ones_are_refused_in_a_sentence() -> None:
    for texts, count in ((TEXTS[:1], "is 1 text"), (TEXTS[:3], "are 3 texts")):
        with pytest.raises(InputError) as error:
            likewise.diff(causal(), causal(), texts, names=["a", "b"], progress=False)
        assert str(error.value) == (
            f"there {count}, and layers are compared over at least 4. Give more, or cut a long one into several; "
            "likewise.language.answers compares the words of fewer."
        )
    with pytest.raises(InputError) as error:
        likewise.diff(causal(), causal(), [*TEXTS[:5], "half \ud800"], names=["a", "b"], progress=False)
    assert str(error.value) == (
        "a text has half of a Unicode character (a surrogate), which no tokenizer takes. Decode its file with "
        "errors='replace'."
    )


def test_what_a_tokenizer_gives_is_data_for_any_network() -> None:
    from transformers import BertConfig, BertForSequenceClassification

    from tests.language.models import tokenizer

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1}
    net = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer()), num_labels=3, **sizes)).eval()
    tokens = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    change = likewise.diff(net, copy.deepcopy(net), tokens, names=["a", "b"], progress=False)
    assert change.verdict == "identical"
    assert change.n == change.answers.n == len(TEXTS)
    words = likewise.extract(likewise.network(net, tokenizer=tokenizer()), TEXTS, progress=False)
    rows = likewise.extract(net, tokens, batch_size=5, progress=False)
    assert np.allclose(rows.values, words.values, atol=1e-6)


def test_a_token_that_moves_in_every_text_is_found_and_chance_is_not() -> None:
    draw = np.random.default_rng(0)
    answers = made((0.1 + 0.02 * draw.exponential(size=(30, 12))).tolist())
    token = np.tile(np.arange(12), 30)
    kl = answers.kl.copy()
    kl[token == 5] += 0.1
    found = token_changes(replace(answers, kl=kl, token=token)).drifting_tokens
    assert [drift.name for drift in found if drift.sure] == ["'5'"]
    alarms = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        quiet = replace(made(draw.normal(1, 0.1, size=(30, 12)).tolist()), token=token)
        alarms += any(drift.sure for drift in token_changes(quiet).drifting_tokens)
    assert alarms <= 6  # 5 % of zoos at most, 2 expected of 40
